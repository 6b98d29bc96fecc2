"""Events: a virtual clock and a heap; what happens when messages take time, get lost, and peers
come and go.

Every peer is a `PeerMachine`, the same that a real network drives. A lost message is sent again
after a timeout (so loss is delay and repetition, as on a real transport) and may arrive twice; an
absent peer has its links down for the round, answers no call, and gets its token late. Speed: some
thousands of events a second.
"""

from __future__ import annotations

import heapq
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bruit.algorithms.doorway import believed, joined
from bruit.algorithms.messages import row_bytes, take
from bruit.algorithms.schedules.machine import Effect, Envelope, Met, Send, WakeAt
from bruit.algorithms.schedules.peer import PeerMachine, Seat, peer_machine
from bruit.arrays import Array, Bools, Ints
from bruit.errors import AlgorithmError, BruitError, ConfigError, ConformanceError
from bruit.graphs import Graph
from bruit.runs.engines.engine import Engine, Job, Metrics, Outcome, Stop
from bruit.runs.engines.given import refuse_given
from bruit.trace import Faults, Meetings, Received, Trace

TOLD = 256  # events between two words about progress


@dataclass(frozen=True)
class Events(Engine):
    """`latency` is the mean delay of a message (exponential), `loss` the chance that a copy is
    lost, `churn` the chance that a peer is away during a round or unit of time, `timeout` when a
    lost message is sent again."""

    latency: float = 0.0
    loss: float = 0.0
    churn: float = 0.0
    timeout: float = 1.0

    def __post_init__(self) -> None:
        if not (
            self.latency >= 0 and 0 <= self.loss < 1 and 0 <= self.churn < 1 and self.timeout > 0
        ):
            raise ConfigError(
                "events need latency >= 0, 0 <= loss < 1, 0 <= churn < 1 and timeout > 0;"
                f" found latency = {self.latency}, loss = {self.loss}, churn = {self.churn},"
                f" timeout = {self.timeout}"
            )

    def describe(self) -> dict[str, Any]:
        return {"name": "events", **asdict(self)}

    def execute(self, job: Job) -> Outcome:
        refuse_given(job, "events")
        job.refuse_walking_on("events")
        return _SimulatedNetwork(self, job).run()


class _SimulatedNetwork:
    """One simulated network: machines, the heap of what is under way, and the growing trace."""

    def __init__(self, engine: Events, job: Job) -> None:
        self.engine, self.job = engine, job
        self.away = self._absences()
        faults = self._faults() if job.schedule.synchronous else Faults.none()
        self.trace = Trace(peers=job.n, steps=job.steps, faults=faults, watched=job.watch)
        calls = job.meetings()
        self.machines = [self._machine(peer, faults, calls.of(peer)) for peer in range(job.n)]
        self.heap: list[tuple[float, bool, int, int, int, Envelope | None]] = []
        self.sent = 0
        self.met: list[tuple[float, int, int, int]] = []
        self.reads: list[dict[int, int]] = []
        self.noted: set[tuple[str, int, int, int]] = set()

    def _machine(self, peer: int, faults: Faults, calls: Meetings) -> PeerMachine:
        job = self.job
        earlier = None if job.states is None else take(job.states, np.array([peer]))
        return peer_machine(
            Seat(
                me=peer,
                algorithm=job.algorithm,
                graph=job.graph,
                door=job.door,
                dice=job.dice,
                steps=job.steps,
                public=self.job.public,
                faults=faults,
                calls=calls.time,
                partners=calls.b,
                state=earlier,
            )
        )

    def _absences(self) -> Bools:
        """Who is away in which round or unit of time  # (n, steps)."""
        if not self.engine.churn:
            return np.zeros((self.job.n, 0), bool)
        draws = [
            self.job.dice.uniform("away", np.arange(self.job.n), t)[:, 0]
            for t in range(max(self.job.steps, 1))
        ]
        return np.asarray(self.engine.churn > np.array(draws).T)

    def _faults(self) -> Faults:
        rounds, ends = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
        for number in range(self.away.shape[1]):
            graph = (
                self.job.graph if isinstance(self.job.graph, Graph) else self.job.graph.at(number)
            )
            edges = graph.edges()
            down = edges[self.away[edges[:, 0], number] | self.away[edges[:, 1], number]]
            rounds.append(np.full(len(down), number, np.int64))
            ends.append(down)
        both = np.concatenate(ends)
        return Faults(np.concatenate(rounds), both[:, 0], both[:, 1])

    def absent(self, peer: int, now: float) -> bool:
        slot = int(now)
        return slot < self.away.shape[1] and bool(self.away[peer, slot])

    def run(self) -> Outcome:
        for peer, machine in enumerate(self.machines):
            self.carry_out(0.0, peer, machine.begin(0.0))
        number = 0
        while self.heap:
            now, _, _, peer, sender, envelope = heapq.heappop(self.heap)
            if envelope is None:
                self.woken(now, peer)
            else:
                self.delivered(now, peer, sender, envelope)
            number += 1
            if number % TOLD == 0 and self.job.progress is not None:
                done = self.done(now)
                try:
                    self.job.progress(done, self.job.steps, {})
                except Stop:
                    return self.outcome((done, self.job.steps))
        return self.outcome()

    def done(self, now: float) -> int:
        """How far the run is: the slowest peer's rounds, the token's hops, or the time."""
        counts = [machine.count for machine in self.machines]
        return min(self.job.schedule.done(counts, now), self.job.steps)

    def woken(self, now: float, peer: int) -> None:
        machine = self.machines[peer]
        busy = machine.waiting
        if self.absent(peer, now):
            self.carry_out(now, peer, machine.skip())
            self.trace.refusals += 1
            return
        self.trace.refusals += int(busy)
        self.carry_out(now, peer, self._guarded(now, peer, None))

    def delivered(self, now: float, peer: int, sender: int, envelope: Envelope) -> None:
        machine = self.machines[peer]
        if envelope.kind in machine.declined and self.absent(peer, now):
            self.carry_out(now, peer, machine.refuse(sender, envelope))
            return
        if envelope.kind in machine.kept and self.absent(peer, now):
            self.push(float(int(now) + 1), peer, sender, envelope)
            return
        self.trace.refusals += int(envelope.kind == "busy")
        if peer in self.job.watch and envelope.kind != "result":  # that one is public
            self.note(peer, sender, envelope)
        self.carry_out(now, peer, self._guarded(now, peer, (sender, envelope)))

    def _guarded(self, now: float, peer: int, arrived: tuple[int, Envelope] | None) -> list[Effect]:
        machine = self.machines[peer]
        try:
            return machine.wake(now) if arrived is None else machine.receive(now, *arrived)
        except AlgorithmError as error:
            raise AlgorithmError(
                f"{error}; after {machine.count} of its steps, at time {now:.6g}, on "
                f"{_input_words(arrived)}",
                error.call,
            ) from error.__cause__
        except BruitError:
            raise
        except Exception as error:
            raise ConformanceError(
                f"peer {peer} failed after {machine.count} of its steps, at time {now:.6g}, on "
                f"{_input_words(arrived)}: {error!r}"
            ) from error

    def note(self, peer: int, sender: int, envelope: Envelope) -> None:
        """Keep what a watched observer received, once per exchange."""
        row = self.machines[peer].value_of(envelope)
        exchange = (envelope.kind, envelope.number, sender, peer)
        if row is not None and exchange not in self.noted:
            self.noted.add(exchange)
            self.trace.received.append(Received(envelope.number, sender, peer, row))

    def carry_out(self, now: float, peer: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                if effect.to != peer:
                    self.trace.messages += 1
                    self.trace.bytes += (
                        0 if effect.envelope.row is None else row_bytes(effect.envelope.row)
                    )
                self.send(now, peer, effect)
            elif isinstance(effect, WakeAt):
                self.push(effect.time, peer, peer, None)
            elif isinstance(effect, Met):
                self.met.append((now, len(self.met), effect.other, peer))
                self.reads.append(dict(effect.reads))

    def send(self, now: float, sender: int, effect: Send) -> None:
        """One delivery after its delay, later if copies get lost, twice if only its receipt was
        lost."""
        self.sent += 1
        delay, lost = 0.0, 0
        if effect.to != sender and (self.engine.latency or self.engine.loss):
            draws = self.job.dice.uniform("link", np.array([self.sent]), 0, 0, 64)[0]
            lost = int(np.argmax(draws[2:] >= self.engine.loss)) if self.engine.loss else 0
            delay = -self.engine.latency * float(np.log(draws[0])) + lost * self.engine.timeout
            if self.engine.loss and draws[1] < self.engine.loss:
                self.push(now + delay + self.engine.timeout, effect.to, sender, effect.envelope)
                lost += 1
        self.trace.retransmissions += lost
        self.push(now + delay, effect.to, sender, effect.envelope)

    def push(self, time: float, peer: int, sender: int, envelope: Envelope | None) -> None:
        """At one time messages come before clocks: a peer that wakes has heard what was said by
        then."""
        self.sent += 1
        heapq.heappush(self.heap, (time, envelope is None, self.sent, peer, sender, envelope))

    def outcome(self, stopped: tuple[int, int] | None = None) -> Outcome:
        """What came of it, at its end or where somebody stopped it, messages under way being
        lost."""
        job = self.job
        stuck = [peer for peer, machine in enumerate(self.machines) if machine.state is None]
        unfinished = any(job.schedule.behind(machine.count, job.steps) for machine in self.machines)
        if stuck or (unfinished and stopped is None):
            raise ConformanceError(
                "the network fell silent before the run was over; some message was never answered"
            )
        wrong = job.schedule.miscounted(len(self.met), job.steps) if stopped is None else ""
        if wrong:
            raise ConformanceError(wrong)
        state = joined([machine.state for machine in self.machines])
        self.trace.meetings = self._meetings()
        metrics = Metrics()
        if job.evaluate is not None and job.evaluate_every > 0:
            done = job.steps if stopped is None else stopped[0]
            metrics.add(done, job.evaluate(believed(job.algorithm, state)))
        return Outcome(
            state=state,
            trace=self.trace,
            metrics=metrics,
            public=self.job.public,
            unwatched="",
            stopped=stopped,
        )

    def _meetings(self) -> Meetings:
        order = sorted(self.met)
        if self.job.schedule.reads:
            self.trace.reads = [self.reads[event[1]] for event in order]
        columns: list[Array | Ints] = [np.array([event[k] for event in order]) for k in (0, 2, 3)]
        return Meetings(
            columns[0].astype(np.float64), columns[1].astype(np.int64), columns[2].astype(np.int64)
        )


def _input_words(arrived: tuple[int, Envelope] | None) -> str:
    if arrived is None:
        return "its own clock"
    sender, envelope = arrived
    return f"message {envelope.kind} {envelope.number} of peer {sender}"
