"""A trusted shuffler: everybody sends one bit by randomized response, in random order (perso:FL-4, LDP-1).

    epsilon_0 = the largest local epsilon that shuffling turns into epsilon;   a value in [0, 1] is rounded to a bit at
    random, the bit told truthfully with chance e**epsilon_0 / (1 + e**epsilon_0);   error of the mean at most
    coth(epsilon_0 / 2) / (2 sqrt(n))
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.planning.option import Option, refuse_idle
from bruit.planning.question import Question
from bruit.privacy.accountants.shuffling import local_budget


def option(question: Question) -> Option:
    """The mean of one number per peer; the reports of observers hide nothing."""
    if question.job != "mean" or question.dim != 1:
        raise PrivacyError("shuffled bits estimate the mean of one number per peer")
    if question.caps is not None:
        raise PrivacyError("everybody sees the same reports: there is nothing to choose between pairs")
    refuse_idle(question, "steps", "cooldown")
    n = question.peers
    local = local_budget(question.epsilon, n - question.colluders, question.delta)
    return Option(
        "shuffling", "star", 1, math.nan, "proven", "amplification by shuffling", "perso:FL-4",
        "a shuffler that hides who sent what and colludes with nobody", 1 / math.tanh(local / 2) / (2 * math.sqrt(n)),
        True, "perso:LDP-1: coth(epsilon_0 / 2) / (2 sqrt(n))", 1.0, math.nan,
        (f"every report is {local:.4g}-LDP even if the shuffler is corrupt", "randomized response, no Gaussian noise"),
        0.0,
    )  # fmt: skip
