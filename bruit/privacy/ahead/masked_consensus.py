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

from bruit.errors import PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import MaskedRound, masked_losses
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
