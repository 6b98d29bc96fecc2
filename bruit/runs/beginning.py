"""What a run begins with: nothing, a public model, or what an earlier run of the same peers left.

A run that follows another goes on in its ledger, and carries on the "state" of the same algorithm,
the "model" of each peer, or "nothing".
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.sequence import Butterfly
from bruit.how_many import how_many
from bruit.mechanisms import Mechanism
from bruit.privacy.guarantee import Hypothesis, different_adjacencies
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.result import Run
from bruit.tasks import Task
from bruit.tasks.data.public_model import PublicModel

Carry = Literal["state", "model", "nothing"]


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What is there before the first step. `models` are the rows that peers begin with, None for
    zeros; `elapsed` is how far the phases came whose states are carried on, and `origin` the number
    of the first of them."""

    after: Run | None
    start: PublicModel | None
    carried: Carry
    models: Array | None
    ledger: Ledger
    phase: int
    elapsed: int
    origin: int

    @property
    def resumed(self) -> bool:
        """Whether the states of the earlier run go on."""
        return self.carried == "state"

    def states(self) -> Any:
        """The states to go on from, copied, since engines write in place; None: start anew."""
        return deepcopy(self.after.twinned()) if self.after is not None and self.resumed else None

    def holder(self) -> int | None:
        """Who holds the token of a walk that goes on."""
        return _holder(self.after) if self.resumed else None

    def declared(self) -> tuple[Hypothesis, ...]:
        """What is assumed of the public model to start from."""
        if self.start is None:
            return ()
        return (Hypothesis(self.start.hypothesis(), checked=False),)


def beginning(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    task: Task,
    privacy: Mechanism | None,
    after: Run | None,
    carry: Carry | None,
    start: PublicModel | None,
) -> Beginning:
    """What this run begins with, checked."""
    carried: Carry = "nothing"
    models, ledger = None, Ledger(peers=graph.n)
    phase = 0 if after is None else after.phase + 1
    if after is not None:
        carried, models = _carried(after, algorithm, task, carry)
        _check_composes(after.privacy, privacy)
        ledger.extend(after.ledger)
    if start is not None:
        models = _started(start, algorithm, graph, task, carried)
    elapsed, origin = _elapsed(after) if carried == "state" else (0, phase)
    if carried == "state":
        _warn_of_restarts(graph, elapsed)
    return Beginning(
        after=after,
        start=start,
        carried=carried,
        models=models,
        ledger=ledger,
        phase=phase,
        elapsed=elapsed,
        origin=origin,
    )


def _check_composes(earlier: Mechanism | None, later: Mechanism | None) -> None:
    """Refuses a run after another whose guarantees are about something else."""
    if earlier is None or later is None:
        return
    if earlier.level != later.level:
        levels = f"{earlier.level} and {later.level}"
        raise PrivacyError(
            f"guarantees of different levels ({levels}) do not compose; use one level throughout"
        )
    if earlier.adjacency != later.adjacency:
        raise different_adjacencies(earlier.adjacency, later.adjacency)


def _carried(
    after: Run, algorithm: Algorithm[Any], task: Task, carry: Carry | None
) -> tuple[Carry, Array | None]:
    """What goes on from an earlier run, checked: the word and, for models, the rows."""
    same = type(after.algorithm) is type(algorithm)
    chosen: Carry = carry if carry is not None else ("state" if same else "model")
    if after.n != task.peers:
        raise ConfigError(
            f"the earlier run has {after.n} peers and the task {task.peers}; a ledger keeps its "
            f"peers"
        )
    if chosen == "state" and not same:
        names = f"{after.algorithm.name()} to {algorithm.name()}"
        raise ConfigError(
            f"the states of one algorithm mean nothing to another: cannot go on from {names}"
        )
    if chosen == "state" and after.state is None:
        raise ConfigError(
            "the earlier run came from a folder, which keeps no states; carry the 'model' instead"
        )
    if chosen == "state":
        _check_between_steps(after)
    if chosen != "model":
        return chosen, None
    if after.local:
        raise PrivacyError(
            "the models of the earlier run hold raw data that was to stay at home (home.keep), so"
            " they are no beginning for messages; carry the 'state' or 'nothing'"
        )
    if after.estimates.shape != (task.peers, task.dim):
        found = (
            f"models of shape {after.estimates.shape}, and this task needs {(task.peers, task.dim)}"
        )
        raise ConfigError(
            f"the earlier run left {found}; start from 'nothing', or use the same task"
        )
    return chosen, np.array(after.estimates, np.float64)


def _started(
    start: PublicModel,
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    task: Task,
    carried: str,
) -> Array:
    """The public models to start from, checked: by an algorithm that starts from models at all."""
    if not isinstance(start, PublicModel):
        raise ConfigError(
            "say where the model to start from comes from: start=br.PublicModel(rows, "
            "source='...'); what"
            " an earlier run learned from these peers is charged: after=that_run"
        )
    if carried != "nothing":
        raise ConfigError(
            f"this run goes on from the {carried} of an earlier one, so it cannot start from a"
            " public model as well; leave start out, or carry 'nothing'"
        )
    models = start.of_peers(graph.n, task.dim)
    door = _BeginningProbe(
        task=task, mechanism=None, dice=Replay(0), ledger=Ledger(peers=graph.n), models=models
    )
    Bulk().execute(
        Job(
            algorithm=algorithm, graph=graph, door=door, dice=Replay(0), steps=0, ledger=door.ledger
        )
    )
    if not door.asked:
        raise ConfigError(
            f"{algorithm.name()} starts from no model but from what it reads, so start= would"
            " change nothing; leave it out"
        )
    return models


@dataclass(frozen=True)
class _BeginningProbe(TaskDoor):
    """A door that notes whether anybody asked for the models to begin with."""

    asked: list[bool] = field(default_factory=list)

    def beginning(self, ids: Ints) -> Array:
        self.asked.append(True)
        return super().beginning(ids)


def _check_between_steps(after: Run) -> None:
    """Refuse the states of a run that was stopped where its peers did not all stand at one step: no
    schedule goes on from there."""
    together = after.engine["name"] == "bulk" and not after.algorithm.schedule.timed
    if after.interrupted is not None and not together:
        raise ConfigError(
            f"the earlier run was {after.stopped_words()}, and its peers stand at different steps;"
            " run it to its end, or carry the 'model'"
        )


def _elapsed(after: Run | None) -> tuple[int, int]:
    """How far the phases came whose states are carried on (rounds, hops, units of time or
    activations; of a phase that was interrupted, what was done), and the number of the first of
    them."""
    elapsed, origin = 0, 0
    while after is not None:
        counted = after.algorithm.schedule.counted(after.steps)
        whole = after.steps if counted is None else counted
        elapsed += whole if after.interrupted is None else after.interrupted[0]
        origin = after.phase
        after = after.before if after.carried == "state" else None
    return elapsed, origin


def _holder(after: Run | None) -> int | None:
    """Who holds the token of a walk that goes on: the last to have been visited in any of its
    phases."""
    while after is not None:
        schedule = after.algorithm.schedule
        found = schedule.holder(after.trace.meetings) if schedule.entered else None
        if found is not None:
            return found
        after = after.before if after.carried == "state" else None
    return None


def _warn_of_restarts(graph: Graph | GraphSequence, before: int) -> None:
    """A sequence of graphs starts with its first graph in every phase."""
    if isinstance(graph, Graph):
        return
    period = max(1, len(graph.radices)) if isinstance(graph, Butterfly) else graph.period
    if period is None or before % period:
        turn = (
            "draws them afresh" if period is None else f"repeats after {how_many(period, 'round')}"
        )
        warnings.warn(
            f"every phase starts with the first graph of {graph.name}, which {turn}: after "
            f"{how_many(before, 'round')} this phase is no exact continuation of the earlier one",
            stacklevel=4,
        )
