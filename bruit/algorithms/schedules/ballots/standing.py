"""Where a peer of a run by ballots stands: its ballot, its base, what it knows of the others, and how
it tells them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, replace
from typing import Any, ClassVar

from bruit.algorithms.messages import Edges
from bruit.algorithms.schedules.ballots.attempt import Attempt, Summed
from bruit.algorithms.schedules.ballots.chain import NO_KEY, root
from bruit.algorithms.schedules.ballots.history import History
from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll, SpeechRow, examples
from bruit.algorithms.schedules.ballots.terms import BallotTerms
from bruit.algorithms.schedules.machine import Alarm, Effect, Envelope, Send
from bruit.algorithms.schedules.peer import PeerMachine, Seat
from bruit.algorithms.task_door import TaskDoor

AGAIN = 4  # how often in a patience what may be lost is said again


class BallotStanding(PeerMachine):
    """What all parts of a peer on ballots share, and what they ask of each other."""

    kinds: ClassVar[tuple[str, ...]] = ("ballot", "list", "speak", "sum", "fetch", "record")
    kept: ClassVar[tuple[str, ...]] = kinds
    derived: ClassVar[tuple[str, ...]] = (
        *PeerMachine.derived,
        "terms",
        "_grace",
        "_rows",
        "_uttered",
        "_recited",
    )
    keyed: ClassVar[bool] = True

    def __init__(self, seat: Seat, terms: BallotTerms, grace: float) -> None:
        super().__init__(seat)
        self.terms, self._grace = terms, grace
        self._rows: dict[str, Any] = {}
        self._uttered: list[Envelope] = []  # words that no later start can make again
        self._recited: list[Envelope] = []  # those of an earlier start, to be said again
        self.key = NO_KEY  # public, of this start; see `renew`
        self.ballot, self.charges, self.finished = -1, 0, False
        self.history = History([root(seat.algorithm, terms.peers, seat.steps)])
        self.attempts: list[Summed] = []  # all that this peer was charged for, summed or not
        self.convicted: dict[int, tuple[str, bytes, str, bytes]] = {}
        self.lies = 0  # lists and words that contradict what the same peer had said
        self.agreed = True  # whether n - D peers hold the base that this peer has ended with
        self.strayed = False  # a sum was taken back that this peer has no state left for
        self._promises: dict[int, Promise] = {}  # the last of each peer, and the own
        self._roll: Roll | None = None  # the list of this ballot
        self._made = False  # whether this peer made it
        self.message: Envelope | None = None  # the words of this ballot, once there are any
        self._words: dict[int, SpeechRow] = {}  # of this ballot
        self._passed = 0  # how many parts of its way this peer has said
        self._goal: Base | None = None  # the base that this peer is on its way to
        self._sought: set[bytes] = set()  # what a leader has asked for lately
        self._asks = 0  # how often it has asked for sums
        self._clocked, self._graced, self._waiting = False, False, False
        self._slow = 0  # how often the clock has run out, less the sums since
        self._vain = 0  # how many ballots in a row have brought this peer nothing
        self._told: dict[int, int] = {}  # how often those were who hold the last base
        self._quiet: set[int] = set()  # who promised, was listed, and said nothing
        self._signed: dict[int, tuple[bytes, str, bytes]] = {}  # by ballot: sum, text, seal
        self._states: list[tuple[int, bytes, Any]] = []  # rounds absorbed, hash, state

    @property
    def base(self) -> Base:
        return self.history.base

    @property
    def leader(self) -> int:
        return self.terms.leader(self.ballot)

    def row_of(self, kind: str) -> Any:
        if not self._rows and self.example is not None:
            self._rows = examples(self.terms.peers, self.example)
        return self._rows.get(kind)

    def value_of(self, envelope: Envelope) -> Any:
        return getattr(envelope.row, "words", None)

    def reads_on(self, until: float) -> bool:
        return not self.finished and super().reads_on(until)

    def uttered(self) -> list[Envelope]:
        found, self._uttered = self._uttered, []
        return found

    def recite(self, envelope: Envelope) -> None:
        self._recited.append(envelope)

    def back(self) -> tuple[int, ...]:
        """The list of the last sum: who is in it was there at the end."""
        return self.history.summed[-1].members if self.history.summed else ()

    def told(self) -> dict[str, Any]:
        """Who was in which attempt and round, what was charged, and who was caught at a lie, with
        the two signatures that prove it."""
        made = {one.ballot for one in self.history.summed}
        return {
            "rounds": [asdict(one) for one in self.history.summed],
            "attempts": [{**asdict(one), "summed": one.ballot in made} for one in self.attempts],
            "charges": self.charges,
            "charges_planned": self.terms.limit,
            "chain": self.history.chains[-1].hex(),
            "agreed": self.agreed,
            "contradictions": self.lies,
            "convicted": [
                {"peer": peer, "signed": [[one, first.hex()], [two, second.hex()]]}
                for peer, (one, first, two, second) in sorted(self.convicted.items())
            ],
        }

    # how it tells the others

    def _later(self, now: float, alarm: Alarm, times: float) -> list[Effect]:
        return self._patience(now, alarm, self.ballot, times)

    def _promise(self, quietly: bool = False) -> list[Effect]:
        charges = self.terms.limit if self.strayed else self.charges
        mine = Promise(self.ballot, self.base, charges, self.key)
        if self.seat.seals is not None:
            mine = replace(mine, seal=self.seat.seals.sign(mine.text()))
        self._promises[self.seat.me] = mine
        told = [self.leader] if quietly else self._others()
        return self._tell(told, Envelope("ballot", self.ballot, mine.row()))

    def _others(self) -> list[int]:
        return [int(peer) for peer in self._links.senders]

    def _tell(self, peers: list[int], word: Envelope) -> list[Effect]:
        return [Send(peer, word) for peer in peers if peer != self.seat.me]

    def _newer(self, peer: int, promise: Promise) -> bool:
        """Whether a promise is not older than what is known of that peer: a message may have been
        overtaken."""
        known = self._promises.get(peer)
        if peer == self.seat.me or known is None:
            return known is None
        seen, told = ((one.ballot, one.base.ballot, one.charges) for one in (known, promise))
        return seen <= told

    def _usable(self, key: bytes) -> bool:
        door = self.seat.door
        masks = door.masks if isinstance(door, TaskDoor) else None
        return masks is None or masks.usable(key)

    def _behind(self, peer: int) -> bool:
        promise = self._promises.get(peer)
        return promise is None or promise.base != self.base

    def _silent(self) -> list[int]:
        """For whom this peer has waited in vain in this ballot."""
        roll, me = self._roll, self.seat.me
        awaited = set() if roll is None else self.terms.way(roll, me).awaited
        silent = sorted(peer for peer in awaited if peer not in self._words)
        return silent or ([self.leader] if self.leader != me else [])

    # what the parts ask of each other

    @abstractmethod
    def _enter(self, now: float, ballot: int, quietly: bool = False) -> list[Effect]:
        """Begin a later ballot."""

    @abstractmethod
    def _look(self, now: float) -> list[Effect]:
        """What follows from the promises that are known."""

    @abstractmethod
    def _start_clock(self, now: float) -> list[Effect]:
        """Limit the time of this ballot, if enough peers are in it."""

    @abstractmethod
    def _propose(self, now: float) -> list[Effect]:
        """The leader's list, when it is time for one."""

    @abstractmethod
    def _check_roll(self, sender: int, roll: Roll) -> None:
        """Refuse a list that no honest leader makes."""

    @abstractmethod
    def _speak(self, now: float) -> list[Effect]:
        """One attempt."""

    @abstractmethod
    def _vote(self, now: float) -> list[Effect]:
        """A voice for the end."""

    @abstractmethod
    def _absorbed(self, base: Base) -> tuple[int, bytes, Any] | None:
        """The last state whose sums are all in the chain of this base."""

    @abstractmethod
    def _absorb(self, start: tuple[int, bytes, Any], attempt: Attempt, edges: Edges) -> None:
        """The state after the sums that it has not absorbed yet."""
