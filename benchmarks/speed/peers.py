"""Real peers: the CPU a peer spends on a round, and the memory of a process that hosts one peer or
many.

Journals are synced to disk and lines are mutual TLS over loopback, as in the field; only the dice
are replayable.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import Answer, Goal, main
from bruit.peers.founding.founding import found

HOSTED = """
import json, resource, time, bruit as br
from bruit.peers.engine import Network
graph = br.graphs.regular({peers}, 4, seed=1)
task = br.tasks.Softmax.load("digits", peers={peers})
start = time.process_time()
run = br.run(br.GossipSGD(0.5), graph, task, steps={rounds}, evaluate_every=0, engine=Network(timeout=120.0))
cpu = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
same = br.run(br.GossipSGD(0.5), graph, task, steps={rounds}, evaluate_every=0)
print(json.dumps([cpu, peak, float(abs(run.estimates - same.estimates).max())]))
"""
LONG = """
graph = "complete:2"
steps = 100000
[task]
kind = "softmax"
data = "digits"
[algorithm]
name = "gossip-sgd"
rate = 0.5
"""
NOISE = """
[privacy]
sigma = 1.0
"""
ROUNDS_SEEN = 50  # rounds after which a process has loaded everything it will ever need


def hosted(peers: int, rounds: int) -> tuple[float, float, float]:
    """CPU seconds, peak MiB, and the difference to the simulator, of a fresh process that hosts all
    peers."""
    script = HOSTED.format(peers=peers, rounds=rounds)
    surroundings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=surroundings
    )
    cpu, peak, difference = json.loads(done.stdout)
    return cpu, peak, difference


@contextmanager
def two_processes(experiment: str) -> Iterator[list[tuple[Path, subprocess.Popen[bytes]]]]:
    """Two `bruit peer run` on loopback, in the middle of a long experiment."""
    with tempfile.TemporaryDirectory(prefix="bruit-bench-") as folder:
        (Path(folder) / "long.toml").write_text(experiment)
        sites = found(str(Path(folder) / "long.toml"), 2, None, Path(folder) / "network")
        started = [
            (
                site,
                subprocess.Popen(
                    [sys.executable, "-m", "bruit", "peer", "run", str(site), "--quiet"]
                ),
            )
            for site in sites
        ]
        try:
            yield started
        finally:
            for _, process in started:
                process.send_signal(signal.SIGTERM)
            for _, process in started:
                process.wait(30)


def resident(process: int, key: str = "VmRSS") -> float:
    """MiB of a process, as Linux says it."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


def lean(experiment: str = LONG) -> tuple[float, float]:
    """Resident MiB, now and at most, of one of two real processes once they are under way."""
    with two_processes(experiment) as started:
        site, process = started[0]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            status = site.parent / "state" / "status.json"
            if status.is_file() and json.loads(status.read_text())["step"] >= ROUNDS_SEEN:
                return resident(process.pid), resident(process.pid, "VmHWM")
            time.sleep(0.1)
        raise SystemExit(
            f"peer {site.parent.name} did not get to round {ROUNDS_SEEN} (exit code "
            f"{process.poll()})"
        )


def measure(quick: bool = False) -> Answer:
    answer = Answer(
        "Real peers, softmax on digits, degree 4, all in one process: what do they cost?", quick
    )
    peers, few, rounds = (20, 10, 10) if quick else (100, 20, 100)
    begin, _, _ = hosted(peers, 1)
    cpu, peak, difference = hosted(peers, rounds)
    _, smaller, _ = hosted(few, rounds)
    answer.add(
        f"{peers} peers: keys, handshakes and the first round", begin / peers * 1e3, "CPU ms a peer"
    )
    answer.add(
        f"{peers} peers, {rounds} rounds: all", cpu / peers / rounds * 1e3, "CPU ms a peer-round"
    )
    answer.add(
        "the same, every round but the first",
        (cpu - begin) / peers / (rounds - 1) * 1e3,
        "CPU ms a peer-round",
    )
    answer.add("largest difference to the simulator", difference, "")
    now, most = lean()
    answer.add("one `bruit peer run`: resident", now, "MiB")
    answer.add("one `bruit peer run`: at most", most, "MiB")
    answer.add(
        "the same with noise, and so with an accountant: resident", lean(LONG + NOISE)[0], "MiB"
    )
    answer.add(f"{peers} peers in one process: at most", peak, "MiB")
    extra = (peak - smaller) / (peers - few)
    answer.goals += [
        Goal(f"{peers} peers, {rounds} rounds: CPU ms a peer-round", cpu / peers / rounds * 1e3, 6),
        Goal("a process with one peer: MiB", now, 100),
        Goal(
            f"one more peer in a shared process ({few} to {peers}), its data included: MiB",
            extra,
            2,
        ),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
