"""Exact loss of gossip averaging, plain or accelerated, on a fixed or changing graph.

The view of v is K_v z with z the noisy inputs, own noise included; its divergence is exactly
    m(u -> v) = || projection of e_u on the row space of K_v ||^2          (gossip:LG-1, MUF-2, MUF-10)
with rows e_v and the linear forms of all messages v received. It is 1 exactly when v can compute
u's noisy input. Fixed graphs use certified block Lanczos, changing graphs and dropouts the rows
actually applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.theorem import STANDING, Facts, Theorem, one_release
from bruit.privacy.theorems.consensus import agreed

if TYPE_CHECKING:
    from bruit.privacy.exact import Leverage


UNEQUAL = (
    "the links have weights of different sizes: that breaks symmetries, and plain gossip on them tends"
    " to expose more peers than with equal ones (gossip:MUF-X5)"
)


def _unequal(graph: Graph) -> bool:
    """Whether two links have different weights."""
    ends = graph.edges()
    weights = np.asarray(graph.weights[ends[:, 0], ends[:, 1]]).ravel()
    return bool(len(weights) and np.ptp(weights) > 1e-12)


@dataclass(frozen=True)
class ExactGossip(Theorem):
    """Rounds of linear mixing after one noisy release per peer; equality, not only a bound.

    `accelerated` mixing sends other rows of the same space, which is a fact of one fixed graph
    only.
    """

    accelerated: bool = False
    title: ClassVar[str] = "the exact loss of linear gossip"
    spec: ClassVar[str] = "gossip:MUF-2"
    about: tuple[str, ...] = field(default=("averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        once = one_release(facts)
        if not self.accelerated:
            return (once, *STANDING)
        if facts.fixed_graph() is None:
            raise PrivacyError(
                "accelerated gossip says more than plain gossip when the graph changes or links "
                "fail, and the exact"
                " loss of that is not known; use plain averaging, or seen_by='everybody' (local DP)"
            )
        return (
            once,
            Hypothesis("the graph was the same in every round and no link failed", checked=True),
            *STANDING,
        )

    def rounding(self, facts: Facts) -> float:
        return facts.mixed_rounding(facts.n * facts.steps)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return self._losses_of_view(facts, observers).loss.copy()

    def _losses_of_view(self, facts: Facts, observers: tuple[int, ...]) -> Leverage:
        from bruit.privacy.exact import leverage, sequence_loss

        def find() -> Leverage:
            graph = facts.fixed_graph()
            if graph is not None:
                return leverage(graph, observers, facts.steps)
            return sequence_loss(facts.at, facts.n, facts.steps, observers)

        return facts.once((type(self), observers), find)

    def joint(self, facts: Facts, members: tuple[int, ...], observers: tuple[int, ...]) -> float:
        from bruit.privacy.exact import group_loss, sequence_rows
        from bruit.privacy.theorems.group import joint_loss

        graph = facts.fixed_graph()
        if graph is not None:
            return min(group_loss(graph, observers, facts.steps, members), float(len(members)))
        return joint_loss(sequence_rows(facts.at, facts.n, facts.steps, observers), members)

    def sharp(self, facts: Facts) -> bool:
        return True

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        found = self._losses_of_view(facts, observers)
        graph = facts.fixed_graph()
        unequal = graph is not None and graph.exponents is not None and _unequal(graph)
        return (f"{found.status}: {found.certificate}", *((UNEQUAL,) if unequal else ()))

    def ends_known(self, facts: Facts) -> bool:
        return not self.accelerated and agreed(facts, 0, facts.steps)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        other = (
            ()
            if facts.fixed_graph() is None
            else (
                "a butterfly of exchanges, in which a pair loses 1/2^b of a unit "
                "(butterfly-muffliato)",
            )
        )
        return (
            "fresh noise on every message (renoised), which makes the loss fall with distance",
            *other,
            "fewer rounds, while the loss is still below one unit",
        )

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        if graph is None:
            return super().matrix(facts, progress)
        from bruit.privacy.exact import pairwise

        return pairwise(graph, facts.steps, progress=progress).m


@dataclass(frozen=True)
class PublishedGossip(Theorem):
    """The printed pairwise formula: it adds losses of messages that share noise and is NOT a bound
    (gossip:MUF-1)."""

    title: ClassVar[str] = "the printed pairwise formula of Muffliato, which is not a guarantee"
    spec: ClassVar[str] = "gossip:MUF-1"
    status: ClassVar[Status] = "published"
    about: tuple[str, ...] = field(default=("averaging", "chebyshev"), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.theorems.published import published_losses

        return published_losses(facts.at, facts.n, facts.steps, observers)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("not a guarantee: on a path of 3 it says 1/3 where the truth is 1",)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        from bruit.privacy.theorems.published import published_pairwise

        graph = facts.fixed_graph()
        return (
            super().matrix(facts, progress)
            if graph is None
            else published_pairwise(graph, facts.steps)
        )
