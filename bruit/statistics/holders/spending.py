"""Questions of two holders, written down before anything about the rows leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from bruit.statistics.holders.question import TablesQuestion
from bruit.statistics.spent_file import SpentFile


@final
@dataclass(frozen=True)
class Spending(SpentFile):
    """`spend` is what a holder calls with the question it is about to answer."""

    def spend(self, question: TablesQuestion) -> None:
        """Write one question down, or refuse it."""
        self.write(question.exact_epsilon, statistic=question.statistic, rounds=question.rounds)
