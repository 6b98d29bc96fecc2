"""Any algorithm as a machine: a peer is a batch of one.

Rounds wait for all neighbors of the round. A meeting is offer / answer / reply, or offer / busy. An offer carries no
value: who declines it must not have learned anything, or the loss would exceed that of the meetings that took place.
The caller is locked from offer to answer and the callee from answer to reply, and a repeated message gets the same
reaction, so nobody is left with half a meeting. A token is absorbed once per hop. Duplicates are recognized and change
nothing; what no honest peer could have sent raises RemoteProtocolError and changes nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Door, Home
from bruit.algorithms.messages import Inbox, Links, join, take
from bruit.algorithms.schedules import Pairs, Rounds, Schedule, Wakes, Walk
from bruit.arrays import Array, Ints
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.graphs import Graph, GraphSequence
from bruit.protocols.machine import Done, Effect, Envelope, Machine, Met, Send, WakeAt
from bruit.randomness import Dice
from bruit.trace import Faults

ONE = np.array([0])
SPOKEN: dict[type[Schedule], tuple[str, ...]] = {
    Rounds: ("round",), Pairs: ("offer", "answer", "busy", "reply"), Walk: ("token",), Wakes: ("post",),
}  # fmt: skip
EMPTY = ("offer", "busy")  # kinds without payload


def fits(row: Any, like: Any) -> bool:
    """Whether a payload is one row of the same types and widths as `like`, all of its numbers finite."""
    if isinstance(like, np.ndarray):
        if not isinstance(row, np.ndarray) or row.dtype != like.dtype or row.shape != (1, *like.shape[1:]):
            return False
        return row.dtype.kind != "f" or bool(np.isfinite(row).all())
    return type(row) is type(like) and all(fits(part, other) for part, other in zip(row, like, strict=True))


@dataclass(frozen=True)
class Seat:
    """Where a peer sits: who it is, what it runs, and what is public."""

    me: int
    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    door: Door
    dice: Dice
    steps: int
    public: Any
    faults: Faults
    calls: Array  # (calls,) when this peer wakes by its own clock
    partners: Ints  # (calls,) whom it then calls
    state: Any = None  # where an earlier phase left it


class PeerMachine(Machine):
    """Runs one seat; `state` is the algorithm's state, a batch of one."""

    def __init__(self, seat: Seat) -> None:
        self.seat, self.count = seat, 0
        self.state: Any = None
        self._like: Any = None  # no row of a message, but of the types and widths of one
        self.ids = np.array([seat.me])
        self._links = Links.of_peer(self._graph(0), seat.me)
        self._heard: dict[int, dict[int, Any]] = {}
        self._answers: dict[int, Envelope] = {}  # the last reaction to each caller, to repeat it word for word
        self._offered: tuple[int, int] | None = None  # whom this peer has called, and its how-manieth call that is
        self._promised: tuple[int, int] | None = None  # whose call it has answered and still waits to hear
        self._calls = 0
        self._hop = -1
        self._latest: dict[int, tuple[int, Any]] = {}

    def _graph(self, number: int) -> Graph:
        return self.seat.graph if isinstance(self.seat.graph, Graph) else self.seat.graph.at(number)

    def _around(self, number: int) -> Links:
        """This peer's links in one round, without the dead ones."""
        links = Links.of_peer(self._graph(number), self.seat.me)
        a, b = self.seat.faults.in_round(number)
        lost = np.concatenate((b[a == self.seat.me], a[b == self.seat.me]))
        return links.without(np.isin(links.senders, lost)) if len(lost) else links

    def _home(self, clock: int, last: bool) -> Home:
        edges = self._links.edges.none() if last else self._links.edges
        count = np.array([self.count])
        return Home(self.seat.door, self.ids, count, np.array([clock]), np.array([last]), edges, self.seat.public)

    def _say(self, links: Links) -> Any:
        return self.seat.algorithm.emit(self.seat.algorithm.blank(self.state), links.edges)

    def begin(self, now: float) -> list[Effect]:
        schedule = self.seat.algorithm.schedule
        if isinstance(schedule, Rounds):
            self._links = self._around(0)
            self._start(self.seat.steps == 0)
            return self._speak_round() if self.seat.steps else [Done()]
        self._start(False)
        if isinstance(schedule, Walk):
            return self._visit(self.seat.me, 0, self._say(self._links).rows) if self._starts(schedule) else []
        posts = self._post() if isinstance(schedule, Wakes) else []
        return posts + self._next_call()

    def _start(self, last: bool) -> None:
        earlier = self.seat.state
        self.state = self.seat.algorithm.start(self._home(0, last)) if earlier is None else earlier
        self._like = take(self._say(self._links).rows, ONE[:0])

    def _starts(self, schedule: Walk) -> bool:
        return schedule.first == self.seat.me and self.seat.steps > 0

    def receive(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if self.state is None:
            raise LocalProtocolError("a peer was handed a message before it began; keep messages until then")
        self._check(sender, envelope)
        effects: list[Effect] = getattr(self, f"_on_{envelope.kind}")(sender, envelope)
        return effects

    def _check(self, sender: int, envelope: Envelope) -> None:
        """Refuse what is not of this protocol, before anything changes."""
        if envelope.kind not in SPOKEN[type(self.seat.algorithm.schedule)]:
            raise RemoteProtocolError(f"peer {sender} sent a message of kind {envelope.kind!r}, which nobody expects")
        if type(envelope.number) is not int or envelope.number < 0:
            raise RemoteProtocolError(f"peer {sender} numbered its message {envelope.number!r}")
        if envelope.row is not None if envelope.kind in EMPTY else not fits(envelope.row, self._like):
            wanted = "nothing" if envelope.kind in EMPTY else "one row of finite numbers of the agreed types and widths"
            raise RemoteProtocolError(f"peer {sender} sent a message of kind {envelope.kind} that holds not {wanted}")

    def wake(self, now: float) -> list[Effect]:
        if self.state is None or self._calls >= len(self.seat.calls):
            raise LocalProtocolError(f"peer {self.seat.me} was woken at {now:g}, when its own clock did not ring")
        if isinstance(self.seat.algorithm.schedule, Wakes):
            return self._act()
        number, partner = self._calls, int(self.seat.partners[self._calls])
        self._calls += 1
        following = self._next_call()
        if self.waiting:
            return following
        self._offered = (partner, number)
        return [*following, Send(partner, Envelope("offer", number))]

    @property
    def waiting(self) -> bool:
        """Whether this peer is in the middle of a meeting, as caller or callee."""
        return self._offered is not None or self._promised is not None

    def skip(self) -> list[Effect]:
        """Miss one call of the own clock: the peer is away."""
        self._calls += 1
        return self._next_call()

    def _next_call(self) -> list[Effect]:
        return [WakeAt(float(self.seat.calls[self._calls]))] if self._calls < len(self.seat.calls) else []

    # rounds

    def _speak_round(self) -> list[Effect]:
        said = self._say(self._links)
        self._own = said.rows
        sends: list[Effect] = [
            Send(int(peer), Envelope("round", self.count, take(said.rows, np.array([k if said.each else 0]))))
            for k, peer in enumerate(self._links.senders)
        ]
        return sends + self._hear_round()

    def _on_round(self, sender: int, envelope: Envelope) -> list[Effect]:
        if not self.count <= envelope.number < self.seat.steps:
            if envelope.number < 0 or envelope.number >= self.seat.steps:
                raise RemoteProtocolError(f"peer {sender} sent round {envelope.number} of {self.seat.steps}")
            return []
        if sender not in self._around(envelope.number).senders:
            raise RemoteProtocolError(f"peer {sender} is no neighbor of peer {self.seat.me} in round {envelope.number}")
        self._heard.setdefault(envelope.number, {}).setdefault(sender, envelope.row)
        return self._hear_round() if envelope.number == self.count else []

    def _hear_round(self) -> list[Effect]:
        heard = self._heard.get(self.count, {})
        if len(heard) < len(self._links.senders):
            return []
        inbox = self._round_inbox(heard)
        self._heard.pop(self.count, None)
        self.count += 1
        last = self.count == self.seat.steps
        if not last:
            self._links = self._around(self.count)
        self.state = self.seat.algorithm.absorb(self.state, inbox, self._home(self.count, last))
        return [Done()] if last else self._speak_round()

    def _round_inbox(self, heard: dict[int, Any]) -> Inbox:
        links = self._links
        each = bool(self.seat.algorithm.emit(self.seat.algorithm.blank(self.state), links.edges).each)
        if each:
            empty = take(self._own, np.zeros(0, np.int64))
            return Inbox(links, join([heard[int(j)] for j in links.senders] or [empty]), True, None)
        around = np.sort(np.append(links.senders, self.seat.me))
        complete = np.sort(np.append(self._graph(self.count).neighbors(self.seat.me), self.seat.me))
        blank = take(self._own, ONE)
        rows = [heard.get(int(j), blank) if j != self.seat.me else blank for j in complete]
        return Inbox(links, join(rows), False, blank) if len(around) else Inbox(links, blank, False, blank)

    # meetings

    def _mine(self, partner: int) -> Any:
        """What this peer says in a meeting."""
        return take(self._say(Links.of_meetings(self.ids, np.array([partner]))).rows, ONE)

    def _meet(self, partner: int, row: Any) -> None:
        links = Links.of_meetings(self.ids, np.array([partner]))
        inbox = Inbox(links, row, False, self._mine(partner))
        self.count += 1
        self.state = self.seat.algorithm.absorb(self.state, inbox, self._home(self.count, False))

    def _on_offer(self, sender: int, envelope: Envelope) -> list[Effect]:
        if sender not in self._links.senders:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")
        known = self._answers.get(sender)
        if known is not None and envelope.number <= known.number:
            return [Send(sender, known)] if envelope.number == known.number else []
        if self.waiting:
            return self.refuse(sender, envelope)
        self._promised = (sender, envelope.number)
        self._answers[sender] = Envelope("answer", envelope.number, self._mine(sender))
        return [Met(sender, envelope.number), Send(sender, self._answers[sender])]

    def refuse(self, sender: int, envelope: Envelope) -> list[Effect]:
        """Decline an offer for good: a repetition of it is declined too, or the caller would be left behind."""
        known = self._answers.get(sender)
        if known is None or known.number < envelope.number:
            self._answers[sender] = Envelope("busy", envelope.number)
        return [Send(sender, self._answers[sender])] if self._answers[sender].number == envelope.number else []

    def _on_answer(self, sender: int, envelope: Envelope) -> list[Effect]:
        if self._offered != (sender, envelope.number):
            return []
        self._offered = None
        reply = Envelope("reply", envelope.number, self._mine(sender))
        self._meet(sender, envelope.row)
        return [Send(sender, reply)]

    def _on_reply(self, sender: int, envelope: Envelope) -> list[Effect]:
        if self._promised == (sender, envelope.number):
            self._promised = None
            self._meet(sender, envelope.row)
        return []

    def _on_busy(self, sender: int, envelope: Envelope) -> list[Effect]:
        if self._offered == (sender, envelope.number):
            self._offered = None
        return []

    # walks

    def _on_token(self, sender: int, envelope: Envelope) -> list[Effect]:
        if envelope.number <= self._hop:
            return []
        known = sender in self._links.senders or sender == self.seat.me
        if not (0 < envelope.number < self.seat.steps and known):
            raise RemoteProtocolError(f"peer {sender} sent a token of hop {envelope.number} that cannot be")
        return self._visit(sender, envelope.number, envelope.row)

    def _visit(self, sender: int, hop: int, row: Any) -> list[Effect]:
        schedule = self.seat.algorithm.schedule
        links = Links.of_meetings(self.ids, np.array([sender]))
        self.count, self._hop = self.count + 1, hop
        last = hop + 1 == self.seat.steps
        inbox = Inbox(links, row, False, take(self._say(links).rows, ONE))
        home = Home(self.seat.door, self.ids, np.array([self.count]), np.array([hop]), np.array([last]),
                    self._links.edges, self.seat.public)  # fmt: skip
        self.state = self.seat.algorithm.absorb(self.state, inbox, home)
        met: list[Effect] = [Met(sender, hop)]
        if last or not isinstance(schedule, Walk):
            return [*met, Done()]
        target = schedule.next(self._graph(0), self.seat.me, hop, self.seat.dice)
        token = take(self._say(Links.of_meetings(self.ids, np.array([target]))).rows, ONE)
        return [*met, Send(target, Envelope("token", hop + 1, token))]

    # wakes

    def _post(self) -> list[Effect]:
        row = take(self._say(self._links).rows, ONE)
        self._latest[self.seat.me] = (self.count, row)
        return [Send(int(peer), Envelope("post", self.count, row)) for peer in self._links.senders]

    def _on_post(self, sender: int, envelope: Envelope) -> list[Effect]:
        if sender not in self._links.senders:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")
        if sender not in self._latest or self._latest[sender][0] < envelope.number:
            self._latest[sender] = (envelope.number, envelope.row)
        return []

    def _act(self) -> list[Effect]:
        """Wake: read the latest message of each neighbor; a call before all of them spoke once is skipped."""
        self._calls += 1
        following = self._next_call()
        if any(int(peer) not in self._latest for peer in self._links.senders):
            return following
        reads = tuple((int(peer), self._latest[int(peer)][0]) for peer in self._links.senders)
        around = np.sort(np.append(self._links.senders, self.seat.me))
        rows = join([self._latest[int(peer)][1] for peer in around])
        self.count += 1
        inbox = Inbox(self._links, rows, False, self._latest[self.seat.me][1])
        self.state = self.seat.algorithm.absorb(self.state, inbox, self._home(self.count, False))
        return [*following, Met(self.seat.me, self._calls - 1, reads), *self._post()]
