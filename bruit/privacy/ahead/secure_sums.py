"""Gossip with secure aggregation in each neighborhood: the observer learns its weighted sum only
(gossip:MUF-X4).

    rows e_v and (W^t)_{v,.}, t = 1..T:      m(u -> V) = || projection of e_u on their span ||^2, sum_u m <= |V| (1 + T)

With message noise as in re-noised gossip (gossip:MUF-X1), one observer: rows sum_w W_vw r_{t,w} on
all but v, heard through noise of variance tau_t^2 sum_w W_vw^2.
Hypotheses: the aggregation is ideal, its only output is the sum. A step run again with other
participants reveals differences, which this account does not cover.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.exact import checked_observers, checked_steps, leverage, noisy_rows_loss
from bruit.privacy.guarantee import Guarantee, Hypothesis, gaussian
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import IDEALLY

IDEAL = Hypothesis(
    "the aggregation is ideal: each step tells an observer one weighted sum and nothing else", False
)
ONCE = Hypothesis("no step is run again with other participants", False)
COPIES = Hypothesis("one independent noise per message copy", False)
ADVICE = ("noise in every message, inside the sums", "fewer steps")


def secure_sum_losses(graph: Graph, steps: int, seen_by: Peers) -> Array:
    """Losses of all peers in the joint view of the observers, who hear weighted sums only  # (n,).

    >>> from bruit.graphs import ring
    >>> secure_sum_losses(ring(8), 8, 0).round(6).tolist()
    [1.0, 0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 0.5]
    """
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    return leverage(graph, chosen, steps, secure_aggregation=True).loss


def secure_sum_guarantee(
    graph: Graph, steps: int, of: int, seen_by: Peers, noise_multiplier: float
) -> Guarantee:
    """What the observers learn about one peer when each hears the weighted sum of its neighborhood
    only."""
    asked = question(graph.n, of, seen_by)
    loss = float(secure_sum_losses(graph, steps, asked.observers)[of])
    return Guarantee(
        theorem="gossip with secure aggregation in each neighborhood",
        spec="gossip:MUF-X4",
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(IDEAL, ONCE, *IDEALLY),
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=(),
        seen=f"{steps * len(asked.observers)} sums over neighborhoods, and the observers' own values "
        f"and noise",
        advice=ADVICE,
    )


def noisy_secure_sum_losses(graph: Graph, tau: Sequence[float] | Array, observer: int) -> Array:
    """The same with message noise tau_t (in units of sigma) in step t, for one observer; 1 at the
    observer  # (n,)."""
    v = int(checked_observers(graph.n, [observer])[0])
    levels = np.asarray(tau, dtype=np.float64)
    checked_steps(len(levels))
    if np.any(~(levels > 0)):
        raise PrivacyError(
            f"messages need noise in every step, found {levels.min():g}; see secure_sum_losses"
        )
    losses = np.ones(graph.n)
    others = np.delete(np.arange(graph.n), v)
    within = graph.weights[others][:, others].T.tocsr()
    row = graph.weights[[v]].toarray()[0][others]
    share = float(np.linalg.norm(row))
    if share == 0.0:
        losses[others] = 0.0
        return losses
    rows = np.empty((len(levels), others.size))
    for t in range(len(levels)):
        rows[t] = row
        row = np.asarray(within @ row)
    losses[others] = noisy_rows_loss(rows, levels * share)
    return losses


def noisy_secure_sum_guarantee(
    graph: Graph, tau: Sequence[float] | Array, of: int, observer: int, noise_multiplier: float
) -> Guarantee:
    """What one observer learns about a peer from weighted sums of messages that carry noise of
    their own."""
    asked = question(graph.n, of, observer)
    loss = float(noisy_secure_sum_losses(graph, tau, observer)[of])
    return Guarantee(
        theorem="re-noised gossip with secure aggregation",
        spec="gossip:MUF-X4, MUF-X1",
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(IDEAL, ONCE, COPIES, *IDEALLY),
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=(),
        seen=f"{len(tau)} noisy sums over its neighborhood, and the observer's own value and noise",
        advice=("more message noise",),
    )


ASK = {
    "neighborhood-sums": secure_sum_guarantee,
    "noisy-neighborhood-sums": noisy_secure_sum_guarantee,
}
