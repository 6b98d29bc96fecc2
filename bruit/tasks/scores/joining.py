"""For whom joining paid: what every peer has alone, together, together with its local part, and if
all records lay in one place; on its own test records, or on public ones.

    gain of u = metric of the model that u ends with - metric of the model that u fits alone
                (the other way round where less is better)

What peers have alone is fitted without noise: it is for whoever simulates everybody; no peer sends
it. One test record weighs 1/t_u, so small differences on few test records mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Numbers = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Joining:
    """One number a peer in each tuple; `own_part` is None where no part of a model stays at home.
    own_test: judged on test records of every peer's own, else on public ones."""

    metric: str
    higher: bool
    own_test: bool
    names: tuple[str, ...]
    records: tuple[int, ...]
    test_records: tuple[int, ...]
    alone: Numbers
    together: Numbers
    own_part: Numbers | None
    pooled: Numbers
    local: tuple[str, ...] = ()

    @property
    def ends_with(self) -> Numbers:
        """The metric of the models that peers end with."""
        return self.together if self.own_part is None else self.own_part

    @property
    def gains(self) -> Numbers:
        """By how much the model of each peer beats the one it fits alone; positive is better."""
        sign = 1.0 if self.higher else -1.0
        return tuple(
            sign * (end - alone) for end, alone in zip(self.ends_with, self.alone, strict=True)
        )

    def mean(self) -> float:
        """Of the models that peers end with, over peers."""
        return float(np.mean(self.ends_with))

    def columns(self) -> list[tuple[str, Numbers]]:
        """What is set side by side, by name: one number a peer in each."""
        own = [] if self.own_part is None else [(f"with its {self.part()}", self.own_part)]
        return [
            ("alone", self.alone),
            ("together", self.together),
            *own,
            ("pooled", self.pooled),
            ("gain", self.gains),
        ]

    def of(self, peer: int) -> Numbers:
        """The row of one peer: its number of every column."""
        return tuple(numbers[peer] for _, numbers in self.columns())

    def spread(self) -> list[tuple[str, Numbers]]:
        """Mean and standard deviation over peers of every column; one peer alone has none."""
        if len(self.names) < 2:
            return []
        numbers = np.array([column for _, column in self.columns()])
        return [
            ("mean over peers", tuple(numbers.mean(axis=1).tolist())),
            ("standard deviation over peers", tuple(numbers.std(axis=1, ddof=1).tolist())),
        ]

    def where(self) -> str:
        """What models are judged on, in words."""
        return "its own test records" if self.own_test else "records that no peer holds"

    def part(self) -> str:
        """What stays at home, in words."""
        return "own " + (" and ".join(self.local) if self.local != ("all",) else "model on top")

    def sentence(self) -> str:
        """For whom it paid and for whom it did not."""
        groups = {
            "paid for": [n for n, gain in zip(self.names, self.gains, strict=True) if gain > 0],
            "changed nothing for": [
                n for n, gain in zip(self.names, self.gains, strict=True) if gain == 0
            ],
            "did not pay for": [
                n for n, gain in zip(self.names, self.gains, strict=True) if not gain >= 0
            ],
        }
        told = [f"{word} {_some(names)}" for word, names in groups.items() if names]
        return f"joining {', '.join(told)}"

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "gains": list(self.gains), "in_words": self.sentence()}


def _some(names: list[str]) -> str:
    """All of a few names, and how many of many."""
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} peers"


def joining_from(stored: Mapping[str, Any]) -> Joining:
    """What `Joining.describe` wrote."""
    numbers = {
        key: None if stored[key] is None else tuple(float(value) for value in stored[key])
        for key in ("alone", "together", "own_part", "pooled")
    }
    counts = {
        key: tuple(int(value) for value in stored[key]) for key in ("records", "test_records")
    }
    words = {key: tuple(str(word) for word in stored[key]) for key in ("names", "local")}
    found: dict[str, Any] = {**numbers, **counts, **words}
    found |= {key: bool(stored[key]) for key in ("higher", "own_test")}
    return Joining(metric=str(stored["metric"]), **found)
