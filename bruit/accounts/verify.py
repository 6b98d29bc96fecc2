"""Whether an account or an audit log can be believed: its lines follow from each other, and none is
missing as far as anybody can tell.

    damaged       a line does not follow from the one before: edited, dropped, swapped, doubled
    doubts        what such a file cannot show by itself: a line cut in two at the end, an end that a
                  signed report knows and this file does not have, releases that no line tells of

A chain without its last lines is as good as before, and so is one whose last line was edited: only who
knows its head sees that. Whoever may write the file could write all of it anew; a head elsewhere, in a
report that others have, is what it cannot change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bruit.accounts.account import Account
from bruit.accounts.chain import ChainHead, ChainLines, examine
from bruit.accounts.released import AUDIT, Released, RunReleases
from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.how_many import how_many


@dataclass(kw_only=True)
class ExaminedLog:
    """What was found out about one file."""

    path: Path
    kind: str  # "account" or "audit log"; empty if it is neither
    found: ChainLines
    damaged: str = ""
    doubts: list[str] = field(default_factory=list)
    runs: list[RunReleases] = field(default_factory=list)
    charges: int = 0

    @property
    def good(self) -> bool:
        return not self.damaged and not self.doubts

    def plain(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "kind": self.kind,
            "verified": self.good,
            "damaged": self.damaged,
            "doubts": self.doubts,
            "head": self.found.head.describe(),
            "charges": self.charges,
            "runs": [
                {
                    **run.about,
                    "releases": run.releases,
                    "ledger_lines": run.last,
                    "epsilon": run.epsilon(),
                    "delta": run.delta,
                    "ended": run.ended,
                    "unsaid": run.unsaid,
                    "again": run.again,
                    "missing": [list(part) for part in run.missing],
                }
                for run in self.runs
            ],
        }


def verify(path: Path) -> ExaminedLog:
    """Read a file and say what is wrong with it."""
    if path.exists() and not path.is_file():
        raise ConfigError(
            f"{path} is no file that ends; name an audit.jsonl, or an account of records"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    found = examine(data)
    kind = str(found.lines[0].get("what")) if found.lines else ""
    log = ExaminedLog(
        path=path,
        kind=kind if kind in ("account", AUDIT) else "",
        found=found,
        damaged=found.flaw,
    )
    if log.damaged:
        return log
    if not log.kind:
        log.damaged = "line 1 begins neither an account nor an audit log"
        return log
    if found.torn:
        log.doubts.append(
            f"after line {len(found.lines)} a line is not whole: a crash left it, or somebody cut it;"
            " the next writer removes it and says so"
        )
    (_read_account if log.kind == "account" else _read_audit)(log)
    return log


def _read_account(log: ExaminedLog) -> None:
    try:
        log.charges = len(Account(log.path).balance().charged)
    except BrokenStateError as error:
        log.damaged = str(error)
    except PrivacyError as error:
        log.doubts.append(str(error))


def _read_audit(log: ExaminedLog) -> None:
    try:
        log.runs = list(Released.of(log.found.lines).runs.values())
    except ValueError as error:
        log.damaged = str(error)
        return
    for run in log.runs:
        name = str(run.about["run"])[:16]
        for first, last in run.missing:
            which = f"line {first}" if first == last else f"lines {first} to {last}"
            log.doubts.append(f"nothing is said of {which} of the ledger of run {name}")
        if run.again:
            log.doubts.append(
                f"run {name} went on from an old copy of its journal, which knew nothing of"
                f" {how_many(run.again, 'line')} of its ledger: these count, besides those that took"
                " their numbers"
            )


def compare(log: ExaminedLog, head: ChainHead) -> None:
    """Hold it against a head that somebody else knows."""
    if not log.damaged and not log.found.reaches(head):
        log.doubts.append(
            f"it had {how_many(head.lines, 'line')} when the report was signed, and this file has"
            f" {len(log.found.lines)}, or others: its end was cut off or edited"
        )
