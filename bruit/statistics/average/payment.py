"""What one participant pays for one mean among peers, whoever asks for it: the law of paying, not
an option.

    price = the epsilon among those who are left, at the agreed delta, and no less than what was agreed on

It is known, and written down in the record of the table, before the masked value is opened, and
nothing is added afterwards: who is in the mean is settled by then. Coins that hide nothing among
those who are left are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

from bruit.accounts.account import Account
from bruit.accounts.prices import Price
from bruit.errors import PrivacyError
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.terms import MeanTerms

AGAINST = "any one other peer that follows the protocol"


@final
class Payment:
    """Of one table in one run; `paid` is what was written down so far."""

    def __init__(self, terms: MeanTerms, record: Account) -> None:
        self._terms, self._record = terms, record
        self.paid = 0.0

    def least(self, agreement: AverageAgreement) -> Price:
        """What is paid if everybody stays."""
        return self._price(agreement, self._terms.epsilon)

    def check(self, agreement: AverageAgreement, online: Sequence[int]) -> float:
        """The price, or a refusal: by the record's limit, or because nothing would be hidden. Asked
        before this peer agrees, so that nobody else pays for a mean that it would not open."""
        price = max(self._terms.epsilon, self._terms.price(agreement, online))
        if not math.isfinite(price):
            raise PrivacyError(
                f"only {len(online)} of {agreement.peers} peers are left, and their coins hide"
                f" nothing at delta = {self._terms.delta:g}; nothing was told:"
                " ask again when more are there, or plan for --dropouts"
            )
        self._record.check(self._price(agreement, price))
        return price

    def pay(self, agreement: AverageAgreement, online: Sequence[int]) -> None:
        """Write the price down, or refuse."""
        price = self.check(agreement, online)
        self._record.charge(self._price(agreement, price))
        self.paid += price

    def _price(self, agreement: AverageAgreement, epsilon: float) -> Price:
        terms = self._terms
        return Price.stated(agreement.title, epsilon, terms.delta, terms.level, AGAINST)
