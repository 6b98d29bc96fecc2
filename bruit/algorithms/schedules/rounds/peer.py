"""Rounds between peers: everybody speaks to all neighbors, and absorbs when all of them were heard.

Nobody stops a run. When patience ends, the peer goes on with those it heard, and gives the weight
of the others to itself. It does not wait for the others again until they speak of the present round
or nearly so. A peer that hears nobody at all waits a few times more before it goes on alone.

The mean is kept all the same, because an exchange is a flow W_ij (m_j - m_i), and both sides treat
it alike. A peer that went on without a neighbor says so with its next word to it, which is then of
kind "apart". If both went on, there was no exchange, and nothing is to be made up for. If only one
did, that one applies the flow late, once, against what it had said itself. So a link that is cut
for k rounds does not leave k flows behind, which would push the models apart when it heals.

A peer that is far behind reads words of neighbors that went on long ago, and all they say is
"apart". Where their next word is here too, it is known that they exchanged nothing with this peer in
this round, and it goes on without them as well: what it took from them they would owe, round after
round, measured by models of long ago, and it would pass on to neighbors that keep up what these
differed by. Where the next word is not here yet, it exchanges with one of them only.

The last exchange of two peers is followed by no word, so whatever comes late of it is applied by
both. After the last round that is done by mixing the round again with the flow added; nothing is
said then, so nothing leaks twice. Where every copy has noise of its own, what this peer had said to
that neighbor is not what it mixed with: m_i is then the row it mixed with.

Of each neighbor at most WINDOW rounds ahead are kept: it speaks of the next ones when they are due.
An honest neighbor that has given this peer up may be ahead by any number of rounds; these wait on
its line. For late flows at most OWED bytes of own rows are kept. When there are more, the oldest
are given up, and stay missed in the report. Memory: (neighbors x WINDOW) rows + OWED.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.doorway import absorbed
from bruit.algorithms.messages import Inbox, Links, join, take
from bruit.algorithms.schedules.machine import Alarm, Done, Effect, Envelope, Missed, Send, WakeAt
from bruit.algorithms.schedules.peer import ONE, PeerMachine, Seat
from bruit.arrays import Array
from bruit.errors import RemoteProtocolError
from bruit.graphs import Graph

# When somebody dies, its neighbors stop in one round, theirs in the next, and so on. Patience is a
# little longer in
# later rounds (in turns of eight), so that who waits for the dead gives up before who waits for the
# waiting; where it
# ends at the same moment all the same, who is only so many rounds behind is waited for again, and
# they find together.
NEAR, TURN = 4, 8
WINDOW = 8  # rounds ahead of its own that a peer takes from a line
OWED = 16 * 2**20  # bytes of own rows kept for what may still come late
# rounds in a row that a peer waits for, each with all of its patience, when it hears nobody at all
ALONE = 3


@dataclass(frozen=True)
class Noted(Inbox):
    """An inbox that notes the row of its own with which a peer mixes."""

    notes: list[Array] = field(default_factory=list)

    def mix(self, own: Array | None = None) -> Array:
        self.notes.append(self.own if own is None else own)
        return super().mix(own)

    def aside(self) -> Noted:
        return replace(self, notes=[])


class Word(NamedTuple):
    """What a neighbor said in a round; `apart`: it had gone on without this peer in the exchange
    before."""

    row: Any
    apart: bool


class RoundPeer(PeerMachine):
    """One peer of a synchronous algorithm."""

    kinds: ClassVar[tuple[str, ...]] = ("round", "apart")
    derived: ClassVar[tuple[str, ...]] = (*PeerMachine.derived, "_built")

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._heard: dict[int, dict[int, Word]] = {}
        self._away: set[int] = set()
        self._apart: set[int] = set()  # to be told that this peer has gone on without them
        self._came: dict[int, tuple[int, Any]] = {}  # words whose senders' next one decides
        self._mixes = False  # whether the algorithm mixed what it heard in the round before
        self._owed: dict[
            tuple[int, int], tuple[float, Any]
        ] = {}  # (round, neighbor): weight, m_i of that round
        self._owed_bytes = 0
        self._spoke: dict[int, int] = {}  # the last round that each neighbor spoke of
        self._late: Any = None  # flows that arrived after their round
        self._spoken: Any = None
        self._rung, self._alone = (
            -1,
            0,
        )  # the last round whose patience ended; how many in a row without a word
        self._final: tuple[Any, Inbox] | None = (
            None  # the state before the last mixing, and what was mixed
        )
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
        self._spoken = self._say(self._links)
        rows, each = self._spoken
        count = len(self._links.senders)
        words = [take(rows, ONE + k) for k in range(count)] if each else [take(rows, ONE)] * count
        sends: list[Effect] = [
            Send(int(peer), Envelope("apart" if peer in self._apart else "round", self.count, row))
            for peer, row in zip(self._links.senders, words, strict=True)
        ]
        self._apart -= {int(peer) for peer in self._links.senders}
        later = self.seat.timeout * (self.count % TURN) / (2 * TURN)
        return sends + self._patience(now + later, "round", self.count)

    def early(self, sender: int, kind: str, number: int) -> bool:
        return kind in self.kinds and self.count + WINDOW < number < self.seat.steps

    def _check_order(self, sender: int, envelope: Envelope) -> None:
        """On a graph that does not change a neighbor speaks of every round, in order; else of later
        and later ones."""
        number, last = envelope.number, self._spoke.get(sender, -1)
        if number <= last or (
            isinstance(self.seat.graph, Graph) and last + 1 < number < self.seat.steps
        ):
            raise RemoteProtocolError(f"peer {sender} spoke of round {number} after round {last}")

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        number = envelope.number
        if number >= self.seat.steps:
            raise RemoteProtocolError(f"peer {sender} sent round {number} of {self.seat.steps}")
        if sender not in self._around(number).senders:
            raise RemoteProtocolError(
                f"peer {sender} is no neighbor of peer {self.seat.me} in round {number}"
            )
        word = Word(envelope.row, envelope.kind == "apart")
        last = self._spoke.get(sender, -1)
        effects = self._decide(sender, word.apart) if number > last else []
        self._spoke[sender] = max(number, last)
        if number >= self.count - NEAR:
            self._away.discard(sender)
            self._alone = 0
        if number < self.count:
            if (number, sender) not in self._owed:
                return effects
            self._came[sender] = (number, word.row)
            return effects if self._follows(sender, number) else effects + self._decide(sender)
        self._heard.setdefault(number, {}).setdefault(sender, word)
        return effects + (self._go_on(now) if number == self.count else [])

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if alarm == "more":
            return self._go_on(now)
        if number != self.count or self.count >= self.seat.steps:
            return []
        heard = self._heard.get(number, {})
        self._rung = number
        self._away |= {int(peer) for peer in self._links.senders if int(peer) not in heard}
        return self._go_on(now)

    def _follows(self, peer: int, number: int) -> bool:
        """Whether these two exchange words again after that round."""
        later = range(number + 1, self.seat.steps)
        if isinstance(self.seat.graph, Graph) and not len(self.seat.faults.round):
            return len(later) > 0
        return any(peer in self._around(t).senders for t in later)

    def _decide(self, sender: int, apart: bool = False) -> list[Effect]:
        """What becomes of a word that came too late: its flow enters the next mixing, unless its
        sender went on without this peer as well."""
        number, row = self._came.pop(sender, (-1, None))
        owed = self._owed.pop((number, sender), None)
        if owed is None:
            return []
        weight, own_message = owed
        self._owed_bytes -= own_message.nbytes
        if not apart:
            self._apply(weight * (row - own_message))
        return [Missed(sender, number, late=True)]

    def _apply(self, flow: Any) -> None:
        self._late = flow if self._late is None else self._late + flow
        if self._final is not None:
            before, inbox = self._final
            again = replace(
                inbox, late=self._late if inbox.late is None else inbox.late + self._late
            )
            self._late, self._final = None, (before, again)
            self.state = absorbed(self.seat.algorithm, before, again, self._home(self.count, True))

    def _passed_over(self, heard: dict[int, Word]) -> list[int]:
        """The neighbors whose next word is here already and says that they went on without this
        peer in this very exchange, so that there is none; and of others that went on long ago all
        but one. Nobody in the last exchange of two, which counts for both."""
        if not self._mixes:
            return []
        ahead = sorted(peer for peer, word in heard.items() if word.apart)
        later = self._heard.get(self.count + 1, {})
        gone = {peer for peer in heard if peer in later and later[peer].apart}
        return [peer for peer in sorted(gone | set(ahead[1:])) if self._follows(peer, self.count)]

    def _go_on(self, now: float) -> list[Effect]:
        """Close as many rounds as can be closed, among real peers one at a time; who was away
        catches up here."""
        effects: list[Effect] = []
        first = self.count
        while self.count < self.seat.steps:
            heard = self._heard.get(self.count, {})
            missing = [int(peer) for peer in self._links.senders if int(peer) not in heard]
            alone = bool(missing) and not heard
            if any(peer not in self._away for peer in missing):
                break
            if alone and self._rung < self.count and self._alone < ALONE:
                break
            if self.count > first and math.isfinite(self.seat.timeout):
                return [
                    *effects,
                    WakeAt(now, "more", self.count),
                ]  # others get a turn before the next one
            self._alone = self._alone + 1 if alone else 0
            passed_over = self._passed_over(heard)
            without = missing + passed_over
            effects += [Missed(peer, self.count) for peer in without]
            weights = {
                peer: float(self._links.weights[self._links.senders == peer][0]) for peer in without
            }
            inbox = self._inbox({peer: word.row for peer, word in heard.items()}, without)
            self._heard.pop(self.count, None)
            self._apart |= set(without)
            self.count += 1
            last = self.count == self.seat.steps
            if not last:
                self._links = self._around(self.count)
            self._final = (self.state, inbox) if last else None
            self.state = absorbed(
                self.seat.algorithm, self.state, inbox, self._home(self.count, last)
            )
            self._owe(weights, inbox)
            for peer in passed_over:
                effects += self._set_aside(peer, heard[peer].row)
            effects += [Done()] if last else self._speak(now)
        return effects

    def _set_aside(self, peer: int, row: Any) -> list[Effect]:
        """A word of the round just closed that was here and passed over."""
        self._came[peer] = (self.count - 1, row)
        later = [number for number in sorted(self._heard) if peer in self._heard[number]]
        return self._decide(peer, self._heard[later[0]][peer].apart) if later else []

    def _owe(self, weights: dict[int, float], inbox: Noted) -> None:
        """Remember what the round just closed was mixed with instead of the words of those it went
        on without; where words are not mixed no flow makes up for one, and it stays missed."""
        self._mixes = bool(inbox.notes)
        if not self._mixes:
            return
        notes = inbox.notes if inbox.each else [inbox.own]
        if len(notes) == 1 and isinstance(notes[0], np.ndarray):
            self._owed |= {
                (self.count - 1, peer): (weight, notes[0]) for peer, weight in weights.items()
            }
            self._owed_bytes += notes[0].nbytes * len(weights)
        while self._owed_bytes > OWED:
            _, row = self._owed.pop(next(iter(self._owed)))
            self._owed_bytes -= row.nbytes

    def _inbox(self, heard: dict[int, Any], missing: list[int]) -> Noted:
        links, spoken_last = self._links, self._spoken
        own = take(spoken_last.rows, ONE) if not spoken_last.each else None
        complete = np.sort(np.append(self._graph(self.count).neighbors(self.seat.me), self.seat.me))
        links = links.without(np.isin(links.senders, missing)) if missing else links
        late, self._late = self._late, None
        if spoken_last.each:
            empty = take(spoken_last.rows, ONE[:0])
            return Noted(
                links, join([heard[int(j)] for j in links.senders] or [empty]), True, None, late
            )
        rows = join([heard.get(int(j), own) if j != self.seat.me else own for j in complete])
        return Noted(links, rows, False, own, late)
