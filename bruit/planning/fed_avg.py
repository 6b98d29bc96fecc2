"""Federated averaging: everybody's noisy gradient goes to a server, the mean comes back
(perso:FL-1, FL-2).

    z = sqrt(rounds) / mu(epsilon, delta);   the mean of a round carries noise z / sqrt(n)
"""

from __future__ import annotations

import math

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.errors import PrivacyError
from bruit.planning.noise import least_noise
from bruit.planning.option import Option, Traits, descent_error, descent_rate, refuse_idle
from bruit.planning.question import Question

TRAITS = Traits(own_graph=True, middleman=True)


def option(question: Question) -> Option:
    """The budget holds against the server, who sees every answer; all others see means."""
    if question.job != "learning":
        raise PrivacyError(
            "federated averaging learns a model; a server that hears one value of everybody is "
            "local-dp"
        )
    refuse_idle(question, "steps", "cooldown")
    n, rounds = question.peers, question.contributions
    z, rounding = least_noise(
        question,
        lambda asked: math.sqrt(rounds) / asked.strictest_mu,
        lambda home: n * rounds * home.drawn(OnGrid(sum_grid(home, n))),
    )
    return Option(
        protocol="fed-avg",
        graph=f"star:{n}",
        steps=2 * rounds + 1,
        noise_multiplier=z,
        status="proven",
        theorem="composition of averaged rounds",
        spec="perso:FL-2",
        trust="a server that tells everybody the same model; it sees noisy gradients, one by one",
        error=descent_error(question, rounds, z**2 / n),
        at_most=True,
        statement="walk:RW-3, averaged gradients",
        messages=2.0 * rounds,
        loss=float(rounds),
        notes=(f"who is not the server learns {1 / (n - question.colluders):.3g} of that loss",),
        rounding=rounding,
        algorithm={"name": "fed-avg", "rate": descent_rate(question, rounds, z**2 / n)},
    )
