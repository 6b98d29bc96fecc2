"""G1 and re-noised gossip: the loss of one observer among 2048, and the printed formula against
dense powers."""

from __future__ import annotations

import time

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array
from bruit.graphs import Graph, erdos_renyi
from bruit.privacy.theorems.published import published_pairwise
from bruit.runs.run import rehearse


def dense_powers(graph: Graph, steps: int) -> Array:
    """The printed sum as one would write it with dense matrices."""
    weights = graph.weights.toarray()
    power, shares = np.eye(graph.n), np.zeros((graph.n, graph.n))
    for t in range(steps):
        squares = power**2
        shares += squares / squares.sum(axis=0)
        power = weights @ power if t else weights
    return np.asarray(shares @ ((weights > 0) & ~np.eye(graph.n, dtype=bool)))


def observers(graph: Graph) -> list[int]:
    """Typical ones: around the median degree."""
    return [
        int(v)
        for v in np.argsort(graph.degrees, kind="stable")[graph.n // 2 - 2 : graph.n // 2 + 3]
    ]


def measure(quick: bool = False) -> Answer:
    answer = Answer("G1: how fast are re-noised gossip and the printed formula?", quick)
    peers, steps = (512, 8) if quick else (2048, 22)
    sparse, denser = erdos_renyi(peers, c=1.0, seed=1), erdos_renyi(peers, c=1.5, seed=1)
    for rounds in (steps, 5 * steps):
        run = rehearse(
            br.Renoised(tau=0.1), sparse, br.Gaussian(clip=1.0, sigma=1.5), rounds
        ).accountant()
        theorem, facts = run.theorem()[0], run.facts
        assert theorem is not None
        seconds = []
        for v in observers(sparse):
            begin = time.process_time()
            theorem.losses(facts, (v,))
            seconds.append(time.process_time() - begin)
        found = float(np.median(seconds))
        answer.add(f"re-noised gossip, one observer, {sparse.name}, {rounds} steps", found, "CPU s")
        answer.goals.append(Goal(f"one observer of {peers}, {rounds} steps: CPU s", found, 0.2))
    known = interleaved(
        {
            "printed": lambda: published_pairwise(denser, steps),
            "dense": lambda: dense_powers(denser, steps),
        },
        repeats=1 if quick else 3,
    )
    exact, found_all = dense_powers(denser, 5), published_pairwise(denser, 5)
    off = (exact > 1e-30) & ~np.eye(peers, dtype=bool)
    answer.add(
        f"printed formula, all pairs, {denser.name}, {steps} steps", known["printed"], "CPU s"
    )
    answer.add("the same by dense powers", known["dense"], "CPU s")
    answer.add(
        "largest relative error after 5 steps",
        float(np.abs(found_all[off] / exact[off] - 1).max()),
        "",
    )
    ratio = known["dense"] / known["printed"]
    answer.goals.append(
        Goal("printed formula, times faster than dense powers", ratio, 100, at_least=True)
    )
    return answer


if __name__ == "__main__":
    main(measure)
