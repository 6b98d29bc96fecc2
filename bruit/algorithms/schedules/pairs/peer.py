"""Meetings between two peers: offer / answer / reply, or offer / busy.

An offer carries no value: who declines it must not have learned anything, or the loss would exceed
that of the meetings that took place. The callee is bound from answer to reply, and a repeated
message gets the same reaction, so nobody is left with half a meeting. When patience ends the caller
turns elsewhere. A late answer still completes the meeting, with the values of that moment, since
the callee is still bound. When the patience of the callee ends, it is free again. A late reply is
then applied as the flow (m_caller - what I answered) / 2, so that the mean is kept.

What is kept of a neighbor: one answer, at most OWED answers it has not replied to (then its calls
are declined), and at most LATER of its messages while this peer is in another meeting (the others
wait on its line). Memory: neighbors x (1 + OWED + LATER) rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.doorway import absorbed
from bruit.algorithms.messages import Inbox, Links
from bruit.algorithms.schedules.machine import Alarm, Effect, Envelope, Met, Missed, Send, Skipped
from bruit.algorithms.schedules.peer import PeerMachine, Seat
from bruit.errors import RemoteProtocolError

OWED = 8  # answers to one caller that it has not replied to; a caller of more is declined
LATER = 8  # messages of one neighbor that are put aside during a meeting with somebody else


class MeetingPeer(PeerMachine):
    """One peer of a pairwise algorithm."""

    kinds: ClassVar[tuple[str, ...]] = ("offer", "answer", "busy", "reply")
    declined: ClassVar[tuple[str, ...]] = ("offer",)

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._answers: dict[
            int, Envelope
        ] = {}  # the last reaction to each caller, to repeat it word for word
        self._offered: tuple[int, int] | None = (
            None  # whom this peer has called, and the number of that call
        )
        self._open: set[tuple[int, int]] = (
            set()
        )  # calls it no longer waits for, but whose answer would still count
        self._promised: tuple[int, int] | None = (
            None  # whose call it has answered and still waits to hear
        )
        self._owed: dict[
            tuple[int, int], Any
        ] = {}  # what it answered to callers it no longer waits for
        self._later: list[
            tuple[int, Envelope]
        ] = []  # answers and late replies that came while it was bound
        self._promises = 0
        self._told: Any = None  # what it said in the answer of that promise

    @property
    def bound_to(self) -> int | None:
        exchange = self._promised or self._offered
        return None if exchange is None else exchange[0]

    def reads_on(self, until: float) -> bool:
        """Never without somebody: data is read after an answer or a reply, and offers carry
        none."""
        return False

    def begin(self, now: float) -> list[Effect]:
        self._start(False)
        return self._next_call()

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if alarm == "call":
            return self._call(now)
        if alarm == "offer" and self._offered is not None and self._offered[1] == number:
            self._open.add(self._offered)
            missed = Missed(self._offered[0], number)
            self._offered = None
            return [missed]
        if alarm == "reply" and self._promised is not None and self._promises == number:
            caller, exchange = self._promised
            self._owed[self._promised] = self._told
            self._promised = None
            return [Missed(caller, exchange), *self._catch_up()]
        return []

    def _call(self, now: float) -> list[Effect]:
        number, partner = self._calls, int(self.seat.partners[self._calls])
        self._calls += 1
        following = self._next_call()
        if self.waiting:
            return [*following, Skipped(number)]
        self._offered = (partner, number)
        return [
            *following,
            Send(partner, Envelope("offer", number)),
            *self._patience(now, "offer", number),
        ]

    def early(self, sender: int, kind: str, number: int) -> bool:
        if (
            self._promised is None
            or self._promised == (sender, number)
            or kind not in ("answer", "reply")
        ):
            return False
        return sum(other == sender for other, _ in self._later) >= LATER

    def _check_order(self, sender: int, envelope: Envelope) -> None:
        """Calls are counted upwards; an answer is to a call of this peer, a reply to an answer of
        this peer, once."""
        number, kind, exchange = envelope.number, envelope.kind, (sender, envelope.number)
        if kind == "offer":
            known = self._answers.get(sender)
            last = -1 if known is None else known.number
            wrong = not last < number <= self._most_calls(sender)
        elif kind == "reply":
            wrong = exchange not in (self._promised, *self._owed)
        else:
            wrong = exchange not in (self._offered, *self._open)
        if wrong or any(
            other == sender and (one.kind, one.number) == (kind, number)
            for other, one in self._later
        ):
            raise RemoteProtocolError(
                f"peer {sender} sent {kind} {number}, which follows nothing said before"
            )

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        self._check_neighbor(sender)
        if envelope.kind == "offer":
            return self._on_offer(now, sender, envelope)
        if envelope.kind == "answer":
            return [*self._on_answer(sender, envelope), *self._catch_up()]
        if envelope.kind == "reply":
            return [*self._on_reply(sender, envelope), *self._catch_up()]
        return self._declined((sender, envelope.number))

    def _declined(self, exchange: tuple[int, int]) -> list[Effect]:
        """The one this peer called is in another meeting: the call has led to nothing."""
        if self._offered != exchange and exchange not in self._open:
            return []
        if self._offered == exchange:
            self._offered = None
        return [*self._settle(exchange), Skipped(exchange[1])]

    def _settle(self, exchange: tuple[int, int]) -> list[Effect]:
        """A call this peer no longer waited for has ended after all, whichever way."""
        if exchange not in self._open:
            return []
        self._open.discard(exchange)
        return [Missed(*exchange, late=True)]

    def _meet(self, partner: int, row: Any) -> None:
        links = Links.of_meetings(self.ids, np.array([partner]))
        inbox = Inbox(links, row, False, self._mine(partner))
        self.count += 1
        self.state = absorbed(self.seat.algorithm, self.state, inbox, self._home(self.count, False))

    def _on_offer(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        known = self._answers.get(sender)
        if known is not None and envelope.number <= known.number:
            return [Send(sender, known)] if envelope.number == known.number else []
        if self.waiting or sum(caller == sender for caller, _ in self._owed) >= OWED:
            return self.refuse(sender, envelope)
        self._promised = (sender, envelope.number)
        self._promises += 1
        self._told = self._mine(sender)
        self._answers[sender] = Envelope("answer", envelope.number, self._told)
        effects: list[Effect] = [Met(sender, envelope.number), Send(sender, self._answers[sender])]
        return effects + self._patience(now, "reply", self._promises)

    def refuse(self, sender: int, envelope: Envelope) -> list[Effect]:
        """Decline an offer for good: a repetition of it is declined too, or the caller would be
        left behind."""
        known = self._answers.get(sender)
        if known is None or known.number < envelope.number:
            self._answers[sender] = Envelope("busy", envelope.number)
        return (
            [Send(sender, self._answers[sender])]
            if self._answers[sender].number == envelope.number
            else []
        )

    def _on_answer(self, sender: int, envelope: Envelope) -> list[Effect]:
        exchange = (sender, envelope.number)
        if self._offered != exchange and exchange not in self._open:
            return []
        if self._promised is not None:
            self._later.append((sender, envelope))
            return []
        if self._offered == exchange:
            self._offered = None
        settled = self._settle(exchange)
        reply = Envelope("reply", envelope.number, self._mine(sender))
        self._meet(sender, envelope.row)
        return [*settled, Send(sender, reply)]

    def _on_reply(self, sender: int, envelope: Envelope) -> list[Effect]:
        exchange = (sender, envelope.number)
        if self._promised == exchange:
            self._promised = None
            self._meet(sender, envelope.row)
            return []
        if (
            self._promised is not None
        ):  # what it has answered must stay true until that meeting ends
            if exchange in self._owed:
                self._later.append((sender, envelope))
            return []
        own_message = self._owed.pop(exchange, None)
        if own_message is None or not (
            self.seat.algorithm.linear and isinstance(own_message, np.ndarray)
        ):
            return []
        nobody = Links.of_meetings(self.ids, np.array([sender])).without(np.array([True]))
        inbox = Inbox(
            nobody, envelope.row[:0], False, self._mine(sender), (envelope.row - own_message) / 2
        )
        self.count += 1  # a step of its own: no address of a draw is used twice
        self.state = absorbed(self.seat.algorithm, self.state, inbox, self._home(self.count, False))
        return [Missed(sender, envelope.number, late=True)]

    def _catch_up(self) -> list[Effect]:
        """Take up what came while this peer was bound."""
        effects: list[Effect] = []
        while self._later and self._promised is None:
            sender, envelope = self._later.pop(0)
            effects += (self._on_answer if envelope.kind == "answer" else self._on_reply)(
                sender, envelope
            )
        return effects
