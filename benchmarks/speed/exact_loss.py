"""G3: the exact privacy loss of every pair of 2048 peers, random and geometric, and of one among a
hundred thousand."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.timing import Answer, Goal, main
from bruit.graphs import erdos_renyi, geometric, torus
from bruit.privacy.exact import leverage, pairwise


def measure(quick: bool = False) -> Answer:
    answer = Answer("G3: how fast is the exact loss?", quick)
    peers = 512 if quick else 2048
    graph = erdos_renyi(peers, c=1.5, seed=1)
    cpu, wall = time.process_time(), time.perf_counter()
    found = pairwise(graph, 22)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer.add(f"all pairs, {graph.name}, 22 steps", cpu, "CPU s")
    answer.add("the same, two threads", wall, "wall s")
    answer.add("columns certified exact", float(np.mean(found.exact)), "of 1")
    answer.add("peak memory", peak, "MiB")
    near = geometric(peers, 0.08 if quick else 0.0425, seed=1)
    cpu, slow = time.process_time(), time.perf_counter()
    hard = pairwise(near, 20)
    cpu, slow = time.process_time() - cpu, time.perf_counter() - slow
    answer.add(f"all pairs, {near.name}, 20 steps", cpu, "CPU s")
    answer.add("the same, two threads", slow, "wall s")
    answer.add("columns certified exact, others flagged", float(np.mean(hard.exact)), "of 1")
    side = 100 if quick else 316
    big = torus(side, side)
    start = time.process_time()
    leverage(big, [0], 22)
    answer.add(f"one observer, {big.name}, 22 steps", time.process_time() - start, "CPU s")
    answer.goals.append(Goal(f"all pairs of {peers} peers: wall s on two threads", wall, 10))
    answer.goals.append(
        Goal(f"all pairs of {peers} peers near each other: wall s on two threads", slow, 60)
    )
    return answer


if __name__ == "__main__":
    main(measure)
