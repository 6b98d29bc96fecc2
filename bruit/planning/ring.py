"""Private sum on a ring: a token passes everybody once, with one noise per n - 1 hops
(gossip:RING-1, RING-4).

Every pair loses at most one local-DP unit, also when the token is published after one extra noise
at the end; only three noises are in the sum. Two colluders around a peer see its value: with
colluders every peer adds its share of the noise and the loss grows to (n - 1) / h, h honest peers
between them (gossip:RING-2).
"""

from __future__ import annotations

import math

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.errors import PrivacyError
from bruit.planning.noise import least_noise
from bruit.planning.option import Option, Traits, refuse_idle
from bruit.planning.question import Question
from bruit.privacy.ahead.ring import (
    error_std,
    ring_losses,
    shared_noise,
    spaced_noise,
    with_last_noise,
)

TRAITS = Traits(own_graph=True)


def option(question: Question) -> Option:
    """The mean of one value per peer; there is no learning on a token that must not depend on what
    it carries."""
    _refuse_other_jobs(question)
    n = question.peers
    alone = question.colluders == 1
    hops = spaced_noise(n, 1) if alone else shared_noise(n, 1)
    noise = with_last_noise(hops)
    # The worst coalition surrounds one peer; alone, the last peer and the middle one see as much as
    # anybody.
    views = (n - 1, n // 2) if alone else ((0, 2),)
    loss = max(float(np.nanmax(ring_losses(n, noise, view, published=True))) for view in views)
    shares = [1.0, *np.sqrt(hops[hops > 0]).tolist()]  # the last noise is drawn apart
    terms = error_std(noise) ** 2
    z, rounding = least_noise(
        question,
        lambda asked: math.sqrt(loss) / asked.mu,
        lambda home: sum(home.drawn(OnGrid(sum_grid(home, n)), share) for share in shares),
    )
    spec, trust = (
        ("gossip:RING-1, RING-4", "no two peers collude")
        if alone
        else ("gossip:RING-2", "honest forwarding")
    )
    return Option(
        protocol="ring",
        graph=f"ring:{n}",
        steps=n,
        noise_multiplier=z,
        status="proven",
        theorem="increments of a private ring sum",
        spec=spec,
        trust=trust,
        error=math.sqrt(terms) * z / n,
        at_most=False,
        statement=f"gossip:RING-1: sqrt({terms:g}) z / n",
        messages=2.0,
        loss=loss,
        notes=("nobody may drop out: a skipped noise step leaves a window without noise",),
        rounding=rounding,
        algorithm={"name": "ring-sum", "published": True, "noise": "spaced" if alone else "shared"},
    )


def _refuse_other_jobs(question: Question) -> None:
    if question.job != "mean":
        raise PrivacyError(
            "the ring theorem needs contributions that do not depend on the token: it sums, not "
            "learns"
        )
    if question.caps is not None:
        raise PrivacyError(
            "on a ring every pair loses one unit: there is nothing to choose between pairs"
        )
    refuse_idle(question, "steps", "cooldown")
    if question.peers < 3:
        raise PrivacyError(f"a private ring needs at least 3 peers, found {question.peers}")
