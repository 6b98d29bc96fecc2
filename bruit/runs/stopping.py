"""Ctrl-C and SIGTERM as people mean them: stop, and keep what is done.

While a run goes on, the first signal asks it to end between two steps (`engines.engine.Stop`); the
second one ends it at once. Everywhere else a signal is a `KeyboardInterrupt`, whose words, if it
has any, say what is lost and what kept.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bruit.runs.engines.engine import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = b"\nstopping after this step, to keep what is done; once more stops at once and keeps nothing of it\n"
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handled(handler: Handler) -> Iterator[None]:
    """Both signals go to this handler inside; other threads than the first have no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.signal(name, handler) for name in SIGNALS}
    try:
        yield
    finally:
        for name, earlier in before.items():
            signal.signal(name, earlier)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM is as good as Ctrl-C inside: both raise KeyboardInterrupt."""
    with handled(interrupt):
        yield


class Patient:
    """A progress callback that passes on to another one, and stops the run between two steps once a
    signal came."""

    def __init__(self, progress: Callable[[int, int, dict[str, float]], None]) -> None:
        self._progress, self.asked = progress, False

    def __call__(self, done: int, total: int, scores: dict[str, float]) -> None:
        self._progress(done, total, scores)
        if self.asked:
            raise Stop

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        os.write(
            sys.__stderr__.fileno() if sys.__stderr__ else 2, PATIENCE
        )  # a handler must not wait for a lock

    @contextmanager
    def listening(self) -> Iterator[Patient]:
        with handled(self._hear):
            yield self
