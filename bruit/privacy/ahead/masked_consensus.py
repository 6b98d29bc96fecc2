"""Gossip gradient descent whose models are masked after every round: adaptive, on any graph
(gossip:MUF-X3).

Each round mixes K times without acceleration, every message copy with fresh noise tau, then every
peer adds noise omega to its model, and that masked model replaces it (tau and omega in units of the
noise of a release). Privacy is computed as if all masked models were revealed at the end of each
round, so the others' next gradients are fixed given the view:

    m(u -> V) <= e_u^T K^T (K K^T + R)^{-1} K e_u per round,    and rounds add up,

rows (W_TT^k)_{w,.} for each copy (k < K, w -> v), R = tau^2, then all rows of W_TT^K, R = omega^2;
T = everybody but V.
Hypotheses: common public start; clipped gradients; no un-masked copy is kept; one noise per copy.
Publishing all final masked models is included. Tuning: omega >> sqrt(n) (1 - gap)^K makes the
revealed part cost about 1/n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import checked_observers, checked_steps, noisy_rows_loss
from bruit.privacy.guarantee import Guarantee, Hypothesis, gaussian
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import IDEALLY

HYPOTHESES = (
    Hypothesis("all peers start from the same public model", False),
    Hypothesis("gradients are clipped before the noise", False),
    Hypothesis("the masked model replaces the model; no un-masked copy is kept", False),
    Hypothesis("one independent noise per message copy, no acceleration", False),
    *IDEALLY,
)


@dataclass(frozen=True)
class MaskedRound:
    """One round: `mixing` exchanges with message noise tau, then a mask omega; both in units of the
    release's sigma.

    `first` is the number of its first exchange on a changing graph.
    """

    mixing: int
    tau: float
    omega: float
    first: int = 0


def masked_losses(
    graph: Graph | GraphSequence, rounds: Sequence[MaskedRound], seen_by: Peers
) -> Array:
    """Losses of all peers over all rounds in the joint view of the observers; one per round at the
    observers  # (n,).

    >>> from bruit.graphs import ring
    >>> masked_losses(ring(8), [MaskedRound(40, 0.2, 0.1)], 0)[1:5].round(7).tolist()
    [0.9627209, 0.7872499, 0.4755804, 0.3659332]
    """
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    known: dict[MaskedRound, Array] = {}
    total = np.zeros(graph.n)
    for each in rounds:
        if each not in known:
            known[each] = _round(graph, each, chosen.tolist())
        total += known[each]
    return total


def _round(graph: Graph | GraphSequence, each: MaskedRound, observers: list[int]) -> Array:
    if not (each.tau > 0 and each.omega > 0):
        raise PrivacyError(
            f"masked consensus needs noise in every message and in every mask, found tau = "
            f"{each.tau:g} and"
            f" omega = {each.omega:g}; raise both above 0"
        )
    others = np.setdiff1d(np.arange(graph.n), observers)
    place = np.full(graph.n, -1)
    place[others] = np.arange(len(others))
    power = np.eye(len(others))
    rows: list[Array] = []
    for k in range(checked_steps(each.mixing)):
        at = graph if isinstance(graph, Graph) else graph.at(each.first + k)
        rows.append(power[[place[w] for v in observers for w in at.neighbors(v) if place[w] >= 0]])
        power = np.asarray(at.weights[others][:, others] @ power)
    heard = sum(len(part) for part in rows)
    noise = np.concatenate([np.full(heard, each.tau), np.full(len(others), each.omega)])
    losses = np.ones(graph.n)
    losses[others] = noisy_rows_loss(np.concatenate([*rows, power]), noise)
    return losses


def masked_guarantee(
    graph: Graph | GraphSequence,
    rounds: Sequence[MaskedRound],
    of: int,
    seen_by: Peers,
    noise_multiplier: float,
) -> Guarantee:
    """What the observers learn about one peer from gradient descent with masked consensus."""
    asked = question(graph.n, of, seen_by)
    loss = float(masked_losses(graph, rounds, asked.observers)[of])
    return Guarantee(
        theorem="gradient descent with masked consensus",
        spec="gossip:MUF-X3",
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=HYPOTHESES,
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=("computed as if all masked models were revealed after every round",),
        seen=f"the messages of {len(rounds)} rounds, and all masked models",
        advice=("more mixing before a larger mask",),
    )


def equal_masked_rounds(
    graph: Graph | GraphSequence,
    each: MaskedRound,
    of: int,
    seen_by: Peers,
    noise_multiplier: float,
    rounds: int = 1,
) -> Guarantee:
    """What the observers learn about one peer from rounds of gradient descent that are all alike,
    with masked consensus after each.

    >>> from bruit.graphs import ring
    >>> round(equal_masked_rounds(ring(8), MaskedRound(40, 0.2, 0.1), 4, 0, 1.0, 3).loss, 6)
    1.0978
    """
    if rounds < 1:
        raise PrivacyError(f"there is no round to account for, found rounds = {rounds}")
    return masked_guarantee(graph, [each] * rounds, of, seen_by, noise_multiplier)


ASK = {
    "masked-consensus": equal_masked_rounds,
}
