"""A trusted shuffler: everybody sends one bit by randomized response, in random order (perso:FL-4,
LDP-1).

    epsilon_0 = the largest local epsilon that shuffling turns into epsilon;   a value in [0, 1] is rounded to a bit at
    random, the bit told truthfully with chance e**epsilon_0 / (1 + e**epsilon_0);   error of the mean at most
    coth(epsilon_0 / 2) / (2 sqrt(n))
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.planning.option import Option, Traits, refuse_idle
from bruit.planning.question import Question
from bruit.privacy.formulas.shuffling import local_budget

TRAITS = Traits(own_graph=True, middleman=True)


def option(question: Question) -> Option:
    """The mean of one number per peer; the reports of observers hide nothing."""
    if question.job != "mean" or question.dim != 1:
        raise PrivacyError("shuffled bits estimate the mean of one number per peer")
    if question.caps is not None:
        raise PrivacyError(
            "everybody sees the same reports: there is nothing to choose between pairs"
        )
    refuse_idle(question, "steps", "cooldown")
    n = question.peers
    local = local_budget(question.epsilon, n - question.colluders, question.delta)
    return Option(
        protocol="shuffling",
        graph="star",
        steps=1,
        noise_multiplier=math.nan,
        status="proven",
        theorem="amplification by shuffling",
        spec="perso:FL-4",
        trust="a shuffler that hides who sent what and colludes with nobody",
        error=1 / math.tanh(local / 2) / (2 * math.sqrt(n)),
        at_most=True,
        statement="perso:LDP-1: coth(epsilon_0 / 2) / (2 sqrt(n))",
        messages=1.0,
        loss=math.nan,
        notes=(
            f"every report is {local:.4g}-LDP even if the shuffler is corrupt",
            "randomized response, no Gaussian noise",
        ),
        rounding=0.0,
    )
