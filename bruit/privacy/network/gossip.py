"""Exact loss of gossip averaging, plain or accelerated, on a fixed or changing graph.

The view of v is K_v z with z the noisy inputs, own noise included; its divergence is exactly
    m(u -> v) = || projection of e_u on the row space of K_v ||^2          (gossip:LG-1, MUF-2, MUF-10)
with rows e_v and the linear forms of all messages v received. It is 1 exactly when v can compute u's noisy input.
Fixed graphs use certified block Lanczos, changing graphs and dropouts the rows actually applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from bruit.arrays import Array
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.network.krylov import Leverage, leverage
from bruit.privacy.network.pairwise import pairwise
from bruit.privacy.network.published import published_pairwise, published_rows
from bruit.privacy.network.rows import sequence_rows, stacked_loss
from bruit.privacy.network.theorem import STANDING, Facts, Theorem, one_release


@dataclass(frozen=True)
class ExactGossip(Theorem):
    """Rounds of linear mixing after one noisy release per peer; equality, not only a bound."""

    title: ClassVar[str] = "the exact loss of linear gossip"
    spec: ClassVar[str] = "gossip:MUF-2"

    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return self._found(facts, observers).loss

    def _found(self, facts: Facts, observers: tuple[int, ...]) -> Leverage:
        graph = facts.fixed_graph()
        if graph is not None:
            return leverage(graph, observers, facts.steps)
        rows = sequence_rows(facts.at, facts.n, facts.steps, observers)
        return stacked_loss(rows.values, rows.modulo)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        found = self._found(facts, observers)
        return (f"{found.status}: rank {found.rank}; {found.certificate.note}",)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        if graph is None:
            return super().matrix(facts, progress)
        return pairwise(graph, facts.steps, progress=progress).m


@dataclass(frozen=True)
class PublishedGossip(Theorem):
    """The printed pairwise formula: it adds losses of messages that share noise and is NOT a bound (gossip:MUF-1)."""

    title: ClassVar[str] = "the printed pairwise formula of Muffliato, which is not a guarantee"
    spec: ClassVar[str] = "gossip:MUF-1"
    status: ClassVar[Status] = "published"

    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return published_rows(sequence_rows(facts.at, facts.n, facts.steps, observers).messages)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("not a guarantee: on a path of 3 it says 1/3 where the truth is 1",)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        return super().matrix(facts, progress) if graph is None else published_pairwise(graph, facts.steps)
