"""Fused: a whole job by the compiled path of its algorithm, where there is one and it can.

A compiled path keeps no messages and scores only where its schedule lets it be looked at; its
meetings are functions of schedule and dice, and drawn again whenever somebody asks for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Stops
from bruit.algorithms.doorway import Twinned, untwinned
from bruit.algorithms.gossip.exchange import ExchangeFacts
from bruit.algorithms.messages import Links, take
from bruit.algorithms.schedules.stage import Stage
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Ints
from bruit.errors import AlgorithmError, BruitError, ConfigError
from bruit.graphs import Graph
from bruit.runs.engines.engine import Job, Stop
from bruit.trace import Meetings, Trace

EQUAL = 1e-9  # how far a path that is taken by itself may be from the general one, as all engines
COMPILED = "its compiled path is compared with the general one by tests, and not in this run"
ONE = np.array([0])


class _Redrawn(Trace):
    """A trace that keeps no meetings: they are functions of schedule and dice, and drawn again
    whenever asked for."""

    def __init__(self, job: Job) -> None:
        self._job = job
        super().__init__(peers=job.n, steps=job.steps)

    @property
    def meetings(self) -> Meetings:
        return self._job.meetings()

    @meetings.setter
    def meetings(self, kept: Meetings) -> None:
        """Nothing is kept."""


class Fused:
    """One job that may be run by a compiled path. `unwatched` says afterwards why nobody can tell
    that data left through the door only; empty if everything was watched."""

    def __init__(self, job: Job, stage: Stage) -> None:
        self.job, self.stage, self.unwatched = job, stage, ""

    def fits(self) -> bool:
        """Whether the compiled path is taken by itself: it is offered and equal, does all that was
        asked, what leaves is watched as on the general path, and there is enough to do."""
        job, stage, kind = self.job, self.stage, type(self.job.algorithm)
        if kind.fused is Algorithm.fused or kind.fused_within > EQUAL:
            return False
        if kind.private or isinstance(job.states, Twinned) or type(job.door) is not TaskDoor:
            # raw data is kept, and watched by a twin; or the door does something of its own
            return False
        if kind.fused_reads == "unwatched" or stage.copies > 1 or stage.first:
            return False
        if job.door.budget is not None:
            return False
        try:
            graph = self._graph()
        except ConfigError:
            return False
        work = job.schedule.work(graph, job.steps, job.door.dim)
        return work >= max(1, job.schedule.worth) and not job.algorithm.not_fused(job.door)

    def run(self, watched: bool) -> Any:
        """The final states; `watched`: what the loop finds is given to `absorb`, where it can be,
        and meetings are kept, as the general path leaves them."""
        job, stage, schedule = self.job, self.stage, self.job.schedule
        graph = self._graph()
        opened = stage.begin(schedule.opening(graph), last=schedule.synchronous and not job.steps)
        state, _ = untwinned(opened)
        self.unwatched = _unwatched(job.algorithm, isinstance(opened, Twinned), watched)
        blank = take(job.algorithm.blank(state), ONE)
        message = job.algorithm.emit(
            blank, Links.of_meetings(ONE, ONE).edges
        ).rows  # all of this size
        acting = schedule.acting(graph, job.steps, job.dice)
        try:
            found = self._played(state, self._course(graph, acting, watched), message)
        except (BruitError, Stop, MemoryError):
            raise
        except Exception as error:
            raise AlgorithmError(
                f"{job.algorithm.name()}: its compiled path raised {error!r}; Bulk(fused=False) "
                "finds the peer and the step"
            ) from error
        if found is None:
            raise ConfigError(f"{job.algorithm.name()} has no fused path; use Bulk()")
        state, total = schedule.concluded(stage, found[0], acting), found[1]
        if not schedule.synchronous:
            stage.trace = _Redrawn(job=job)
        stage.sent(schedule.messages(graph, acting, total), message)
        stage.tell(total, total, state)
        if watched and not schedule.synchronous:
            self._keep_meetings()
        return state

    def _course(self, graph: Graph, acting: Ints, watched: bool) -> Course:
        job = self.job
        stops = Stops(
            job.evaluate_every,
            lambda done, state: self.stage.tell(done, job.steps, state),
            watched,
        )
        return Course(
            graph=graph,
            steps=job.steps,
            public=self.stage.public,
            door=job.door,
            dice=job.dice,
            acting=acting,
            stops=stops,
        )

    def _played(self, state: Any, course: Course, message: Any) -> tuple[Any, int] | None:
        """The compiled loop itself; stopped where somebody looks, it leaves what was done."""
        stage, schedule = self.stage, self.job.schedule
        if not schedule.looked_at:
            return self.job.algorithm.fused(state, course)
        stage.meetings, stage.played = self.job.meetings(), np.arange(course.steps)
        try:
            return self.job.algorithm.fused(state, course)
        except Stop:
            done = stage.reached[1]
            stage.sent(schedule.messages(course.graph, course.acting[:done], done), message)
            raise

    def _keep_meetings(self) -> None:
        """The trace with its meetings, as the general path leaves it."""
        trace, job = self.stage.trace, self.job
        self.stage.trace = Trace(
            peers=job.n, steps=job.steps, messages=trace.messages, bytes=trace.bytes
        )
        self.stage.trace.meetings = trace.meetings

    def _graph(self) -> Graph:
        """The graph of a job that a fused path can run; otherwise what stands in the way."""
        job = self.job
        if not isinstance(job.graph, Graph):
            raise ConfigError(
                f"fused paths need one fixed graph, found the sequence {job.graph.name}; use Bulk()"
            )
        if job.given is not None:
            raise ConfigError(
                "a fused path draws its own meetings and knows no faults; replay a trace with "
                "Bulk()"
            )
        if job.states is not None:
            raise ConfigError(
                "a fused path starts anew, and this run goes on from the states of another; use "
                "Bulk()"
            )
        noise = job.door.mechanism if isinstance(job.door, TaskDoor) else None
        if noise is not None and noise.deviations():
            raise ConfigError(
                "fused paths draw noise of one size, and here every peer has its own; use Bulk()"
            )
        facts = getattr(self.stage.public, "exchange", self.stage.public)
        if isinstance(facts, ExchangeFacts) and job.door.fine_grid(1.0, 1.0, 1.0):
            raise ConfigError(
                "the fused paths of rounds and meetings mix in floats, and this noise is on a grid,"
                " proven for what is sent; use Bulk(), or arithmetic = 'ideal'"
            )
        if job.watch:
            raise ConfigError(
                f"a fused path keeps no messages, so peer {min(job.watch)} cannot be watched; use "
                f"Bulk()"
            )
        total = job.schedule.counted(job.steps)
        late = total is None or job.evaluate_every < total
        if not job.schedule.looked_at and job.evaluate_every and late:
            best = "0" if total is None else f"0 or at least {total}"
            raise ConfigError(
                f"a fused path scores nothing on the way, found evaluate_every = "
                f"{job.evaluate_every}; make it {best}"
            )
        return job.graph


def _unwatched(algorithm: Algorithm[Any], twinned: bool, watched: bool) -> str:
    """Why nobody can tell that data left through the door only."""
    if algorithm.fused_reads == "nothing":
        return COMPILED if twinned else ""
    return "" if watched and algorithm.fused_reads == "home" else COMPILED
