"""Questions of two holders, written down before anything about the rows leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from bruit.privacy.spent_file import SpentFile
from bruit.two_party.question import Question


@final
@dataclass(frozen=True)
class Spending(SpentFile):
    """`spend` is what a holder calls with the question it is about to answer."""

    def spend(self, question: Question) -> None:
        """Write one question down, or refuse it."""
        self.write(question.exact_epsilon, statistic=question.statistic, rounds=question.rounds)
