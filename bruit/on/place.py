"""A place: workers that do one thing after the other, and the loop that keeps all of them busy.

What is done is a function that can be sent, with all that it needs: it is sent to each worker once.
The things it is done to are small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.on.team import Team

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")
Progress = Callable[[int, int], None]
CHUNKS = 8  # of small things, for each worker: who is done early takes over from the others
GONE = "its process ended all of a sudden; is there enough memory for so many jobs?"


class Raised(NamedTuple):
    """What went wrong with a thing, as it travels: an exception's kind and words."""

    kind: type[Exception]
    words: str
    story: str

    def error(self) -> Exception:
        """The exception again; one that takes more than words is a ConfigError of its words."""
        try:
            found = self.kind(self.words)
        except TypeError:
            found = ConfigError(self.words)
        if isinstance(found, MemoryError):
            found = ConfigError(f"a worker ran out of memory ({self.words}); ask for fewer of them")
        found.add_note(f"in a worker:\n{self.story}")
        return found


class Lost(NamedTuple):
    """A worker that is no more, and why."""

    why: str


class _Begun(NamedTuple):
    """A thing that a worker is doing: of which round, and for which time."""

    round: int
    thing: Any
    tries: int


class Pool(ABC):
    """Workers, by number. `words` say where they are; `tries` how often a thing is begun whose
    worker is lost."""

    words: str
    tries: int = 1

    def __init__(self) -> None:
        self.busy: dict[int, _Begun] = {}
        self._rounds = 0

    @abstractmethod
    def workers(self) -> list[int]:
        """The workers that are alive; at least one."""

    @abstractmethod
    def hold(self, do: Callable[[Any], Any]) -> None:
        """From now on this is what they do."""

    @abstractmethod
    def send(self, worker: int, thing: Any) -> None:
        """One thing to do."""

    @abstractmethod
    def wait(self) -> list[tuple[int, Any]]:
        """Workers of those busy that are done, each with its answer, `Raised` or `Lost`."""

    @abstractmethod
    def stop(self, now: bool) -> None:
        """Nothing more is asked; `now`: nor is it waited for."""

    def each(
        self,
        do: Callable[[Thing], Answer],
        things: Sequence[Thing],
        gone: Callable[[Thing], Answer] | None,
    ) -> Iterator[tuple[Thing, Answer]]:
        """(thing, answer) as they are done. Answers to an earlier round, whose asker is gone, are
        left out; who goes on with that one is refused, since workers hold something else now."""
        self.hold(do)
        self._rounds += 1
        mine, waiting = self._rounds, deque((thing, 1) for thing in things)
        while waiting or any(one.round == mine for one in self.busy.values()):
            if self._rounds != mine:
                raise ConfigError(
                    "these workers were given something else to do on the way; take all answers"
                    " of one thing before asking for the next"
                )
            self._feed(mine, waiting)
            found = [(self.busy.pop(worker), answer) for worker, answer in self.wait()]
            for (number, thing, tries), answer in found:  # all of them are free, whoever looks on
                if number != mine:
                    continue
                if isinstance(answer, Raised):
                    raise answer.error()
                if not isinstance(answer, Lost):
                    yield thing, answer
                elif tries < self.tries:
                    waiting.append((thing, tries + 1))
                elif gone is None:
                    raise ConfigError(f"a worker was lost: {answer.why}")
                else:
                    yield thing, gone(thing)

    def _feed(self, mine: int, waiting: deque[tuple[Any, int]]) -> None:
        for worker in self.workers():
            if worker not in self.busy and waiting:
                thing, tries = waiting.popleft()
                self.send(worker, thing)
                self.busy[worker] = _Begun(mine, thing, tries)


@dataclass(frozen=True)
class Workplace(ABC):
    """Where many things are done; describing one starts nothing."""

    @abstractmethod
    def open(self) -> Pool:
        """Its workers, started now."""

    @abstractmethod
    def team(self) -> Team:
        """The same for one large thing, of which each of them keeps a part."""


def check_rounds(checkpoint: int) -> None:
    """Refuses what counts no rounds."""
    if checkpoint < 0:
        raise ConfigError(f"checkpoint is a number of rounds, found {checkpoint}")


_CHOSEN: ContextVar[Pool | None] = ContextVar("chosen", default=None)


@contextmanager
def chosen(place: Workplace | None) -> Iterator[Pool | None]:
    """Inside, many things are done there: its workers are started once, and are gone afterwards.
    None changes nothing."""
    if place is None:
        yield _CHOSEN.get()
        return
    pool = place.open()
    before, now = _CHOSEN.set(pool), True
    try:
        yield pool
        now = False
    finally:
        _CHOSEN.reset(before)
        pool.stop(now)


def anywhere() -> bool:
    """Whether a place is chosen that is not this process."""
    return _CHOSEN.get() is not None


def hands() -> int:
    """How many things are done at a time."""
    pool = _CHOSEN.get()
    return 1 if pool is None else len(pool.workers())


def each(
    do: Callable[[Thing], Answer],
    things: Sequence[Thing],
    gone: Callable[[Thing], Answer] | None = None,
) -> Iterator[tuple[Thing, Answer]]:
    """(thing, answer) as they are done, where that was chosen; whose worker is lost for good has
    the answer `gone(thing)`, or ends it."""
    pool = _CHOSEN.get()
    if pool is None:
        return ((one, do(one)) for one in things)
    return pool.each(do, things, gone)


def stream(do: Callable[[Thing], Answer], things: Sequence[Thing]) -> Iterator[Answer]:
    """Answers in the order of the things, each as soon as those before it are there."""
    early, following = dict[int, Answer](), 0
    for (place, _), answer in each(_Numbered(do), list(enumerate(things))):
        early[place] = answer
        while following in early:
            yield early.pop(following)
            following += 1


def in_order(
    do: Callable[[Thing], Answer], things: Iterable[Thing], progress: Progress | None = None
) -> list[Answer]:
    """All answers, in the order of the things; `progress` counts them as they come."""
    listed = list(things)
    answers: dict[int, Answer] = {}
    for (place, _), answer in each(_Numbered(do), list(enumerate(listed))):
        answers[place] = answer
        if progress is not None:
            progress(len(answers), len(listed))
    return [answers[place] for place in range(len(listed))]


@dataclass(frozen=True)
class _Numbered:
    """Things that are told apart by their place, even if they are equal."""

    do: Callable[[Any], Any]

    def __call__(self, numbered: tuple[int, Any]) -> Any:
        return self.do(numbered[1])


def in_chunks(
    do: Callable[[Thing], Answer], things: Sequence[Thing], progress: Progress | None = None
) -> list[Answer]:
    """The same for small things, many of which travel together."""
    size = max(1, len(things) // (CHUNKS * hands())) if anywhere() else 1
    chunks = [things[at : at + size] for at in range(0, len(things), size)]
    told = None if progress is None else _by_things(progress, size, len(things))
    return [one for answers in in_order(_Chunk(do), chunks, told) for one in answers]


def _by_things(progress: Progress, size: int, total: int) -> Progress:
    return lambda done, _: progress(min(total, done * size), total)


@dataclass(frozen=True)
class _Chunk:
    """Several things, one after the other."""

    do: Callable[[Any], Any]

    def __call__(self, things: Sequence[Any]) -> list[Any]:
        return [self.do(thing) for thing in things]
