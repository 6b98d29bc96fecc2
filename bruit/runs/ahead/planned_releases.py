"""How often a real peer releases: the number that its noise is made for, and how sure it is that
nobody needs more.

A simulation knows the walk that it will run, and counts. Real peers draw walks, clocks and
participants when they run, so that a count of one draw is no limit. Here the number holds with a
stated probability over these draws (`bruit.algorithms.turns`). Whatever happens, the budget at the
door is what holds: after it the data stays at home.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.turns import SURE, enough
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.events import Event, GaussianEvent, LaplaceEvent, SampledGaussianEvent
from bruit.privacy.ledger import Ledger
from bruit.runs.run import rehearse

TRIED = 32  # hops or units of time after which an algorithm has read whatever it reads in one turn
COUNTED = 2048  # rounds that are counted one by one; a longer run goes on as their last half does


@dataclass(frozen=True)
class PlannedReleases:
    """At most so many releases of one peer, with this probability (1.0: always); `law` says what is
    random.

    `until` is the last position of the schedule at which anybody reads data: 0 if that is the
    beginning, infinite where it is not known before the run."""

    most: int
    sure: float
    law: str = ""
    until: float = math.inf

    @property
    def fixed(self) -> bool:
        return self.sure >= 1.0

    def words(self) -> str:
        """For the operator: how many releases, and how sure that is."""
        count = "once" if self.most == 1 else f"{self.most} times"
        if self.fixed:
            return f"each peer releases data at most {count}"
        return f"each peer releases data at most {count}, with probability {self.sure:g} or more over {self.law}"

    def promise(self) -> str:
        """The same where an epsilon was agreed on: what the noise is made for, and what happens
        beyond."""
        if self.fixed:
            return f"{self.words()}, which the noise is made for"
        return (
            f"{self.words()}, which the noise is made for; one that needs more goes on with the"
            " full noise and without its data"
        )


def planned_releases(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    seed: int = 0,
    sure: float = SURE,
) -> PlannedReleases:
    """How often the busiest peer releases, for a run whose draws nobody knows yet.

    What one turn releases is found by running the algorithm on blank data, unless it says how many
    releases so many turns hold (`released`); how many turns there are, by the law of its schedule.
    Rounds are counted, under two seeds; where these differ and no law is known, every round is
    charged. A peer asks this at every start, so a long run is not gone through: COUNTED rounds of
    it are, and if their last half repeats itself, so does the rest.
    """
    turns = algorithm.turns(graph, steps)
    rounds = algorithm.schedule.synchronous

    def ledger_of(tried: int, drawn: int = seed) -> Ledger:
        return rehearse(algorithm, graph, None, tried, drawn).ledger

    if rounds:
        tried = min(steps, COUNTED)
    else:
        tried = min(steps, turns.begin + TRIED + (0 if turns.end is None else steps - turns.end))
    ledger = ledger_of(tried)
    if rounds and _counted(ledger, tried, steps) is None:
        tried, ledger = steps, ledger_of(steps)
    first, later = _in_one_turn(ledger)
    if not later:
        return PlannedReleases(max(1, first), 1.0, until=0.0)

    def most(of_turns: int) -> int:
        told = algorithm.released(of_turns)
        return max(1, first + later * of_turns if told is None else told)

    known = enough(algorithm.schedule, graph, steps, turns, sure)
    if known is not None:
        until = float(steps) if rounds else math.inf
        return PlannedReleases(most(known.turns), known.sure, known.law, until)
    if not rounds:
        return PlannedReleases(most(algorithm.schedule.most_turns(steps)), 1.0)
    counted = _counted(ledger, tried, steps)
    if counted is None or counted != _counted(ledger_of(tried, seed + 1), tried, steps):
        return PlannedReleases(first + later * steps, 1.0, until=float(steps))
    return PlannedReleases(max(1, counted[0]), 1.0, until=float(counted[1]))


def _counted(ledger: Ledger, tried: int, steps: int) -> tuple[int, int] | None:
    """Releases of the busiest peer in all rounds, and the last round with one. `ledger` is that of
    the first `tried` rounds; None if there are more, and these do not tell what follows.

    They do if their last half repeats a pattern four times or more, and that pattern has releases.
    """
    data = ledger.is_data()[ledger.column("event")]
    clock, peer = ledger.column("clock")[data], ledger.column("peer")[data]
    known = max(tried, int(clock.max(initial=0)) + 1)  # after the last round there may be one more
    found = np.zeros((known, ledger.peers), np.int64)  # (rounds, peers)
    np.add.at(found, (clock, peer), 1)
    if tried == steps:
        return int(found.sum(axis=0).max(initial=0)), int(clock.max(initial=0))
    half = found[known // 2 :]
    periods = range(1, len(half) // 4 + 1)
    period = next((p for p in periods if np.array_equal(half[p:], half[:-p])), 0)
    if not period or not half.any():
        return None
    rest = np.arange(steps - tried) % period  # places in the pattern of the rounds to come
    pattern = half[-period:]
    counts = found.sum(axis=0) + np.bincount(rest, minlength=period) @ pattern
    last = np.flatnonzero((pattern.sum(axis=1) > 0)[rest])
    return int(counts.max()), int(known + last[-1] if last.size else clock.max())


def _in_one_turn(ledger: Ledger) -> tuple[int, int]:
    """How many releases a peer makes at most before it hears anything, and in one step after
    that."""
    data = ledger.is_data()[ledger.column("event")]
    peer, step = ledger.column("peer")[data], ledger.column("step")[data]
    places, count = np.unique(np.stack((peer, step)), axis=1, return_counts=True)
    first, later = count[places[1] == 0], count[places[1] > 0]
    return int(first.max(initial=0)), int(later.max(initial=0))


def planned_loss(planned: PlannedReleases, ledger: Ledger, one: Event) -> float:
    """What the planned releases cost together, in units of `one`, a release with all of the noise:
    one that carries a share s of Gaussian noise costs 1 / s**2, of Laplace noise 1 / s. `ledger` is that of a rehearsal
    with such noise."""
    weights, counts = np.array([_weight(event, one) for event in ledger.events]), ledger.counts()
    busiest = int(counts[:, weights > 0].sum(axis=1).max(initial=0))
    if busiest == planned.most:
        return float((counts @ weights).max(initial=1.0))
    return planned.most * float(weights.max(initial=1.0))


def _weight(event: Event, one: Event) -> float:
    """0 for what is no release with noise of its own: of that no budget can be kept."""
    event, one = event.promised(), one.promised()
    if isinstance(event, SampledGaussianEvent) and isinstance(one, SampledGaussianEvent):
        same = (event.rate, event.noise_multiplier) == (one.rate, one.noise_multiplier)
        return 1.0 if same else 0.0
    if (
        isinstance(event, GaussianEvent)
        and isinstance(one, GaussianEvent)
        and event.noise_multiplier
    ):
        return (one.noise_multiplier / event.noise_multiplier) ** 2
    if isinstance(event, LaplaceEvent) and isinstance(one, LaplaceEvent):
        return one.noise_multiplier / event.noise_multiplier
    return 0.0
