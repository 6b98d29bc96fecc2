"""`python -m benchmarks.peers [NAME ...] [--quick] [--json] [--folder DIR]`: public rivals that the
package index has, on one small task, each in an environment of its own.

Digits; a logistic model and a network 64-32-10. First 100 peers, 100 rounds, simulated as each does
it; then 16 peers that are 16 real processes (logistic). CPU seconds are those of all processes from
start to end, imports included; those of the rounds alone are the difference to a run of one round.
Environments are made below DIR once; what is here already (numpy, torch) is shared.
Nobody adds noise. Flower and declearn average at a server; the others gossip. Not in the tables:
murmura and decentralizepy are not in the index, and p2pfl asks for another numpy than we do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.peers.costs import cost
from benchmarks.peers.problem import Problem

RUNNERS, ROOT = Path(__file__).parent / "runners", Path(__file__).parents[2]
TIMEOUT = 1800.0


@dataclass(frozen=True)
class Rival:
    """A script, the package that it shows, and what is installed for it besides what is here."""

    script: str
    package: str
    needs: tuple[str, ...] = ()
    quiet: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()


DECLEARN = ("declearn[torch,websockets]",)
RIVALS = {
    "floor": Rival("floor.py", "numpy"),
    "bruit": Rival("ours.py", "bruit"),
    "gossipy": Rival(
        "gossipy_dfl.py", "gossipy-dfl", ("gossipy-dfl", "torchvision")
    ),  # it forgets to ask for it
    "QuinkGL": Rival("quinkgl_nodes.py", "QuinkGL", ("QuinkGL",)),
    "declearn": Rival("declearn_clients.py", "declearn", DECLEARN),
    "Flower": Rival("flower.py", "flwr", ("flwr[simulation]",), (("FLWR_TELEMETRY_ENABLED", "0"),)),
}
PROCESSES = {
    "floor": Rival("floor.py", "numpy"),
    "bruit": Rival("ours_processes.py", "bruit"),
    "declearn": Rival("declearn_clients.py", "declearn", DECLEARN, words=("--processes",)),
}


@dataclass(frozen=True)
class Table:
    """Who runs what."""

    title: str
    rivals: Mapping[str, Rival]
    problem: Problem


def tables(quick: bool) -> list[Table]:
    peers, rounds, few = (20, 10, 6) if quick else (100, 100, 16)
    apart = f"logistic, {few} peers as {few} processes (the floor is one), {rounds} rounds"
    return [
        *(
            Table(f"{model}, {peers} peers, {rounds} rounds", RIVALS, Problem(peers, rounds, model))
            for model in ("logistic", "mlp")
        ),
        Table(apart, PROCESSES, Problem(few, rounds, "logistic")),
    ]


def python_of(rival: Rival, folder: Path) -> Path:
    """The interpreter of its environment, which is made if it is not there."""
    if not rival.needs:
        return Path(sys.executable)
    place = folder / rival.script.removesuffix(".py")
    done = place / "done"
    if not done.exists():
        print(f"installing {', '.join(rival.needs)} into {place}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        inside = next((place / "lib").glob("python*")) / "site-packages"
        (inside / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
        install = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *rival.needs], check=True)
        done.touch()
    return place / "bin" / "python"


def measured(rival: Rival, python: Path, problem: Problem) -> dict[str, Any]:
    """One run, and one of a single round."""
    costs = []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= dict(rival.quiet)
    with tempfile.TemporaryDirectory() as folder:
        for rounds in (1, problem.rounds):
            file = Path(folder) / f"{rounds}.npz"
            Problem(problem.peers, rounds, problem.model).write(file)
            command = [str(python), str(RUNNERS / rival.script), str(file), *rival.words]
            costs.append(cost(command, environment, TIMEOUT))
            if costs[-1].failed:
                return {"failed": costs[-1].failed}
    one, all_ = costs
    return {
        "cpu_s": round(all_.cpu, 2),
        "rounds_cpu_s": round(all_.cpu - one.cpu, 2),
        "mib": round(all_.mib),
        "accuracy": json.loads(all_.said.splitlines()[-1])["accuracy"],
    }


def tried(rival: Rival, folder: Path, table: Table) -> dict[str, Any]:
    """One row; a rival that cannot be installed fails alone."""
    try:
        python = python_of(rival, folder)
        said = {"version": version_of(rival, python)} | measured(rival, python, table.problem)
    except subprocess.CalledProcessError as error:
        said = {"failed": f"{rival.package} could not be installed (pip gave {error.returncode})"}
    return said | {"load": round(os.getloadavg()[0], 1)}


def version_of(rival: Rival, python: Path) -> str:
    """What is installed there."""
    ask = f"import importlib.metadata as m; print(m.version({rival.package!r}))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    return f"{rival.package} {done.stdout.strip()}"


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RIVALS)}")
    asked.add_argument("--quick", action="store_true", help="few peers, 10 rounds")
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--folder", type=Path, default=ROOT / "build" / "rivals")
    words = asked.parse_args()
    if unknown := [name for name in words.names if name not in RIVALS]:
        asked.error(f"no rival {unknown[0]!r}; there are {', '.join(RIVALS)}")
    found = []
    for table in tables(words.quick):
        for name, rival in table.rivals.items():
            if words.names and name not in words.names:
                continue
            found.append({"table": table.title, "who": name} | tried(rival, words.folder, table))
            print(line(found[-1]), file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1) if words.json else printed(found))
    return 1 if any("failed" in row for row in found) else 0


def printed(found: list[dict[str, Any]]) -> str:
    lines: list[str] = []
    for title in dict.fromkeys(row["table"] for row in found):
        head = f"{'':<10}{'CPU s':>9}{'rounds':>9}{'MiB':>7}{'accuracy':>10}{'load':>6}"
        lines += ["", title, head, *(line(row) for row in found if row["table"] == title)]
    return "\n".join([f"{date.today()}, {os.cpu_count()} processors", *lines])


def line(row: dict[str, Any]) -> str:
    begin = f"{row['who']:<10}"
    if "failed" in row:
        return f"{begin}failed: {''.join(row['failed'].strip().splitlines()[-1:])}"
    numbers = f"{row['cpu_s']:>9.2f}{row['rounds_cpu_s']:>9.2f}{row['mib']:>7}"
    return f"{begin}{numbers}{row['accuracy']:>10.4f}{row['load']:>6.1f}  {row['version']}"


if __name__ == "__main__":
    sys.exit(main())
