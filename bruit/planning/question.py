"""What a planner is asked: how many peers, which job, how much may leak to whom."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import numpy as np

from bruit.arrays import Array
from bruit.domains import counts, nonnegative, positive
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.how_many import how_many
from bruit.privacy.toolbox.gaussian import mu_of
from bruit.privacy.toolbox.rounding import FARTHEST, USUAL, allowance

Job = Literal["mean", "learning"]
Protect = Literal["worst", "mean"]


def among(graph: str | None, peers: int | None) -> tuple[int, Graph | GraphSequence | None]:
    """How many peers a plan is for, and on which graph: a named one, or none, to have one chosen."""
    chosen = None if graph in (None, "choose") else named_graph(str(graph))
    n = chosen.n if chosen is not None else peers
    if n is None:
        raise ConfigError(
            "say how many peers there are: --graph complete:2000, or --peers 2000 to have one "
            "chosen"
        )
    if peers is not None and chosen is not None and peers != chosen.n:
        raise ConfigError(
            f"--peers {peers} contradicts the graph {chosen.name} with its {chosen.n} peers"
        )
    return n, chosen


@dataclass(frozen=True)
class Question:
    """A budget (epsilon, delta) for what one peer (or `colluders` together) may learn about
    another.

    `protect` says what the budget is for: the "worst" pair (a guarantee for everybody) or the
    "mean" over pairs (a summary, no guarantee for any pair). `caps[u, v]` gives every pair its own
    epsilon instead. The job is the "mean" of one value per peer, or "learning" from `contributions`
    gradients per peer of models of `dim` numbers. Values and gradients are in units of the
    sensitivity; `spread` bounds the variance of the values, `diameter` the distance to the best
    model, in public.
    """

    peers: int
    epsilon: float
    _: KW_ONLY
    delta: float = 1e-6
    job: Job = "mean"
    graph: Graph | GraphSequence | None = None
    steps: int | None = None
    protect: Protect = "worst"
    caps: Array | None = None  # (n, n) epsilon of every pair, nan where there is no cap
    contributions: int = 1
    cooldown: int = 1
    colluders: int = 1
    dim: int = 1
    spread: float = 0.25
    diameter: float = 2.0
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        if self.peers < 2:
            raise ConfigError(f"a plan needs at least two peers, found {self.peers}")
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise PrivacyError(f"a plan needs a positive, finite epsilon, found {self.epsilon}")
        if not 0 < self.delta < 1:
            raise PrivacyError(
                f"delta must lie strictly between 0 and 1, found {self.delta}; 1e-6 is the usual "
                f"choice"
            )
        if self.graph is not None and self.graph.n != self.peers:
            raise ConfigError(
                f"the graph {self.graph.name} has {self.graph.n} peers, the plan {self.peers}"
            )
        if self.contributions < 1 or self.cooldown < 1 or self.dim < 1:
            found = f"{self.contributions}, {self.cooldown}, {self.dim}"
            raise ConfigError(
                f"contributions, cool-down and dimension are at least 1, found {found}"
            )
        if not 1 <= self.colluders < self.peers:
            raise PrivacyError(
                f"observers are 1 to {self.peers - 1} of {self.peers} peers, found {self.colluders}"
            )
        if self.protect not in ("worst", "mean"):
            raise ConfigError(f"--protect is worst or mean, found {self.protect!r}")
        if self.protect == "mean" and self.caps is not None:
            raise PrivacyError(
                "a budget for the mean and caps for single pairs contradict each other; ask for one"
            )
        if self.caps is not None and self.caps.shape != (self.peers, self.peers):
            raise ConfigError(
                f"caps are one epsilon per pair, ({self.peers}, {self.peers}), found "
                f"{self.caps.shape}"
            )
        if self.caps is not None and np.isinf(self.allowed[~np.eye(self.peers, dtype=bool)]).all():
            raise PrivacyError(
                "every pair has an infinite cap: nothing is to be hidden from anybody"
            )
        positive(self, "sensitivity", "diameter")
        nonnegative(self, "spread")
        counts(self, "steps")

    def sent(self, rounding: float) -> Question:
        """The question about real numbers whose answer holds for what is sent, at this R or less
        (fp:FP-0)."""
        caps = [] if self.caps is None else self.caps[~np.isnan(self.caps)].tolist()
        asked = [min(epsilon, FARTHEST) for epsilon in (self.epsilon, *caps)]  # inf: full trust
        gamma, delta = allowance(rounding, self.delta, max(USUAL, max(asked) + 1))
        if not (gamma <= 2 and 2 * gamma < min(asked)):
            raise PrivacyError(
                f"finite precision alone takes {2 * gamma:.2g} of epsilon, with "
                f"{how_many(self.dim, 'number')} in a message, and {min(asked):g} is asked "
                "for; plan fewer steps, or a larger epsilon"
            )
        sent = None if self.caps is None else np.minimum(self.caps, FARTHEST) - 2 * gamma
        return replace(
            self, epsilon=min(self.epsilon, FARTHEST) - 2 * gamma, delta=delta, caps=sent
        )

    @property
    def allowed(self) -> Array:
        """The epsilon of every pair; the diagonal means nothing  # (n, n)."""
        given = np.full((self.peers, self.peers), np.nan) if self.caps is None else self.caps
        return np.where(np.isnan(given), self.epsilon, given)

    @property
    def mu(self) -> float:
        """The largest mu a single observer may reach: mu-GDP within (epsilon, delta)."""
        return mu_of(self.epsilon, self.delta)

    @property
    def strictest_mu(self) -> float:
        """The same when everybody sees everything: the pair with the smallest cap decides."""
        if self.caps is None:
            return self.mu
        return mu_of(min(self.epsilon, float(np.nanmin(self.caps))), self.delta)
