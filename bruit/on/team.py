"""A team: long-lived workers, each of which keeps parts of one large thing from one question to the
next.

Parts hand things to each other. What is handed over is a *parcel*: the process that asks passes it
on and never opens it. What a part tells is small, and opened here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bruit.on.place import Raised
from bruit.on.worker import done

Parcel = Any


class Handed(NamedTuple):
    """What a part answers: what it tells, and what it hands to other parts."""

    told: Any
    parcels: Sequence[Any] = ()


class PartCall(NamedTuple):
    """What one part is asked: with plain arguments, and with parcels of others; it will hand over
    so many."""

    arguments: tuple[Any, ...] = ()
    parcels: Sequence[Parcel] = ()
    hands: int = 0


class Broken(Exception):
    """A worker is no more, and why; some of what was asked was not done."""


class Team(ABC):
    """`words` say where it is, `size` how many workers there are, `checkpoint` after how many rounds
    parts are to be kept where no lost worker takes them along; 0: never."""

    words: str
    size: int
    checkpoint: int
    place: dict[int, int]  # the worker of each part

    @abstractmethod
    def begin(self, made: Callable[[Any], Any], share: Callable[[int], Any], parts: int) -> None:
        """Every worker is given `made` once; part k is made(share(k)), at a worker."""

    @abstractmethod
    def ask(self, name: str, asked: Mapping[int, PartCall]) -> dict[int, Handed]:
        """Call that method of the parts, all at once. Raises what went wrong there; `Broken` where
        a worker was lost, after the others are done."""

    @abstractmethod
    def safe(self, parcel: Parcel) -> Parcel:
        """The same, where no lost worker takes it along."""

    @abstractmethod
    def mend(self) -> None:
        """New workers for those that are lost, or their parts for the others; these are made anew,
        and know nothing of what was."""

    @abstractmethod
    def stop(self, now: bool) -> None:
        """Nothing more is asked; `now`: nor is it waited for."""


class Parts:
    """The parts at one worker."""

    def __init__(self) -> None:
        self._parts: dict[int, Any] = {}

    def make(self, number: int, made: Callable[[Any], Any], share: Any) -> Handed | Raised:
        """The part is here from now on."""
        answer = done(made, share)
        if isinstance(answer, Raised):
            return answer
        self._parts[number] = answer
        return Handed(None)

    def call(
        self, number: int, name: str, arguments: Sequence[Any], parcels: Sequence[Any]
    ) -> Handed | Raised:
        """What the part answers, or what went wrong."""
        answer: Handed | Raised = done(
            lambda part: getattr(part, name)(*arguments, *parcels), self._parts[number]
        )
        return answer


def opened(answers: Mapping[int, Handed | Raised]) -> dict[int, Handed]:
    """The answers, if none says that something went wrong."""
    for answer in answers.values():
        if isinstance(answer, Raised):
            raise answer.error()
    return {number: answer for number, answer in answers.items() if isinstance(answer, Handed)}
