"""Mean privacy loss in one view: a summary that protects no pair, always shown beside the worst one
(gossip:MUF-3).

    (1/n) sum over u outside V of m(u -> V) = (rank(K_V) - |V|) / n <= (1/n) sum_{t < T} |N_t(V)|

in local-DP units; the right-hand side counts the messages V receives from others (gossip:MUF-10,
C.7). The inequality is proven, because each message adds at most one dimension; the mean itself is
no guarantee for anybody (gossip:NDP-4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import (
    Leverage,
    checked_observers,
    checked_steps,
    leverage,
    neighborhood,
    sequence_loss,
)
from bruit.privacy.question import Peers

LABEL = "a summary, not a guarantee: the mean protects no individual pair"


@dataclass(frozen=True)
class MeanLoss:
    """Mean over all peers of what one view learns, its proven bound, and the worst peer beside
    it."""

    mean: float
    bound: float
    worst: float
    exact: bool
    label: str = LABEL

    def __str__(self) -> str:
        numbers = f"mean {self.mean:.6g} (at most {self.bound:.6g}), worst {self.worst:.6g} in local-DP units"
        return f"{numbers}; {self.label}"


def mean_bound(graph: Graph | GraphSequence, steps: int, seen_by: Peers) -> float:
    """(1/n) times the number of messages the observers receive from others.

    >>> from bruit.graphs import ring
    >>> mean_bound(ring(8), 4, 0)
    1.0
    """
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    if isinstance(graph, Graph):
        return checked_steps(steps) * len(neighborhood(graph, chosen)) / graph.n
    return (
        sum(len(neighborhood(graph.at(t), chosen)) for t in range(checked_steps(steps))) / graph.n
    )


def mean_loss(graph: Graph | GraphSequence, steps: int, seen_by: Peers) -> MeanLoss:
    """The exact mean in the view of one peer or of several together.

    >>> from bruit.graphs import star
    >>> str(mean_loss(star(6), 3, 1)).split(";")[0]
    'mean 0.333333 (at most 0.5), worst 1 in local-DP units'
    """
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    found: Leverage
    if isinstance(graph, Graph):
        found = leverage(graph, chosen, steps)
    else:
        found = sequence_loss(graph.at, graph.n, steps, chosen)
    others = np.delete(found.loss, chosen)
    return MeanLoss(
        float(others.sum()) / graph.n,
        mean_bound(graph, steps, seen_by),
        float(others.max(initial=0.0)),
        found.status == "exact",
    )


def meeting_rate(graph: Graph, observer: int) -> float:
    """How probably one activation of randomized gossip with p = 2W/n involves the observer: 2 (1 -
    W_vv) / n.

    >>> from bruit.graphs import ring
    >>> round(meeting_rate(ring(6), 0), 9)
    0.222222222
    """
    v = int(checked_observers(graph.n, [observer])[0])
    return 2 * (1 - float(graph.self_weights()[v])) / graph.n


def expected_mean_loss(graph: Graph, activations: int, observer: int) -> float:
    """Expected bound on the mean loss of randomized gossip, T pi_v / n; known before the run
    (gossip:MUF-7)."""
    return checked_steps(activations) * meeting_rate(graph, observer) / graph.n


def meetings_tail(activations: int, excess: float) -> float:
    """P(a peer meets `excess` times more than expected) <= exp(-2 excess^2 / T), by Hoeffding
    (gossip:MUF-7)."""
    if activations < 1 or excess < 0:
        raise ConfigError(
            f"found {activations} activations and an excess of {excess}; give >= 1 and >= 0"
        )
    return math.exp(-2 * excess**2 / activations)


def descent_mean_bound(n: int, degree: int, rounds: int, mixing: int) -> float:
    """Mean loss of descent with gradients that do not react: (1/n) sum_s min(n, K (T - s + 1) d)
    (gossip:MUF-9).

    >>> descent_mean_bound(6, 1, 3, 2)
    2.0
    """
    if min(n, rounds, mixing) < 1 or degree < 0:
        raise PrivacyError(
            f"found n = {n}, {rounds} rounds of {mixing} exchanges, {degree} neighbors; give >= 1"
        )
    return sum(min(n, mixing * left * degree) for left in range(1, rounds + 1)) / n
