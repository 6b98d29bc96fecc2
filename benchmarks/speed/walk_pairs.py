"""The privacy loss of every pair of 2048 peers in a walk that has not started, on an arbitrary
graph."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.timing import Answer, Goal, main
from bruit.graphs import erdos_renyi
from bruit.privacy.ahead.walk_pairs import pair_guarantee, pairwise_epsilons


def measure(quick: bool = False) -> Answer:
    answer = Answer("walk:RW-8, RW-14: how fast are the losses of all pairs of a walk?", quick)
    peers = 512 if quick else 2048
    graph = erdos_renyi(peers, c=1.5, seed=1)
    cpu, wall = time.process_time(), time.perf_counter()
    found = pairwise_epsilons(graph, 5.0, 1e-6, cap=10, cooldown=50)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    answer.add(f"epsilons of all pairs, {graph.name}, 10 contributions, cool-down 50", cpu, "CPU s")
    answer.add("the same, two threads", wall, "wall s")
    answer.add("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    start = time.process_time()
    far = int(np.nanargmin(found[0]))
    exact = float(pair_guarantee(graph, 0, far, 5.0, 10, 50).epsilon(1e-6))
    answer.add("one pair, exact", time.process_time() - start, "CPU s")
    answer.add("its epsilon, all pairs / exact", float(found[0, far]) / exact, "x")
    answer.goals.append(Goal(f"all pairs of {peers} peers: wall s on two threads", wall, 120))
    return answer


if __name__ == "__main__":
    main(measure)
