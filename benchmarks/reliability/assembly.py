"""Assembly: an event simulation of a run by ballots, over the machines themselves.

Messages get lost, a fifth of them comes up to 40 seconds late, peers are killed at any message and
start again from what they had written down, some die, and some lie. Nobody else looks at what the
machines say; the assembly does, and counts what must never happen.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.ballots.chain import root
from bruit.algorithms.schedules.ballots.peer import BallotPeer
from bruit.algorithms.schedules.ballots.routes import Route
from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll, Tally
from bruit.algorithms.schedules.ballots.schedule import Ballots
from bruit.algorithms.schedules.machine import Effect, Envelope, Send, WakeAt
from bruit.algorithms.schedules.peer import Seat
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.vouchers import Seals
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Words
from bruit.errors import RemoteProtocolError
from bruit.graphs import graph
from bruit.peers.journal.snapshots import freeze, thaw
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks import Mean
from bruit.trace import Faults

Lie = Literal[
    "two lists", "two sums", "withheld", "silent", "forgotten base", "false base", "false end"
]
LIES: tuple[Lie, ...] = (
    "two lists",
    "two sums",
    "withheld",
    "silent",
    "forgotten base",
    "false base",
    "false end",
)
LATE, LATEST, USUAL = 0.2, 40.0, 0.5  # how many messages are late, by how much, and the others
LONGEST = 2e5  # seconds; a run that takes longer counts as one that hangs
KILLS = 6.0  # of a run, about
DOWN = 60.0  # seconds at most until a killed peer is started again


class Sums(NamedTuple):
    """All sums so far, in one number each that depends on their order; and the words said next."""

    sums: Words
    words: Words


@dataclass(frozen=True)
class SumOfWords(Algorithm[Sums]):
    """A toy: every peer says words made of its value, which is read in every attempt."""

    schedule: Schedule = Ballots()

    def start(self, home: Home) -> Sums:
        nothing = np.zeros((len(home.ids), home.dim), np.uint64)
        return Sums(nothing, nothing)

    def emit(self, state: Sums, edges: Edges) -> Message:
        return edges.broadcast(state.words)

    def absorb(self, state: Sums, inbox: Inbox, home: Home) -> Sums:
        sums, rows, start = state.sums.copy(), inbox.copies(), inbox.links.start
        for lane in range(len(home.ids)):
            for row in rows[start[lane] : start[lane + 1]]:
                sums[lane] = sums[lane] * np.uint64(3) + row
        if bool(home.last.all()):
            return Sums(sums, state.words)
        read = np.abs(1e3 * home.value()).astype(np.uint64)
        often = home.step[:, None].astype(np.uint64)
        return Sums(sums, (read + sums + often) * np.uint64(2**61 + 1))

    def estimate(self, state: Sums) -> Array:
        return state.sums.astype(np.float64)


class Stamps(Seals):
    """Signatures that only the assembly can make and check."""

    def __init__(self, me: int) -> None:
        self.me = me

    def sign(self, text: str) -> bytes:
        key = self.me.to_bytes(4, "little")
        return hashlib.blake2b(text.encode(), key=key, digest_size=64).digest()

    def check(self, peer: int, text: str, seal: bytes) -> bool:
        return Stamps(peer).sign(text) == seal


@dataclass(frozen=True)
class Weather:
    """One kind of run: how many peers and rounds, how long the clock is, what goes wrong."""

    peers: int
    clock: float
    loss: float = 0.05
    late: float = LATE
    steps: int = 20
    spare: int = 20
    dropouts: int = 1
    colluders: int = 1
    deaths: int = 0
    kills: float = KILLS
    lies: tuple[Lie, ...] = ()
    route: Route = "complete"


@dataclass
class Verdict:
    """What came of one run; everything but `attempts`, `ended` and `alone` must be 0."""

    attempts: int = 0  # beyond the rounds, of the peer that made most
    ended: int = 0  # came to the end of the attempts before the last round
    alone: int = 0  # peers that gave up, and say that nobody has agreed to their model
    hanging: int = 0  # living honest peers that did not finish
    chains: int = 0  # beyond one, of those who finished
    models: int = 0  # beyond one, of those who finished
    lost: int = 0  # bases that enough honest peers had adopted
    twice: int = 0  # rows of words of one peer in one ballot, beyond the first
    wrong: int = 0  # sums of the chain that are not those of the words that were said
    beyond: int = 0  # charges beyond the limit, or that the ledger does not know
    refused: int = 0  # messages of honest peers that were refused

    def broken(self) -> dict[str, int]:
        """What must not be, and is."""
        allowed = ("attempts", "ended", "alone")
        return {name: n for name, n in vars(self).items() if n and name not in allowed}


class Assembly:
    """One run. `liars` are the first peers; `said` keeps what everybody said in every ballot."""

    def __init__(self, weather: Weather, seed: int) -> None:
        self.weather, self.dice = weather, random.Random(seed)
        n = weather.peers
        schedule = Ballots(weather.dropouts, weather.spare, weather.colluders, route=weather.route)
        self.algorithm, self.graph = SumOfWords(schedule), graph(f"complete:{n}")
        self.ledger = Ledger(peers=n)
        values = np.random.default_rng(seed).normal(size=(n, 2))
        self.door = TaskDoor(
            task=Mean(values), mechanism=None, dice=Replay(seed), ledger=self.ledger
        )
        self.machines = [self._machine(peer) for peer in range(n)]
        others = list(range(n))
        self.dice.shuffle(others)
        liars = weather.colluders if weather.lies else 0
        self.liars, honest = set(others[:liars]), others[liars:]
        self.honest = sorted(honest)
        self.death = {v: self.dice.uniform(0.0, 1000.0) for v in honest[: weather.deaths]}
        self.down: dict[int, float] = {}
        self.kept: dict[int, list[Effect]] = {}
        self.heap: list[tuple[float, int, int, int, Any]] = []
        self.order, self.now = 0, 0.0
        self.said: dict[tuple[int, int], bytes] = {}
        self.adopters: dict[bytes, set[int]] = {}
        self.mood: dict[tuple[int, int], Lie | None] = {}
        self.verdict = Verdict()
        self.kills = 0

    def _machine(self, peer: int) -> BallotPeer:
        none = np.zeros(0, np.int64)
        seat = Seat(
            me=peer,
            algorithm=self.algorithm,
            graph=self.graph,
            door=self.door,
            dice=self.door.dice,
            steps=self.weather.steps,
            public=None,
            faults=Faults.none(),
            calls=np.zeros(0),
            partners=none,
            timeout=self.weather.clock,
            seals=Stamps(peer),
        )
        machine = self.algorithm.schedule.machine(seat)
        assert isinstance(machine, BallotPeer)
        return machine

    # what happens

    def run(self) -> Verdict:
        for peer, machine in enumerate(self.machines):
            self.carry_out(peer, machine.begin(self.dice.uniform(0.0, 2.0)))
        while self.heap and self.now < LONGEST and not self.over():
            self.now, _, peer, sender, what = heapq.heappop(self.heap)
            if not self.dead(peer):
                self.happen(peer, sender, what)
        return self.judge()

    def dead(self, peer: int) -> bool:
        return self.now >= self.death.get(peer, math.inf)

    def over(self) -> bool:
        return all(self.machines[v].finished or self.dead(v) for v in self.honest)

    def push(self, time: float, peer: int, sender: int, what: Any) -> None:
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, peer, sender, what))

    def happen(self, peer: int, sender: int, what: Any) -> None:
        if what == "start":
            self.restart(peer)
            return
        if peer in self.down:
            if isinstance(what, WakeAt):
                self.push(self.down[peer], peer, peer, what)  # rings when it is there again
            return
        killed = self.dice.random() < self.weather.kills / (150 * self.weather.peers**2)
        if killed and self.dice.random() < 0.5:
            self.kill(peer, [])  # before anything was written down
            if isinstance(what, WakeAt):
                self.push(self.down[peer], peer, peer, what)
            return
        effects = self.feed(peer, sender, what)
        if killed:
            self.kill(peer, effects)  # all is written down, and nothing was said
        else:
            self.carry_out(peer, effects)

    def feed(self, peer: int, sender: int, what: Any) -> list[Effect]:
        machine = self.machines[peer]
        if isinstance(what, WakeAt):
            return machine.wake(self.now, what.alarm, what.number)
        try:
            return machine.receive(self.now, sender, what)
        except RemoteProtocolError:
            self.verdict.refused += sender in self.honest
            return []

    def kill(self, peer: int, effects: list[Effect]) -> None:
        self.kills += 1
        self.watch(peer)
        self.down[peer] = self.now + self.dice.uniform(1.0, DOWN)
        self.kept[peer] = effects
        self.push(self.down[peer], peer, peer, "start")

    def restart(self, peer: int) -> None:
        """The machine of a new process, from the bytes of the old one's memory, with a new key;
        what was not said is said now."""
        memory = thaw(freeze(self.machines[peer].memory()), {__name__})
        self.machines[peer] = self._machine(peer)
        self.machines[peer].resume(memory)
        del self.down[peer]
        key = self.dice.randbytes(32)
        self.carry_out(peer, [*self.kept.pop(peer), *self.machines[peer].renew(self.now, key)])

    def carry_out(self, peer: int, effects: list[Effect]) -> None:
        self.watch(peer)
        for effect in self.lied(peer, effects) if peer in self.liars else effects:
            if isinstance(effect, WakeAt):
                self.push(effect.time, peer, peer, effect)
            elif isinstance(effect, Send):
                if self.weather.route == "complete":  # else there may be others' words in it
                    self.note(peer, effect.envelope)  # what is kept from the last start, too
                if self.dice.random() >= self.weather.loss:
                    late = self.dice.random() < self.weather.late
                    delay = self.dice.uniform(0.01, LATEST if late else USUAL)
                    self.push(self.now + delay, effect.to, peer, effect.envelope)

    # who lies, and how

    def lied(self, peer: int, effects: list[Effect]) -> Iterator[Effect]:
        for effect in effects:
            if not isinstance(effect, Send):
                yield effect
                continue
            at = (peer, effect.envelope.number)
            if at not in self.mood:
                lie = self.dice.choice(self.weather.lies)
                self.mood[at] = lie if self.dice.random() < 0.5 else None
            told = self.twisted(peer, effect, self.mood[at])
            if told is not None:
                yield Send(effect.to, told)

    def twisted(self, peer: int, effect: Send, lie: Lie | None) -> Envelope | None:
        """What a liar says instead; None: nothing."""
        word, odd = effect.envelope, effect.to % 2 == 1
        kind, row, n = word.kind, word.row, self.weather.peers
        if lie == "two lists" and kind == "list" and odd:
            roll = Roll.of(word.number, row)
            return replace(word, row=replace(roll, members=roll.members[1:]).row(n))
        if lie == "two sums" and kind in ("sum", "speak") and odd:
            if kind == "speak":
                return replace(word, row=row._replace(words=row.words + np.uint64(1)))
            tally = Tally.of(word.number, row)
            other = Tally.made(tally.roll, tally.words + np.uint64(1), peer)
            return replace(word, row=replace(other, seal=Stamps(peer).sign(other.text())).row(n))
        if lie == "withheld" and (kind == "sum" or (kind == "speak" and odd)):
            return None
        if lie == "silent" and kind == "speak":
            return None
        if kind == "ballot" and lie in ("forgotten base", "false base"):
            base = Base(-1, 0, root(self.algorithm, n, self.weather.steps))
            if lie == "false base":
                base = Base(word.number - 1, min(word.number, self.weather.steps), bytes(32))
            return self.promised(peer, word, base)
        if kind == "ballot" and lie == "false end":
            own = Promise.of(word.number, row).base
            return self.promised(peer, word, replace(own, ballot=word.number - 1, ended=True))
        return word

    def promised(self, peer: int, word: Envelope, base: Base) -> Envelope:
        """The promise of a liar, signed, with another base."""
        false = replace(Promise.of(word.number, word.row), base=base)
        return replace(word, row=replace(false, seal=Stamps(peer).sign(false.text())).row())

    # what must not be

    def note(self, peer: int, word: Envelope) -> None:
        if word.kind == "speak" and peer not in self.liars:
            words = word.row.words.tobytes() + word.row.binding.tobytes()
            known = self.said.setdefault((word.number, peer), words)
            self.verdict.twice += known != words

    def watch(self, peer: int) -> None:
        machine = self.machines[peer]
        if peer not in self.liars:
            self.adopters.setdefault(machine.base.chain, set()).add(peer)
            for words in machine.uttered():
                self.note(peer, words)
            if machine.message is not None:
                self.note(peer, machine.message)

    def judge(self) -> Verdict:
        verdict, weather = self.verdict, self.weather
        living = [self.machines[v] for v in self.honest if not self.dead(v)]
        verdict.hanging = sum(not machine.finished for machine in living)
        ready = [machine for machine in living if machine.finished and machine.agreed]
        verdict.alone = sum(not machine.agreed for machine in living)
        verdict.chains = max(0, len({machine.history.chains[-1] for machine in ready}) - 1)
        verdict.models = max(0, len({machine.state.sums.tobytes() for machine in ready}) - 1)
        final = (ready or living)[0]
        verdict.ended = int(final.base.round < weather.steps)
        quorum = final.terms.decisive
        verdict.lost = sum(
            len(held) >= quorum and not final.history.passes(chain)
            for chain, held in self.adopters.items()
        )
        charges = [self.machines[v].charges for v in self.honest]
        verdict.attempts = max(charges) - weather.steps
        written = Counter(self.ledger.column("peer").tolist())
        limit = weather.steps + weather.spare
        verdict.beyond = sum(
            machine.charges > limit or written[machine.seat.me] != machine.charges
            for machine in self.machines
        )
        verdict.wrong = self._wrong(final) if not self.liars else 0
        return verdict

    def _wrong(self, final: BallotPeer) -> int:
        found = 0
        for chain in final.history.chains[1:]:
            tally = final.history.tallies.get(chain)
            if tally is None:
                continue
            rows = [self.said[(tally.roll.ballot, v)][:-32] for v in tally.roll.members]
            sums = sum(np.frombuffer(row, np.uint64) for row in rows)
            found += not np.array_equal(sums, tally.words[0])
        return found
