"""Who computes the losses of many observers: threads of this process, or the workers of the place
that was chosen (`bruit.on`)."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from bruit.on.place import anywhere, in_chunks
from bruit.privacy.exact.blas import one_blas_thread

WORTH = 64
"""Fewest observers that are sent elsewhere."""

Progress = Callable[[int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Hands:
    """Who computes: threads of this process, or the workers of the place that was chosen."""

    pool: ThreadPoolExecutor
    threads: int

    def in_order(
        self, task: Callable[[int], T], items: Sequence[int], progress: Progress | None = None
    ) -> Iterator[T]:
        """Results in the order of the items, with at most a few pieces of work ahead, so that
        memory stays flat."""
        if anywhere() and len(items) >= WORTH:
            yield from in_chunks(_Alone(task), items, progress)
            return
        remaining = iter(items)
        waiting = deque(
            self.pool.submit(task, item) for item in islice(remaining, 4 * self.threads)
        )
        done = 0
        while waiting:
            yield waiting.popleft().result()
            done += 1
            if progress is not None:
                progress(done, len(items))
            waiting.extend(self.pool.submit(task, item) for item in islice(remaining, 1))


@dataclass(frozen=True)
class _Alone:
    """One observer in a worker, whose BLAS stays on one thread as it does here: the same bits."""

    task: Callable[[int], Any]

    def __call__(self, observer: int) -> Any:
        with one_blas_thread():
            return self.task(observer)
