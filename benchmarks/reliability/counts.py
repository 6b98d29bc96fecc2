"""What was counted, what was hoped for, and whether it held; progress goes to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Count:
    """One line of the table: `found` of what is meant, the `goal` in words, and whether it is
    reached."""

    question: str
    what: str
    found: float
    goal: str
    held: bool


class Progress:
    """A word to standard error now and then, so that a long count is seen to move."""

    def __init__(self, question: str, total: int, every: float = 5.0) -> None:
        self._question, self._total, self._every = question, total, every
        self._begin = self._last = time.monotonic()

    def __call__(self, done: int, words: str = "") -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            more = f", {words}" if words else ""
            print(
                f"{self._question}: {done} of {self._total} after {now - self._begin:.0f} s{more}",
                file=sys.stderr,
            )


def show(counts: list[Count]) -> None:
    shown = Table(title="reliability of real peers", title_justify="left")
    for name in ("question", "what was counted", "found", "goal", "held"):
        shown.add_column(name, justify="right" if name == "found" else "left")
    for one in counts:
        shown.add_row(
            one.question, one.what, f"{one.found:,.6g}", one.goal, "yes" if one.held else "NO"
        )
    Console(width=140).print(shown)


def answer(ask: Callable[[bool], list[Count]]) -> None:
    """The command of one question: `--full` for the counts of the goals, `--json` for a program."""
    counts = ask("--full" in sys.argv)
    if "--json" in sys.argv:
        print(json.dumps([asdict(one) for one in counts], indent=1))
    else:
        show(counts)
    raise SystemExit(0 if all(one.held for one in counts) else 1)
