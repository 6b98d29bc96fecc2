"""Federated averaging: everybody's noisy gradient goes to a server, the mean comes back (perso:FL-1, FL-2).

    z = sqrt(rounds) / mu(epsilon, delta);   the mean of a round carries noise z / sqrt(n)
"""

from __future__ import annotations

import math

from bruit.algorithms.exchange import sum_grid
from bruit.algorithms.home import OnGrid
from bruit.errors import PrivacyError
from bruit.planning.option import Option, descent_error, descent_rate, refuse_idle
from bruit.planning.precision import least_noise
from bruit.planning.question import Question


def option(question: Question) -> Option:
    """The budget holds against the server, who sees every answer; all others see means."""
    if question.job != "learning":
        raise PrivacyError("federated averaging learns a model; a server that hears one value of everybody is local-dp")
    refuse_idle(question, "steps", "cooldown")
    n, rounds = question.peers, question.contributions
    z, rounding = least_noise(question, lambda asked: math.sqrt(rounds) / asked.strictest_mu,
                              lambda home: n * rounds * home.drawn(OnGrid(sum_grid(home, n))))  # fmt: skip
    return Option(
        "fed-avg", f"star:{n}", 2 * rounds + 1, z, "proven", "composition of averaged rounds", "perso:FL-2",
        "a server that tells everybody the same model; it sees noisy gradients, one by one",
        descent_error(question, rounds, z**2 / n), True, "walk:RW-3, averaged gradients", 2.0 * rounds, float(rounds),
        (f"who is not the server learns {1 / (n - question.colluders):.3g} of that loss",), rounding,
        {"name": "fed-avg", "rate": descent_rate(question, rounds, z**2 / n)},
    )  # fmt: skip
