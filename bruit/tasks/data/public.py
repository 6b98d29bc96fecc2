"""What everybody knows besides messages: each fact with where it comes from, and what was agreed on
beforehand.

Epsilons speak of messages. A fact that is read off private rows and known to all (a vocabulary, a
count, a class) is outside of them, so it is listed wherever an epsilon is printed, unless it was
agreed on without looking at the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError

Source = Literal["agreed", "public rows", "private rows"]
SHOWN = 12  # names listed one by one


class Fact(NamedTuple):
    """One thing everybody knows; source: agreed beforehand, read off public rows, or off private
    ones."""

    text: str
    source: Source

    def describe(self) -> dict[str, str]:
        return {"fact": self.text, "from": self.source}


@dataclass(frozen=True)
class Agreed:
    """What was agreed on before anybody looked at the rows; what is left out is read off them, and
    said so.

    classes: the values of the label, in order. vocabulary: the values of text columns. scales:
    center and scale of columns of numbers. public: the owners whose rows are all public.
    """

    classes: Sequence[str] = ()
    vocabulary: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scales: Mapping[str, Sequence[float]] = field(default_factory=dict)
    public: Sequence[str] = ()

    def __post_init__(self) -> None:
        doubled = [name for name in self.classes if list(self.classes).count(name) > 1]
        if doubled or len(self.classes) == 1:
            raise ConfigError(
                f"agreed classes are at least two different values, found {', '.join(self.classes)}"
            )
        for name, values in self.vocabulary.items():
            if not values or len(set(values)) != len(values):
                raise ConfigError(
                    f"the vocabulary of column {name!r} is a list of different texts, found "
                    f"{', '.join(values) or 'none'}"
                )
        for name, pair in self.scales.items():
            if len(pair) != 2 or not all(isfinite(part) for part in pair) or not pair[1] > 0:
                raise ConfigError(
                    f"the scale of column {name!r} is [center, scale], two numbers, the scale above"
                    f" 0, found {list(pair)}"
                )


NOTHING = Agreed()


def counts(sizes: Ints, what: str = "records") -> Fact:
    """How much each peer holds: replacing a peer's data would change it, so no epsilon covers
    it."""
    low, high = int(np.min(sizes)), int(np.max(sizes))
    return Fact(
        f"how many {what} each peer holds ({low if low == high else f'{low} to {high}'})",
        "private rows",
    )


def listed(names: Sequence[str]) -> str:
    """Names one by one, or how many there are."""
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def said(facts: Sequence[Fact]) -> list[dict[str, str]]:
    """For the manifest, without repetitions."""
    return [fact.describe() for fact in dict.fromkeys(facts)]
