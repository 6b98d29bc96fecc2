"""Repeat: the same experiment for several seeds, on all cores at once.

Fused runs spend their time in compiled loops that let go of Python's lock, so threads share one
graph and one task: the memory is that of one run plus O(n d) a seed. Runs without a compiled path
are repeated by processes, in `bruit sweep`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.runs.engines.bulk import Bulk
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks import Task


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def repeat(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    task: Task,
    *,
    seeds: Iterable[int],
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[Run, ...]:
    """One run for each seed, in their order, `workers` at a time (all cores by default); `options`
    are those of `run`.

    The engine is the fused bulk engine unless another is given. Each run is the one that `run`
    gives for its seed.
    """
    for name in ("seed", "after", "given"):
        if name in options:
            raise ConfigError(
                f"repeat gives every run its own seed and no past, found {name}; name seeds in "
                f"seeds="
            )
    chosen = [int(seed) for seed in seeds]
    at_once = check_workers(workers)
    shared = named_graph(graph)
    settings = {"engine": Bulk(fused=True), "evaluate_every": options.get("steps", 0), **options}

    def one(seed: int) -> Run:
        return run(algorithm, shared, task, seed=seed, **settings)

    found: list[Run] = []
    try:
        with ThreadPoolExecutor(at_once) as pool:
            for result in pool.map(one, chosen):
                found.append(result)
                if progress is not None:
                    progress(len(found), len(chosen))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(found)} of {len(chosen)} runs were done, and are lost: repeat returns all of"
            " them or none; `bruit sweep` keeps what is done"
        ) from None
    return tuple(found)


def check_workers(workers: int | None) -> int:
    """The number asked for, all cores by default."""
    if workers is not None and workers < 1:
        raise ConfigError(f"at least one run goes at a time, found {workers} workers")
    return cores() if workers is None else workers
