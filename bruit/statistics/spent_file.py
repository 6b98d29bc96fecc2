"""What the rows of a table have paid so far, kept in a file beside it: aborted and repeated
questions count too.

A line is written before anything about the rows leaves; an answer that was lost on the way may
still have been seen. All commands that ask a table (`auc`, `mean`, `ldp report`, alone or with
partners) keep one and the same file. A record that is a link stays one: what it leads to is read and
written, and if that is not there nothing may be asked.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.files import to_json, write_whole

PATIENCE = 10.0  # seconds another writer is waited for
MOST_DELTA = (
    1e-3  # of all questions together, where epsilons are limited: a delta near 1 hides nothing
)


@dataclass(frozen=True)
class SpentFile:
    """limit: what all questions together may cost one row; inf only keeps the record. Under a limit
    their deltas add up to at most `MOST_DELTA`."""

    path: str | Path
    limit: float = math.inf

    @property
    def place(self) -> Path:
        """Where the record lies, links followed."""
        return Path(os.path.realpath(self.path))

    def write(self, epsilon: float, **about: Any) -> None:
        """Write one question down, or refuse it; `delta` is 0 if it is not told."""
        with _alone(Path(f"{self.place}.lock")):
            lines = self.check(epsilon, float(about.get("delta", 0.0)))
            lines.append(
                {
                    "when": datetime.now(UTC).isoformat(timespec="seconds"),
                    **about,
                    "epsilon": epsilon,
                }
            )
            write_whole(
                self.place, lambda stream: stream.write(to_json(lines).encode()), private=True
            )

    def check(self, epsilon: float, delta: float = 0.0) -> list[dict[str, Any]]:
        """Refuse a question that would cost too much, and write nothing; all questions so far."""
        lines = self.lines()
        spent = total(lines)
        if not (epsilon >= 0 and spent + epsilon <= self.limit):
            raise PrivacyError(
                f"the rows have paid epsilon = {spent:g} so far ({self.path}); {epsilon:g} more "
                f"would be"
                f" above the limit {self.limit:g}"
            )
        deltas = total_delta(lines)
        if self.limit < math.inf and not (delta >= 0 and deltas + delta <= MOST_DELTA):
            raise PrivacyError(
                f"the rows have paid delta = {deltas:g} so far ({self.path}); {delta:g} more would"
                f" be above {MOST_DELTA:g}, the most under a limit: ask with a smaller delta"
            )
        return lines

    def lines(self) -> list[dict[str, Any]]:
        """All questions so far."""
        path = Path(self.path)
        if not os.path.lexists(path):
            return []
        try:
            found = json.loads(path.read_bytes())
            if not (
                isinstance(found, list)
                and all(_paid(line) >= 0 and _delta(line) >= 0 for line in found)
            ):
                raise ValueError("no list of questions")
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ) as error:
            raise BrokenStateError(
                f"{path} does not say what the rows have paid ({error}); put back the file as it "
                "was"
            ) from None
        return found


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One writer at a time, among threads and processes: whoever makes the lock file has it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"another process has been writing {lock.stem} for {PATIENCE:g} s; if there is "
                    f"none,"
                    f" delete {lock}"
                ) from None
            time.sleep(0.01)
        except OSError as error:
            raise ConfigError(f"cannot write {lock}: {error.strerror or error}") from None
    try:
        yield
    finally:
        lock.unlink()


def beside(table: Path, limit: float | None = None) -> SpentFile:
    """The record of a table, next to it wherever the command is given from; links to a table share
    its record."""
    real = table.resolve() if table.is_symlink() else table
    return SpentFile(Path(f"{real}.spent.json"), math.inf if limit is None else limit)


def unrecorded(_: object) -> None:
    """What pays for data one may lose: nothing is written down. For simulations and tests, by this
    word only."""


def total(lines: list[dict[str, Any]]) -> float:
    """Epsilons of several questions about the same rows add up."""
    return math.fsum(_paid(line) for line in lines)


def total_delta(lines: list[dict[str, Any]]) -> float:
    """And so do deltas."""
    return math.fsum(_delta(line) for line in lines)


def in_all(lines: list[dict[str, Any]]) -> str:
    """What the rows have paid, in words."""
    deltas = total_delta(lines)
    return f"epsilon = {total(lines):g}" + (f", delta = {deltas:g}" if deltas else "")


def _paid(line: dict[str, Any]) -> float:
    return float(line["epsilon"])


def _delta(line: dict[str, Any]) -> float:
    return float(line.get("delta", 0.0))
