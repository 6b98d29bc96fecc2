"""G11: how long a fresh process takes before it does anything, with the compiler's cache warm."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

from benchmarks.timing import Answer, Goal, main

RUN = (
    "import numpy as np, bruit as br;br.run(br.Averaging(), 'ring:8', br.tasks.Mean(np.ones((8,"
    " 4))), steps=2, evaluate_every=0, engine=br.Bulk(fused={}))"
)
SCRIPTS = {
    "import numpy": "import numpy",
    "import bruit": "import bruit",
    "small run": RUN.format(False),
    "first kernel": RUN.format(True),
}
NUMBA = "import sys, bruit; print('numba' in sys.modules)"


def cpu_seconds(script: str) -> float:
    """CPU seconds, user and system, of a fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", script], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(quick: bool = False) -> Answer:
    answer = Answer("G11: how cold is a cold start?", quick)
    found: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    for turn in range(3 if quick else 6):
        for name, script in SCRIPTS.items():
            seconds = cpu_seconds(script)
            if turn:
                found[name].append(seconds)
    loaded = subprocess.run(
        [sys.executable, "-c", NUMBA], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name, seconds_of in found.items():
        answer.add(name, median(seconds_of), "CPU s")
    answer.goals += [
        Goal("import loads numba (1: yes)", float(loaded == "True"), 0),
        Goal("import bruit: CPU s", median(found["import bruit"]), 0.4),
        Goal("first compiled kernel, cache warm: CPU s", median(found["first kernel"]), 1.0),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
