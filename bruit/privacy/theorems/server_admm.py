"""Federated ADMM in the view of everybody but its server, who tells nothing but models (walk:ADMM-V3,
ADMM-V4).

K models, h = members that are neither u nor observers, g = max(1, l / (1 - l)): a dual of u, given
the models, moves by at most 2 g gamma L when its records change.

    noise of the peers, all take part (V3):   m = K h ((1 + g) / h)^2, at most K                      4 K / h, l <= 1/2
    noise of the server (V4):                 m = K, the noise of the mean being g gamma sigma / members

V3: the other members' noises move against the change of u, so that all models stay the same; since
(I - prox) and the clip are non-expansive, each moves by (1 + g) / h sensitivities a round, in real
numbers (ideal). V4: given the models so far the mean moves by 2 g gamma L / members, whoever takes
part and whatever message is lost; nothing is asked of the losses, for the clip bounds every step.
The server sees noisy duals (local DP), or exact ones (no guarantee).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Bools
from bruit.domains import fraction, positive, whole
from bruit.errors import PrivacyError
from bruit.privacy.events import Exact, Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem

TOLD = Hypothesis("the server tells nothing but models, to everybody the same", checked=False)
CONVEX = Hypothesis(
    "losses are convex and proximal steps exact, so that others' steps never grow apart",
    checked=False,
)
TRUSTED = Hypothesis(
    "the server is trusted: it keeps the duals and adds fresh noise to each mean", checked=False
)


def growth(relaxation: float) -> float:
    """How far a dual moves at most when records change, in units of 2 gamma L: max(1, l / (1 -
    l))."""
    return 1.0 if relaxation <= 0.5 else relaxation / (1 - relaxation)


def mean_noise(members: int, gamma: float, sigma: float, relaxation: float) -> float:
    """Noise on the mean of the duals for which one model costs what one release with noise sigma
    would (V4).

    >>> round(mean_noise(100, 0.5, 200.0, 0.5), 9)   # walk:ADMM-5, sigma_z = 1: multiplier n sigma_z / (2 gamma L)
    1.0
    """
    return growth(relaxation) * gamma * sigma / members


@dataclass(frozen=True)
class ModelsTold(Theorem):
    """Noise in the duals, full participation, only models told (V3); the server itself is charged
    as local DP."""

    server: int
    relaxation: float = 0.5
    title: ClassVar[str] = "models of consensus ADMM told by a server (V3)"
    spec: ClassVar[str] = "walk:ADMM-V3"
    about: tuple[str, ...] = field(default=("federated-admm",), kw_only=True)

    def __post_init__(self) -> None:
        whole(self, "server", error=PrivacyError)
        fraction(self, "relaxation", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        if facts.fixed_graph() is None:
            raise PrivacyError(
                "some message to or from the server may be missing, and its noise with it; nothing is"
                " claimed about the models"
            )
        data, members = facts.data_lines(), len(facts.public.members)
        clocks, counts = np.unique(facts.ledger.column("clock")[data], return_counts=True)
        pairs = np.stack((facts.ledger.column("peer"), facts.ledger.column("clock")))[:, data]
        few = np.flatnonzero(counts != members)
        if len(few) or len(np.unique(pairs, axis=1).T) != pairs.shape[1]:
            found = (
                f"in round {clocks[few[0]]} {counts[few[0]]} did"
                if len(few)
                else "some released twice in a round"
            )
            raise PrivacyError(
                f"models hide a member only if all {members} take part once in every iteration; "
                f"{found}"
            )
        full = Hypothesis(
            "all members took part in every iteration with the same noise, and no message got lost",
            True,
        )
        return (full, TOLD, CONVEX, *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        releases = facts.releases().astype(np.float64)
        hiding = len(np.setdiff1d(facts.public.members, observers)) - 1
        if self.server in observers or hiding < 1 or self.relaxation == 1:
            return releases
        g = growth(self.relaxation)
        return releases * min(1.0, hiding * ((1 + g) / hiding) ** 2)

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        what = "duals of all members" if self.server in observers else "the models the server told"
        return f"{what} in {facts.steps // 2} iterations, and the observers' own values and noise"

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "fewer iterations",
            "more members",
            'noise = "server", if the server may be trusted with exact duals',
        )


@dataclass(frozen=True)
class NoisyModels(Theorem):
    """No noise in the duals; a trusted server adds noise to each mean (V4). Nothing protects from
    the server."""

    server: int
    gamma: float
    relaxation: float = 0.5
    title: ClassVar[str] = "models of consensus ADMM with noise of a trusted server (V4)"
    spec: ClassVar[str] = "walk:ADMM-V4"
    about: tuple[str, ...] = field(default=("federated-admm",), kw_only=True)

    def __post_init__(self) -> None:
        whole(self, "server", error=PrivacyError)
        positive(self, "gamma", error=PrivacyError)
        fraction(self, "relaxation", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        if facts.sigma == 0:
            raise PrivacyError(
                "nothing hides a mean without noise; give the mechanism a sigma above 0"
            )
        data = facts.ledger.is_data()
        strange = [
            event
            for event, reads in zip(facts.ledger.events, data, strict=True)
            if reads and not isinstance(event, Exact)
        ]
        if strange:
            raise PrivacyError(
                f"duals are exact in this protocol, but the ledger holds {strange[0]}"
            )
        noisy = facts.ledger.column("clock")[self._models(facts)]
        lacking = np.setdiff1d(np.arange(2, facts.steps + 1, 2), noisy)
        if len(lacking):
            raise PrivacyError(
                f"the ledger has no noise of the server for its model of round {lacking[0]}"
            )
        added = Hypothesis(
            "the server added fresh noise to every mean, large enough for one clipped dual", True
        )
        return (added, TOLD, TRUSTED, *STANDING)

    def _models(self, facts: Facts) -> Bools:
        """The ledger lines in which the server made a model  # (lines,)."""
        wanted = Mask(
            mean_noise(len(facts.public.members), self.gamma, facts.sigma, self.relaxation)
        )
        masks = [event.sigma if isinstance(event, Mask) else -1.0 for event in facts.ledger.events]
        right = np.array(masks) == wanted.sigma
        own = (facts.ledger.column("peer") == self.server) & (facts.ledger.column("clock") % 2 == 0)
        kinds = facts.ledger.column("event")
        return own & right[kinds] if len(kinds) else np.zeros(0, bool)

    def unit(self, facts: Facts) -> float:
        return facts.sigma / (2 * facts.clip)

    def rounding(self, facts: Facts) -> float:
        """Every model is a mean rounded to the grid of its noise: numbers of fp:FP-0."""
        return facts.all_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        took_part = facts.releases() > 0
        each = np.inf if self.server in observers else float(self._models(facts).sum())
        return np.where(took_part, each, 0.0)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        if self.server in observers:
            return (
                "the server is told exact duals: nothing is claimed against it, alone or with "
                "others",
            )
        return (
            "against everybody but the server, however many look on; the server is told exact "
            "duals",
        )

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        if self.server in observers:
            return "exact duals of all who took part, and the observers' own values"
        return f"{int(self._models(facts).sum())} models with the server's noise, and the observers' own values"

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        if self.server in observers:
            return ('noise = "peers", if the server is not trusted',)
        return ("fewer iterations",)
