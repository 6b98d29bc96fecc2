"""The holders' side of local DP: one randomized report per row of a table, safe to send to an
aggregator nobody trusts.

Only the reports travel. What they cost is written down in the record of the table before they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bruit.errors import ConfigError
from bruit.files import check_place
from bruit.privacy.events import Event
from bruit.randomness import Dice
from bruit.statistics.local.auc_reports import LEVELS, ScoreReports
from bruit.statistics.local.catalog import Known
from bruit.statistics.local.compare import best, frequency_protocols
from bruit.statistics.local.protocol import FrequencyProtocol
from bruit.statistics.local.reports import Reports, save_reports
from bruit.statistics.tables import (
    AGAINST,
    PROTECTS,
    USUAL_DELTA,
    Paid,
    column_of_numbers,
    dice,
    labels_of,
    mean_protocol,
    pay,
    price,
)
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.formats.tables import read_table

SORTED = 10  # rows from which order is no accident


@dataclass(frozen=True, kw_only=True)
class ReportQuestion:
    """What is reported on: values of a domain, numbers between low and high, or scores with public
    labels."""

    table: Path
    column: str
    epsilon: float = 1.0
    protocol: str | None = None  # the best one, if it is not named
    domain: str | None = None  # all possible values, by commas
    low: float | None = None
    high: float | None = None
    delta: float = USUAL_DELTA
    label: str | None = None
    positive: str | None = None
    levels: int | None = None
    clamp: bool = False
    keep_order: bool = False  # places are public
    limit: float | None = None
    seed: int | None = None  # replayable dice, for data one may lose

    def __post_init__(self) -> None:
        others = self.domain is not None or self.protocol is not None or self.keep_order
        if self.label is not None and (others or self.delta != USUAL_DELTA):
            raise ConfigError(
                "scores with labels are reported as one bit each, in random order; leave --domain, "
                "--protocol, --delta and --keep-order out"
            )
        if self.label is None and (self.positive is not None or self.levels is not None):
            raise ConfigError(
                "--positive and --levels are about scores with labels; name their column with"
                " --label"
            )


@dataclass(frozen=True)
class Reported:
    """A file of reports that was written, and what it cost."""

    asked: ReportQuestion
    file: Path
    reports: Reports
    bits: float
    paid: Paid

    @property
    def delta(self) -> float:
        """What the reports spend of it."""
        return float(self.reports.protocol.get("delta", 0.0))

    def plain(self) -> dict[str, Any]:
        """Plain data."""
        asked = self.asked
        return {
            "written": str(self.file),
            "reports": len(self.reports),
            "protocol": self.reports.protocol["kind"],
            "epsilon": asked.epsilon,
            "delta": self.delta,
            "level": "user",
            "against": AGAINST,
            "bits_per_user": self.bits,
            "protects": PROTECTS if asked.label is not None else asked.column,
            "rehearsal": asked.seed is not None,
            "order": "of the rows" if asked.keep_order else "random",
            "recorded": self.paid.record or None,
        }


def report_on(asked: ReportQuestion, file: Path, force: bool = False) -> Reported:
    """Randomize, pay, and only then write the file."""
    check_place(file, force)
    columns = read_table(asked.table)
    if asked.label is not None:
        reports, bits, event = _scores(columns, asked, asked.label)
    else:
        reports, bits, event = _values(columns, asked)
    spent = float(reports.protocol.get("delta", 0.0))
    title = f"report on {asked.column}"
    paid = pay(asked.table, asked.limit, price(title, asked.epsilon, spent, event), asked.seed)
    save_reports(reports, file)
    return Reported(asked, file, reports, bits, paid)


def _values(
    columns: Columns,
    asked: ReportQuestion,
) -> tuple[Reports, float, Event]:
    """Reports on values of a domain, or on numbers between two ends; their size in bits, and what one
    costs."""
    if (asked.domain is None) == (asked.low is None or asked.high is None):
        raise ConfigError(
            "say what may be reported: either --domain red,green,blue, or --low and --high of a"
            " number, or --label of a score"
        )
    names: tuple[str, ...] = ()
    chosen: Known
    if asked.domain is not None:
        names = tuple(word.strip() for word in asked.domain.split(","))
        chosen = _frequency_protocol(asked.protocol, names, asked.epsilon)
        values = _codes(columns, asked.column, names)
    else:
        chosen = mean_protocol(
            asked.low or 0.0, asked.high or 0.0, asked.epsilon, asked.delta, asked.protocol
        )
        values = column_of_numbers(columns, asked.column)
        values = np.clip(values, chosen.low, chosen.high) if asked.clamp else values
    if asked.keep_order:
        _refuse_sorted(values, columns.file, asked.column)
    thrown = dice(asked.seed, chosen, values)
    reports = chosen.report(values if asked.keep_order else _shuffled(values, thrown), thrown)
    return replace(reports, labels=names), chosen.bits(), chosen.event()


def _scores(columns: Columns, asked: ReportQuestion, label: str) -> tuple[Reports, float, Event]:
    """One bit about each score; a holder may have users of one class only."""
    low, high = 0.0 if asked.low is None else asked.low, 1.0 if asked.high is None else asked.high
    levels = LEVELS if asked.levels is None else asked.levels
    agreed = ScoreReports(levels, asked.epsilon, low, high)
    scores = column_of_numbers(columns, asked.column)
    scores = np.clip(scores, low, high) if asked.clamp else scores
    labels = labels_of(columns, label, asked.positive)
    reports = agreed.report(scores, labels, dice(asked.seed, agreed, scores, labels))
    return reports, 1.0, agreed.event()


def _codes(columns: Columns, name: str, labels: tuple[str, ...]) -> Any:
    cells, place = columns.of(name), {label: number for number, label in enumerate(labels)}
    strange = next((row for row, cell in enumerate(cells) if cell not in place), None)
    if strange is not None:
        raise ConfigError(
            f"{columns.file} line {columns.lines[strange]}, column {name!r} holds"
            f" {cells[strange]!r}, which is not in the declared domain ({', '.join(labels[:20])});"
            " declare it, or correct it"
        )
    return np.array([place[cell] for cell in cells], dtype=np.int64)


def _frequency_protocol(
    kind: str | None, labels: tuple[str, ...], epsilon: float
) -> FrequencyProtocol:
    if len(set(labels)) != len(labels) or "" in labels:
        raise ConfigError(
            f"the domain names different values by commas, found {','.join(labels)!r}"
        )
    if kind is None:
        return best(len(labels), epsilon)
    known = {protocol.kind: protocol for protocol in frequency_protocols(len(labels), epsilon)}
    if kind not in known:
        raise ConfigError(
            f"no protocol {kind!r} reports one of {len(labels)} values; there are: "
            f"{', '.join(known)}"
        )
    return known[kind]


def _refuse_sorted(values: Any, file: str, column: str) -> None:
    """The place of a report in its file is not randomized: if rows are sorted, places tell
    values."""
    steps = np.diff(values)
    if len(values) >= SORTED and steps.any() and ((steps >= 0).all() or (steps <= 0).all()):
        raise ConfigError(
            f"{file} is sorted by {column!r}, so that the place of a report would tell the value"
            " behind it; leave --keep-order out"
        )


def _shuffled(values: Any, thrown: Dice) -> Any:
    return values[np.argsort(thrown.words("local-dp order", np.arange(len(values)), 0, 0, 1)[:, 0])]
