"""An audit of 10,000 paired runs, all copies of the protocol as one batch, against one run after
the other."""

from __future__ import annotations

import time

import bruit as br
from benchmarks.timing import Answer, Goal, main
from bruit.adversary.audits import audit
from bruit.adversary.audits.worlds import Neighbors
from bruit.graphs import torus

STEPS, NOISE = 20, br.Gaussian(clip=1.0, sigma=2.0)


def measure(quick: bool = False) -> Answer:
    answer = Answer("How long does an audit of gossip averaging take?", quick)
    graph, trials = torus(8, 8), 2_000 if quick else 10_000
    data = Neighbors.opposite(graph.n, 9, NOISE.clip)
    audit(br.Averaging(), graph, NOISE, 9, 0, STEPS, trials=1000)  # loads and compiles
    begin, wall = time.process_time(), time.perf_counter()
    found = audit(br.Averaging(), graph, NOISE, 9, 0, STEPS, trials)
    whole, passed = time.process_time() - begin, time.perf_counter() - wall
    singles = 20
    begin = time.process_time()
    for seed in range(singles):
        br.run(
            br.Averaging(),
            graph,
            data,
            privacy=NOISE,
            steps=STEPS,
            seed=seed,
            watch=[0],
            evaluate_every=0,
        )
    alone = 2 * trials * (time.process_time() - begin) / singles
    answer.add(
        f"{trials} paired runs, {graph.name}, {STEPS} rounds, bounds and power", whole, "CPU s"
    )
    answer.add("the runs alone, one after the other (from 20 of them)", alone, "CPU s")
    answer.add("lower bound on epsilon, of the claimed one", found.lower / found.claimed, "")
    answer.goals.append(Goal("the whole audit: s", passed, 60))
    answer.goals.append(
        Goal("times faster than one run after the other", alone / whole, 5, at_least=True)
    )
    return answer


if __name__ == "__main__":
    main(measure)
