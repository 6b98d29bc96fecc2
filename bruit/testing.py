"""Checks that any algorithm must pass, yours included: `check_algorithm(MyAlgorithm())`.

Engines agree step by step without latency, and through replay with latency, loss and churn; rows do not peek at each
other; private fields never reach a message; `linear` algorithms are linear; a message sent twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Address
from bruit.algorithms.messages import Links
from bruit.arrays import Array
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Job
from bruit.engines.events import Events
from bruit.engines.forms import SourceDoor
from bruit.engines.replay import compare, flat
from bruit.errors import ConformanceError
from bruit.experiment import run
from bruit.graphs import Graph, GraphSequence, grid
from bruit.mechanisms import Gaussian
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.replaying import replay
from bruit.result import Run
from bruit.tasks import Mean, Task

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
    return check_engines_agree, check_replay_under_faults, check_messages_are_pure, check_linear, check_steps_zero


def check_algorithm(algorithm: Algorithm[Any], graph: Graph | GraphSequence | None = None, steps: int = 7) -> None:
    """Apply every check on a small graph; raises ConformanceError at the first that fails."""
    graph = grid(2, 4) if graph is None else graph
    task = small_task(graph.n)
    for check in checks():
        check(algorithm, graph, task, steps)


