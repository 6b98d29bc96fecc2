"""G6: randomized pair averaging, a hundred million activations among 2048 peers, against a plain
loop."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array
from bruit.graphs import Graph, erdos_renyi
from bruit.randomness import Replay
from bruit.tasks import Mean

FUSED = br.Bulk(fused=True)


def plain_loop(graph: Graph, x: Array, count: int) -> None:
    """What one writes first: a random edge, the mean of its ends."""
    ends, rng = graph.edges(), np.random.default_rng(0)
    for _ in range(count):
        a, b = ends[rng.integers(len(ends))]
        x[a] = x[b] = 0.5 * (x[a] + x[b])


def measure(quick: bool = False) -> Answer:
    answer = Answer("G6: how fast do pairs meet?", quick)
    graph, total, few = erdos_renyi(2048, c=1.5, seed=1), 10**6 if quick else 10**8, 10**4
    task, values = Mean.uniform(graph.n, 1, 1), np.random.default_rng(0).random(graph.n)
    wide = Mean.uniform(graph.n, 8, 1)
    dice, sheets = Replay(0), -(-(10**6) // 1024)

    def fused(law: str, count: int, over: Mean) -> object:
        return br.run(
            br.PairAveraging(br.Pairs(law, count)),
            graph,
            over,
            steps=1,
            evaluate_every=0,
            engine=FUSED,
        )

    def generic() -> object:
        return br.run(
            br.PairAveraging(br.Pairs("edges", 10 * few)), graph, task, steps=1, evaluate_every=0
        )

    seconds = interleaved(
        {
            "loop": lambda: plain_loop(graph, values, few),
            "generic": generic,
            "draws": lambda: dice.uniform("floor", np.arange(sheets), 0, 0, 1024),
            "edges": lambda: fused("edges", total, task),
            "weights": lambda: fused("weights", total, task),
            "wide": lambda: fused("edges", total // 10, wide),
        },
        3,
    )
    labels = {
        "loop": ("plain Python loop", few),
        "generic": ("br.run, generic", 10 * few),
        "draws": ("floor: the random numbers alone", sheets * 1024),
        "edges": ("fused, uniform edges", total),
        "weights": ("fused, law of the weights", total),
        "wide": ("fused, uniform edges, d = 8", total // 10),
    }
    for name, (label, count) in labels.items():
        answer.add(label, seconds[name] / count * 1e9, "CPU ns an activation")
    for name in ("edges", "weights"):
        answer.goals.append(
            Goal(f"10^8 activations, law {name}: CPU s", seconds[name] / total * 1e8, 1.0)
        )
    answer.goals.append(
        Goal("the same, at the speed of the prototype", seconds["edges"] / total * 1e8, 0.35)
    )
    speedup = seconds["loop"] / few / (seconds["edges"] / total)
    answer.goals.append(Goal("times faster than the loop", speedup, 700, at_least=True))
    return answer


if __name__ == "__main__":
    main(measure)
