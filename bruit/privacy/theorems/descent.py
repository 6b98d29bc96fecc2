"""Gossip gradient descent whose rounds share hidden states: what can be said without exact
consensus (gossip:MUF-9).

The linear form of message k of round j has, for every earlier round s, a block (W_j^k W_{j-1}^K ...
W_s^K)_{w,.} on the noisy gradients of round s. With Pi the projector on all forms an observer knows
and Q_u its part on u's gradients,

    nonadaptive    m(u) = max d^T Q_u d, |d_s| <= 1, from above, if the others' gradients do not depend on u's data
    bound          m(u) = sum_s m_ex after K (T - s + 1) steps of gossip, the same condition, cheap
    quadratic      every W_i^K replaced by (I - rate H) W_i^K; full batches: m(u) = 1^T Q_u 1

in units of one clipped, noised gradient seen by everybody (local DP is T). In general a hidden neighbor's gradient
reacts to u's data, so `nonadaptive` is a guarantee for averaging fixed statistics again and again, or gradients taken
at points the observer knows, and `quadratic` for losses h_v/2 ||x - c_v||^2 with public h_v and clipping switched off.
Plain or accelerated exchanges (gamma), any public sequence of graphs, one observer or several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.domains import counts, positive
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import checked_observers, leverage, neighborhood
from bruit.privacy.guarantee import Guarantee, Hypothesis, gaussian
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import IDEALLY, STANDING, Facts, Theorem
from bruit.privacy.theorems.group import JointLoss, Projector, projector

LARGEST = 2**27
"""Most numbers in the linear forms of all peers."""

CLIPPED = Hypothesis(
    "gradients are clipped before the noise, and the models that peers start from are public", False
)
FIXED = Hypothesis("the others' gradients do not depend on this peer's data", False)
SQUARES = Hypothesis(
    "every local loss is h/2 ||x - c||^2 with public h, and no gradient is clipped", False
)
BOUNDED = Hypothesis(
    "the noise multiplier is sigma / (h Delta_c): the centers c are bounded, not the gradients",
    False,
)
ADVICE = (
    "fewer rounds, or fewer exchanges after each gradient",
    "a butterfly graph, whose rounds end in exact consensus",
)


@dataclass(frozen=True)
class GossipDescent:
    """Rounds of one gradient and `mixing` exchanges. `gamma` accelerates; `slopes` are rate * h,
    per peer."""

    graph: Graph | GraphSequence
    rounds: int
    mixing: int
    gamma: float = 1.0
    slopes: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.rounds < 0 or self.mixing < 1:
            raise ConfigError(
                f"found {self.rounds} rounds of {self.mixing} exchanges; give >= 0 and >= 1"
            )
        if self.slopes is not None and len(self.slopes) != self.graph.n:
            raise ConfigError(
                f"{len(self.slopes)} slopes for {self.graph.n} peers; give rate * h for each of "
                f"them"
            )

    def at(self, exchange: int) -> Graph:
        return self.graph if isinstance(self.graph, Graph) else self.graph.at(exchange)


@dataclass(frozen=True)
class _Rule:
    """How rounds mix and how gradients react."""

    mixing: int
    gamma: float
    slopes: tuple[float, ...] | None


@dataclass(frozen=True)
class Known:
    """The linear forms of one view over all gradients; the columns of round s are s n .. s n + n -
    1."""

    n: int
    rounds: int
    projector: Projector

    def free_losses(self) -> Array:
        """Per peer, when each of its gradients moves as it likes  # (n,)."""
        return np.array([joint.free for joint in self._joint()])

    def common_losses(self) -> Array:
        """Per peer, when all its gradients move alike  # (n,)."""
        return np.array([joint.common for joint in self._joint()])

    def _joint(self) -> list[JointLoss]:
        if self.rounds == 0:
            return [JointLoss(0.0, 0.0, "exact")] * self.n
        return [self.projector.joint(u + self.n * np.arange(self.rounds)) for u in range(self.n)]


def view(descent: GossipDescent, seen_by: Peers) -> Known:
    """What the observers know at the end, their own gradients and noises included."""
    rule, n = _Rule(descent.mixing, descent.gamma, descent.slopes), descent.graph.n
    observers = checked_observers(n, np.atleast_1d(seen_by))
    return _view(descent.at, n, descent.rounds * descent.mixing, rule, observers)


def _view(
    graphs: Callable[[int], Graph], n: int, steps: int, rule: _Rule, observers: Ints
) -> Known:
    rounds = -(-steps // rule.mixing)
    if n * n * rounds > LARGEST:
        raise ConfigError(
            f"the linear forms of {n} peers over {rounds} rounds hold {n * n * rounds:,} numbers,"
            f" above {LARGEST:,}; use nonadaptive_bound, or the consensus theorem"
        )
    used = [graphs(t) for t in range(steps)]

    def heard(prime: int) -> Any:
        return _heard_forms(
            used, n, rounds, rule, observers, _Numbers(prime, rule.gamma, rule.slopes)
        )

    return Known(n, rounds, projector(np.asarray(heard(0), np.float64), heard))


class _Numbers:
    """Floats (prime 0), or integers modulo a prime."""

    def __init__(self, prime: int, gamma: float, slopes: Sequence[float] | None) -> None:
        self.prime = prime
        self.kind: Any = np.int64 if prime else np.float64
        self.gamma, self.rest = self._number(Fraction(gamma)), self._number(1 - Fraction(gamma))
        self.keep = (
            None
            if slopes is None
            else np.array([self._number(1 - Fraction(x)) for x in slopes], self.kind)
        )
        self._weights: dict[int, Any] = {}

    def _number(self, exact: Fraction) -> Any:
        if not self.prime:
            return float(exact)
        return exact.numerator * pow(exact.denominator, -1, self.prime) % self.prime

    def reduced(self, values: Any) -> Any:
        return values % self.prime if self.prime else values

    def mixed(self, graph: Graph, values: Any) -> Any:
        if id(graph) not in self._weights:
            data = graph.residues(self.prime) if self.prime else graph.weights.data
            shape = graph.weights.shape
            self._weights[id(graph)] = csr_array(
                (data, graph.weights.indices, graph.weights.indptr), shape=shape
            )
        return self.reduced(np.asarray(self._weights[id(graph)] @ values))


def _heard_forms(
    used: Sequence[Graph], n: int, rounds: int, rule: _Rule, observers: Ints, numbers: _Numbers
) -> Any:
    """Own rows of every round, then the forms of all messages from others, by running the rounds on
    forms."""
    state = np.zeros((n, n * rounds), numbers.kind)
    before = state
    own = (observers[None, :] + n * np.arange(rounds)[:, None]).ravel()
    rows = [np.eye(n * rounds, dtype=numbers.kind)[own]]
    for t, graph in enumerate(used):
        s, k = divmod(t, rule.mixing)
        if k == 0:
            state = (
                state.copy()
                if numbers.keep is None
                else numbers.reduced(numbers.keep[:, None] * state)
            )
            state[np.arange(n), s * n + np.arange(n)] += 1
        rows.append(state[neighborhood(graph, observers)])
        mixed = numbers.mixed(graph, state)
        if k and rule.gamma != 1.0:
            mixed = numbers.reduced(numbers.gamma * mixed + numbers.rest * before)
        before, state = state, mixed
    return np.concatenate(rows)


def nonadaptive(descent: GossipDescent, seen_by: Peers) -> Array:
    """max d^T Q_u d over |d_s| <= 1, at most sum |Q_u|, if the others' gradients do not depend on u's data  # (n,).

    >>> from bruit.graphs import star
    >>> nonadaptive(GossipDescent(star(6), 3, 2), 1)[[0, 2]].round(8).tolist()
    [3.0, 0.75]
    """
    return view(_without_slopes(descent), seen_by).free_losses()


def nonadaptive_bound(graph: Graph, rounds: int, mixing: int, seen_by: Peers) -> Array:
    """sum_s m_ex after K (T - s + 1) steps on one graph: above `nonadaptive`, and cheap  # (n,).

    >>> from bruit.graphs import path
    >>> nonadaptive_bound(path(6), 3, 2, 0)[1:].tolist()
    [3.0, 3.0, 2.0, 2.0, 1.0]
    """
    GossipDescent(graph, rounds, mixing)
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    total = np.zeros(graph.n)
    for left in range(1, rounds + 1):
        total += leverage(graph, chosen, mixing * left).loss
    return total


def quadratic_full_batch(descent: GossipDescent, seen_by: Peers) -> Array:
    """1^T Q_u 1 for quadratic losses: the same center moves every gradient alike  # (n,).

    >>> from bruit.graphs import path
    >>> descent = GossipDescent(path(4), 3, 2, slopes=(0.3, 0.15, 0.6, 0.3))
    >>> quadratic_full_batch(descent, 0)[1:].round(7).tolist()
    [2.9748595, 2.9498929, 0.0752476]
    """
    return view(_with_slopes(descent), seen_by).common_losses()


def quadratic_sampled(descent: GossipDescent, seen_by: Peers) -> Array:
    """max d^T Q_u d for quadratic losses whose centers are drawn anew for every gradient
    # (n,)."""
    return view(_with_slopes(descent), seen_by).free_losses()


def _with_slopes(descent: GossipDescent) -> GossipDescent:
    if descent.slopes is None:
        raise PrivacyError(
            "the quadratic account needs the public slopes rate * h of all peers; give slopes=..."
        )
    return descent


def _without_slopes(descent: GossipDescent) -> GossipDescent:
    if descent.slopes is not None:
        raise PrivacyError(
            "gradients with slopes react to the models; use quadratic_full_batch or "
            "quadratic_sampled"
        )
    return descent


def fixed_statistics_guarantee(
    descent: GossipDescent, of: int, seen_by: Peers, noise_multiplier: float
) -> Guarantee:
    """What the observers learn about one peer when statistics that do not react are averaged round
    after round."""
    loss = float(nonadaptive(descent, seen_by)[of])
    return _guarantee(
        "averaging of fixed statistics over several rounds",
        "gossip:MUF-9 nonadaptive",
        descent,
        of,
        seen_by,
        loss,
        noise_multiplier,
        (FIXED, CLIPPED),
    )


def quadratic_guarantee(
    descent: GossipDescent, of: int, seen_by: Peers, noise_multiplier: float
) -> Guarantee:
    """What the observers learn about one peer from full-batch descent on h/2 ||x - c||^2, z = sigma / (h_u Delta_c)."""
    loss = float(quadratic_full_batch(descent, seen_by)[of])
    return _guarantee(
        "gossip gradient descent on quadratic losses, full batches",
        "gossip:MUF-9 quadratic",
        descent,
        of,
        seen_by,
        loss,
        noise_multiplier,
        (SQUARES, BOUNDED),
    )


def sampled_quadratic_guarantee(
    descent: GossipDescent, of: int, seen_by: Peers, noise_multiplier: float
) -> Guarantee:
    """The same when each gradient uses a center drawn anew from the peer's records."""
    loss = float(quadratic_sampled(descent, seen_by)[of])
    return _guarantee(
        "gossip gradient descent on quadratic losses, sampled",
        "gossip:MUF-9 quadratic",
        descent,
        of,
        seen_by,
        loss,
        noise_multiplier,
        (SQUARES, BOUNDED),
    )


def _guarantee(
    title: str,
    spec: str,
    descent: GossipDescent,
    of: int,
    seen_by: Peers,
    loss: float,
    noise_multiplier: float,
    own: tuple[Hypothesis, ...],
) -> Guarantee:
    asked = question(descent.graph.n, of, seen_by)
    if descent.slopes is not None:
        least, most = min(descent.slopes), max(descent.slopes)
        own = (*own, Hypothesis(f"rate * h is as declared, {least:g} to {most:g}", checked=False))
    return Guarantee(
        theorem=title,
        spec=spec,
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(*own, *IDEALLY),
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=(),
        seen=f"the messages of {descent.rounds} rounds of {descent.mixing} exchanges",
        advice=ADVICE,
    )


@dataclass(frozen=True)
class FixedGradients(Theorem):
    """Runs of gossip SGD whose gradients do not depend on the model: declared smoothness 0 says
    so."""

    mixing: int
    gamma: float = 1.0
    title: ClassVar[str] = "gossip gradient descent with gradients that do not react"
    spec: ClassVar[str] = "gossip:MUF-9 nonadaptive"
    about: tuple[str, ...] = field(default=("gossip-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)
        positive(self, "gamma", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        known = facts.constants
        if known is None or known.source != "declared" or known.smoothness != 0:
            found = (
                "no declared constants"
                if known is None
                else f"smoothness {known.smoothness:g} ({known.source})"
            )
            raise PrivacyError(
                f"gradients that do not react need a declared smoothness of 0, found {found}: "
                f"hidden peers' gradients"
                " move with this peer's data; use a butterfly graph, or local DP"
            )
        if int(facts.releases().max(initial=0)) > -(-facts.steps // self.mixing):
            raise PrivacyError(
                "some peer released more than once between two rounds; that is not this protocol"
            )
        still = Hypothesis(
            "gradients do not depend on the model: the declared smoothness is beta = 0",
            checked=False,
        )
        return (still, CLIPPED, *STANDING)

    def rounding(self, facts: Facts) -> float:
        """Where the graph changes, accelerated mixing has no bound on its numbers."""
        bounded = self.gamma == 1.0 or facts.fixed_graph() is not None
        return facts.mixed_rounding(facts.n * facts.steps) if bounded else math.inf

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        rule = _Rule(self.mixing, self.gamma, None)
        return _view(
            facts.at, facts.n, facts.steps, rule, np.array(observers, np.int64)
        ).free_losses()
