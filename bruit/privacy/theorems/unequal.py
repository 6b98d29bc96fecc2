"""Exact loss of linear gossip when peers add noise of different sizes (silo:SILO-8).

    mu(u -> V)^2 = (Delta / s_u)^2 l_u,    l_u = || projection of e_u on row(K_V diag(s)) ||^2

The sizes are public, and no ledger line says less. Losses are told in units of the
largest noise, that is l_u (max s / s_u)^2: a release of a peer with little noise costs more than
one unit. Whoever adds more noise protects itself and others: K (K S K^T)^+ K^T falls as S grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.events import GaussianEvent
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem, released_before
from bruit.privacy.theorems.gossip import ExactGossip
from bruit.privacy.theorems.meetings import KNOWN, ExactMeetings

if TYPE_CHECKING:
    from bruit.privacy.exact import KnownRows, Leverage

SAME = 1e-12  # how far a ledger line's multiplier may be from that of the agreed size: floats


def agreed_sizes(facts: Facts) -> Hypothesis:
    """One Gaussian release per peer, of the size that was agreed on for it or a larger one, which
    raises no loss; PrivacyError otherwise."""
    if not facts.deviations:
        raise PrivacyError(
            "it is about noise of different sizes, known to all, and here all peers add the same"
        )
    released_before(facts)
    lines = facts.data_lines()
    peers, kinds = facts.ledger.column("peer")[lines], facts.ledger.column("event")[lines]
    for peer, kind in zip(peers.tolist(), kinds.tolist(), strict=True):
        event, wanted = facts.ledger.events[kind], facts.deviations[peer] / (2 * facts.clip)
        told = event.noise_multiplier if isinstance(event, GaussianEvent) else 0.0
        if not told >= wanted * (1 - SAME):
            raise PrivacyError(
                f"peer {peer} agreed on a noise multiplier of {wanted:.6g}, and its ledger line"
                f" says {event}, which is less; what is proven is about the agreed sizes"
            )
    return Hypothesis(
        "one Gaussian release per peer, of the size agreed on for it or more, as the ledger says",
        checked=True,
    )


class _Sizes:
    """What every exact loss with unequal noise shares, told of known rows: the part of a theorem
    that does not know the schedule."""

    sizes: ClassVar[bool] = True

    def known(self, facts: Facts, observers: tuple[int, ...]) -> KnownRows:
        """The linear forms that these observers know."""
        from bruit.privacy.exact import sequence_rows

        return sequence_rows(facts.at, facts.n, facts.steps, observers)

    def unit(self, facts: Facts) -> float:
        return max(facts.deviations) / (2 * facts.clip)

    def view(self, facts: Facts, observers: tuple[int, ...]) -> Leverage:
        from bruit.privacy.exact import unequal_rows_loss

        return unequal_rows_loss(self.known(facts, observers), facts.deviations)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        found = facts.once((type(self), observers), lambda: self.view(facts, observers)).loss
        return found * (max(facts.deviations) / np.array(facts.deviations)) ** 2

    def joint(self, facts: Facts, members: tuple[int, ...], observers: tuple[int, ...]) -> float:
        from bruit.privacy.exact import unequal_joint

        return unequal_joint(self.known(facts, observers), facts.deviations, members)

    def sharp(self, facts: Facts) -> bool:
        return True

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "more noise at the peer that is exposed, or at its neighbors: both protect it",
            "sums within circles of full trust (`bruit plan --trust`)",
        )


@dataclass(frozen=True)
class UnequalGossip(_Sizes, ExactGossip):
    """Rounds of linear mixing after one release per peer, of the peer's own size: an equality."""

    title: ClassVar[str] = "the exact loss of linear gossip with noise of different sizes"
    spec: ClassVar[str] = "silo:SILO-8"
    about: tuple[str, ...] = field(default=("averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        agreed = agreed_sizes(facts)
        if self.accelerated and facts.fixed_graph() is None:
            raise PrivacyError(
                "accelerated gossip says more than plain gossip when the graph changes or links"
                " fail, and the exact loss of that is not known; use plain averaging"
            )
        return (agreed, *STANDING)

    def view(self, facts: Facts, observers: tuple[int, ...]) -> Leverage:
        from bruit.privacy.exact import unequal_loss

        graph = facts.fixed_graph()
        if graph is None:
            return super().view(facts, observers)
        return unequal_loss(graph, observers, facts.steps, facts.deviations)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        found = facts.once((type(self), observers), lambda: self.view(facts, observers))
        least, most = min(facts.deviations), max(facts.deviations)
        return (
            f"{found.status}: {found.certificate}",
            f"noise of sigma {least:g} to {most:g}; losses are in units of the largest",
        )

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        return Theorem.matrix(self, facts, progress)


@dataclass(frozen=True)
class UnequalMeetings(_Sizes, ExactMeetings):
    """Pair averaging after one release per peer, of the peer's own size, given the meetings."""

    title: ClassVar[str] = "the exact loss of pair averaging with noise of different sizes"
    spec: ClassVar[str] = "silo:SILO-8"
    about: tuple[str, ...] = field(default=("pair-averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (agreed_sizes(facts), KNOWN, *STANDING)

    def known(self, facts: Facts, observers: tuple[int, ...]) -> KnownRows:
        from bruit.privacy.exact import meeting_rows

        return meeting_rows(facts.n, facts.meetings.a, facts.meetings.b, observers)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        return Theorem.matrix(self, facts, progress)
