"""Rounds between peers: everybody speaks to all neighbors, and absorbs when all of them were heard.

Nobody stops a run: when patience ends, the peer goes on with those it heard, gives the weight of the others to itself,
and does not wait for them again until they speak of the present or nearly so; a peer that hears nobody at all waits a
few times more before it goes on alone. The mean is kept all the same, because an exchange is a flow W_ij (m_j - m_i):
what arrives late is applied late, once, against what this peer had said in that exchange; after the last round, by
mixing that round again with the flow added (nothing is said then, so nothing leaks twice). Where every copy has noise
of its own, what this peer had said to that neighbor is not what it mixed with: m_i is then the row it mixed with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.doorway import absorbed
from bruit.algorithms.messages import Inbox, Links, join, take
from bruit.arrays import Array
from bruit.errors import RemoteProtocolError
from bruit.graphs import Graph
from bruit.protocols.machine import Alarm, Done, Effect, Envelope, Missed, Send
from bruit.protocols.peer import ONE, PeerMachine, Seat

# When somebody dies, its neighbors stop in one round, theirs in the next, and so on. Patience is a little longer in
# later rounds (in turns of eight), so that who waits for the dead gives up before who waits for the waiting; where it
# ends at the same moment all the same, who is only so many rounds behind is waited for again, and they find together.
NEAR, TURN = 4, 8
ALONE = 3  # rounds in a row that a peer waits for, each with all of its patience, when it hears nobody at all


@dataclass(frozen=True)
class Noted(Inbox):
    """An inbox that notes the row of its own with which a peer mixes, where that row never traveled."""

    notes: list[Array] = field(default_factory=list)

    def mix(self, own: Array | None = None) -> Array:
        self.notes.extend([] if own is None else [own])
        return super().mix(own)

    def aside(self) -> Noted:
        return replace(self, notes=[])


class RoundPeer(PeerMachine):
    """One peer of a synchronous algorithm."""

    kinds: ClassVar[tuple[str, ...]] = ("round",)
    derived: ClassVar[tuple[str, ...]] = (*PeerMachine.derived, "_built")

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._heard: dict[int, dict[int, Any]] = {}
        self._away: set[int] = set()
        self._owed: dict[tuple[int, int], tuple[float, Any]] = {}  # (round, neighbor): weight, m_i of that round
        self._late: Any = None  # flows that arrived after their round
        self._said: Any = None
        self._rung, self._alone = -1, 0  # the last round whose patience ended; how many in a row without a word
        self._final: tuple[Any, Inbox] | None = None  # the state before the last mixing, and what was mixed
        self._built: tuple[Graph, Links] | None = None

    def _around(self, number: int) -> Links:
        """This peer's links in one round, without those known to be dead; built once per graph."""
        graph = self._graph(number)
        if self._built is None or self._built[0] is not graph:
            self._built = (graph, Links.of_peer(graph, self.seat.me))
        links = self._built[1]
        a, b = self.seat.faults.in_round(number)
        lost = np.concatenate((b[a == self.seat.me], a[b == self.seat.me]))
        return links.without(np.isin(links.senders, lost)) if len(lost) else links

    def begin(self, now: float) -> list[Effect]:
        self._links = self._around(0)
        self._start(self.seat.steps == 0)
        return self._speak(now) + self._go_on(now) if self.seat.steps else [Done()]

    def _speak(self, now: float) -> list[Effect]:
        self._said = self._say(self._links)
        rows, each = self._said
        count = len(self._links.senders)
        words = [take(rows, ONE + k) for k in range(count)] if each else [take(rows, ONE)] * count
        sends: list[Effect] = [Send(int(peer), Envelope("round", self.count, row))
                               for peer, row in zip(self._links.senders, words, strict=True)]  # fmt: skip
        later = self.seat.timeout * (self.count % TURN) / (2 * TURN)
        return sends + self._patience(now + later, "round", self.count)

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        number = envelope.number
        if number >= self.seat.steps:
            raise RemoteProtocolError(f"peer {sender} sent round {number} of {self.seat.steps}")
        if sender not in self._around(number).senders:
            raise RemoteProtocolError(f"peer {sender} is no neighbor of peer {self.seat.me} in round {number}")
        if number >= self.count - NEAR:
            self._away.discard(sender)
            self._alone = 0
        if number < self.count:
            return self._make_up(sender, envelope)
        self._heard.setdefault(number, {}).setdefault(sender, envelope.row)
        return self._go_on(now) if number == self.count else []

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if number != self.count or self.count >= self.seat.steps:
            return []
        heard = self._heard.get(number, {})
        self._rung = number
        self._away |= {int(peer) for peer in self._links.senders if int(peer) not in heard}
        return self._go_on(now)

    def _make_up(self, sender: int, envelope: Envelope) -> list[Effect]:
        """A message of a past round that this peer had gone on without: its flow enters the next mixing."""
        owed = self._owed.pop((envelope.number, sender), None)
        if owed is None:
            return []
        weight, said = owed
        flow = weight * (envelope.row - said)
        self._late = flow if self._late is None else self._late + flow
        if self._final is not None:
            before, inbox = self._final
            again = replace(inbox, late=self._late if inbox.late is None else inbox.late + self._late)
            self._late, self._final = None, (before, again)
            self.state = absorbed(self.seat.algorithm, before, again, self._home(self.count, True))
        return [Missed(sender, envelope.number, late=True)]

    def _go_on(self, now: float) -> list[Effect]:
        """Close as many rounds as can be closed; a peer that was away catches up here."""
        effects: list[Effect] = []
        while self.count < self.seat.steps:
            heard = self._heard.get(self.count, {})
            missing = [int(peer) for peer in self._links.senders if int(peer) not in heard]
            alone = bool(missing) and not heard
            if any(peer not in self._away for peer in missing):
                break
            if alone and self._rung < self.count and self._alone < ALONE:
                break
            self._alone = self._alone + 1 if alone else 0
            effects += [Missed(peer, self.count) for peer in missing]
            weights = {peer: float(self._links.weights[self._links.senders == peer][0]) for peer in missing}
            inbox = self._inbox(heard, missing)
            self._heard.pop(self.count, None)
            self.count += 1
            last = self.count == self.seat.steps
            if not last:
                self._links = self._around(self.count)
            self._final = (self.state, inbox) if last else None
            self.state = absorbed(self.seat.algorithm, self.state, inbox, self._home(self.count, last))
            self._owe(weights, inbox)
            effects += [Done()] if last else self._speak(now)
        return effects

    def _owe(self, weights: dict[int, float], inbox: Inbox) -> None:
        """Remember what the round just closed was mixed with instead of the words of those it went on without."""
        notes = inbox.notes if isinstance(inbox, Noted) else [inbox.own]
        if len(notes) == 1 and isinstance(notes[0], np.ndarray):
            self._owed |= {(self.count - 1, peer): (weight, notes[0]) for peer, weight in weights.items()}

    def _inbox(self, heard: dict[int, Any], missing: list[int]) -> Inbox:
        links, said = self._links, self._said
        own = take(said.rows, ONE) if not said.each else None
        complete = np.sort(np.append(self._graph(self.count).neighbors(self.seat.me), self.seat.me))
        links = links.without(np.isin(links.senders, missing)) if missing else links
        late, self._late = self._late, None
        if said.each:
            empty = take(said.rows, ONE[:0])
            return Noted(links, join([heard[int(j)] for j in links.senders] or [empty]), True, None, late)
        rows = join([heard.get(int(j), own) if j != self.seat.me else own for j in complete])
        return Inbox(links, rows, False, own, late)
