"""Engine: runs one algorithm on one graph; knows nothing of mathematics.

A `Job` says what to run, an `Outcome` what came of it. Engines agree: with no latency step by step,
with latency through the replay of their trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Door
from bruit.algorithms.schedules.schedule import Schedule
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice
from bruit.trace import Meetings, Trace

Progress = Callable[[int, int, dict[str, float]], None]


class Stop(Exception):
    """Raised by a progress callback: the run ends here, between two steps, and what there is
    becomes its outcome."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What an engine is given. `evaluate` scores estimates for observers; `given` is a trace to
    replay."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    door: Door
    dice: Dice
    steps: int
    ledger: Ledger
    watch: frozenset[int] = frozenset()
    evaluate: Callable[[Array], dict[str, float]] | None = None
    evaluate_every: int = 0
    progress: Progress | None = None
    given: Trace | None = None
    states: Any = None
    holder: int | None = None  # who holds the token of a walk that goes on

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def schedule(self) -> Schedule:
        return self.algorithm.schedule

    @cached_property
    def public(self) -> Any:
        """The public facts that the algorithm prepares, made once."""
        return self.algorithm.prepare(self.graph, self.steps)

    def fixed_graph(self) -> Graph:
        """The one graph of meetings and walks; a changing graph is refused here."""
        return self.schedule.one_graph(self.graph)

    def meetings(self) -> Meetings:
        """The meetings to run: those of the given trace, or those the schedule draws."""
        if self.given is not None:
            return self.given.meetings
        if self.schedule.synchronous:
            return Meetings.none()
        graph, before = self.fixed_graph(), self.door.before
        return self.schedule.meetings(graph, self.steps, self.dice, before, self.holder)

    def refuse_walking_on(self, engine: str) -> None:
        """For engines whose tokens enter at the first peer of a walk."""
        if self.schedule.entered and self.states is not None:
            raise ConfigError(
                "a token that goes on from the states of an earlier run is where that run left it, "
                f"and in the {engine} engine tokens enter at their first peer; go on with Bulk()"
            )


@dataclass
class Metrics:
    """Scores over steps: one row per evaluation, one column per name."""

    steps: list[int] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)

    def add(self, step: int, scores: dict[str, float]) -> None:
        self.steps.append(step)
        self.rows.append(scores)

    def names(self) -> list[str]:
        return list(self.rows[0]) if self.rows else []

    def column(self, name: str) -> Array:
        if name not in self.names():
            raise ConfigError(
                f"there is no metric {name!r} in this run (it has: "
                f"{', '.join(self.names()) or 'none'})"
            )
        return np.array([row[name] for row in self.rows])

    def last(self, name: str) -> float:
        return float(self.column(name)[-1])


@dataclass(kw_only=True)
class Onlooker:
    """Who looks at a job between two steps: scores what peers believe, as often as asked, and
    reports."""

    job: Job
    metrics: Metrics = field(default_factory=Metrics)

    def look(self, done: int, total: int, believed: Callable[[], Array]) -> None:
        """So much is done, of so much; may raise `Stop` before all is."""
        job, scores = self.job, {}
        due = job.evaluate_every > 0 and (done % job.evaluate_every == 0 or done == total)
        if job.evaluate is not None and due:
            scores = job.evaluate(believed())
            self.metrics.add(done, scores)
        if job.progress is not None:
            try:
                job.progress(done, total, scores)
            except Stop:
                if done < total:
                    raise

    def stopped(self, done: int, believed: Callable[[], Array]) -> None:
        """Score what there is where somebody stopped the run, if it was to be scored at all."""
        scored = self.job.evaluate_every > 0 and self.metrics.steps[-1:] != [done]
        if self.job.evaluate is not None and scored:
            self.metrics.add(done, self.job.evaluate(believed()))


@dataclass(kw_only=True)
class Outcome:
    """What came of a job: final states, the trace, the metrics, and the public facts the algorithm
    prepared.

    `unwatched` says why nobody can tell that data left through the door only; empty if every step
    was watched. `stopped`: how much was done, of how much, when somebody stopped it; None for a run
    that came to its end. `ran` is what the engine decided by itself, for the manifest."""

    state: Any
    trace: Trace
    metrics: Metrics
    public: Any
    unwatched: str = "the engine does not watch what leaves"
    stopped: tuple[int, int] | None = None
    ran: dict[str, Any] = field(default_factory=dict)


class Engine(ABC):
    """Abstract; `execute` runs a job to its end."""

    @abstractmethod
    def execute(self, job: Job) -> Outcome: ...

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and parameters for the manifest."""
