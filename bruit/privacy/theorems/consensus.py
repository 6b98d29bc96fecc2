"""Gossip gradient descent whose rounds end in exact consensus: adaptive, proven (gossip:MUF-9
`consensus`, MUF-X2).

After a round of exact consensus every peer holds the same public model, so the next gradients of
others are fixed given the view, and rounds compose:   m(u -> v) = sum over rounds of m_t(u -> v). A
round of mixing that did not end in exact consensus is charged m_t = 1: reveal all its noisy inputs.
The last round is an exception. All before it is public by then and nothing is computed from it, so
its view is that of averaging (gossip:MUF-2), however few its exchanges. In a butterfly round m_t =
1 / prod_{j < i} r_j with i the highest digit in which the labels of u and v differ; the relabelling
of each round is public, so the *realized* sum is the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import counts
from bruit.errors import PrivacyError
from bruit.graphs import Complete, Graph
from bruit.graphs.sequence import Butterfly
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem


@dataclass(frozen=True)
class ExactConsensus(Theorem):
    """`mixing` exchanges follow each gradient; `plain` says that they mix without acceleration."""

    mixing: int
    plain: bool
    title: ClassVar[str] = "composition of exact-consensus rounds"
    spec: ClassVar[str] = "gossip:MUF-9 consensus, MUF-X2"
    about: tuple[str, ...] = field(default=("gossip-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        blocks = self._blocks(facts)
        if int(facts.releases().max(initial=0)) > len(blocks) or len(np.unique(blocks)) < len(
            blocks
        ):
            raise PrivacyError(
                "some peer released more than once between two rounds; that is not this protocol"
            )
        if not any(self._agrees(facts, block) for block in blocks):
            raise PrivacyError(
                "no round ends in exact consensus on this graph, so each of them is charged like"
                " local DP; use a butterfly graph with mixing equal to its number of digits"
            )
        whole = sum(self._agrees(facts, block) for block in blocks)
        ends = self._agrees(facts, blocks[-1]) or not self._hides(facts)
        exception = "" if ends else ", but for the last one, whose view is that of averaging"
        return (
            Hypothesis(
                f"{whole} of {len(blocks)} rounds end in exact consensus, others are charged "
                f"1{exception}",
                True,
            ),
            Hypothesis(
                "the models peers start from are public, or charged to an earlier protocol",
                checked=True,
            ),
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

    def sharp(self, facts: Facts) -> bool:
        """Rounds whose inputs all become public are charged their exact loss; only a revealed one
        is charged more."""
        known = self._blocks(facts) if not self._hides(facts) else self._blocks(facts)[:-1]
        return self.plain and all(self._agrees(facts, int(block)) for block in known)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        butterfly = facts.butterfly(0, 0)
        fixed = butterfly is not None and butterfly.relabel is None
        labels = (
            ("fresh public labels every round (relabel), which spread the loss over pairs",)
            if fixed
            else ()
        )
        return (*labels, "fewer gradient rounds")

    def rounding(self, facts: Facts) -> float:
        """Rounds without consensus are revealed but for the last, if it has dithers or none of its
        sums is missing."""
        return facts.all_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        alone = observers[0] if len(observers) == 1 else None
        total = np.zeros(facts.n)
        for first, count in self._exchanges(facts):
            butterfly = self._digits(facts, first, count)
            if count == 0:
                total += 1.0
            elif butterfly is not None and alone is not None:
                total += digit_losses(butterfly, first, alone)[:, 0]
            else:
                total += _mixed(facts, first, count, observers)
        return total

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        """The same for every observer alone; butterfly rounds are read off their digits, all pairs
        at once."""
        m, rest = np.zeros((facts.n, facts.n)), []
        for first, count in self._exchanges(facts):
            butterfly = self._digits(facts, first, count)
            if count == 0:
                m += 1.0
            elif butterfly is not None:
                m += digit_losses(butterfly, first)
            else:
                rest.append((first, count))
        for v in range(facts.n if rest else 0):
            m[:, v] += sum(_mixed(facts, first, count, (v,)) for first, count in rest)
            if progress is not None:
                progress(v + 1, facts.n)
        np.fill_diagonal(m, np.nan)
        return m

    def _exchanges(self, facts: Facts) -> Iterator[tuple[int, int]]:
        """For every gradient its first exchange, and how many there are whose view is accounted; 0
        if it is revealed.

        The last ones need no consensus: nothing is computed from what they leave hidden. But whole
        sums hide values only if none is missing: with unequal coefficients nothing is proven of
        them (fp:FP-2)."""
        blocks = self._blocks(facts).tolist()
        for block in blocks:
            first, last = block * self.mixing, block == blocks[-1] and self._hides(facts)
            yield (
                first,
                min(self.mixing, facts.steps - first) if last or self._agrees(facts, block) else 0,
            )

    def _hides(self, facts: Facts) -> bool:
        """Whether the last round may be accounted as averaging, however it ended."""
        first = int(self._blocks(facts)[-1]) * self.mixing
        return self.plain and not (facts.sums and facts.failed(first, self.mixing))

    def _digits(self, facts: Facts, first: int, count: int) -> Butterfly | None:
        """The butterfly of these exchanges, if they are whole rounds of it."""
        butterfly = facts.butterfly(first, count)
        return butterfly if count and agreed(facts, first, count) else None


def agreed(facts: Facts, first: int, exchanges: int) -> bool:
    """Whether so many exchanges from `first` on are exact consensus, in exact arithmetic and
    without a fault."""
    if exchanges < 1 or first + exchanges > facts.steps:
        return False
    if facts.failed(first, exchanges):
        return False
    butterfly = facts.butterfly(first, exchanges)
    if butterfly is not None:
        digits = max(1, len(butterfly.radices))  # one peer has no digits, and agrees with itself
        return first % digits == 0 and exchanges % digits == 0
    return is_uniform(facts.at(first))


def _mixed(facts: Facts, first: int, exchanges: int, observers: tuple[int, ...]) -> Array:
    """The exact loss of one gradient in the view of so many exchanges (gossip:MUF-2)  # (n,)."""
    from bruit.privacy.exact import sequence_loss

    return sequence_loss(_after(facts, first), facts.n, exchanges, observers).loss


def _after(facts: Facts, first: int) -> Callable[[int], Graph]:
    """The rounds of one block, counted from its first."""
    return lambda number: facts.at(first + number)


def digit_losses(graph: Butterfly, number: int, observer: int | None = None) -> Array:
    """m of one butterfly block, from the highest digit in which the labels differ: for all pairs,
    or in the view of one observer  # (n, n) or (n, 1)."""
    labels, size = graph.labels(number), 1
    watching = labels if observer is None else labels[[observer]]
    losses = np.ones((graph.n, len(watching)))
    for radix in graph.radices:
        differ = (labels[:, None] // size) % radix != (watching[None, :] // size) % radix
        losses[differ] = 1.0 / size
        size *= radix
    return losses


def is_uniform(graph: Graph) -> bool:
    """Whether one exchange is already exact consensus: all weights equal 1/n, in exact
    arithmetic."""
    if isinstance(graph, Complete):
        return graph.alike
    prime = 2**31 - 1
    full = len(graph.weights.data) == graph.n * graph.n
    return full and bool(np.all(graph.residues(prime) == pow(graph.n, -1, prime)))
