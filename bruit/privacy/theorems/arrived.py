"""Releases that arrived: what was released but never reached the observers, over no chain of
messages, costs nothing.

A peer that wakes reads data, updates its model and tells all neighbors at once. A release of u at
its k-th wake-up is in the view of V only if some chain of wake-ups leads there: a neighbor of u is
in V, or wakes later and has a neighbor in V, and so on. The order of wake-ups never depends on data
and the observers are assumed to know it, so all other releases are independent of the view, given
those that arrived: u pays for the ones that did, as local DP composes them. In another component of
the graph nothing ever arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem

KNOWN = Hypothesis(
    "the observers know who woke when; the wake-ups did not depend on the data", checked=False
)
IN_ORDER = Hypothesis(
    "wake-ups are in the order in which they happened; messages may be late", checked=False
)
ONE_NOISE = Hypothesis(
    "Gaussian releases at wake-ups, all with the same noise multiplier", checked=True
)


@dataclass(frozen=True)
class Arrived(Theorem):
    """The composition of the releases that reached the observers, given the order of wake-ups."""

    title: ClassVar[str] = (
        "composition of the releases that reached the observers, given the wake-ups"
    )
    spec: ClassVar[str] = "perso:PERSO-9"
    about: tuple[str, ...] = field(default=("model-propagation", "personalized"), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        if facts.fixed_graph() is None:
            raise PrivacyError(
                "releases are followed over one fixed graph without failures; local DP holds"
            )
        if np.any(facts.meetings.a != facts.meetings.b):
            raise PrivacyError(
                "releases are followed from wake-up to wake-up, found meetings of two; local DP "
                "holds"
            )
        woken = np.bincount(facts.meetings.a, minlength=facts.n)
        lines = facts.data_lines()
        peers, steps = facts.ledger.column("peer")[lines], facts.ledger.column("step")[lines]
        if np.any(steps > woken[peers]):
            raise PrivacyError(
                "the ledger holds a release after the last wake-up of its peer; local DP holds"
            )
        facts.noise_multiplier()
        return (ONE_NOISE, KNOWN, IN_ORDER, *STANDING)

    def rounding(self, facts: Facts) -> Array:
        return facts.own_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        """How many releases of every peer arrived, each the loss 1  # (n,)."""
        lines = np.flatnonzero(facts.data_lines() & self._arrived(facts, observers))
        return np.bincount(facts.ledger.column("peer")[lines], minlength=facts.n).astype(np.float64)

    def _arrived(self, facts: Facts, observers: tuple[int, ...]) -> Bools:
        """Which ledger lines reached the observers  # (lines,)."""
        graph = facts.fixed_graph()
        if graph is None:
            raise PrivacyError("releases are followed over one fixed graph without failures")
        last = last_told(graph, facts.meetings.a, observers)
        return np.asarray(facts.ledger.column("step") <= last[facts.ledger.column("peer")])

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        lines = facts.data_lines()
        releases = int((lines & self._arrived(facts, observers)).sum())
        return (
            f"{releases} of {int(lines.sum())} releases reached them; another order of wake-ups has "
            f"another loss",
        )


def last_told(graph: Graph, woken: Ints, observers: tuple[int, ...]) -> Ints:
    """The last wake-up of every peer, by its own count, whose message led to the observers; -1 if
    not even its first.

    Before its first wake-up (0) a peer has told its neighbors the model it began with. Backward in
    time: what reaches y after this moment is seen; so a wake-up of x with such a neighbor is seen,
    and what x knew before it is, too.
    """
    seen, left = np.zeros(graph.n, bool), np.bincount(woken, minlength=graph.n)
    seen[list(observers)] = True
    last = np.where(seen, left, -1)
    indptr, indices = graph.weights.indptr, graph.weights.indices
    for x in woken[::-1].tolist():
        if last[x] < 0 and seen[indices[indptr[x] : indptr[x + 1]]].any():
            last[x], seen[x] = left[x], True
        left[x] -= 1
    for x in np.flatnonzero(last < 0).tolist():
        if seen[indices[indptr[x] : indptr[x + 1]]].any():
            last[x] = 0
    return last
