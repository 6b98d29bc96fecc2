"""A team of processes of this machine. Parcels pass through the process that asks, as bytes that it
does not look into."""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from bruit.on.place import GONE, Raised
from bruit.on.processes import Hand, answered, begun, received, sent
from bruit.on.team import Broken, Handed, Parcel, PartCall, Parts, Team, opened

LOST = (EOFError, ConnectionResetError, BrokenPipeError)


class ProcessTeam(Team):
    """So many processes; a lost one is begun again."""

    def __init__(self, size: int, checkpoint: int) -> None:
        self.size, self.checkpoint = size, checkpoint
        self.words = f"on this machine, in up to {size} processes"
        self.place: dict[int, int] = {}
        self._members: dict[int, Hand] = {}

    def begin(self, made: Callable[[Any], Any], share: Callable[[int], Any], parts: int) -> None:
        self._made, self._share = made, share
        self.place = {number: number % self.size for number in range(parts)}
        self._make(list(self.place))

    def ask(self, name: str, asked: Mapping[int, PartCall]) -> dict[int, Handed]:
        def said(number: int, line: Connection) -> None:
            one = asked[number]
            sent(line, "call", (number, name, one.arguments, len(one.parcels)))
            for parcel in one.parcels:
                line.send_bytes(parcel)

        return self._asked(list(asked), said)

    def safe(self, parcel: Parcel) -> Parcel:
        """It is here already."""
        return parcel

    def mend(self) -> None:
        self._make([number for number, at in self.place.items() if at not in self._members])

    def stop(self, now: bool) -> None:
        for member in self._members.values():
            if now:  # what goes on would be waited for
                member.process.kill()
            member.line.close()
        for member in self._members.values():
            member.process.join()
        self._members = {}

    def _make(self, numbers: list[int]) -> None:
        for at in {self.place[number] for number in numbers} - set(self._members):
            self._members[at] = begun(_work)
            with contextlib.suppress(*LOST):  # found lost when it is asked
                sent(self._members[at].line, "hold", self._made)

        def said(number: int, line: Connection) -> None:
            sent(line, "make", (number, self._share(number)))

        self._asked(numbers, said)

    def _asked(
        self, numbers: list[int], said: Callable[[int, Connection], None]
    ) -> dict[int, Handed]:
        """One question at a time to each process, so that nobody writes to who is writing."""
        waiting: dict[int, deque[int]] = {}
        for number in numbers:
            waiting.setdefault(self.place[number], deque()).append(number)
        answers: dict[int, Handed | Raised] = {}
        busy: dict[Any, int] = {}

        def following(at: int) -> None:
            if waiting[at] and at in self._members:
                line = self._members[at].line
                busy[line] = at
                with contextlib.suppress(*LOST):  # found lost when it is listened to
                    said(waiting[at][0], line)

        for at in waiting:
            following(at)
        while busy:
            for line in wait(list(busy)):
                at = busy.pop(line)
                try:
                    answers[waiting[at][0]] = _heard(line)
                except LOST:
                    self._members.pop(at).line.close()
                    continue
                waiting[at].popleft()
                following(at)
        if any(waiting.values()):
            raise Broken(GONE)
        return opened(answers)


def _heard(line: Any) -> Handed | Raised:
    """An answer, and its parcels as they came."""
    found = line.recv()
    answer, parcels = (found, 0) if isinstance(found, Raised) else found
    if isinstance(answer, Raised):
        return answer
    return Handed(answer, [line.recv_bytes() for _ in range(parcels)])


def _work(line: Connection) -> None:
    """Keep parts, and answer for them, until nobody asks any more. Ctrl-C is left to the process
    that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = Parts()
    made: Any = None
    with contextlib.suppress(*LOST):
        while True:
            what, given = received(line)
            if what == "hold":
                made = given
            else:
                wrong = next((one for one in (made, given) if isinstance(one, Raised)), None)
                _told(line, wrong or _answer(parts, made, what, given, line))


def _answer(parts: Parts, made: Any, what: str, given: Any, line: Connection) -> Handed | Raised:
    if what == "make":
        return parts.make(given[0], made, given[1])
    number, name, arguments, count = given
    return parts.call(number, name, arguments, [line.recv() for _ in range(count)])


def _told(line: Connection, answer: Handed | Raised) -> None:
    if isinstance(answer, Raised):
        answered(line, (answer, 0))
        return
    answered(line, (answer.told, len(answer.parcels)))
    for parcel in answer.parcels:
        line.send(parcel)
