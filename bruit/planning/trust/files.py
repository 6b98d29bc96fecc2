"""Who trusts whom, as a table; and a plan for it, as files that run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError
from bruit.files import write_whole
from bruit.graphs import Graph
from bruit.planning.option import rounded_up
from bruit.planning.trust.unequal_trust import TrustPlan
from bruit.runs.settings import document

FILES = ("experiment.toml", "edges.txt", "noise_multipliers.csv")


def facts_of(plan: TrustPlan, caps: Array, delta: float) -> dict[str, Any]:
    """The plan as plain data, beside what local DP would give."""
    return {
        "peers": len(caps),
        "graph": plan.graph.name if plan.circles else "file:edges.txt",
        "edges": last_graph(plan).edges().tolist(),
        "circles": [list(circle) for circle in plan.circles],
        "algorithm": plan.algorithm,
        "steps": plan.steps,
        "noise_multipliers": plan.multipliers.tolist(),
        "noise_multiplier": float(plan.multipliers.max()),
        "status": plan.status,
        "theorem": plan.theorem,
        "delta": delta,
        "level": "user",
        "tightest": float(np.nanmax(plan.epsilon / caps)),
        "predicted": {
            "error_of_the_mean": plan.error,
            "upper_bound": False,
            "statement": "silo:SILO-8: sqrt(sum z_u^2) / n, once mixed",
        },
        "alternatives": [
            {
                "protocol": "local-dp, a noise per peer",
                "predicted": {"error_of_the_mean": plan.local_error},
            },
            {
                "protocol": "local-dp, one noise for all",
                "predicted": {"error_of_the_mean": plan.equal_error},
            },
        ],
    }


def last_graph(plan: TrustPlan) -> Graph:
    """The graph that mixes in the end."""
    return plan.graph if isinstance(plan.graph, Graph) else plan.graph.at(1)


def write_trust(plan: TrustPlan, folder: Path, delta: float) -> None:
    """The experiment, its links and its noises as files of a folder; nothing is overwritten."""
    for name in FILES:
        if (folder / name).exists():
            raise ConfigError(f"{folder / name} exists; choose another folder for --save")
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "edges.txt", last_graph(plan).edges(), fmt="%d")
    np.savetxt(
        folder / "noise_multipliers.csv",
        np.stack((np.arange(len(plan.multipliers)), plan.multipliers), axis=1),
        fmt=("%d", "%.12g"),
        delimiter=",",
        header="peer,noise_multiplier",
        comments="",
    )
    text = document(
        {
            "graph": plan.graph.name if plan.circles else "file:edges.txt",
            "steps": plan.steps,
            "seed": 0,
            "task": {"kind": "mean", "dim": 1},
            "algorithm": {"name": plan.algorithm},
            "privacy": {
                "clip": 0.5,
                "sigmas": [float(rounded_up(z, 9)) for z in plan.multipliers.tolist()],
                "delta": delta,
            },
        }
    )
    comment = (
        "# planned by `bruit plan --trust`: every cap holds, for values cut to length 0.5 (clip);"
        " for another clip multiply all sigmas alike\n"
    )
    write_whole(folder / "experiment.toml", lambda file: file.write((comment + text).encode()))


def read_trust(path: str | Path, epsilon: float, peers: int | None = None) -> Array:
    """caps[u, v] from a CSV file with the columns of, seen_by, epsilon; pairs it does not name get
    `epsilon`. Full trust is an epsilon of inf."""
    import csv

    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    missing = {"of", "seen_by", "epsilon"} - set(rows[0] if rows else ())
    if missing:
        raise ConfigError(
            f"{path} needs the columns of, seen_by, epsilon; it lacks {', '.join(sorted(missing))}"
        )
    found = [_pair(path, number, row) for number, row in enumerate(rows, 2)]
    n = max(max(u, v) for u, v, _ in found) + 1 if peers is None else peers
    caps, told = np.full((n, n), float(epsilon)), set[tuple[int, int]]()
    for number, (u, v, value) in enumerate(found, 2):
        if (u, v) in told:
            raise ConfigError(
                f"{path}, line {number}: what peer {v} may learn of peer {u} is said twice; keep one"
            )
        told.add((u, v))
        if max(u, v) >= n:
            raise ConfigError(
                f"{path}, line {number}: there is no peer {max(u, v)}, the peers are 0..{n - 1}"
            )
        caps[u, v] = value
    np.fill_diagonal(caps, np.nan)
    return caps


def _pair(path: str | Path, number: int, row: dict[str, str]) -> tuple[int, int, float]:
    try:
        u, v, value = int(row["of"]), int(row["seen_by"]), float(row["epsilon"])
    except (TypeError, ValueError):
        wanted = "of and seen_by are peers and epsilon is a number"
        raise ConfigError(f"{path}, line {number}: {wanted}, found {row}") from None
    if u == v:
        raise PrivacyError(
            f"{path}, line {number}: peer {u} has no secrets from itself; name two peers"
        )
    if u < 0 or v < 0 or not value > 0:
        raise PrivacyError(
            f"{path}, line {number}: peers are >= 0 and epsilon is positive, found {row}"
        )
    return u, v, value
