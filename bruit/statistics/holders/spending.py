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
    """`spend` is what a holder calls with the question it is about to answer; `check` refuses before
    the other holder is waited for."""

    account: Account

    def spend(self, question: TablesQuestion) -> None:
        """Write one question down, or refuse it."""
        self.account.charge(_price(question))

    def check(self, question: TablesQuestion) -> None:
        """Refuse what would cost too much, and write nothing."""
        self.account.check(_price(question))


def _price(question: TablesQuestion) -> Price:
    rounds = "" if question.rounds == 1 else f", {question.rounds} rounds"
    about = f"{question.name} of two tables{rounds}"
    return Price.stated(about, question.exact_epsilon, 0.0, "record", AGAINST)
