"""What a relay has seen: who called whom, when, how often, and how many bytes went each way.

This is all there is to see. Between the two ends everything is TLS under keys that the relay does
not have; it can delay and cut, and cannot read or alter without the line breaking.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Pair:
    """The calls of one peer to another."""

    calls: int = 0
    to_callee: int = 0  # bytes
    to_caller: int = 0
    first: float = 0.0  # UTC, seconds since 1970
    last: float = 0.0


@dataclass
class Seen:
    """Kept in memory, one line for each pair of members at most."""

    pairs: dict[tuple[str, str], Pair] = field(default_factory=dict)  # by fingerprints
    refused: Counter[str] = field(default_factory=Counter)

    def call(self, caller: str, callee: str) -> Pair:
        pair = self.pairs.setdefault((caller, callee), Pair(first=time.time()))
        pair.calls += 1
        pair.last = time.time()
        return pair

    def table(self, names: Mapping[str, str]) -> list[dict[str, Any]]:
        """One row a pair, by names."""
        return [
            {"caller": names.get(a, a), "callee": names.get(b, b), **vars(pair)}
            for (a, b), pair in sorted(
                self.pairs.items(), key=lambda one: [names.get(end, end) for end in one[0]]
            )
        ]
