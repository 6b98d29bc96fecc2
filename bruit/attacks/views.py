"""From a run to the equations of its observers: which linear forms they heard, and the numbers they heard for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bruit.algorithms.averaging import Averaging
from bruit.algorithms.chebyshev import Chebyshev
from bruit.algorithms.doorway import begun, believed
from bruit.algorithms.home import Address, OnGrid, TaskDoor
from bruit.algorithms.messages import Links
from bruit.algorithms.pair_averaging import PairAveraging
from bruit.arrays import Array
from bruit.attacks.dithers import Drawn, Key, Sent, grid_of, meeting_columns, round_columns
from bruit.attacks.knowledge import (
    Knowledge,
    accelerated_knowledge,
    knowledge,
    meeting_knowledge,
    sequence_knowledge,
)
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Job, home_of
from bruit.errors import ConfigError
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.result import Run
from bruit.tasks.task import Task
from bruit.trace import Received, View


def run_knowledge(run: Run, observers: int | Iterable[int]) -> Knowledge:
    """The knowledge matrix of some peers of a run of linear averaging, from its public facts only.

    Averaging on fixed or changing graphs with dropouts, Chebyshev gossip on a fixed graph, pair averaging. Rows are
    those of means, also where sums were sent; `sent` knows the dithers.
    """
    chosen = [observers] if isinstance(observers, int) else sorted(observers)
    facts = run.facts()
    if run.phase:
        raise ConfigError("this run goes on from an earlier one, so its first messages are mixtures already; attack the"
                          " first phase")  # fmt: skip
    if facts.missed:
        raise ConfigError(f"real peers went on without {facts.missed} exchanges, so nobody knows which linear forms"
                          " were said; attack a run without misses")  # fmt: skip
    fixed, grid = facts.fixed_graph(), grid_of(run)
    if isinstance(run.algorithm, PairAveraging):
        a, b = facts.meetings.a, facts.meetings.b
        met = meeting_knowledge(run.n, a, b, chosen)
        return replace(met, sent=grid and Sent(grid, lambda: meeting_columns(run.n, a, b, met.keys)))
    if isinstance(run.algorithm, Averaging):
        known = sequence_knowledge(facts.at, run.n, run.steps, chosen) if fixed is None else (
            knowledge(fixed, chosen, run.steps))  # fmt: skip
        return replace(known, sent=grid and Sent(grid, lambda: round_columns(facts.at, run.n, run.steps, known.keys)))
    if isinstance(run.algorithm, Chebyshev):
        if fixed is None:
            raise ConfigError("accelerated gossip is attacked on one fixed graph without dropouts only; this run had"
                              f" dead links in {len(np.unique(facts.faults.round))} rounds")  # fmt: skip
        gamma = float(facts.public.gamma)
        fast = accelerated_knowledge(fixed, chosen, run.steps, gamma)
        return replace(fast, sent=grid and Sent(grid, lambda: round_columns(facts.at, run.n, run.steps, fast.keys,
                                                                            gamma)))  # fmt: skip
    raise ConfigError(f"reconstruction from gossip needs linear averaging of values said once (averaging, chebyshev,"
                      f" pair-averaging), but this is a run of {run.algorithm.name()}")  # fmt: skip


def starting_values(run: Run, task: Task) -> Array:
    """What every peer put into a simulated run, clipped and noisy, drawn again from its seed  # (n, d).

    The observers' own rows are the `own` of `reconstruct`; the others' are what a perfect attack would find.
    """
    ledger, dice = Ledger(run.n), Replay(run.seed)
    door = TaskDoor(task, run.privacy, run.dice(task), ledger, run.phase, public=dice)
    job = Job(run.algorithm, run.graph, door, dice, run.steps, ledger)
    public, zero, peers = run.algorithm.prepare(run.graph, run.steps), np.zeros(run.n, np.int64), np.arange(run.n)
    home = home_of(job, public, peers, zero, zero, np.ones(run.n, bool), Links.alone(run.n).edges)
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
    """What these peers added to their own messages in a simulated run, drawn again from its seed, for `reconstruct`."""
    chosen = frozenset([observers] if isinstance(observers, int) else observers)
    ledger, dice = Ledger(run.n), Replay(run.seed)
    door = _ListeningDoor(task, run.privacy, run.dice(task), ledger, run.phase, public=dice, listened=chosen)
    Bulk().execute(Job(run.algorithm, run.graph, door, dice, run.steps, ledger, given=run.trace))
    return door.dithers


def observed(view: View, known: Knowledge, own: Array) -> Array:
    """The right-hand side Y of K X = Y: the observers' own values, then one row per message  # (k, d).

    Sums are divided by their number of terms; dithers are still in it.
    """
    mine = np.asarray(own, dtype=np.float64)
    if view.observers != frozenset(known.observers.tolist()):
        raise ConfigError(f"the view is that of peers {sorted(view.observers)}, the knowledge matrix that of"
                          f" {known.observers.tolist()}; take both for the same observers")  # fmt: skip
    if known.known < known.observers.size:
        raise ConfigError("a view holds messages, but this knowledge is of sums under secure aggregation; take the"
                          " knowledge of messages")  # fmt: skip
    if mine.ndim != 2 or len(mine) != known.observers.size:
        raise ConfigError(f"the observers' own values have shape {mine.shape}; give one row for each of the"
                          f" {known.observers.size} observers, in increasing order")  # fmt: skip
    records = [message for message in view.foreign if not isinstance(message.row, np.ndarray)]
    if records:
        names = ", ".join(getattr(records[0].row, "_fields", ()))
        raise ConfigError(f"the messages of this run are records ({names}), not values of an average; reconstruction"
                          " needs averaging, chebyshev or pair-averaging")  # fmt: skip
    told = _by_time(view) if known.receivers is None else _by_meeting(view, known)
    missing = [key for key in known.keys if key not in told]
    extra = len(told) - (len(known.keys) - len(missing))
    if missing or extra:
        when = f"; missing first: what peer {missing[0][1]} said at {missing[0][0]}" if missing else ""
        raise ConfigError(f"the view holds {len(told)} messages from others where {len(known.keys)} were said to these"
                          f" observers{when}; run again in bulk with watch={sorted(view.observers)}")  # fmt: skip
    terms = (lambda t: 1) if known.sent is None else known.sent.grid.terms
    rows: list[Any] = [told[key] / terms(key[0]) for key in known.keys]
    return np.concatenate([mine, *rows])


def _by_time(view: View) -> dict[tuple[int, int], Array]:
    """What each peer said in each round; it says the same to all who hear it."""
    return {(message.clock, message.sender): message.row for message in view.foreign}


def _by_meeting(view: View, known: Knowledge) -> dict[tuple[int, int], Array]:
    """The k-th message between two peers belongs to their k-th meeting, whatever the engine's clock counts."""
    waiting: dict[tuple[int, int], list[Received]] = {}
    for message in view.foreign:
        waiting.setdefault((message.receiver, message.sender), []).append(message)
    told = {}
    for (number, sender), receiver in zip(known.keys, known.receivers or (), strict=True):
        if waiting.get((receiver, sender)):
            told[number, sender] = waiting[receiver, sender].pop(0).row
    left = [message for messages in waiting.values() for message in messages]
    return {**told, **{(-1 - k, message.sender): message.row for k, message in enumerate(left)}}
