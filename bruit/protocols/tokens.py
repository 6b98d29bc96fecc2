"""A token between peers: one model that walks, survives its holders' crashes, and is never in two places.

The holder of hop h asks its predecessor before it lets the token go; the predecessor grants it once. If the holder does
not ask in time the predecessor takes the token back and sends it elsewhere, to whom it has not tried yet if there is
anybody; a holder that asks too late is told to stop, and its token ends. So at every hop one token, and only one, goes
on. After the last hop the word that the walk has ended is passed to everybody.

Safety comes first: between "ask" and "go" only these two know who has the token, and nobody else can tell a lost token
from a slow one. If one of them vanishes right then, the walk waits until it is back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox, Links, take
from bruit.algorithms.schedules import Walk
from bruit.errors import RemoteProtocolError
from bruit.protocols.machine import Alarm, Done, Effect, Envelope, Met, Missed, Send
from bruit.protocols.peer import ONE, PeerMachine, Seat


@dataclass
class Custody:
    """A token this peer has sent and may still take back: to whom, what, and whether it was let go."""

    holder: int
    row: Any
    granted: bool = False


class TokenPeer(PeerMachine):
    """One peer of a walk."""

    kinds: ClassVar[tuple[str, ...]] = ("token", "ask", "go", "stop", "end")

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._hop = -1
        self._custody: dict[int, Custody] = {}  # by hop
        self._stopped: set[tuple[int, int]] = set()  # (hop, former holder): taken back
        self._held: tuple[int, int] | None = None  # hop and predecessor of the token waiting to be let go
        self._again = 0  # tokens taken back so far
        self._ended = False

    @property
    def _walk(self) -> Walk:
        schedule = self.seat.algorithm.schedule
        return schedule if isinstance(schedule, Walk) else Walk()

    def begin(self, now: float) -> list[Effect]:
        self._start(False)
        if not self.seat.steps:
            return [Done()]
        if self._walk.first != self.seat.me:
            return []
        return self._visit(now, self.seat.me, 0, take(self._say(self._links).rows, ONE))

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        hop = envelope.number
        if sender not in self._links.senders and sender != self.seat.me:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")
        if envelope.kind == "token":
            if not 0 < hop < self.seat.steps:
                raise RemoteProtocolError(f"peer {sender} sent a token of hop {hop} that cannot be")
            return self._visit(now, sender, hop, envelope.row) if hop > self._hop else []
        if envelope.kind == "end":
            return self._end()
        if envelope.kind == "ask":
            return self._asked(sender, hop)
        if self._held != (hop, sender):
            return []
        self._held = None
        if envelope.kind == "go":
            return self._pass_on(now, hop)
        self._hop = hop - 1  # the same token may come again, if its predecessor finds nobody else
        return []

    def _visit(self, now: float, sender: int, hop: int, row: Any) -> list[Effect]:
        links = Links.of_meetings(self.ids, np.array([sender]))
        self.count, self._hop = self.count + 1, hop
        last = hop + 1 == self.seat.steps
        inbox = Inbox(links, row, False, take(self._say(links).rows, ONE))
        home = Home(self.seat.door, self.ids, np.array([self.count]), np.array([hop]), np.array([last]),
                    self._links.edges, self.seat.public)  # fmt: skip
        self.state = self.seat.algorithm.absorb(self.state, inbox, home)
        if sender == self.seat.me:
            return [Met(sender, hop), *self._pass_on(now, hop)]
        self._held = (hop, sender)
        return [Met(sender, hop), Send(sender, Envelope("ask", hop))]

    def _pass_on(self, now: float, hop: int) -> list[Effect]:
        if hop + 1 >= self.seat.steps:
            return self._end()
        return self._entrust(now, hop + 1, self._walk.next(self._graph(0), self.seat.me, hop, self.seat.dice))

    def _end(self) -> list[Effect]:
        """Tell the neighbors, once, that the walk is over."""
        if self._ended:
            return []
        self._ended = True
        return [*(Send(int(peer), Envelope("end", 0)) for peer in self._links.senders), Done()]

    def _entrust(self, now: float, hop: int, target: int) -> list[Effect]:
        row = self._mine(target)
        sent: list[Effect] = [Send(target, Envelope("token", hop, row))]
        if target == self.seat.me:
            return sent
        self._custody[hop] = Custody(target, row)
        return sent + self._patience(now, "token", hop)

    def _asked(self, sender: int, hop: int) -> list[Effect]:
        if (hop, sender) in self._stopped:
            return [Send(sender, Envelope("stop", hop))]
        custody = self._custody.get(hop)
        if custody is None or custody.holder != sender:
            raise RemoteProtocolError(f"peer {sender} asks for a token of hop {hop} that it was never given")
        custody.granted = True
        return [Send(sender, Envelope("go", hop))]

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        custody = self._custody.get(number)
        if alarm != "token" or custody is None or custody.granted:
            return []
        others = self._links.senders[self._links.senders != custody.holder]
        if not len(others):
            return self._patience(now, "token", number)
        self._stopped.add((number, custody.holder))
        untried = others[[(number, int(peer)) not in self._stopped for peer in others]]
        others = untried if len(untried) else others
        self._again += 1
        draw = self.seat.dice.uniform("hop again", np.array([number]), self._again)[0, 0]
        target = int(others[min(int(draw * len(others)), len(others) - 1)])
        self._stopped.discard((number, target))
        self._custody[number] = Custody(target, custody.row)
        return [Missed(custody.holder, number), Send(target, Envelope("token", number, custody.row)),
                *self._patience(now, "token", number)]  # fmt: skip
