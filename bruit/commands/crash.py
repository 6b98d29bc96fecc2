"""`bruit replay --crash FILE`: the failed call of an algorithm once more, and what it was given."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.commands.printing import Detail, Line, Printer
from bruit.errors import BruitError, ConformanceError
from bruit.runs.crashes.crash import Crash, load_crash


@dataclass(frozen=True)
class CrashAgain:
    """What came of the call, made again: the error, or None."""

    crash: Crash
    error: Exception | None

    @property
    def same(self) -> bool:
        """Whether it failed as it had: the same kind of error with the same words."""
        return self.error is not None and repr(self.error) == self.crash.about["error"]

    def plain(self) -> dict[str, Any]:
        given = [
            {
                "name": name,
                "type": str(rows.dtype),
                "shape": list(rows.shape),
                "range": _range(rows),
            }
            for name, rows in self.crash.arrays()
        ]
        return {
            "reproduced": self.same,
            "error": None if self.error is None else repr(self.error),
            "traceback": self._frames(),
            "given": given,
            **self.crash.about,
        }

    def lines(self) -> Iterator[Line]:
        yield self.crash.words()
        yield Detail("it was given")
        for name, rows in self.crash.arrays():
            yield Detail(f"  {name}: {rows.dtype} {rows.shape}{_words(rows)}")
        if self.error is not None:
            yield Detail("".join(self._frames()).rstrip())
        if self.same:
            yield f"it fails again: {self.error!r}"

    def _frames(self) -> list[str]:
        """The traceback, from the function of the algorithm on."""
        if self.error is None:
            return []
        frames = traceback.extract_tb(self.error.__traceback__)
        first = 1 + [frame.name for frame in frames].index("make")  # `FailedCall.make` calls it
        return ["Traceback (most recent call last):\n", *traceback.format_list(frames[first:])]


def replay_crash(path: Path, printer: Printer) -> None:
    """Make the failed call again and print it; a call that does not fail in the same way is a
    disagreement."""
    crash, error = load_crash(path), None
    algorithm = crash.algorithm()
    try:
        crash.replay(algorithm)
    except BruitError:
        raise
    except Exception as found:
        error = found
    again = CrashAgain(crash, error)
    printer.answer(again)
    if not again.same:
        now = "it does not fail now" if error is None else f"it fails otherwise now: {error!r}"
        raise ConformanceError(
            f"when the file was written it failed with {crash.about['error']}; {now}"
        )


def _range(rows: Array) -> list[float] | None:
    """The least and the largest number."""
    return None if not rows.size else [float(np.min(rows)), float(np.max(rows))]


def _words(rows: Array) -> str:
    found = _range(rows)
    if found is None:
        return ", empty"
    return f", {found[0]:.6g} to {found[1]:.6g}"
