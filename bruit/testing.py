"""Checks that any algorithm must pass, yours included: `check_algorithm(MyAlgorithm())`.

Engines agree step by step without latency, and through replay with latency, loss and churn; rows do not peek at each
other; private fields never reach a message; messages are the same when data change and the door's answers do not;
`linear` algorithms are linear; a message sent twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.doorway import same
from bruit.algorithms.home import Address, OnGrid, TaskDoor
from bruit.algorithms.messages import Links
from bruit.arrays import Array, Ints
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Job
from bruit.engines.events import Events
from bruit.engines.forms import SourceDoor
from bruit.engines.replay import compare, flat, lines
from bruit.errors import ConformanceError, PrivacyError
from bruit.experiment import run
from bruit.graphs import Graph, GraphSequence, grid
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Gaussian
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.replaying import replay
from bruit.result import Run
from bruit.tasks import Mean, Task
from bruit.tasks.task import Constants, Manifest

Check = Callable[[Algorithm[Any], Graph | GraphSequence, Task, int], None]


def small_task(n: int) -> Task:
    """Values of three numbers per peer, all different."""
    return Mean(Replay(1).normal("test", np.arange(n), 0, 0, 3))


def _run(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int, **options: Any) -> Run:
    noise = Gaussian(clip=2.0, sigma=0.5)
    return run(algorithm, graph, task, privacy=noise, steps=steps, seed=5, evaluate_every=0, **options)


def check_engines_agree(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int) -> None:
    """All peers at once equal batches of one: same states, same ledger, same meetings."""
    bulk = _run(algorithm, graph, task, steps)
    events = _run(algorithm, graph, task, steps, engine=Events())
    compare(bulk, events)
    for name in ("a", "b"):
        if not np.array_equal(getattr(bulk.trace.meetings, name), getattr(events.trace.meetings, name)):
            raise ConformanceError("bulk and events disagree on who met whom")


def check_replay_under_faults(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int) -> None:
    """A run with latency, loss and churn, replayed in bulk from its trace, ends in the same states."""
    slow, lossy = Events(latency=0.4), Events(latency=0.2, loss=0.2, timeout=0.5)
    for engine in (slow, lossy, Events(latency=0.1, loss=0.1, churn=0.15)):
        replay(_run(algorithm, graph, task, steps, engine=engine), task)


def check_messages_are_pure(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int) -> None:
    """`emit` twice gives the same message, and erasing private fields changes nothing."""
    state = _run(algorithm, graph, task, steps).state
    links = Links.of_graph(graph if isinstance(graph, Graph) else graph.at(0))
    edges = links.edges
    once = flat_rows(algorithm.emit(state, edges).rows)
    if not np.array_equal(once, flat_rows(algorithm.emit(state, edges).rows)):
        raise ConformanceError(f"{algorithm.name()}: the same state emits two different messages")
    if not np.array_equal(once, flat_rows(algorithm.emit(algorithm.blank(state), edges).rows)):
        raise ConformanceError(f"{algorithm.name()}: a private field reaches the message")


def flat_rows(rows: Any) -> Array:
    return flat(rows) if len(rows) else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Swapped(Task):
    """The same records in other hands: peer i holds what peer i + 1 held."""

    inner: Task

    def _ids(self, ids: Ints) -> Ints:
        return np.asarray((ids + 1) % self.inner.peers)

    @property
    def peers(self) -> int:
        return self.inner.peers

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def metric(self) -> str:
        return self.inner.metric

    def value(self, ids: Ints) -> Array:
        return self.inner.value(self._ids(ids))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.inner.gradient(self._ids(ids), x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.inner.gradient_sampled(self._ids(ids), x, uniforms)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.inner.prox(self._ids(ids), x, rho)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_gradient(models, x, y, uniform)

    def evaluate(self, models: Array) -> dict[str, float]:
        return self.inner.evaluate(models)

    def constants(self) -> Constants:
        return self.inner.constants()

    def describe(self) -> Manifest:
        return self.inner.describe()

    def references(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class ScriptedDoor(TaskDoor):
    """A door that answers by a script: every release is a function of its address, whatever the records say."""

    def _release(self, at: Address, raw: Array, level: float = 1.0, on: OnGrid | None = None) -> Array:
        rows = Replay(17).normal("script", at.ids, at.steps, at.use, raw.shape[1])
        return super()._release(at, rows, level, on)


def check_data_only_through_the_door(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """With the same answers of the door and other data behind it, everybody says the same, to the last bit, and the
    ledger has the same lines. Raw answers (`home.keep`) and whatever reaches around the door do change."""
    stories = []
    for data in (task, Swapped(task)):
        ledger, dice = Ledger(graph.n), Replay(5)
        door = ScriptedDoor(data, Gaussian(clip=2.0, sigma=0.5), dice, ledger)
        try:
            outcome = Bulk().execute(Job(algorithm, graph, door, dice, steps, ledger, frozenset(range(graph.n))))
        except PrivacyError as error:
            raise ConformanceError(f"{algorithm.name()}: data leaves past the door: {error}") from error
        stories.append((outcome.trace.received, lines(ledger)))
    (first, spent), (second, again) = stories
    if len(first) != len(second):
        raise ConformanceError(f"{algorithm.name()}: how many messages there are changes with the records, though the"
                               f" door's answers do not: {len(first)} and {len(second)}")  # fmt: skip
    for one, other in zip(first, second, strict=True):
        if not same(one.row, other.row):
            raise ConformanceError(f"{algorithm.name()}: data leaves past the door: what peer {one.sender} told peer"
                                   f" {one.receiver} at {one.clock} changes with the records, though the door's answers"
                                   " do not")  # fmt: skip
    if spent != again:
        raise ConformanceError(f"{algorithm.name()}: what the ledger says changes with the records, though the door's"
                               " answers do not")  # fmt: skip


class _Scaled(SourceDoor):
    """A door whose answers are all multiplied by a number and added up: for the test of superposition."""

    def __init__(self, rows: Array, seed: int) -> None:
        super().__init__(rows.shape[1])
        self._rows, self._seed, self._count = rows, seed, 0

    def _answer(self, owners: Any) -> Array:
        picks = (np.arange(len(owners)) + self._count) % len(self._rows)
        self._count += len(owners)
        return self._rows[picks]

    def _fresh(self, owners: Any, data: bool) -> Array:
        return self._answer(owners)

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._answer(at.ids)


def check_linear(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int) -> None:
    """If the algorithm claims to be linear, messages and estimates of a sum are the sums of messages and estimates."""
    if not algorithm.linear:
        return
    draws = Replay(9).normal("superposition", np.arange(97), 0, 0, 6)
    one, two = draws[:, :3], draws[:, 3:]
    outcomes = []
    for rows in (one, two, 2.0 * one - 3.0 * two):
        job = Job(algorithm, graph, _Scaled(rows, 0), Replay(5), steps, Ledger(graph.n), frozenset(range(graph.n)))
        outcome = Bulk().execute(job)
        heard = np.concatenate([flat_rows(message.row) for message in outcome.trace.received] or [np.zeros(0)])
        outcomes.append(np.concatenate((heard, flat(algorithm.estimate(outcome.state)))))
    if not np.allclose(2.0 * outcomes[0] - 3.0 * outcomes[1], outcomes[2], rtol=1e-9, atol=1e-9):
        raise ConformanceError(f"{algorithm.name()} claims to be linear, but superposition fails")


def check_steps_zero(algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int) -> None:
    """Without steps nobody says anything, and nothing fails."""
    result = _run(algorithm, graph, task, 0)
    if result.trace.messages:
        raise ConformanceError(f"{algorithm.name()} sent {result.trace.messages} messages in zero steps")


def checks() -> tuple[Check, ...]:
    """All of them, in order."""
    return (check_engines_agree, check_replay_under_faults, check_messages_are_pure, check_data_only_through_the_door,
            check_linear, check_steps_zero)


def check_algorithm(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str | None = None, steps: int = 7
) -> None:
    """Apply every check on a small graph; raises ConformanceError at the first that fails."""
    graph = grid(2, 4) if graph is None else named_graph(graph)
    task = small_task(graph.n)
    for check in checks():
        check(algorithm, graph, task, steps)


