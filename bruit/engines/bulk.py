"""Bulk: all peers at once, as if messages were instantaneous.

Rounds are one sparse product each. Meetings are sorted by time and cut into levels of disjoint ones: disjoint
meetings commute, so running a level as one batch gives exactly the sequential result. A walk is a batch of one.
Cost of a round: O(edges d); of meetings: O(meetings d) in as many batches as the longest chain of dependencies.

`Bulk(copies=k)` runs k independent copies of the job as one batch, for audits and other statistics. Kernels see the
peers' own numbers; the door sees *lanes*, c n + i for peer i of copy c, so that every copy reads its own data and draws
its own noise. Meetings, tokens and faults are those of one trace, shared by all copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.algorithm import Algorithm, Stops
from bruit.algorithms.doorway import (
    Twinned,
    absorbed,
    adopted,
    begun,
    believed,
    publishes,
    resumed,
    spoken,
    stored,
    untwinned,
)
from bruit.algorithms.exchange import Exchange
from bruit.algorithms.home import Address, Door, Home, OnGrid, TaskDoor
from bruit.algorithms.messages import AllLinks, Edges, Inbox, Links, Message, Slots, join, put, row_bytes, spans, take
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.arrays import Bools, Ints
from bruit.engines.engine import Engine, Exchanges, Job, Metrics, Outcome, Stop, home_of
from bruit.engines.given import check_given
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.trace import Faults, Meetings, Received, Trace


@dataclass(frozen=True)
class Bulk(Engine):
    """The vectorized simulator.

    `fused` = True runs the algorithm's own compiled path, or refuses; False never does. "auto", the default, takes it
    where it is equal to 1e-9, does all that was asked, and is worth it (`WORTH`), and the general path elsewhere: the
    run's engine says which one ran.

    `copies` independent copies, the first of them number `first`, are one batch: states have copies * n rows, copy
    after copy, and what a watched peer received is one row per copy."""

    fused: bool | Literal["auto"] = "auto"
    copies: int = 1
    first: int = 0

    def __post_init__(self) -> None:
        if self.copies < 1 or self.first < 0:
            raise ConfigError(f"the bulk engine runs 1 copy or more, the first of them number 0 or later; found"
                              f" copies = {self.copies}, first = {self.first}")  # fmt: skip
        if self.fused not in (True, False, "auto"):
            raise ConfigError(f"fused is True, False or 'auto', found {self.fused!r}")
        if self.fused is True and self.copies * (1 + self.first) > 1:
            raise ConfigError("a fused path runs one copy; leave out fused, or run the copies one after the other")

    def describe(self) -> dict[str, Any]:
        several = {"copies": self.copies, "first": self.first} if self.copies > 1 or self.first else {}
        return {"name": "bulk", "fused": self.fused, **several}

    def execute(self, job: Job) -> Outcome:
        check_given(job)
        public = job.algorithm.prepare(job.graph, job.steps)
        story = _Story(job, public, self.copies, self.first)
        fused = self.fused is True or (self.fused == "auto" and story.fits())
        try:
            state = self._story(story, job, fused)
        except Stop:
            return replace(story.stopped(), ran={"fused": fused})
        return Outcome(state, story.trace, story.metrics, public, story.unwatched, ran={"fused": fused})

    def _story(self, story: _Story, job: Job, fused: bool) -> Any:
        """The whole run; the final states."""
        if fused:
            state = story.fused(watched=self.fused == "auto")
            if self.fused == "auto" and not isinstance(job.schedule, Rounds):
                story.keep_meetings()
            return state
        if isinstance(job.schedule, Rounds):
            return story.rounds()
        if isinstance(job.schedule, Pairs):
            return story.pairs(job.meetings())
        if isinstance(job.schedule, Walk):
            return story.walk(job.meetings())
        if isinstance(job.schedule, Wakes):
            return story.wakes(job.meetings())
        raise ConfigError(f"the bulk engine does not know the schedule {type(job.schedule).__name__}")


WORTH = {Walk: 2_000, Pairs: 100_000, Wakes: 10_000, Rounds: 10**9}
"""From how much work on a compiled path is taken by itself: hops, activations, wake-ups, numbers mixed. Loading and
warming it takes about a second, which is what the general path takes for so much."""
OFFERED = {Walk: "fused_walk", Pairs: "fused_pairs", Wakes: "fused_wakes", Rounds: "fused_rounds"}
EQUAL = 1e-9  # how far a path that is taken by itself may be from the general one, as for all engines
COMPILED = "its compiled path is compared with the general one by tests, and not in this run"


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

    def __init__(self, job: Job, public: Any, copies: int = 1, first: int = 0) -> None:
        if copies > 1 and (job.states is not None or job.evaluate_every):
            raise ConfigError("copies start anew and are not scored; run them without states, with evaluate_every = 0")
        self.job, self.public, self.copies, self.first = job, public, copies, first
        faults = job.given.faults if job.given is not None else Faults.none()
        self.trace = Trace(job.n, job.steps, faults=faults, watched=job.watch)
        self.metrics = Metrics()
        self.everybody = np.arange(job.n)
        self.unwatched = ""
        self.order: tuple[Meetings, Ints] | None = None  # all meetings, and in which order they are run
        self.latest: tuple[Any, int, int] = (None, 0, 0)  # the states after so much, of how much

    def rows(self, rows: Ints, stride: int) -> Ints:
        """These rows in every copy, copy after copy, `stride` rows apart."""
        return rows if self.copies == 1 else (np.arange(self.copies)[:, None] * stride + rows).ravel()

    def tiled(self, links: Links, stride: int | None = None) -> Links:
        """The links of every copy, whose broadcast rows are `stride` apart (n by default)."""
        return links if self.copies == 1 else tiled(links, self.copies, self.job.n if stride is None else stride)

    def home(self, peers: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges) -> Home:
        """The home of these peers in every copy."""
        if self.copies == 1 and not self.first:
            return home_of(self.job, self.public, peers, step, clock, last, edges)
        lanes = self.rows(peers, self.job.n) + self.first * self.job.n
        k = self.copies
        return _CopyHome(lanes, self.job.door, np.tile(peers, k), np.tile(step, k), np.tile(clock, k), np.tile(last, k),
                         edges, self.public)  # fmt: skip

    def begin(self, links: Links, last: bool) -> Any:
        """The states before anything was heard."""
        job, zero = self.job, np.zeros(self.job.n, np.int64)
        edges = links.edges.none() if last else links.edges
        home = self.home(self.everybody, zero, zero, np.full(job.n, last), edges)
        return begun(job.algorithm, home) if job.states is None else resumed(job.algorithm, job.states, home)

    def tick(self, done: int, total: int, state: Any) -> None:
        """Score and report, as often as asked."""
        job, scores = self.job, {}
        due = job.evaluate_every > 0 and (done % job.evaluate_every == 0 or done == total)
        if job.evaluate is not None and due:
            scores = job.evaluate(believed(job.algorithm, state))
            self.metrics.add(done, scores)
        self.latest = (state, done, total)
        if job.progress is not None:
            try:
                job.progress(done, total, scores)
            except Stop:
                if done < total:
                    raise

    def stopped(self) -> Outcome:
        """What there is when somebody stops the run between two steps: exactly the steps that were done."""
        state, done, total = self.latest
        if self.order is not None:
            meetings, order = self.order
            done_ones = np.sort(order[:done])
            self.trace.meetings = Meetings(meetings.time[done_ones], meetings.a[done_ones], meetings.b[done_ones])
        self.trace.received.sort(key=lambda message: message.clock)
        if self.job.evaluate is not None and self.job.evaluate_every > 0 and self.metrics.steps[-1:] != [done]:
            self.metrics.add(done, self.job.evaluate(believed(self.job.algorithm, state)))
        return Outcome(state, self.trace, self.metrics, self.public, self.unwatched, (done, total))

    def count(self, messages: int, rows: Any) -> None:
        """So many messages were sent, with such rows."""
        self.trace.messages += messages
        self.trace.bytes += messages * row_bytes(rows)

    def fused(self, watched: bool = False) -> Any:
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
            stops = Stops(job.evaluate_every, lambda done, state: self.tick(done, total, state), watched)
            hops = schedule.meetings(graph, job.steps, job.dice)
            self.order = (hops, np.arange(job.steps))
            self.unwatched = "" if watched and job.algorithm.fused_by_door else COMPILED  # also if it is stopped
            try:
                state = job.algorithm.fused_walk(state, path, job.door, stops)
            except Stop:
                done = self.latest[1]
                self.count(int(np.count_nonzero(path[1:done] != path[: max(done - 1, 0)])), said)
                raise
            if state is not None and len(path) and publishes(job.algorithm):
                state = self.published(state, path[-1:])
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
        self.unwatched = "" if not handed or (watched and job.algorithm.fused_by_door) else COMPILED
        self.tick(total, total, state)
        return state

    def fits(self) -> bool:
        """Whether the compiled path is taken by itself: it is offered and equal, does all that was asked, what leaves
        is watched as on the general path, and there is enough to do."""
        job, schedule, kind = self.job, self.job.schedule, type(self.job.algorithm)
        offered = OFFERED.get(type(schedule), "")
        if not offered or getattr(kind, offered) is getattr(Algorithm, offered) or kind.fused_within > EQUAL:
            return False
        if kind.private or isinstance(job.states, Twinned) or type(job.door) is not TaskDoor:
            return False  # raw data is kept, and watched by a twin; or the door does something of its own
        if isinstance(schedule, Walk | Wakes) and not kind.fused_by_door:
            return False
        if self.copies > 1 or self.first or job.door.budget is not None:
            return False
        try:
            graph = self.fusible()
        except ConfigError:
            return False
        if graph.implicit and not isinstance(schedule, Walk):
            return False
        work = job.steps if isinstance(schedule, Walk) else job.steps * graph.entries * job.door.dim
        if isinstance(schedule, Pairs | Wakes):
            work = job.steps * job.n if schedule.activations is None else schedule.activations
        return work >= WORTH[type(schedule)] and not job.algorithm.not_fused(job.door)

    def keep_meetings(self) -> None:
        """The trace with its meetings, as the general path leaves it."""
        told, job = self.trace, self.job
        self.trace = Trace(job.n, job.steps, messages=told.messages, bytes=told.bytes)
        self.trace.meetings = told.meetings

    def fusible(self) -> Graph:
        """The graph of a job that a fused path can run; otherwise what stands in the way."""
        job, schedule = self.job, self.job.schedule
        if not isinstance(job.graph, Graph):
            raise ConfigError(f"fused paths need one fixed graph, found the sequence {job.graph.name}; use Bulk()")
        if job.given is not None:
            raise ConfigError("a fused path draws its own meetings and knows no faults; replay a trace with Bulk()")
        if job.states is not None:
            raise ConfigError("a fused path starts anew, and this run goes on from the states of another; use Bulk()")
        facts = getattr(self.public, "exchange", self.public)
        if isinstance(facts, Exchange) and isinstance(schedule, Rounds | Pairs) and job.door.fine_grid(1.0, 1.0, 1.0):
            raise ConfigError("the fused paths of rounds and meetings mix in floats, and this noise is on a grid,"
                              " proven for what is sent; use Bulk(), or arithmetic = 'ideal'")  # fmt: skip
        if job.watch:
            raise ConfigError(f"a fused path keeps no messages, so peer {min(job.watch)} cannot be watched; use Bulk()")
        timed = isinstance(schedule, Pairs | Wakes) and schedule.activations is None
        total = schedule.activations if isinstance(schedule, Pairs | Wakes) else job.steps
        if not isinstance(schedule, Walk) and job.evaluate_every and (timed or job.evaluate_every < (total or 0)):
            best = "0" if timed else f"0 or at least {total}"
            raise ConfigError(
                f"a fused path scores nothing on the way, found evaluate_every = {job.evaluate_every}; make it {best}"
            )
        return job.graph

    def rounds(self) -> Any:
        job, steps = self.job, self.job.steps
        exchanges = Exchanges(job.graph, self.trace.faults)
        small = exchanges.at(0)
        links = self.tiled(small)
        state = self.begin(links, last=steps == 0)
        for number in range(steps):
            message = spoken(job.algorithm, state, links.edges)
            inbox = self.deliver(small, links, message)
            self.count(small.copies, message.rows)
            self.watch(number, small, inbox)
            last = number + 1 == steps
            coming = small if last else exchanges.at(number + 1)
            following = links if coming is small else self.tiled(coming)
            edges = links.edges.none() if last else following.edges
            count = np.full(job.n, number + 1, np.int64)
            home = self.home(self.everybody, count, count, np.full(job.n, last), edges)
            state = absorbed(job.algorithm, state, inbox, home)
            small, links = coming, following
            self.tick(number + 1, steps, state)
        return state

    def deliver(self, small: Links, links: Links, message: Message) -> Inbox:
        """All peers hear what all peers said: per-copy rows are reordered from sender to receiver."""
        if not message.each:
            return Inbox(links, message.rows, False, message.rows)
        return Inbox(links, take(message.rows, self.rows(small.flip, len(small.senders))), True, None)

    def watch(self, clock: int, small: Links, inbox: Inbox) -> None:
        """Keep what the watched observers received."""
        if not self.job.watch:
            return
        receivers = np.repeat(small.ids, np.diff(small.start))
        stride = len(small.senders) if inbox.each else self.job.n
        for entry in np.flatnonzero(np.isin(receivers, list(self.job.watch))):
            place = entry if inbox.each else small.columns[entry]
            row = take(inbox.rows, self.rows(np.array([place]), stride))
            self.trace.received.append(Received(clock, int(small.senders[entry]), int(receivers[entry]), row))

    def pairs(self, meetings: Meetings) -> Any:
        from bruit.kernels.meetings import pair_levels

        job = self.job
        static = Links.of_graph(job.fixed_graph())
        state = self.begin(self.tiled(static), last=False)
        count = np.zeros(job.n, np.int64)
        level = np.asarray(pair_levels(meetings.a, meetings.b, job.n))
        order = np.argsort(level, kind="stable")
        self.order, done = (meetings, order), 0
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
        peers, partners = np.concatenate((a, b)), np.concatenate((b, a))
        rows, links = self.rows(peers, job.n), self.met(peers, partners)
        before = take(state, rows)
        said = spoken(job.algorithm, before, links.edges)
        swapped = np.concatenate((np.arange(len(a), len(peers)), np.arange(len(a))))
        inbox = Inbox(links, take(said.rows, self.rows(swapped, len(peers))), said.each, said.rows)
        count[peers] += 1
        self.count(len(peers), said.rows)
        if job.watch:
            self.watch_meetings(np.concatenate((clock, clock)), peers, partners, inbox)
        never = np.zeros(len(peers), bool)
        home = self.home(peers, count[peers], count[peers], never, self.tiled(rows_of(static, peers)).edges)
        return stored(state, rows, absorbed(job.algorithm, before, inbox, home))

    def met(self, peers: Ints, partners: Ints) -> Links:
        """Who hears whom in a meeting, in every copy."""
        return Links.of_meetings(np.tile(peers, self.copies), np.tile(partners, self.copies))

    def watch_meetings(self, clock: Ints, peers: Ints, partners: Ints, inbox: Inbox) -> None:
        for entry in np.flatnonzero(np.isin(peers, list(self.job.watch))):
            row = take(inbox.rows, self.rows(np.array([entry]), len(peers)))
            self.trace.received.append(Received(int(clock[entry]), int(partners[entry]), int(peers[entry]), row))

    def walk(self, meetings: Meetings) -> Any:
        job, steps = self.job, len(meetings.b)
        static = Links.of_graph(job.fixed_graph())
        state = self.begin(self.tiled(static), last=False)
        count = np.zeros(job.n, np.int64)
        self.order = (meetings, np.arange(steps))
        for hop in range(steps):
            source, here = meetings.a[hop : hop + 1], meetings.b[hop : hop + 1]
            links, place = self.met(here, source), self.rows(here, job.n)
            said = spoken(job.algorithm, take(state, self.rows(source, job.n)), links.edges)
            before = take(state, place)
            own = spoken(job.algorithm, before, links.edges)
            inbox = Inbox(links, said.rows, said.each, own.rows)
            count[here] += 1
            self.count(int(source[0] != here[0]), said.rows)
            if job.watch:
                self.watch_meetings(np.array([hop]), here, source, inbox)
            home = self.home(here, count[here], np.array([hop]), np.array([hop + 1 == steps]),
                             self.tiled(rows_of(static, here)).edges)  # fmt: skip
            state = stored(state, place, absorbed(job.algorithm, before, inbox, home))
            if hop + 1 == steps and publishes(job.algorithm):
                state = self.published(state, here)
            self.tick(hop + 1, steps, state)
        self.trace.meetings = meetings
        return state

    def published(self, state: Any, holder: Ints) -> Any:
        """Everybody, in every copy, is told the last token of its walk."""
        job, last = self.job, self.rows(holder, self.job.n)
        said = spoken(job.algorithm, take(state, last), self.met(holder, holder).edges)
        return adopted(job.algorithm, state, take(said.rows, np.repeat(np.arange(self.copies), job.n)), self.public)

    def wakes(self, meetings: Meetings) -> Any:
        from bruit.kernels.meetings import wake_levels

        job = self.job
        static = Links.of_graph(job.fixed_graph())
        wide = self.tiled(static)
        state = self.begin(wide, last=False)
        latest = spoken(job.algorithm, state, wide.edges)
        if latest.each:
            raise ConfigError("a peer that wakes broadcasts one message; noise per copy needs rounds")
        count = np.zeros(job.n, np.int64)
        self.watch_posts(np.full(job.n, -1), self.everybody, static, latest.rows)
        if job.given is not None and job.given.reads:
            state = self.late_wakes(meetings, job.given.reads, state, latest, static)
        else:
            level = np.asarray(wake_levels(static.start, static.senders, meetings.a))
            order = np.argsort(level, kind="stable")
            self.order, done = (meetings, order), 0
            for batch in np.split(order, np.flatnonzero(np.diff(level[order])) + 1):
                if len(batch):
                    state = self.wake(state, latest, meetings.a[batch], count, static, batch)
                    done += len(batch)
                    self.tick(done, len(order), state)
        self.trace.meetings = meetings
        self.trace.received.sort(key=lambda message: message.clock)
        return state

    def wake(self, state: Any, latest: Message, peers: Ints, count: Ints, static: Links, clock: Ints) -> Any:
        """Peers that do not hear each other wake together: read, absorb, then speak."""
        job, rows = self.job, self.rows(peers, self.job.n)
        small = rows_of(static, peers)
        links = self.tiled(small)
        inbox = Inbox(links, latest.rows, False, take(latest.rows, rows))
        count[peers] += 1
        self.count(len(small.senders), latest.rows)
        home = self.home(peers, count[peers], count[peers], np.zeros(len(peers), bool), links.edges)
        after = absorbed(job.algorithm, take(state, rows), inbox, home)
        said = spoken(job.algorithm, after, links.edges).rows
        put(latest.rows, rows, said)
        self.watch_posts(clock, peers, static, said)
        return stored(state, rows, after)

    def watch_posts(self, clock: Ints, peers: Ints, static: Links, said: Any) -> None:
        """Keep what these peers posted to watched neighbors: all that is posted is heard, whether it is read or not."""
        for place, u in enumerate(peers.tolist() if self.job.watch else ()):
            near = static.senders[static.start[u] : static.start[u + 1]]
            for v in near[np.isin(near, list(self.job.watch))].tolist():
                row = take(said, self.rows(np.array([place]), len(peers)))
                self.trace.received.append(Received(int(clock[place]), u, v, row))

    def late_wakes(self, meetings: Meetings, reads: list[dict[int, int]], state: Any, first: Message,
                   static: Links) -> Any:  # fmt: skip
        """Wakes that read messages as late as the trace says, one after the other."""
        job, graph, count = self.job, self.job.fixed_graph(), np.zeros(self.job.n, np.int64)
        said = {(peer, 0): take(first.rows, self.rows(np.array([peer]), job.n)) for peer in range(job.n)}
        for event, (peer, versions) in enumerate(zip(meetings.a.tolist(), reads, strict=True)):
            small, lane = Links.of_peer(graph, peer), np.array([peer])
            around = np.sort(np.append(small.senders, peer)).tolist()
            links, place = self.tiled(small, len(around)), self.rows(lane, job.n)
            heard = [said[other, int(count[peer]) if other == peer else versions[other]] for other in around]
            rows = take(join(heard), np.arange(len(around) * self.copies).reshape(len(around), -1).T.ravel())
            inbox = Inbox(links, rows, False, said[peer, int(count[peer])])
            self.count(len(small.senders), rows)
            count[peer] += 1
            home = self.home(lane, count[lane], count[lane], np.array([False]), links.edges)
            after = absorbed(job.algorithm, take(state, place), inbox, home)
            state = stored(state, place, after)
            said[peer, int(count[peer])] = spoken(job.algorithm, after, links.edges).rows
            self.watch_posts(np.array([event]), lane, static, said[peer, int(count[peer])])
        self.trace.reads = reads
        return state


class _CopyHome(Home):
    """Kernels see peers, the door sees lanes."""

    def __init__(self, lanes: Ints, door: Door, ids: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges,
                 public: Any) -> None:  # fmt: skip
        super().__init__(door, ids, step, clock, last, edges, public)
        self._lanes = lanes

    def _address(self) -> Address:
        return super()._address()._replace(ids=self._lanes)

    def pair_noise(self, sigma: float, width: int | None = None, grid: float = 0.0) -> Slots:
        """The two ends of an edge are lanes of the same copy."""
        edges, copy = self.edges, np.repeat(self._lanes - self.ids, self.degree)
        ends, at = Edges(self._lanes, edges.start, edges.peers + copy), self._address()
        width = self.dim if width is None else width
        if grid:
            return Slots(edges.start, edges.peers, self._door.pair_noise_on(at, ends, sigma, width, OnGrid(grid)))
        return Slots(edges.start, edges.peers, self._door.pair_noise(at, ends, sigma, width))


ONE = np.array([0])


def rows_of(links: Links, lanes: Ints) -> Links:
    """The links of some lanes only; broadcast rows stay indexed by peer."""
    if isinstance(links, AllLinks):
        return AllLinks(links.graph, lanes)
    where = spans(links.start, lanes)
    start = np.concatenate(([0], np.cumsum(links.start[lanes + 1] - links.start[lanes])))
    return Links(lanes, start, links.senders[where], links.columns[where], links.weights[where], links.own[lanes])


def tiled(links: Links, copies: int, stride: int) -> Links:
    """The exchange of every copy at once: block-diagonal weights over rows `stride` apart; ids are the peers' own."""
    shift = np.repeat(np.arange(copies) * stride, len(links.senders))
    start = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.start), copies))))
    full = None
    if links.full is not None:
        lanes = links.full.shape[0]
        indptr = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.full.indptr), copies))))
        columns = np.tile(links.full.indices, copies) + np.repeat(np.arange(copies) * stride, links.full.nnz)
        full = csr_array((np.tile(links.full.data, copies), columns, indptr), shape=(lanes * copies, stride * copies))
    return Links(np.tile(links.ids, copies), start, np.tile(links.senders, copies),
                 np.tile(links.columns, copies) + shift, np.tile(links.weights, copies), np.tile(links.own, copies),
                 full)  # fmt: skip
