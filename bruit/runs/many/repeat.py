"""Repeat: the same experiment for several seeds, on all cores at once.

Fused runs spend their time in compiled loops that let go of Python's lock, so threads share one
graph and one task: the memory is that of one run plus O(n d) a seed. Runs without a compiled path
are repeated by processes, in `bruit sweep` or `on=br.on.Processes()`, and on clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.on import Workplace, chosen, place_for
from bruit.on.cores import cores
from bruit.on.place import in_order
from bruit.runs.engines.bulk import Bulk
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks import Task


def repeat(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    task: Task,
    *,
    seeds: Iterable[int],
    workers: int | None = None,
    on: Workplace | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[Run, ...]:
    """One run for each seed, in their order, `workers` at a time (all cores by default), in threads
    of this process or `on` another place; `options` are those of `run`.

    The engine is the fused bulk engine unless another is given. Each run is the one that `run`
    gives for its seed.
    """
    for name in ("seed", "after", "given"):
        if name in options:
            raise ConfigError(
                f"repeat gives every run its own seed and no past, found {name}; name seeds in "
                f"seeds="
            )
    chosen_seeds = [int(seed) for seed in seeds]
    at_once = check_workers(workers)
    shared = named_graph(graph)
    settings = {"engine": Bulk(fused=True), "evaluate_every": options.get("steps", 0), **options}

    one = _OneSeed(algorithm, shared, task, settings)
    found: list[Run] = []
    try:
        if on is not None:
            if workers is not None:
                raise ConfigError("workers are threads of this process; a place has its own")
            with chosen(place_for(1, on)):
                return tuple(in_order(one, chosen_seeds, progress))
        with ThreadPoolExecutor(at_once) as pool:
            for result in pool.map(one, chosen_seeds):
                found.append(result)
                if progress is not None:
                    progress(len(found), len(chosen_seeds))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(found)} of {len(chosen_seeds)} runs were done, and are lost: repeat returns all of"
            " them or none; `bruit sweep` keeps what is done"
        ) from None
    return tuple(found)


@dataclass(frozen=True)
class _OneSeed:
    """All of a run but its seed."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    task: Task
    settings: dict[str, Any]

    def __call__(self, seed: int) -> Run:
        return run(self.algorithm, self.graph, self.task, seed=seed, **self.settings)


def check_workers(workers: int | None) -> int:
    """The number asked for, all cores by default."""
    if workers is not None and workers < 1:
        raise ConfigError(f"at least one run goes at a time, found {workers} workers")
    return cores() if workers is None else workers
