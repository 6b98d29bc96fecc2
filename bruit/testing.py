"""Checks that any algorithm must pass, yours included: `check_algorithm(MyAlgorithm())`; and any
guarantee: `check_guarantee(Case(...))`.

Engines agree step by step without latency, and through replay with latency, loss and churn; rows do
not peek at each other; private fields never reach a message; messages are the same when data change
and the door's answers do not; `linear` algorithms are linear; a message sent twice is the same. An
error says which check failed, in which field of the state or the message, of which peer, and since
which step.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Address
from bruit.algorithms.doorway import same
from bruit.algorithms.messages import Edges, Links, Message
from bruit.algorithms.task_door import RawAnswer, TaskDoor
from bruit.arrays import Array, Ints
from bruit.errors import AlgorithmError, BruitError, ConformanceError, PrivacyError
from bruit.graphs import Graph, GraphSequence, complete, grid
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Gaussian
from bruit.privacy.checks import TheoremCase as TheoremCase
from bruit.privacy.checks import check_guarantee as check_guarantee
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.engines.events import Events
from bruit.runs.engines.forms import SourceDoor
from bruit.runs.engines.replay import compare, farthest, flat, lines, odd_line, parts
from bruit.runs.replay import replay
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks import Boosted, Logistic, Mean, Pairwise, Personal, Records, Ridge, Statistic, Task
from bruit.tasks.renumbered import Renumbered

Check = Callable[[Algorithm[Any], Graph | GraphSequence, Task, int], None]


def small_task(n: int) -> Task:
    """Values of three numbers per peer, all different."""
    return Mean(Replay(1).normal("test", np.arange(n), 0, 0, 3))


def task_for(algorithm: Algorithm[Any], n: int) -> Task:
    """A small task of the kind that the algorithm is for, by what it asks; of one that does not
    say, values of three numbers, or one of three where it counts."""
    draws = Replay(1).normal("task for", np.arange(4 * n), 0, 0, 3)  # (4 n, 3)
    owners, signs = np.repeat(np.arange(n), 4), np.where(draws[:, 2] > 0, 1.0, -1.0)
    signs[::4], signs[1::4] = 1.0, -1.0
    if algorithm.counting:
        return Mean(np.eye(3)[np.arange(n) % 3])
    asked = type(algorithm).asks
    if asked in (None, "a value to average"):
        return small_task(n)
    if asked == "a function of two points":
        return Statistic.of(draws[:n, :2], "kendall")
    if asked == "a loss of two points":
        return Pairwise.of(draws[:n, :2], np.where(np.arange(n) % 2, 1.0, -1.0))
    if asked == "gradients from zero on":
        return Boosted(Records.of(np.sign(draws), signs, owners))
    records = Records.of(draws / 4, signs, owners, rows="unit")
    if asked == "proximal steps":
        return Ridge(records, l2=0.1)
    if asked == "gradients":
        return Logistic(records, l2=0.1)
    return Personal(Logistic(records), 1.0 / records.sizes)


def _run(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int, **options: Any
) -> Run:
    noise = Gaussian(clip=2.0, sigma=0.5)
    return run(
        algorithm, graph, task, privacy=noise, steps=steps, seed=5, evaluate_every=0, **options
    )


def _named(check: Check) -> Check:
    """The check, whose errors say which check it was, of which algorithm, and what failed where."""

    @functools.wraps(check)
    def asked(
        algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
    ) -> None:
        try:
            check(algorithm, graph, task, steps)
        except ConformanceError as error:
            raise ConformanceError(f"{check.__name__}: {algorithm.name()}: {error}") from error
        except BruitError as error:
            if not isinstance(error, AlgorithmError):
                raise
            raise ConformanceError(
                f"{check.__name__}: {algorithm.name()}: {error}{_line_of(error.__cause__)}"
            ) from error
        except Exception as error:
            raise ConformanceError(
                f"{check.__name__}: {algorithm.name()}: it fails with {error!r}{_line_of(error)}"
            ) from error

    return asked


def _line_of(error: BaseException | None) -> str:
    """Where an exception was raised, for the end of a sentence."""
    if error is None:
        return ""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f" (line {place.lineno} of {Path(place.filename).name}, in {place.name})"


def _since_when(agree: Callable[[int], None], steps: int) -> None:
    """Ask for so many steps; where that fails, for fewer, so that the error says since which
    step."""
    try:
        agree(steps)
    except (ConformanceError, PrivacyError) as error:
        for fewer in range(steps):
            try:
                agree(fewer)
            except (ConformanceError, PrivacyError) as early:
                when = f"after step {fewer}" if fewer else "before the first step (`start`)"
                raise ConformanceError(f"{when}: {early}") from error
        raise ConformanceError(f"after step {steps}: {error}") from error


@_named
def check_engines_agree(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """All peers at once equal batches of one: same states, same ledger, same meetings."""

    def agree(count: int) -> None:
        bulk = _run(algorithm, graph, task, count)
        events = _run(algorithm, graph, task, count, engine=Events())
        compare(bulk, events)
        one, two = (
            [
                *zip(found.trace.meetings.a.tolist(), found.trace.meetings.b.tolist(), strict=True),
                None,
            ]
            for found in (bulk, events)
        )
        for place, (left, right) in enumerate(zip(one, two, strict=False)):
            if left != right:
                raise ConformanceError(
                    "all at once and peer by peer disagree on who met whom: meeting"
                    f" {place} is of peers {left} and {right}"
                )

    _since_when(agree, steps)


@_named
def check_replay_under_faults(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """A run with latency, loss and churn, replayed in bulk from its trace, ends in the same
    states."""
    storms = (
        Events(latency=0.4),
        Events(latency=0.2, loss=0.2, timeout=0.5),
        Events(latency=0.1, loss=0.1, churn=0.15),
    )
    for engine in storms:
        try:
            _since_when(functools.partial(_replayed, algorithm, graph, task, engine), steps)
        except ConformanceError as error:
            faults = f"latency {engine.latency}, loss {engine.loss}, churn {engine.churn}"
            raise ConformanceError(f"with {faults}, {error}") from error


def _replayed(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, storm: Events, steps: int
) -> None:
    replay(_run(algorithm, graph, task, steps, engine=storm), task)


@_named
def check_messages_are_pure(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """`emit` twice gives the same message, and erasing private fields changes nothing."""
    state = _run(algorithm, graph, task, steps).state
    links = Links.of_graph(graph if isinstance(graph, Graph) else graph.at(0))
    edges, when = links.edges, f"after step {steps}"
    once = algorithm.emit(state, edges)
    found = _changed(once, algorithm.emit(state, edges), edges)
    if found:
        raise ConformanceError(
            f"{when} the same state emits two different messages: {found};"
            " `emit` must be a function of its arguments"
        )
    if not _changed(once, algorithm.emit(algorithm.blank(state), edges), edges):
        return
    for field in algorithm.private:
        others = {one: getattr(state, one) for one in algorithm.private if one != field}
        blank = algorithm.blank(state)._replace(**others)
        found = _changed(once, algorithm.emit(blank, edges), edges)
        if found:
            raise ConformanceError(
                f"{when} a private field reaches the message: {field!r} changes what is said,"
                f" {found}"
            )
    raise ConformanceError(
        f"{when} a private field reaches the message: some of {', '.join(algorithm.private)}"
        " together change what is said"
    )


def _changed(one: Message, two: Message, edges: Edges) -> str:
    """Where two messages of the same batch differ, in words; nothing if they do not."""
    if one.each != two.each or same(one.rows, two.rows):
        return "" if one.each == two.each else "once for all neighbors, once for each"
    found = farthest(one.rows, two.rows)
    if found is None:
        return ""
    senders = np.repeat(edges.ids, np.diff(edges.start)) if one.each else edges.ids
    to = f" to peer {edges.peers[found.lane]}" if one.each else ""
    return f"peer {senders[found.lane]}{to}, {found.words()}"


@dataclass(frozen=True, eq=False)
class Swapped(Renumbered):
    """The same records in other hands: peer i holds what peer i + 1 held."""

    def _inner_ids(self, ids: Ints) -> Ints:
        return np.asarray((ids + 1) % self.inner.peers)

    @property
    def peers(self) -> int:
        return self.inner.peers

    def record_counts(self) -> Ints:
        return np.roll(self.inner.record_counts(), -1)

    def evaluate(self, models: Array) -> dict[str, float]:
        return self.inner.evaluate(models)

    def references(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class ScriptedDoor(TaskDoor):
    """A door that answers by a script: every release is a function of its address, whatever the
    records say."""

    def _release(self, at: Address, answer: RawAnswer) -> Array:
        rows = Replay(17).normal("script", at.ids, at.steps, at.use, answer.width)
        return super()._release(at, answer._replace(raw=rows))

    def _masked_answer(self, at: Address, x: Array, grain: float) -> Ints:
        rows = Replay(17).normal("script", at.ids, at.steps, at.use, x.shape[1])
        return np.trunc(rows / grain).astype(np.int64)


@_named
def check_data_only_through_the_door(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """With the same answers of the door and other data behind it, everybody says the same, to the
    last bit, and the ledger has the same lines. Raw answers (`home.keep`) and whatever reaches
    around the door do change."""
    stories = []
    for data in (task, Swapped(task)):
        ledger, dice = Ledger(peers=graph.n), Replay(5)
        door = ScriptedDoor(
            task=data, mechanism=Gaussian(clip=2.0, sigma=0.5), dice=dice, ledger=ledger
        )
        try:
            outcome = Bulk().execute(
                Job(
                    algorithm=algorithm,
                    graph=graph,
                    door=door,
                    dice=dice,
                    steps=steps,
                    ledger=ledger,
                    watch=frozenset(range(graph.n)),
                )
            )
        except PrivacyError as error:
            raise ConformanceError(f"data leaves past the door: {error}") from error
        stories.append((outcome.trace.received, lines(ledger)))
    (first, spent), (second, again) = stories
    if len(first) != len(second):
        raise ConformanceError(
            "how many messages there are changes with the records, though the door's answers do"
            f" not: {len(first)} and {len(second)}"
        )
    for one, other in zip(first, second, strict=True):
        if not same(one.row, other.row):
            found = farthest(one.row, other.row)
            where = "" if found is None else f" ({found.words()})"
            raise ConformanceError(
                f"data leaves past the door: what peer {one.sender} told peer {one.receiver} at "
                f"step"
                f" {one.clock} changes with the records{where}, though the door's answers do not"
            )
    if spent != again:
        raise ConformanceError(
            "what the ledger says changes with the records, though the door's answers do not:"
            f" {odd_line(spent, again)}"
        )


class _Scaled(SourceDoor):
    """A door whose answers are all multiplied by a number and added up: for the test of
    superposition."""

    def __init__(self, rows: Array, seed: int) -> None:
        super().__init__(width=rows.shape[1])
        self._rows, self._seed, self._count = rows, seed, 0

    def _answer(self, owners: Any) -> Array:
        picks = (np.arange(len(owners)) + self._count) % len(self._rows)
        self._count += len(owners)
        return self._rows[picks]

    def _symbols(self, sources: Ints) -> Array:
        """Noise between two peers is one of the answers, the same at both ends."""
        return self._rows[sources % len(self._rows)]

    def _fresh(self, owners: Any, data: bool) -> Array:
        return self._answer(owners)

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._answer(at.ids)


@_named
def check_linear(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """If the algorithm claims to be linear, messages and estimates of a sum are the sums of
    messages and estimates."""
    if not algorithm.linear:
        return
    draws = Replay(9).normal("superposition", np.arange(97), 0, 0, 6)
    one, two = draws[:, :3], draws[:, 3:]
    heard, believed = [], []
    for rows in (one, two, 2.0 * one - 3.0 * two):
        job = Job(
            algorithm=algorithm,
            graph=graph,
            door=_Scaled(rows=rows, seed=0),
            dice=Replay(5),
            steps=steps,
            ledger=Ledger(peers=graph.n),
            watch=frozenset(range(graph.n)),
        )
        outcome = Bulk().execute(job)
        heard.append(outcome.trace.received)
        believed.append(np.asarray(algorithm.estimate(outcome.state), np.float64))
    for first, second, sum_of in zip(*heard, strict=True):
        place = f"what peer {first.sender} told peer {first.receiver} at step {first.clock}"
        for (field, x), (_, y), (_, z) in zip(
            parts(first.row), parts(second.row), parts(sum_of.row), strict=True
        ):
            _check_sum(flat(x), flat(y), flat(z), f"{place}{f', field {field!r}' if field else ''}")
    for peer in range(len(believed[0])):
        what = f"the estimate of peer {peer} after step {steps}"
        _check_sum(believed[0][peer], believed[1][peer], believed[2][peer], what)


def _check_sum(one: Array, two: Array, both: Array, what: str) -> None:
    wanted = 2.0 * one - 3.0 * two
    if not np.allclose(wanted, both, rtol=1e-9, atol=1e-9):
        number = int(np.argmax(np.abs(wanted - both)))
        raise ConformanceError(
            f"it claims to be linear, but superposition fails: {what}, number {number}, is"
            f" {both[number]:.6g} where 2 x - 3 y is {wanted[number]:.6g}"
        )


@_named
def check_steps_zero(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task, steps: int
) -> None:
    """Without steps nobody says anything, and nothing fails."""
    result = _run(algorithm, graph, task, 0)
    if result.trace.messages:
        raise ConformanceError(f"it sent {result.trace.messages} messages in zero steps")
    if len(algorithm.estimate(result.state)) != graph.n:
        raise ConformanceError(
            f"its estimate has {len(algorithm.estimate(result.state))} rows for {graph.n} peers"
        )


def checks() -> tuple[Check, ...]:
    """All of them, in order."""
    return (
        check_engines_agree,
        check_replay_under_faults,
        check_messages_are_pure,
        check_data_only_through_the_door,
        check_linear,
        check_steps_zero,
    )


def suited(algorithm: Algorithm[Any], graph: Graph | GraphSequence) -> Graph | GraphSequence:
    """The graph, or the complete one of as many peers where the schedule needs that."""
    return complete(graph.n) if algorithm.schedule.complete else graph


def check_algorithm(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str | None = None, steps: int = 7
) -> None:
    """Apply every check on a small graph; raises ConformanceError at the first that fails."""
    graph = suited(algorithm, grid(2, 4)) if graph is None else named_graph(graph)
    task = small_task(graph.n)
    for check in checks():
        check(algorithm, graph, task, steps)
