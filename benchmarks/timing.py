"""Timing as ratios: alternatives of one question take turns in one process, and CPU seconds are
compared by medians.

Absolute seconds depend on the machine and its neighbors; ratios measured in one run much less.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def interleaved(cases: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Median CPU seconds of each case; a first turn, not counted, warms caches and compiles. BLAS
    uses one thread."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    with threadpool_limits(1):
        for turn in range(repeats + 1):
            for name, work in cases.items():
                begin = time.process_time()
                work()
                if turn:
                    seconds[name].append(time.process_time() - begin)
    return {name: median(found) for name, found in seconds.items()}


@dataclass(frozen=True)
class Goal:
    """What was hoped for, what was found, and whether that is enough."""

    text: str
    found: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.found >= self.bound if self.at_least else self.found <= self.bound

    def says(self, judged: bool) -> str:
        """The goal in one line; a quick run has smaller cases than the goal speaks of and is not
        judged by it."""
        sign, verdict = (">=" if self.at_least else "<="), ("met" if self.met else "NOT met")
        return f"{verdict if judged else 'not judged'}: {self.text}: {self.found:.3g} (goal {sign} {self.bound:g})"


@dataclass
class Answer:
    """The table of one question: rows of (what, number, unit), and its goals; `quick` runs are not
    judged."""

    question: str
    quick: bool = False
    rows: list[tuple[str, float, str]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def add(self, what: str, number: float, unit: str) -> None:
        self.rows.append((what, number, unit))

    def __str__(self) -> str:
        lines = [f"  {what:<58} {number:>12.4g} {unit}" for what, number, unit in self.rows]
        return "\n".join(
            [self.question, *lines, *(f"  {goal.says(not self.quick)}" for goal in self.goals)]
        )

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        rows = [{"what": what, "number": number, "unit": unit} for what, number, unit in self.rows]
        goals = [
            {
                "text": goal.text,
                "found": goal.found,
                "bound": goal.bound,
                "at_least": goal.at_least,
                "met": None if self.quick else goal.met,
            }
            for goal in self.goals
        ]
        return {"question": self.question, "quick": self.quick, "rows": rows, "goals": goals}


def main(measure: Callable[[bool], Answer]) -> None:
    """What `python -m benchmarks.speed.NAME [--quick] [--json]` does."""
    answer = measure("--quick" in sys.argv)
    print(json.dumps(answer.plain(), indent=1) if "--json" in sys.argv else answer)
