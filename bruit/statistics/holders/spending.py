"""Questions of two holders, written down before anything about the rows leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from bruit.accounts.account import Account
from bruit.accounts.prices import Price
from bruit.statistics.holders.question import TablesQuestion

AGAINST = "the other holder and whoever it tells (semi-honest two-party computation)"


@final
@dataclass(frozen=True)
class Spending:
    """`spend` is what a holder calls with the question it is about to answer."""

    account: Account

    def spend(self, question: TablesQuestion) -> None:
        """Write one question down, or refuse it."""
        rounds = "" if question.rounds == 1 else f", {question.rounds} rounds"
        about = f"{question.name} of two tables{rounds}"
        price = Price.stated(about, question.exact_epsilon, 0.0, "record", AGAINST)
        self.account.charge(price)
