"""Bulk: all peers at once, as if messages were instantaneous.

Rounds are one sparse product each. Meetings are sorted by time and cut into levels of disjoint ones: disjoint
meetings commute, so running a level as one batch gives exactly the sequential result. A walk is a batch of one.
Cost of a round: O(edges d); of meetings: O(meetings d) in as many batches as the longest chain of dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.doorway import Twinned, absorbed, begun, believed, spoken, stored, untwinned
from bruit.algorithms.messages import Inbox, Links, Message, join, put, row_bytes, spans, take
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.arrays import Ints
from bruit.engines.engine import Engine, Exchanges, Job, Metrics, Outcome, home_of
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.trace import Faults, Meetings, Received, Trace


@dataclass(frozen=True)
class Bulk(Engine):
    """The vectorized simulator. `fused` runs the algorithm's own compiled path, equal up to rounding, or refuses."""

    fused: bool = False

    def describe(self) -> dict[str, Any]:
        return {"name": "bulk", "fused": self.fused}

    def execute(self, job: Job) -> Outcome:
        public = job.algorithm.prepare(job.graph, job.steps)
        story = _Story(job, public)
        if self.fused:
            state = story.fused()
        elif isinstance(job.schedule, Rounds):
            state = story.rounds()
        elif isinstance(job.schedule, Pairs):
            state = story.pairs(job.meetings())
        elif isinstance(job.schedule, Walk):
            state = story.walk(job.meetings())
        elif isinstance(job.schedule, Wakes):
            state = story.wakes(job.meetings())
        else:
            raise ConfigError(f"the bulk engine does not know the schedule {type(job.schedule).__name__}")
        return Outcome(state, story.trace, story.metrics, public, story.unwatched)


COMPILED = "its compiled path reads the records itself; tests compare it with the general one, no run does"


class _Redrawn(Trace):
    """A trace that keeps no meetings: they are functions of schedule and dice, and drawn again whenever asked for."""

    def __init__(self, job: Job) -> None:
        self._job = job
        super().__init__(job.n, job.steps)

    @property
    def meetings(self) -> Meetings:
        return self._job.meetings()

    @meetings.setter
    def meetings(self, kept: Meetings) -> None:
        """Nothing is kept."""


class _Story:
    """One bulk run in the making: its trace and metrics grow as it goes."""

    def __init__(self, job: Job, public: Any) -> None:
        self.job, self.public = job, public
        faults = job.given.faults if job.given is not None else Faults.none()
        self.trace = Trace(job.n, job.steps, faults=faults, watched=job.watch)
        self.metrics = Metrics()
        self.everybody = np.arange(job.n)
        self.unwatched = ""

    def begin(self, links: Links, last: bool) -> Any:
        """The states before anything was heard."""
        job, zero = self.job, np.zeros(self.job.n, np.int64)
        if job.states is not None:
            return job.states
        edges = links.edges.none() if last else links.edges
        return begun(job.algorithm, home_of(job, self.public, self.everybody, zero, zero, np.full(job.n, last), edges))

    def tick(self, done: int, total: int, state: Any) -> None:
        """Score and report, as often as asked."""
        job, scores = self.job, {}
        due = job.evaluate_every > 0 and (done % job.evaluate_every == 0 or done == total)
        if job.evaluate is not None and due:
            scores = job.evaluate(believed(job.algorithm, state))
            self.metrics.add(done, scores)
        if job.progress is not None:
            job.progress(done, total, scores)

    def count(self, messages: int, rows: Any) -> None:
        """So many messages were sent, with such rows."""
        self.trace.messages += messages
        self.trace.bytes += messages * row_bytes(rows)

    def fused(self) -> Any:
        """The whole run by the compiled path of the algorithm; meetings are drawn again when somebody asks for them."""
        job, schedule = self.job, self.job.schedule
        graph = self.fusible()
        links = Links.alone(job.n) if isinstance(schedule, Walk) else Links.of_graph(graph)  # walks: O(n), not O(edges)
        begun_with, total = self.begin(links, last=isinstance(schedule, Rounds) and job.steps == 0), job.steps
        state, _ = untwinned(begun_with)
        handed = not isinstance(schedule, Rounds | Pairs) or isinstance(begun_with, Twinned)
        first = take(job.algorithm.blank(state), ONE)
        one = Links.of_meetings(ONE, ONE) if isinstance(schedule, Walk) else Links.of_peer(graph, 0)
        said = job.algorithm.emit(first, one.edges).rows  # all messages have the size of this one
        passed_on = job.algorithm.fused_points(state, graph, job.steps, job.door, job.dice)
        if passed_on is not None:
            (state, total), handed = passed_on, True
            self.trace = self.trace if isinstance(schedule, Rounds) else _Redrawn(job)
            self.count(total * (len(links.senders) if isinstance(schedule, Rounds) else 2), said)
        elif isinstance(schedule, Rounds):
            state = job.algorithm.fused_rounds(state, graph, job.steps, self.public)
            self.count(job.steps * len(links.senders), said)
        elif isinstance(schedule, Walk):
            path = schedule.path(graph, job.steps, job.dice)
            state = job.algorithm.fused_walk(state, path, job.door)
            self.trace = _Redrawn(job)
            self.count(int(np.count_nonzero(path[1:] != path[:-1])), said)
        elif isinstance(schedule, Wakes):
            woken = schedule.meetings(graph, job.steps, job.dice).a
            state, total = job.algorithm.fused_wakes(state, graph, woken, job.door), len(woken)
            self.trace = _Redrawn(job)
            self.count(int(graph.degrees[woken].sum()), said)
        else:
            state, total = job.algorithm.fused_pairs(state, graph, job.steps, job.dice) or (None, 0)
            self.trace = _Redrawn(job)
            self.count(2 * total, said)
        if state is None:
            raise ConfigError(f"{job.algorithm.name()} has no fused path; use Bulk()")
        self.unwatched = COMPILED if handed else ""
        self.tick(total, total, state)
        return state

    def fusible(self) -> Graph:
        """The graph of a job that a fused path can run; otherwise what stands in the way."""
        job, schedule = self.job, self.job.schedule
        if not isinstance(job.graph, Graph):
            raise ConfigError(f"fused paths need one fixed graph, found the sequence {job.graph.name}; use Bulk()")
        if job.given is not None:
            raise ConfigError("a fused path draws its own meetings and knows no faults; replay a trace with Bulk()")
        if job.watch:
            raise ConfigError(f"a fused path keeps no messages, so peer {min(job.watch)} cannot be watched; use Bulk()")
        timed = isinstance(schedule, Pairs | Wakes) and schedule.activations is None
        total = schedule.activations if isinstance(schedule, Pairs | Wakes) else job.steps
        if job.evaluate_every and (timed or job.evaluate_every < (total or 0)):
            best = "0" if timed else f"0 or at least {total}"
            raise ConfigError(
                f"a fused path scores nothing on the way, found evaluate_every = {job.evaluate_every}; make it {best}"
            )
        return job.graph

    def rounds(self) -> Any:
        job, steps = self.job, self.job.steps
        exchanges = Exchanges(job.graph, self.trace.faults)
        links = exchanges.at(0)
        state = self.begin(links, last=steps == 0)
        for number in range(steps):
            message = spoken(job.algorithm, state, links.edges)
            inbox = deliver(links, message)
            self.count(len(links.senders), message.rows)
            self.watch(number, inbox)
            last = number + 1 == steps
            following = links if last else exchanges.at(number + 1)
            edges = links.edges.none() if last else following.edges
            count = np.full(job.n, number + 1, np.int64)
            home = home_of(job, self.public, self.everybody, count, count, np.full(job.n, last), edges)
            state = absorbed(job.algorithm, state, inbox, home)
            links = following
            self.tick(number + 1, steps, state)
        return state

    def watch(self, clock: int, inbox: Inbox) -> None:
        """Keep what the watched observers received."""
        if not self.job.watch:
            return
        receivers = np.repeat(inbox.links.ids, np.diff(inbox.links.start))
        for entry in np.flatnonzero(np.isin(receivers, list(self.job.watch))):
            row = take(inbox.rows, np.array([entry if inbox.each else inbox.links.columns[entry]]))
            self.trace.received.append(Received(clock, int(inbox.senders[entry]), int(receivers[entry]), row))

    def pairs(self, meetings: Meetings) -> Any:
        from bruit.kernels.meetings import pair_levels

        job = self.job
        static = Links.of_graph(job.fixed_graph())
        state = self.begin(static, last=False)
        count = np.zeros(job.n, np.int64)
        level = np.asarray(pair_levels(meetings.a, meetings.b, job.n))
        order = np.argsort(level, kind="stable")
        done = 0
        for batch in np.split(order, np.flatnonzero(np.diff(level[order])) + 1):
            if len(batch):
                state = self.meet(state, meetings.a[batch], meetings.b[batch], count, static, batch)
                done += len(batch)
                self.tick(done, len(order), state)
        self.trace.meetings = meetings
        if job.watch:
            self.trace.received.sort(key=lambda message: message.clock)
        return state

    def meet(self, state: Any, a: Ints, b: Ints, count: Ints, static: Links, clock: Ints) -> Any:
        """One level of disjoint meetings: both sides speak, then both absorb."""
        job = self.job
        lanes, partners = np.concatenate((a, b)), np.concatenate((b, a))
        links = Links.of_meetings(lanes, partners)
        before = take(state, lanes)
        said = spoken(job.algorithm, before, links.edges)
        swapped = np.concatenate((np.arange(len(a), len(lanes)), np.arange(len(a))))
        inbox = Inbox(links, take(said.rows, swapped), said.each, said.rows)
        count[lanes] += 1
        self.count(len(lanes), said.rows)
        if job.watch:
            self.watch_meetings(np.concatenate((clock, clock)), inbox)
        never = np.zeros(len(lanes), bool)
        home = home_of(job, self.public, lanes, count[lanes], count[lanes], never, rows_of(static, lanes).edges)
        return stored(state, lanes, absorbed(job.algorithm, before, inbox, home))

    def watch_meetings(self, clock: Ints, inbox: Inbox) -> None:
        for lane in np.flatnonzero(np.isin(inbox.links.ids, list(self.job.watch))):
            row = take(inbox.rows, np.array([lane]))
            ids = inbox.links.ids
            self.trace.received.append(Received(int(clock[lane]), int(inbox.senders[lane]), int(ids[lane]), row))

    def walk(self, meetings: Meetings) -> Any:
        job, steps = self.job, len(meetings.b)
        static = Links.of_graph(job.fixed_graph())
        state = self.begin(static, last=False)
        count = np.zeros(job.n, np.int64)
        for hop in range(steps):
            source, here = meetings.a[hop : hop + 1], meetings.b[hop : hop + 1]
            links = Links.of_meetings(here, source)
            said = spoken(job.algorithm, take(state, source), links.edges)
            before = take(state, here)
            own = spoken(job.algorithm, before, links.edges)
            inbox = Inbox(links, said.rows, said.each, own.rows)
            count[here] += 1
            self.count(int(source[0] != here[0]), said.rows)
            if job.watch:
                self.watch_meetings(np.array([hop]), inbox)
            home = home_of(job, self.public, here, count[here], np.array([hop]), np.array([hop + 1 == steps]),
                           rows_of(static, here).edges)  # fmt: skip
            state = stored(state, here, absorbed(job.algorithm, before, inbox, home))
            self.tick(hop + 1, steps, state)
        self.trace.meetings = meetings
        return state

    def wakes(self, meetings: Meetings) -> Any:
        from bruit.kernels.meetings import wake_levels

        job = self.job
        static = Links.of_graph(job.fixed_graph())
        state = self.begin(static, last=False)
        latest = spoken(job.algorithm, state, static.edges)
        if latest.each:
            raise ConfigError("a peer that wakes broadcasts one message; noise per copy needs rounds")
        if job.given is not None and job.given.reads:
            return self.late_wakes(meetings, job.given.reads, state, latest)
        count = np.zeros(job.n, np.int64)
        level = np.asarray(wake_levels(static.start, static.senders, meetings.a))
        order = np.argsort(level, kind="stable")
        done = 0
        for batch in np.split(order, np.flatnonzero(np.diff(level[order])) + 1):
            if len(batch):
                state = self.wake(state, latest, meetings.a[batch], count, static, batch)
                done += len(batch)
                self.tick(done, len(order), state)
        self.trace.meetings = meetings
        return state

    def wake(self, state: Any, latest: Message, lanes: Ints, count: Ints, static: Links, clock: Ints) -> Any:
        """Peers that do not hear each other wake together: read, absorb, then speak."""
        job = self.job
        links = rows_of(static, lanes)
        inbox = Inbox(links, latest.rows, False, take(latest.rows, lanes))
        if job.watch:
            self.watch(int(clock[0]), inbox)
        count[lanes] += 1
        self.count(len(links.senders), latest.rows)
        never = np.zeros(len(lanes), bool)
        home = home_of(job, self.public, lanes, count[lanes], count[lanes], never, links.edges)
        after = absorbed(job.algorithm, take(state, lanes), inbox, home)
        put(latest.rows, lanes, spoken(job.algorithm, after, links.edges).rows)
        return stored(state, lanes, after)

    def late_wakes(self, meetings: Meetings, reads: list[dict[int, int]], state: Any, first: Message) -> Any:
        """Wakes that read messages as late as the trace says, one after the other."""
        job, graph, count = self.job, self.job.fixed_graph(), np.zeros(self.job.n, np.int64)
        said = {(peer, 0): take(first.rows, np.array([peer])) for peer in range(job.n)}
        for peer, versions in zip(meetings.a.tolist(), reads, strict=True):
            links, lane = Links.of_peer(graph, peer), np.array([peer])
            around = np.sort(np.append(links.senders, peer)).tolist()
            rows = join([said[other, int(count[peer]) if other == peer else versions[other]] for other in around])
            inbox = Inbox(links, rows, False, said[peer, int(count[peer])])
            self.count(len(links.senders), rows)
            count[peer] += 1
            home = home_of(job, self.public, lane, count[lane], count[lane], np.array([False]), links.edges)
            after = absorbed(job.algorithm, take(state, lane), inbox, home)
            state = stored(state, lane, after)
            said[peer, int(count[peer])] = take(spoken(job.algorithm, after, links.edges).rows, ONE)
        self.trace.meetings, self.trace.reads = meetings, reads
        return state


ONE = np.array([0])


def deliver(links: Links, message: Message) -> Inbox:
    """All peers hear what all peers said: per-copy rows are reordered from sender to receiver."""
    if not message.each:
        return Inbox(links, message.rows, False, message.rows)
    return Inbox(links, take(message.rows, links.flip), True, None)


def rows_of(links: Links, lanes: Ints) -> Links:
    """The links of some lanes only; broadcast rows stay indexed by peer."""
    where = spans(links.start, lanes)
    start = np.concatenate(([0], np.cumsum(links.start[lanes + 1] - links.start[lanes])))
    return Links(lanes, start, links.senders[where], links.columns[where], links.weights[where], links.own[lanes])


