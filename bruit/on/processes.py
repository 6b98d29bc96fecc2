"""Several processes of this machine, each with its own Python; nothing of Ray is needed or started."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from bruit.errors import ConfigError
from bruit.on.cores import cores
from bruit.on.place import GONE, Lost, Pool, Raised, Workplace, check_rounds
from bruit.on.team import Team
from bruit.on.worker import done

ARRAYS_AS_THEY_ARE = 5  # the protocol from which on they are not copied before they are written
UNSENT = "cannot be sent to or from another process"
SENDABLE = "functions and classes of a module can, and what is made of them"


@dataclass(frozen=True)
class Processes(Workplace):
    """So many processes, one a core by default. A script that uses them needs the usual
    `if __name__ == "__main__":`. `checkpoint`: of one run in blocks, rounds after which states are
    kept; 0 keeps none."""

    count: int | None = None
    checkpoint: int = 10

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise ConfigError(f"at least one process does the work, found {self.count}")
        check_rounds(self.checkpoint)

    @property
    def number(self) -> int:
        """How many they are."""
        return cores() if self.count is None else self.count

    def open(self) -> Pool:
        return _ProcessPool(self.number)

    def team(self) -> Team:
        from bruit.on.process_team import ProcessTeam

        return ProcessTeam(self.number, self.checkpoint)


class Hand(NamedTuple):
    """One process and the line to it."""

    process: Any
    line: Connection


class _ProcessPool(Pool):
    """Processes are started when there is something to do for them, and again if they are lost."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count, self._hands = count, dict[int, Hand]()
        self._do: Callable[[Any], Any] | None = None
        self._holding: set[int] = set()
        self.words = f"on this machine, in up to {count} processes"

    def workers(self) -> list[int]:
        return list(range(self._count))

    def hold(self, do: Callable[[Any], Any]) -> None:
        self._do, self._holding = do, set()

    def send(self, worker: int, thing: Any) -> None:
        hand = self._hands.get(worker) or self._begun(worker)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # found lost by `wait`
            if worker not in self._holding:
                sent(hand.line, "hold", self._do)
                self._holding.add(worker)
            sent(hand.line, "do", thing)

    def wait(self) -> list[tuple[int, Any]]:
        lines: dict[Any, int] = {self._hands[worker].line: worker for worker in self.busy}
        found = []
        for line in wait(list(lines)):
            worker = lines[line]
            try:
                found.append((worker, self._hands[worker].line.recv()))
            except (EOFError, ConnectionResetError):
                self._hands.pop(worker).line.close()
                self._holding.discard(worker)
                found.append((worker, Lost(GONE)))
        return found

    def stop(self, now: bool) -> None:
        for hand in self._hands.values():
            if now:  # what goes on would be waited for
                hand.process.kill()
            hand.line.close()
        for hand in self._hands.values():
            hand.process.join()
        self._hands = {}

    def _begun(self, worker: int) -> Hand:
        self._hands[worker] = begun(_work)
        return self._hands[worker]


def begun(work: Callable[[Connection], None]) -> Hand:
    """A new process that does this with its end of the line."""
    context = multiprocessing.get_context("spawn")
    line, other = context.Pipe()
    process = context.Process(target=_alone, args=(work, other))
    try:
        with _deaf():
            process.start()
    except (
        BaseException
    ):  # Ctrl-C, which this process hears now: who has begun sees the end of the line
        line.close()
        raise
    finally:
        other.close()
    return Hand(process, line)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """A process that begins in here hears no Ctrl-C, not even while it imports."""
    resource_tracker.ensure_running()  # hears again what was shut out, where it begins itself
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _alone(work: Callable[[Connection], None], line: Connection) -> None:
    """Do this, and end at once: to take a thousand modules apart is a third of a CPU second, which
    somebody waits for."""
    work(line)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def sent(line: Connection, what: str, given: Any) -> None:
    """What to do, and with what; nothing has left where that cannot travel."""
    try:
        packed = ForkingPickler.dumps(given, ARRAYS_AS_THEY_ARE)
    except Exception as error:
        raise ConfigError(f"what a worker is given {UNSENT} ({error}); {SENDABLE}") from error
    line.send(what)
    line.send_bytes(packed)


def received(line: Connection) -> tuple[str, Any]:
    """The same; in its place `Raised`, where this process does not know what it is made of."""
    return line.recv(), done(ForkingPickler.loads, line.recv_bytes())


def answered(line: Connection, answer: Any) -> None:
    """The answer, or that it cannot travel."""
    try:
        packed = ForkingPickler.dumps(answer, ARRAYS_AS_THEY_ARE)
    except Exception as error:
        words = f"what a worker answers {UNSENT} ({error}); {SENDABLE}"
        packed = ForkingPickler.dumps(Raised(ConfigError, words, ""))
    line.send_bytes(packed)


def _work(line: Connection) -> None:
    """Do what is held to every thing that comes, until nobody asks any more. Ctrl-C is left to the
    process that started this one, which says what was kept."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    do: Any = None
    with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):
        while True:
            what, given = received(line)
            if what == "hold":
                do = given
            else:
                wrong = next((one for one in (do, given) if isinstance(one, Raised)), None)
                answered(line, wrong or done(do, given))
