"""A trusted curator: one noise on the sum, nobody else sees anything (gossip:DP-8); the floor of
all errors.

    z = sqrt(releases) / mu(epsilon, delta);   error of the mean z / n
"""

from __future__ import annotations

import math

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.planning.noise import least_noise
from bruit.planning.option import Option, Traits, descent_error, refuse_idle
from bruit.planning.question import Question

TRAITS = Traits(also=("curator",), own_graph=True, middleman=True)


def option(question: Question) -> Option:
    """What trust in one party would buy."""
    refuse_idle(question, "steps", "cooldown")
    n, releases = question.peers, 1 if question.job == "mean" else question.contributions
    z, rounding = least_noise(
        question,
        lambda asked: math.sqrt(releases) / asked.strictest_mu,
        lambda home: releases * home.drawn(OnGrid(sum_grid(home, n))),
    )
    error = z / n if question.job == "mean" else descent_error(question, releases, (z / n) ** 2)
    statement = (
        "gossip:DP-8: z / n"
        if question.job == "mean"
        else "walk:RW-3, one noise per averaged gradient"
    )
    return Option(
        protocol="central",
        graph="star",
        steps=releases,
        noise_multiplier=z,
        status="proven",
        theorem="the Gaussian mechanism of a curator",
        spec="gossip:DP-4",
        trust="one curator sees all raw values",
        error=error,
        at_most=question.job == "learning",
        statement=statement,
        messages=float(2 * releases),
        loss=1.0,
        notes=(),
        rounding=rounding,
    )
