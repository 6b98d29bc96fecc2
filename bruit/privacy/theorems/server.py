"""Rounds around a server: it hears everybody's noisy answer, all others only the weighted mean
(perso:FL-2, GOPA-3).

    of u, seen by V without the server:   m = sum over rounds u took part in of  s_u^2 / sum over h of s_h^2
    with the server:                      m = rounds u took part in * own^2 theta_u    (1 without canceling noise)

h runs over the participants of the round that are not in V, u included: what the observers can
subtract is their own. Rounds compose adaptively: given the models told so far, which V sees, the
next answers are fixed up to fresh noise.
Hypotheses: one clipped release with Gaussian noise per participation; the server tells nothing but
models; no answer got lost (a lost one takes its noise with it); shares and participants are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.domains import nonnegative, positive, whole
from bruit.errors import PrivacyError
from bruit.privacy.events import Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem
from bruit.privacy.theorems.gopa import CLOSED, thetas


@dataclass(frozen=True)
class ServerRounds(Theorem):
    """`shares` are the public weights of the mean, equal if None; `ratio` is canceling noise over
    own noise."""

    server: int
    shares: tuple[float, ...] | None = None
    ratio: float = 0.0
    title: ClassVar[str] = "composition of averaged rounds"
    spec: ClassVar[str] = "perso:FL-2"
    about: tuple[str, ...] = field(default=("fed-avg",), kw_only=True)

    def __post_init__(self) -> None:
        whole(self, "server", error=PrivacyError)
        positive(self, "shares", error=PrivacyError)
        nonnegative(self, "ratio", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        if facts.fixed_graph() is None:
            raise PrivacyError(
                "some answer to the server may be missing, and its noise with it;"
                " nothing is claimed about the mean of the others"
            )
        pairs = np.stack((facts.ledger.column("peer"), facts.ledger.column("clock")))[
            :, facts.data_lines()
        ]
        if len(np.unique(pairs, axis=1).T) < pairs.shape[1]:
            raise PrivacyError(
                "some peer released more than once in a round; that is not this protocol"
            )
        if self.ratio:
            self._check_cover(facts)
        once = Hypothesis(
            "one clipped release with Gaussian noise per participation, and no answer got lost",
            True,
        )
        hypothesis = Hypothesis(
            "the server tells nothing but the mean of the answers, to everybody the same",
            checked=False,
        )
        return (once, hypothesis, *((CLOSED,) if self.ratio else ()), *STANDING)

    def _check_cover(self, facts: Facts) -> None:
        wanted = Mask(self.ratio * facts.sigma)
        places = [
            k
            for k, event in enumerate(facts.ledger.events)
            if isinstance(event, Mask) and event.sigma == wanted.sigma
        ]
        lacking = np.flatnonzero(facts.ledger.counts()[:, places].sum(axis=1) < facts.releases())
        if len(lacking):
            raise PrivacyError(
                f"peer {lacking[0]} released without canceling noise of sigma = {wanted.sigma:g}"
            )

    def rounding(self, facts: Facts) -> float:
        """Equal shares add whole numbers (fp:FP-2, FP-3); a weighted sum of hidden ones is not
        covered."""
        return facts.all_rounding() if self.shares is None else math.inf

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        releases = facts.releases().astype(np.float64)
        watching = np.isin(np.arange(facts.n), observers)
        if self.server in observers:
            graph, honest = facts.fixed_graph(), np.flatnonzero(~watching)
            if not self.ratio or graph is None or not len(honest):
                return releases
            return releases * np.nan_to_num(thetas(graph, 1.0, self.ratio, honest), nan=1.0)
        data = facts.data_lines()
        peer, clock = facts.ledger.column("peer")[data], facts.ledger.column("clock")[data]
        energy = np.ones(facts.n) if self.shares is None else np.array(self.shares) ** 2
        places = np.unique(clock, return_inverse=True)[1].ravel()
        hiding = np.bincount(places, np.where(watching[peer], 0.0, energy[peer]))
        total = np.bincount(
            peer, energy[peer] / np.where(watching[peer], energy[peer], hiding[places]), facts.n
        )
        return np.asarray(total, np.float64)

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        own = "and the observers' own values and noise"
        rounds = facts.steps // 2
        if self.server not in observers:
            return f"the models the server told in {rounds} rounds, {own}"
        return f"{'masked ' if self.ratio else ''}answers of all participants in {rounds} rounds, {own}"

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        if self.server in observers and not self.ratio:
            return (
                "canceling noise between neighbors (ratio), so that the server learns hardly more "
                "than the sum",
            )
        return ("fewer rounds", "more participants in each round")
