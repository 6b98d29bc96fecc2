"""What a fitted estimator says about privacy, in the labels of its peers."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from bruit.errors import PrivacyError
from bruit.notebook_table import html_table
from bruit.privacy.guarantee import Epsilon, level_words
from bruit.runs.result import Run
from bruit.show.summary import public_facts
from bruit.sklearn.holders import Labels


class PrivacyWarning(UserWarning):
    """What was asked for runs, and protects less than it seems to."""


@dataclass(frozen=True, eq=False)
class Privacy:
    """The account of one fit.

    `epsilon` holds against everybody together and against whoever is given the fitted models: all
    releases count as seen. `worst_pair` holds against one peer that saw only its own messages, and
    no fitted model but its own.
    """

    run: Run
    labels: Labels
    delta: float

    @property
    def protected(self) -> bool:
        """Whether any noise was added."""
        return self.epsilon < inf

    @property
    def level(self) -> str:
        return self.run.facts().level

    @property
    def _protected(self) -> str:
        facts = self.run.facts()
        return level_words(facts.level, facts.adjacency)

    @cached_property
    def epsilon(self) -> Epsilon:
        """What everybody could have learned about the worst peer; `.why()` explains it."""
        return self.run.epsilon(delta=self.delta)

    @cached_property
    def worst_pair(self) -> float:
        """The largest epsilon of one peer in the view of another one."""
        return self.run.summary(self.delta).epsilons[0] if self.protected else inf

    @property
    def public(self) -> tuple[str, ...]:
        """What is known of the rows besides the messages, and covered by no epsilon: counts,
        classes."""
        return tuple(
            fact["fact"] for fact in public_facts(self.run) if fact["from"] == "private rows"
        )

    def pair(self, of: Any, seen_by: Any) -> Epsilon:
        """What the peer `seen_by` could have learned about the peer `of` from the messages of the
        fit."""
        return self.run.epsilon(of=self._place(of), seen_by=self._place(seen_by), delta=self.delta)

    def _place(self, label: Any) -> int:
        place = {known: i for i, known in enumerate(self.labels.tolist())}
        if label not in place:
            raise PrivacyError(f"there is no peer {label!r}; the peers of this fit are in peers_")
        return place[label]

    def _rows(self) -> list[tuple[str, float]]:
        return [
            ("everybody, and whoever is given the models", float(self.epsilon)),
            ("one peer about another, from messages: the worst pair", self.worst_pair),
        ]

    def __str__(self) -> str:
        if not self.protected:
            return "no privacy: no noise was added, so epsilon is infinite"
        about = f"privacy at {self._protected}, epsilon at delta = {self.delta:g}"
        known = f"  covered by no epsilon: {'; '.join(self.public)}"
        return "\n".join([about, *(f"  {who}: {value:.4g}" for who, value in self._rows()), known])

    def _repr_html_(self) -> str:
        if not self.protected:
            return html_table(str(self), [])
        rows: list[tuple[str, object]] = [
            *self._rows(),
            ("covered by no epsilon", "; ".join(self.public)),
        ]
        return html_table(f"epsilon at delta = {self.delta:g} ({self._protected})", rows)
