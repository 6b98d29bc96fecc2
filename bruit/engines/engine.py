"""Engine: runs one algorithm on one graph; knows nothing of mathematics.

A `Job` says what to run, an `Outcome` what came of it. Engines agree: with no latency step by step, with latency
through the replay of their trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Door, Home
from bruit.algorithms.messages import Edges, Links
from bruit.algorithms.schedules import Pairs, Rounds, Schedule, Wakes, Walk
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice
from bruit.trace import Faults, Meetings, Trace

Progress = Callable[[int, int, dict[str, float]], None]


class Stop(Exception):
    """Raised by a progress callback: the run ends here, between two steps, and what there is becomes its outcome."""


@dataclass(frozen=True)
class Job:
    """What an engine is given. `evaluate` scores estimates for observers; `given` is a trace to replay."""

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

    def fixed_graph(self) -> Graph:
        """The one graph of meetings and walks; a changing graph is refused here."""
        if not isinstance(self.graph, Graph):
            kind = type(self.schedule).__name__.lower()
            raise ConfigError(f"{kind} need one fixed graph, found the sequence {self.graph.name}; use rounds on it")
        return self.graph

    def meetings(self) -> Meetings:
        """The meetings to run: those of the given trace, or those the schedule draws."""
        if self.given is not None:
            return self.given.meetings
        schedule = self.schedule
        if isinstance(schedule, Rounds):
            return Meetings.none()
        if isinstance(schedule, Walk):
            return schedule.meetings(self.fixed_graph(), self.steps, self.dice, self.door.before, self.holder)
        if isinstance(schedule, Pairs | Wakes):
            return schedule.meetings(self.fixed_graph(), self.steps, self.dice, before=self.door.before)
        raise ConfigError(f"nobody knows the meetings of the schedule {type(schedule).__name__}")

    def refuse_walking_on(self, engine: str) -> None:
        """For engines whose tokens enter at the first peer of a walk."""
        if isinstance(self.schedule, Walk) and self.states is not None:
            raise ConfigError("a token that goes on from the states of an earlier run is where that run left it, and"
                              f" in the {engine} engine tokens enter at their first peer; go on with Bulk()")


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
            raise ConfigError(f"there is no metric {name!r} in this run (it has: {', '.join(self.names()) or 'none'})")
        return np.array([row[name] for row in self.rows])

    def last(self, name: str) -> float:
        return float(self.column(name)[-1])


@dataclass
class Outcome:
    """What came of a job: final states, the trace, the metrics, and the public facts the algorithm prepared.

    `unwatched` says why nobody can tell that data left through the door only; empty if every step was watched.
    `stopped`: how much was done, of how much, when somebody stopped it; None for a run that came to its end. `ran` is
    what the engine decided by itself, for the manifest."""

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


def home_of(job: Job, public: Any, ids: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges) -> Home:
    return Home(job.door, ids, step, clock, last, edges, public)


class Exchanges:
    """The links of every round, with that round's dead links taken out; built once per graph."""

    def __init__(self, graph: Graph | GraphSequence, faults: Faults) -> None:
        self._graph, self._faults = graph, faults
        self._built: tuple[Graph, Links] | None = None

    def graph(self, number: int) -> Graph:
        return self._graph if isinstance(self._graph, Graph) else self._graph.at(number)

    def at(self, number: int) -> Links:
        graph = self.graph(number)
        if self._built is None or self._built[0] is not graph:
            self._built = (graph, Links.of_graph(graph))
        links = self._built[1]
        a, b = self._faults.in_round(number)
        return links.without(dead_copies(links, a, b)) if len(a) else links


def dead_copies(links: Links, a: Ints, b: Ints) -> Bools:
    """Which received copies cross one of the dead links {a_k, b_k}."""
    receivers = np.repeat(links.ids, np.diff(links.start))
    base = 1 + max(int(links.senders.max(initial=0)), int(receivers.max(initial=0)), int(b.max(initial=0)))
    low, high = np.minimum(receivers, links.senders), np.maximum(receivers, links.senders)
    return np.isin(low * base + high, np.minimum(a, b) * base + np.maximum(a, b))
