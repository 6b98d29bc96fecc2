"""Secure aggregation with noise shared out: only the sum comes out, with a curator's noise in it (perso:FL-2, FL-3).

    own = 1 / (mu sqrt(n_H)),  n_H = n minus the colluders, who know their own shares;   error own / sqrt(n)
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.planning.option import Option
from bruit.planning.question import Question


def option(question: Question) -> Option:
    """The mean of one value per peer, summed by an untrusted server that sees masked words only."""
    if question.job != "mean":
        raise PrivacyError("secure aggregation averages one value per peer: it sums, not learns")
    if question.caps is not None:
        raise PrivacyError("everybody sees the same sum: there is nothing to choose between pairs")
    n, honest = question.peers, question.peers - question.colluders
    threshold = n // 2 + 1
    if question.colluders >= threshold:
        raise PrivacyError(f"{question.colluders} colluders of {n} hold enough shares to restore any secret; secure"
                           " aggregation needs an honest majority")  # fmt: skip
    own = 1 / (question.mu * math.sqrt(honest))
    return Option(
        "secure-aggregation", f"complete:{n}", 4, own, "proven", "the Gaussian mechanism of a sum, noise shared out",
        "perso:FL-3", f"a server that never colludes with {threshold} of {n} peers, and the hardness of key agreement",
        own / math.sqrt(n), False, "perso:FL-2: own / sqrt(n)", 3.0 * (n - 1) + 2, question.mu**2 * own**2,
        ("privacy is computational", f"up to {n - threshold} dropouts; their share of the noise is then missing",
         "one of the messages carries the value, the others keys and shares of secrets"),
    )  # fmt: skip
