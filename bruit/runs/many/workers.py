"""Many independent things, some at a time: each in a process of its own kind, answers as they come.

Used by sweeps and by the figures of papers. A function of a module and arguments that can be sent to
another process are all it takes; one worker needs neither.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")
GONE = "its process ended all of a sudden; is there enough memory for so many jobs?"


@contextmanager
def each(
    do: Callable[[Thing], Answer],
    things: Sequence[Thing],
    jobs: int,
    gone: Callable[[Thing], Answer],
) -> Iterator[Iterable[tuple[Thing, Answer]]]:
    """(thing, answer) as they are done, `jobs` at a time; whose process died has the answer
    `gone(thing)`.

    What was not begun when something stops them is not begun at all, and what is going on is
    stopped.
    """
    if jobs == 1 or len(things) < 2:
        yield ((one, do(one)) for one in things)
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(things)), multiprocessing.get_context("spawn"), _deaf)
    try:
        futures = {pool.submit(do, one): one for one in things}
        yield (
            (futures[done], _answer(done, futures[done], gone)) for done in as_completed(futures)
        )
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in (
            set(multiprocessing.active_children()) - others
        ):  # what goes on would be waited for
            with contextlib.suppress(OSError):
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _deaf() -> None:
    """A worker leaves Ctrl-C to the process that started it, which says what was kept."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _answer(future: Future[Answer], thing: Thing, gone: Callable[[Thing], Answer]) -> Answer:
    try:
        return future.result()
    except BrokenProcessPool:
        return gone(thing)
