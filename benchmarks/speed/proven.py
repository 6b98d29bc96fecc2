"""What proven arithmetic costs: averaging on a grid with dithers against the same in plain floats
(fp:FP-1, FP-4).

Every message carries a dither of its own, so that each of the n d numbers of a round is a fresh
exact discrete normal number, rounded and added, where ideal arithmetic only mixes. Both take turns
in one process.
"""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.graphs import regular
from bruit.randomness import Replay
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks import Mean

D, ROUNDS, DEGREE = 64, 20, 6
DITHER = 2.0**30  # deviation of a dither in units of the grid


def measure(quick: bool = False) -> Answer:
    n = 5_000 if quick else 100_000
    answer = Answer(
        f"What does proven arithmetic cost? {n} peers, d = {D}, degree {DEGREE}, {ROUNDS} rounds",
        quick,
    )
    graph, task = regular(n, DEGREE, seed=1), Mean.uniform(n, D, 1)
    dice, lanes, x = Replay(0), np.arange(n // 10), task.values

    def averaged(arithmetic: str) -> object:
        noise = br.Gaussian(clip=1.0, sigma=1.0, arithmetic=arithmetic)
        return br.run(br.Averaging(), graph, task, privacy=noise, steps=ROUNDS, evaluate_every=0)

    seconds = interleaved(
        {
            "ideal": lambda: averaged("ideal"),
            "grid": lambda: averaged("grid"),
            "mixing": lambda: graph.weights @ x,
            "normal": lambda: dice.normal("noise", lanes, 0, 0, D),
            "discrete": lambda: discrete_normals(dice, "noise", lanes, 0, 0, D, DITHER),
        },
        5,
    )
    for name in ("ideal", "grid"):
        answer.add(f"averaging, {name} arithmetic", seconds[name], "CPU s")
    answer.add("one product with the weights", seconds["mixing"] * 1e3, "CPU ms")
    more = (seconds["grid"] - seconds["ideal"]) / ROUNDS
    answer.add("a round on the grid, more than in ideal arithmetic", more * 1e3, "CPU ms")
    for name, label in (("normal", "float normals"), ("discrete", "exact discrete normals")):
        answer.add(label, len(lanes) * D / seconds[name] / 1e6, "million a CPU second")
    answer.goals += [
        Goal(
            "averaging: times the cost of ideal arithmetic", seconds["grid"] / seconds["ideal"], 2
        ),
        Goal(
            "a discrete normal number: times the cost of a float normal",
            seconds["discrete"] / seconds["normal"],
            4,
        ),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
