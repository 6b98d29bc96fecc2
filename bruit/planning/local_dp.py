"""Local DP: everybody publishes noisy releases; the budget holds against everybody at once
(gossip:DP-8).

    z = sqrt(releases) / mu(epsilon, delta);   error of the mean z / sqrt(n)
"""

from __future__ import annotations

import math

from bruit.planning.noise import least_noise
from bruit.planning.option import Option, Traits, descent_error, descent_rate, refuse_idle
from bruit.planning.question import Question

TRAITS = Traits(also=("local",), own_graph=True)


def option(question: Question) -> Option:
    """The baseline every other option is measured against."""
    refuse_idle(question, "steps", "cooldown")
    n, releases = question.peers, 1 if question.job == "mean" else question.contributions
    z, rounding = least_noise(
        question,
        lambda asked: math.sqrt(releases) / asked.strictest_mu,
        lambda home: home.released(releases),
    )
    error = (
        z / math.sqrt(n) if question.job == "mean" else descent_error(question, releases, z**2 / n)
    )
    statement = (
        "gossip:DP-8: z / sqrt(n)" if question.job == "mean" else "walk:RW-3, averaged gradients"
    )
    learns = {"name": "gossip-sgd", "rate": descent_rate(question, releases, z**2 / n)}
    return Option(
        protocol="local-dp",
        graph="any",
        steps=releases,
        noise_multiplier=z,
        status="proven",
        theorem="local DP: composition of the ledger's lines",
        spec="gossip:DP-8",
        trust="nobody: all messages may be public",
        error=error,
        at_most=question.job == "learning",
        statement=statement,
        messages=float(releases * (n - 1)),
        loss=float(releases),
        notes=(),
        rounding=rounding,
        algorithm={"name": "averaging"} if question.job == "mean" else learns,
    )
