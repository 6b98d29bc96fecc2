"""Gossip gradient descent on any graph: every round but the last is charged like local DP
(gossip:MUF-9).

    m(u -> V) = (T - 1) + m_ex(u -> V after the exchanges of the last round)

Reveal all noisy inputs of the first T - 1 rounds: that costs T - 1 units, and afterwards every
state is known, so the gradients of the last round are fixed for all others and its view is that of
plain averaging (gossip:MUF-2). Adaptive, any loss, full batches or sampled. On a graph whose rounds
end in exact consensus `consensus` says less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.domains import counts
from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem


@dataclass(frozen=True)
class LastRound(Theorem):
    """`mixing` exchanges follow each gradient; `plain` says that they mix without acceleration."""

    mixing: int
    plain: bool
    title: ClassVar[str] = "local DP for all rounds but the last, whose view is that of averaging"
    spec: ClassVar[str] = "gossip:MUF-9, MUF-2"
    about: tuple[str, ...] = field(default=("gossip-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        rounds, first = self._rounds(facts)
        if int(facts.releases().max(initial=0)) > rounds or facts.steps - first > self.mixing:
            raise PrivacyError(
                "some peer released more than once between two rounds; that is not this protocol"
            )
        if not self.plain and facts.fixed_graph() is None:
            raise PrivacyError(
                "accelerated gossip says more than plain gossip when the graph changes or links "
                "fail, and the exact"
                " loss of that is not known; use gamma = 1, or seen_by='everybody' (local DP)"
            )
        return (
            Hypothesis(
                f"the first {max(rounds - 1, 0)} of {rounds} rounds are charged 1 each",
                checked=True,
            ),
            Hypothesis(
                "the models peers start from are public, or charged to an earlier protocol",
                checked=True,
            ),
            Hypothesis("gradients are clipped before the noise", checked=True),
            *STANDING,
        )

    def _rounds(self, facts: Facts) -> tuple[int, int]:
        """How many rounds released a gradient, and the first exchange of the last of them."""
        blocks = np.unique(facts.ledger.column("clock")[facts.data_lines()]) // self.mixing
        return len(blocks), int(blocks[-1]) * self.mixing if len(blocks) else facts.steps

    def rounding(self, facts: Facts) -> float:
        return facts.mixed_rounding(facts.n * facts.steps)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.exact import leverage, sequence_loss

        rounds, first = self._rounds(facts)
        if rounds == 0:
            return np.zeros(facts.n)
        graph, left = facts.fixed_graph(), facts.steps - first
        if graph is not None:
            return rounds - 1 + leverage(graph, observers, left).loss
        return (
            rounds - 1 + sequence_loss(lambda t: facts.at(first + t), facts.n, left, observers).loss
        )

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        rounds, first = self._rounds(facts)
        if graph is None or rounds == 0:
            return super().matrix(facts, progress)
        from bruit.privacy.exact import pairwise

        return rounds - 1 + pairwise(graph, facts.steps - first, progress=progress).m

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "a butterfly graph with mixing equal to its number of digits: every round then ends in "
            "consensus",
        )
