"""What the rows of a table have paid so far, kept in a file beside it: aborted and repeated questions count too.

A line is written before anything about the rows leaves; an answer that was lost on the way may still have been seen.
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

from bruit.errors import ConfigError, PrivacyError
from bruit.whole_files import to_json, write_whole

PATIENCE = 10.0  # seconds another writer is waited for


@dataclass(frozen=True)
class SpentFile:
    """limit: what all questions together may cost one row; inf only keeps the record."""

    path: str | Path
    limit: float = math.inf

    def write(self, epsilon: float, **about: Any) -> None:
        """Write one question down, or refuse it."""
        with _alone(Path(f"{self.path}.lock")):
            lines = self.lines()
            spent = total(lines)
            if not (epsilon >= 0 and spent + epsilon <= self.limit):
                raise PrivacyError(f"the rows have paid epsilon = {spent:g} so far ({self.path}); {epsilon:g} more"
                                   f" would be above the limit {self.limit:g}")  # fmt: skip
            lines.append({"when": datetime.now(UTC).isoformat(timespec="seconds"), **about, "epsilon": epsilon})
            write_whole(Path(self.path), lambda stream: stream.write(to_json(lines).encode()))

    def lines(self) -> list[dict[str, Any]]:
        """All questions so far."""
        path = Path(self.path)
        if not path.exists():
            return []
        try:
            found = json.loads(path.read_bytes())
            if not (isinstance(found, list) and all(_paid(line) >= 0 for line in found)):
                raise ValueError("no list of questions")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path} does not say what the rows have paid ({error}); put back the file as it "
                              "was") from None  # fmt: skip
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
                raise ConfigError(f"another process has been writing {lock.stem} for {PATIENCE:g} s; if there is none,"
                                  f" delete {lock}") from None  # fmt: skip
            time.sleep(0.01)
        except OSError as error:
            raise ConfigError(f"cannot write {lock}: {error.strerror or error}") from None
    try:
        yield
    finally:
        lock.unlink()


def beside(table: Path, limit: float | None = None) -> SpentFile:
    """The record of a table, next to it wherever the command is given from; links to a table share its record."""
    real = table.resolve() if table.is_symlink() else table
    return SpentFile(Path(f"{real}.spent.json"), math.inf if limit is None else limit)


def unrecorded(_: object) -> None:
    """What pays for data one may lose: nothing is written down. For simulations and tests, by this word only."""


def total(lines: list[dict[str, Any]]) -> float:
    """Epsilons of several questions about the same rows add up."""
    return math.fsum(_paid(line) for line in lines)


def _paid(line: dict[str, Any]) -> float:
    return float(line["epsilon"])
