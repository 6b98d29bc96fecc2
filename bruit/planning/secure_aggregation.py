"""Secure aggregation with noise shared out: only the sum comes out, with a curator's noise in it
(perso:FL-2, FL-3).

    own = sqrt(rounds) / (mu sqrt(n_H)),  n_H = n minus the colluders, who know their own shares;   the mean of a round
    carries noise own / sqrt(n); a mean takes one round, learning one per contribution

Ideal: no protocol here draws these shares of noise exactly on the grid that is summed.
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.planning.option import Option, Traits, descent_error, refuse_idle
from bruit.planning.question import Question

TRAITS = Traits(own_graph=True, middleman=True)


def option(question: Question) -> Option:
    """Values or gradients, summed by an untrusted server that sees masked words only."""
    if question.caps is not None:
        raise PrivacyError("everybody sees the same sum: there is nothing to choose between pairs")
    refuse_idle(question, "steps", "cooldown")
    n, honest = question.peers, question.peers - question.colluders
    threshold = n // 2 + 1
    if question.colluders >= threshold:
        raise PrivacyError(
            f"{question.colluders} colluders of {n} hold enough shares to restore any secret;"
            " secure aggregation needs an honest majority"
        )
    learning, rounds = (
        question.job == "learning",
        1 if question.job == "mean" else question.contributions,
    )
    own = math.sqrt(rounds) / (question.mu * math.sqrt(honest))
    error = descent_error(question, rounds, own**2 / n) if learning else own / math.sqrt(n)
    return Option(
        protocol="secure-aggregation",
        graph=f"complete:{n}",
        steps=4 * rounds,
        noise_multiplier=own,
        status="ideal",
        theorem="the Gaussian mechanism of a sum, noise shared out",
        spec="perso:FL-3",
        trust=f"a server that never colludes with {threshold} of {n} peers, and the hardness of key "
        f"agreement",
        error=error,
        at_most=learning,
        statement="walk:RW-3, noise own / sqrt(n) per mean"
        if learning
        else "perso:FL-2: own / sqrt(n)",
        messages=rounds * (3.0 * (n - 1) + 2),
        loss=question.mu**2 * own**2,
        notes=(
            "privacy is computational",
            f"up to {how_many(n - threshold, 'dropout')}; their share of the noise is then missing",
            "one of the messages carries the value, the others keys and shares of secrets",
        ),
    )
