"""G4: private steps of a token walk on logistic losses, against a plain numpy loop that does the
same.

A million steps on a sparse graph; and the size of the published experiments, 20,000 steps among
2000 peers on the complete graph, twenty runs of it on one core and on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from statistics import median

import numpy as np
from numba import njit

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.graphs import Graph, complete, erdos_renyi
from bruit.randomness import Replay
from bruit.runs.many.repeat import repeat
from bruit.tasks import Logistic, Records

RECORDS, RATE = 8, 0.1
NOISE = br.Gaussian(clip=1.0, sigma=1.0)
LABELS = {
    "loop": "numpy loop, PCG64 noise",
    "same": "numpy loop, the same noise",
    "generic": "br.run, generic",
    "fused": "br.run, fused",
}


def numpy_loop(graph: Graph, task: Logistic, steps: int, dice: Replay | None = None) -> object:
    """Gradient of the holder's records, clipping, noise, a random neighbor; one peer at a time, as
    one writes it first.

    The noise comes from numpy's PCG64, or from dice: cryptographic, and rounded to the mechanism's
    lattice.
    """
    block, rng, at = task.records.blocks[0], np.random.default_rng(0), 0
    x, indptr, indices, law = (
        np.zeros(task.dim),
        graph.weights.indptr,
        graph.weights.indices,
        graph.cumulative,
    )
    for hop in range(steps):
        features, targets = block.features[at], block.targets[at]
        slopes = (np.tanh(features @ x / 2) - targets) / 2
        gradient = slopes @ features / len(targets)
        norm = sqrt(gradient @ gradient)
        if norm > NOISE.clip:
            gradient *= NOISE.clip / norm
        if dice is None:
            x -= RATE * (gradient + NOISE.sigma * rng.standard_normal(task.dim))
        else:
            snapped = np.trunc(gradient / NOISE.spacing) * NOISE.spacing
            x -= RATE * (snapped + NOISE.noise(dice, np.array([at]), hop, 0, task.dim)[0])
        low, high = indptr[at], indptr[at + 1]
        at = indices[min(low + law[low:high].searchsorted(rng.random()), high - 1)]
    return x


def task_of(peers: int, d: int) -> Logistic:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(peers * RECORDS, d))
    targets = np.where(rng.random(len(features)) < 0.5, 1.0, -1.0)
    return Logistic(
        Records.of(features, targets, np.repeat(np.arange(peers), RECORDS), rows="unit")
    )


def compare(answer: Answer, graph: Graph, d: int, few: int, total: int) -> None:
    """Adds the rows of one dimension, and its goals if it has any."""
    task = task_of(graph.n, d)

    def run(engine: br.Bulk, steps: int) -> br.Run:
        return br.run(
            br.WalkSGD(rate=RATE),
            graph,
            task,
            privacy=NOISE,
            steps=steps,
            evaluate_every=0,
            engine=engine,
        )

    seconds = interleaved(
        {
            "loop": lambda: numpy_loop(graph, task, few),
            "same": lambda: numpy_loop(graph, task, few // 10, Replay(0)),
            "generic": lambda: run(br.Bulk(), few // 10),
            "fused": lambda: run(br.Bulk(fused=True), total),
        },
        7,
    )
    counts = {"loop": few, "same": few // 10, "generic": few // 10, "fused": total}
    for name, label in LABELS.items():
        answer.add(f"d = {d}: {label}", seconds[name] / counts[name] * 1e9, "CPU ns a step")
    ratio = seconds["loop"] / few / (seconds["fused"] / total)
    answer.add(f"d = {d}: fused against the loop with PCG64 noise", ratio, "times faster")
    if d == 8:
        answer.goals.append(
            Goal(
                f"d = 8, {total} steps: times faster than the PCG64 loop", ratio, 100, at_least=True
            )
        )
        answer.goals.append(
            Goal("d = 8: CPU s for 10^6 steps", seconds["fused"] / total * 1e6, 0.12)
        )


@njit(nogil=True)  # type: ignore[untyped-decorator]
def spin(turns: int) -> float:
    """A loop that needs nothing but a core: what two cores gain on it is what the machine has to
    give just now."""
    total = 0.0
    for k in range(turns):
        total += 1.0 / (k + 1.0)
    return total


def wall(work: Callable[[int], object], repeats: int) -> float:
    """How many times faster two at a time are than one, by the clock on the wall: the median of
    paired turns."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work(1)
        middle = time.perf_counter()
        work(2)
        found.append((middle - begin) / (time.perf_counter() - middle))
    return median(found)


def published_size(answer: Answer, repeats: int) -> None:
    """20,000 steps among 2000 peers: one run against the loop, and twenty runs on two cores against
    one."""
    graph, task, steps = complete(2000), task_of(2000, 8), 20_000

    def runs(count: int, workers: int) -> object:
        return repeat(
            br.WalkSGD(rate=RATE),
            graph,
            task,
            seeds=range(count),
            workers=workers,
            privacy=NOISE,
            steps=steps,
            evaluate_every=0,
        )

    def spins(workers: int) -> None:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(spin, [10**6] * 40))

    def one_after_the_other() -> None:
        for seed in range(20):
            br.run(
                br.WalkSGD(rate=RATE),
                graph,
                task,
                privacy=NOISE,
                steps=steps,
                seed=seed,
                evaluate_every=0,
                engine=br.Bulk(fused=True),
            )

    seconds = interleaved(
        {"loop": lambda: numpy_loop(graph, task, steps), "fused": one_after_the_other}, repeats
    )
    ratio = seconds["loop"] / (seconds["fused"] / 20)
    answer.add("20,000 steps, 2000 peers: one run of twenty", seconds["fused"] / 20 * 1e3, "CPU ms")
    answer.add("20,000 steps, 2000 peers: against the PCG64 loop", ratio, "times faster")
    spins(2)
    gained, possible = wall(lambda workers: runs(20, workers), repeats), wall(spins, repeats)
    answer.add("20 runs: two at a time against one", gained, "times faster")
    answer.add("a bare loop: two at a time against one", possible, "times faster")
    answer.goals.append(
        Goal(
            "20,000 steps, 2000 peers: times faster than the PCG64 loop", ratio, 100, at_least=True
        )
    )
    answer.goals.append(
        Goal("20 runs on two cores: share of what a bare loop gains", gained / possible, 0.7, True)
    )


def measure(quick: bool = False) -> Answer:
    answer = Answer("G4: how fast does a private token walk?", quick)
    graph = erdos_renyi(2048, c=1.5, seed=1)
    for d, steps in ((8, 10**6), (100, 10**5)):
        compare(answer, graph, d, 10_000, steps // (10 if quick else 1))
    published_size(answer, 1 if quick else 7)
    return answer


if __name__ == "__main__":
    main(measure)
