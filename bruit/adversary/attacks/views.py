"""From a run to the equations of its observers: which linear forms they heard, and the numbers they
heard for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bruit.adversary.attacks.dithers import (
    Drawn,
    Key,
    Sent,
    grid_of,
    meeting_columns,
    round_columns,
)
from bruit.adversary.attacks.door_again import door_again
from bruit.adversary.attacks.knowledge import (
    Knowledge,
    accelerated_knowledge,
    knowledge,
    meeting_knowledge,
    sequence_knowledge,
)
from bruit.algorithms.door import Address, OnGrid
from bruit.algorithms.doorway import begun, believed
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Links
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.result import Run
from bruit.tasks.task import Task
from bruit.trace import Received, View


def run_knowledge(run: Run, observers: int | Iterable[int]) -> Knowledge:
    """The knowledge matrix of some peers of a run of linear averaging, from its public facts only.

    Averaging on fixed or changing graphs with dropouts, Chebyshev gossip on a fixed graph, pair
    averaging. Rows are those of means, also where sums were sent; `sent` knows the dithers.
    """
    chosen = [observers] if isinstance(observers, int) else sorted(observers)
    facts = run.facts()
    if run.phase:
        raise ConfigError(
            "this run goes on from an earlier one, so its first messages are mixtures already;"
            " attack the first phase"
        )
    if facts.missed:
        raise ConfigError(
            f"real peers went on without {facts.missed} exchanges, so nobody knows which linear"
            " forms were said; attack a run without misses"
        )
    fixed, grid = facts.fixed_graph(), grid_of(run)
    if isinstance(run.algorithm, PairAveraging):
        a, b = facts.meetings.a, facts.meetings.b
        met = meeting_knowledge(run.n, a, b, chosen)
        return replace(
            met, sent=grid and Sent(grid, lambda: meeting_columns(run.n, a, b, met.keys))
        )
    if isinstance(run.algorithm, Averaging):
        known = (
            sequence_knowledge(facts.at, run.n, run.steps, chosen)
            if fixed is None
            else (knowledge(fixed, chosen, run.steps))
        )
        return replace(
            known,
            sent=grid and Sent(grid, lambda: round_columns(facts.at, run.n, run.steps, known.keys)),
        )
    if isinstance(run.algorithm, Chebyshev):
        if fixed is None:
            raise ConfigError(
                "accelerated gossip is attacked on one fixed graph without dropouts only;"
                f" this run had dead links in {len(np.unique(facts.faults.round))} rounds"
            )
        gamma = float(facts.public.gamma)
        fast = accelerated_knowledge(fixed, chosen, run.steps, gamma)
        return replace(
            fast,
            sent=grid
            and Sent(grid, lambda: round_columns(facts.at, run.n, run.steps, fast.keys, gamma)),
        )
    raise ConfigError(
        "reconstruction from gossip needs linear averaging of values said once (averaging,"
        f" chebyshev, pair-averaging), but this is a run of {run.algorithm.name()}"
    )


def starting_values(run: Run, task: Task) -> Array:
    """What every peer put into a simulated run, clipped and noisy, drawn again from its seed  # (n,
    d).

    The observers' own rows are the `own` of `reconstruct`; the others' are what a perfect attack
    would find.
    """
    door = door_again(TaskDoor, run, task)
    public, zero = run.public, np.zeros(run.n, np.int64)
    last, edges = np.ones(run.n, bool), Links.alone(run.n).edges
    home = Home(door, np.arange(run.n), zero, zero, last, edges, public)
    return believed(run.algorithm, begun(run.algorithm, home))


@dataclass(frozen=True)
class _ListeningDoor(TaskDoor):
    """The door of a run once more, keeping the dithers that some peers draw."""

    listened: frozenset[int] = frozenset()
    dithers: dict[Key, Array] = field(default_factory=dict)

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        rows = super().dither_on(at, sigma, width, on)
        for place in np.flatnonzero(np.isin(at.ids, list(self.listened))).tolist():
            self.dithers[int(at.steps[place]), int(at.ids[place])] = rows[place].copy()
        return rows


def own_dithers(run: Run, task: Task, observers: int | Iterable[int]) -> Drawn:
    """What these peers added to their own messages in a simulated run, drawn again from its seed,
    for `reconstruct`."""
    chosen = frozenset([observers] if isinstance(observers, int) else observers)
    door = door_again(_ListeningDoor, run, task, listened=chosen)
    Bulk().execute(
        Job(
            algorithm=run.algorithm,
            graph=run.graph,
            door=door,
            dice=Replay(run.seed),
            steps=run.steps,
            ledger=door.ledger,
            given=run.trace,
        )
    )
    return door.dithers


def observed(view: View, known: Knowledge, own: Array) -> Array:
    """The right-hand side Y of K X = Y: the observers' own values, then one row per message  # (k,
    d).

    Sums are divided by their number of terms; dithers are still in it.
    """
    mine = np.asarray(own, dtype=np.float64)
    if view.observers != frozenset(known.observers.tolist()):
        raise ConfigError(
            f"the view is that of peers {sorted(view.observers)}, the knowledge matrix that of"
            f" {known.observers.tolist()}; take both for the same observers"
        )
    if known.known < known.observers.size:
        raise ConfigError(
            "a view holds messages, but this knowledge is of sums under secure aggregation;"
            " take the knowledge of messages"
        )
    if mine.ndim != 2 or len(mine) != known.observers.size:
        raise ConfigError(
            f"the observers' own values have shape {mine.shape}; give one row for each of the"
            f" {known.observers.size} observers, in increasing order"
        )
    records = [message for message in view.foreign if not isinstance(message.row, np.ndarray)]
    if records:
        names = ", ".join(getattr(records[0].row, "_fields", ()))
        raise ConfigError(
            f"the messages of this run are records ({names}), not values of an average;"
            " reconstruction needs averaging, chebyshev or pair-averaging"
        )
    messages = _by_time(view) if known.receivers is None else _by_meeting(view, known)
    missing = [key for key in known.keys if key not in messages]
    extra = len(messages) - (len(known.keys) - len(missing))
    if missing or extra:
        when = (
            f"; missing first: what peer {missing[0][1]} said at {missing[0][0]}" if missing else ""
        )
        raise ConfigError(
            f"the view holds {len(messages)} messages from others where {len(known.keys)} were said"
            f" to these observers{when}; run again in bulk with watch={sorted(view.observers)}"
        )
    terms = (lambda t: 1) if known.sent is None else known.sent.grid.terms
    rows: list[Any] = [messages[key] / terms(key[0]) for key in known.keys]
    return np.concatenate([mine, *rows])


def _by_time(view: View) -> dict[tuple[int, int], Array]:
    """What each peer said in each round; it says the same to all who hear it."""
    return {(message.clock, message.sender): message.row for message in view.foreign}


def _by_meeting(view: View, known: Knowledge) -> dict[tuple[int, int], Array]:
    """The k-th message between two peers belongs to their k-th meeting, whatever the engine's clock
    counts."""
    waiting: dict[tuple[int, int], list[Received]] = {}
    for message in view.foreign:
        waiting.setdefault((message.receiver, message.sender), []).append(message)
    by_key = {}
    for (number, sender), receiver in zip(known.keys, known.receivers or (), strict=True):
        if waiting.get((receiver, sender)):
            by_key[number, sender] = waiting[receiver, sender].pop(0).row
    left = [message for messages in waiting.values() for message in messages]
    return {**by_key, **{(-1 - k, message.sender): message.row for k, message in enumerate(left)}}
