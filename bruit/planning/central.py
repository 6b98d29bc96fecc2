"""A trusted curator: one noise on the sum, nobody else sees anything (gossip:DP-8); the floor of all errors.

    z = sqrt(releases) / mu(epsilon, delta);   error of the mean z / n
"""

from __future__ import annotations

import math

from bruit.algorithms.exchange import sum_grid
from bruit.algorithms.home import OnGrid
from bruit.planning.option import Option, descent_error, refuse_idle
from bruit.planning.precision import least_noise
from bruit.planning.question import Question


def option(question: Question) -> Option:
    """What trust in one party would buy."""
    refuse_idle(question, "steps", "cooldown")
    n, releases = question.peers, 1 if question.job == "mean" else question.contributions
    z, rounding = least_noise(question, lambda asked: math.sqrt(releases) / asked.strictest_mu,
                              lambda home: releases * home.drawn(OnGrid(sum_grid(home, n))))  # fmt: skip
    error = z / n if question.job == "mean" else descent_error(question, releases, (z / n) ** 2)
    statement = "gossip:DP-8: z / n" if question.job == "mean" else "walk:RW-3, one noise per averaged gradient"
    return Option(
        "central", "star", releases, z, "proven", "the Gaussian mechanism of a curator", "gossip:DP-4",
        "one curator sees all raw values", error, question.job == "learning", statement, float(2 * releases), 1.0, (),
        rounding,
    )  # fmt: skip
