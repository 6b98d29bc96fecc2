"""GoSta: an AUC among a hundred thousand peers, a hundred meetings each, against the generic
engine."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.pairs.gosta import Gosta
from bruit.graphs import regular
from bruit.tasks.pairs.statistic import Statistic

MEETINGS = 100  # of each peer
FEW = 10


def measure(quick: bool = False) -> Answer:
    answer = Answer("How fast do pairs of points tell an AUC?", quick)
    n = 10**4 if quick else 10**5
    rng, graph = np.random.default_rng(0), regular(n, 10, seed=1)
    labels = (rng.random(n) < 0.3).astype(np.float64)
    task = Statistic.auc(rng.normal(size=n) + 0.8 * labels, labels)

    def gossip(each: int, fused: bool) -> object:
        schedule = br.Pairs("edges", each * n // 2)
        return br.run(
            Gosta(schedule), graph, task, steps=1, evaluate_every=0, engine=br.Bulk(fused=fused)
        )

    seconds = interleaved(
        {"fused": lambda: gossip(MEETINGS, True), "generic": lambda: gossip(FEW, False)}, 3
    )
    total, some = n * MEETINGS // 2, n * FEW // 2
    answer.add(f"fused, {n} peers, {MEETINGS} meetings each", seconds["fused"], "CPU s")
    answer.add("fused", seconds["fused"] / total * 1e9, "CPU ns a meeting")
    answer.add("generic", seconds["generic"] / some * 1e9, "CPU ns a meeting")
    answer.goals.append(
        Goal("10^5 peers, 100 meetings each: CPU s", seconds["fused"] / n * 10**5, 60)
    )
    ratio = seconds["generic"] / some / (seconds["fused"] / total)
    answer.goals.append(Goal("times faster than the generic engine", ratio, 1.5, at_least=True))
    return answer


if __name__ == "__main__":
    main(measure)
