"""Wakes: a peer wakes by its own clock, reads the latest message of each neighbor, and speaks to
all of them.

Of each neighbor one message is kept, the latest; nobody posts more often than its clock can have
rung.

A neighbor that never starts stops nobody. For one patience the clock calls in vain as long as
somebody has not spoken at all; then the peer goes on with those it has heard, and reports at every
wake whom it was without (`Missed`). Who speaks later is read from then on. While it has heard
nobody at all, its calls stay in vain: there is nothing to read. Without a patience (simulation)
everybody is waited for.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.doorway import absorbed
from bruit.algorithms.messages import Inbox, join, take
from bruit.algorithms.schedules.machine import (
    Alarm,
    Effect,
    Envelope,
    Met,
    Missed,
    Send,
    Skipped,
)
from bruit.algorithms.schedules.peer import ONE, PeerMachine, Seat
from bruit.errors import RemoteProtocolError


class WakePeer(PeerMachine):
    """One peer of an asynchronous algorithm; a dead neighbor's last words simply stay its last."""

    kinds: ClassVar[tuple[str, ...]] = ("post",)

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._latest: dict[int, tuple[int, Any]] = {}
        self._tired = False  # it has waited long enough for first words

    def begin(self, now: float) -> list[Effect]:
        self._start(False)
        return self._post() + self._next_call() + self._patience(now, "grace", 0)

    def unheard(self) -> tuple[int, ...]:
        silent = self._silent()
        return () if self._tired and len(silent) < len(self._links.senders) else silent

    def _silent(self) -> tuple[int, ...]:
        """The neighbors that have never said a word."""
        return tuple(int(peer) for peer in self._links.senders if int(peer) not in self._latest)

    def reads_on(self, until: float) -> bool:
        return until > 0 and self.calls_left > 0

    def _post(self) -> list[Effect]:
        row = take(self._say(self._links).rows, ONE)
        self._latest[self.seat.me] = (self.count, row)
        return [Send(int(peer), Envelope("post", self.count, row)) for peer in self._links.senders]

    def _check_order(self, sender: int, envelope: Envelope) -> None:
        last = self._latest[sender][0] if sender in self._latest else -1
        if not last < envelope.number <= self._most_calls(sender):
            raise RemoteProtocolError(
                f"peer {sender} posted its word {envelope.number} after word {last}; its clock "
                f"rings {self._most_calls(sender):.0f} times at most"
            )

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        self._check_neighbor(sender)
        if sender not in self._latest or self._latest[sender][0] < envelope.number:
            self._latest[sender] = (envelope.number, envelope.row)
        return []

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        """Read the latest message of each neighbor that has spoken; a call in vain is skipped, and
        reported."""
        if alarm == "grace":
            self._tired = True
            return []
        self._calls += 1
        following, unheard = self._next_call(), self.unheard()
        if unheard:
            return [*following, Skipped(self._calls - 1, unheard)]
        without, own = self._silent(), self._latest[self.seat.me][1]
        links = self._links.without(np.isin(self._links.senders, without))
        reads = tuple((int(peer), self._latest[int(peer)][0]) for peer in links.senders)
        around = np.sort(np.append(self._links.senders, self.seat.me))
        rows = join(
            [self._latest[int(peer)][1] if peer in self._latest else own for peer in around]
        )
        self.count += 1
        inbox = Inbox(links if without else self._links, rows, False, own)
        self.state = absorbed(self.seat.algorithm, self.state, inbox, self._home(self.count, False))
        missed = [Missed(peer, self._calls - 1) for peer in without]
        return [*following, Met(self.seat.me, self._calls - 1, reads), *missed, *self._post()]
