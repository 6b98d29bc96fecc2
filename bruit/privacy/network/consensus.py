"""Gossip gradient descent whose rounds end in exact consensus: adaptive, proven (gossip:MUF-9 `consensus`, MUF-X2).

After a round of exact consensus every peer holds the same public model, so the next gradients of others are fixed
given the view, and rounds compose:   m(u -> v) = sum over rounds of m_t(u -> v).
A round of mixing that did not end in exact consensus is charged m_t = 1 (reveal all its noisy inputs). In a butterfly
round m_t = 1 / prod_{j < i} r_j with i the highest digit in which the labels of u and v differ; the relabelling of
each round is public, so the *realized* sum is the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import counts
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.graphs.sequence import Butterfly
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.network.theorem import STANDING, Facts, Theorem


@dataclass(frozen=True)
class Consensus(Theorem):
    """`mixing` exchanges follow each gradient; `plain` says that they mix without acceleration."""

    mixing: int
    plain: bool
    title: ClassVar[str] = "composition of exact-consensus rounds"
    spec: ClassVar[str] = "gossip:MUF-9 consensus, MUF-X2"

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)

    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        blocks = self._blocks(facts)
        if int(facts.releases().max(initial=0)) > len(blocks) or len(np.unique(blocks)) < len(blocks):
            raise PrivacyError("some peer released more than once between two rounds; that is not this protocol")
        if not any(self._agrees(facts, block) for block in blocks):
            raise PrivacyError(
                "no round ends in exact consensus on this graph, so each of them is charged like local DP;"
                " use a butterfly graph with mixing equal to its number of digits"
            )
        whole = sum(self._agrees(facts, block) for block in blocks)
        return (
            Hypothesis(f"{whole} of {len(blocks)} rounds end in exact consensus, others are charged 1", checked=True),
            Hypothesis("the models peers start from are public, or charged to an earlier protocol", checked=True),
            Hypothesis("gradients are clipped before the noise", checked=True),
            *STANDING,
        )

    def _blocks(self, facts: Facts) -> Ints:
        """Rounds in which a gradient was released: one block of `mixing` exchanges each."""
        return np.unique(facts.ledger.column("clock")[facts.data_lines()]) // self.mixing

    def _agrees(self, facts: Facts, block: int) -> bool:
        return self.plain and agreed(facts, int(block) * self.mixing, self.mixing)

    def ends_known(self, facts: Facts) -> bool:
        blocks = self._blocks(facts)
        last = facts.steps // self.mixing - 1
        return facts.steps % self.mixing == 0 and last in blocks and self._agrees(facts, last)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        fixed = isinstance(facts.graph, Butterfly) and facts.graph.relabel is None
        labels = ("fresh public labels every round (relabel), which spread the loss over pairs",) if fixed else ()
        return (*labels, "fewer gradient rounds")

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.network.rows import sequence_loss

        total = np.zeros(facts.n)
        for block in self._blocks(facts):
            if not self._agrees(facts, int(block)):
                total += 1.0
            elif isinstance(facts.graph, Butterfly) and len(observers) == 1:
                total += digit_losses(facts.graph, int(block) * self.mixing)[:, observers[0]]
            else:
                first = int(block) * self.mixing
                total += sequence_loss(_after(facts, first), facts.n, self.mixing, observers).loss
        return total

    def matrix(self, facts: Facts, progress: object = None) -> Array:
        if not isinstance(facts.graph, Butterfly):
            return super().matrix(facts)
        m = np.zeros((facts.n, facts.n))
        for block in self._blocks(facts):
            m += digit_losses(facts.graph, int(block) * self.mixing) if self._agrees(facts, int(block)) else 1.0
        np.fill_diagonal(m, np.nan)
        return m


def agreed(facts: Facts, first: int, exchanges: int) -> bool:
    """Whether so many exchanges from `first` on are exact consensus, in exact arithmetic and without a fault."""
    if exchanges < 1 or first + exchanges > facts.steps:
        return False
    if np.any((facts.faults.round >= first) & (facts.faults.round < first + exchanges)):
        return False
    if isinstance(facts.graph, Butterfly):
        digits = len(facts.graph.radices)
        return first % digits == 0 and exchanges % digits == 0
    return is_uniform(facts.graph if isinstance(facts.graph, Graph) else facts.graph.at(first))


def _after(facts: Facts, first: int) -> Callable[[int], Graph]:
    """The rounds of one block, counted from its first."""
    return lambda number: facts.at(first + number)


def digit_losses(graph: Butterfly, number: int) -> Array:
    """m of one butterfly block for all pairs, from the highest digit in which the labels differ  # (n, n)."""
    labels, size = graph.labels(number), 1
    losses = np.ones((graph.n, graph.n))
    for radix in graph.radices:
        differ = (labels[:, None] // size) % radix != (labels[None, :] // size) % radix
        losses[differ] = 1.0 / size
        size *= radix
    return losses


def is_uniform(graph: Graph) -> bool:
    """Whether one exchange is already exact consensus: all weights equal 1/n, in exact arithmetic."""
    prime = 2**31 - 1
    full = len(graph.weights.data) == graph.n * graph.n
    return full and bool(np.all(graph.residues(prime) == pow(graph.n, -1, prime)))
