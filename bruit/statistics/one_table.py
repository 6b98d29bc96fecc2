"""Statistics that nobody could have collected, from one table of users: the AUC of scores, the mean
of a column.

Each row is one user, whose report is randomized before anything is counted. Every answer is
epsilon-DP for every user (user level) against everybody, the aggregator first, and is paid for in
the record of the table before any report is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.errors import ConfigError
from bruit.statistics.local.estimates import Estimate
from bruit.statistics.local.private_auc import (
    AucEstimate,
    PrivateAuc,
    choose_levels,
    predicted_error,
    users_needed,
)
from bruit.statistics.local.protocol import MeanProtocol, check_range
from bruit.statistics.local.quantized import bins_of
from bruit.statistics.tables import (
    AGAINST,
    PROTECTS,
    USUAL_DELTA,
    Paid,
    column_of_numbers,
    dice,
    mean_protocol,
    pay,
    price,
    too_few,
    two_labels,
)
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.pairs.ranking import two_classes


@dataclass(frozen=True, kw_only=True)
class TableQuestion:
    """What any question to a table says: the declared range of its values, the budget, and how sure
    the interval is."""

    table: Path
    low: float
    high: float
    epsilon: float = 1.0
    clamp: bool = (
        False  # values outside of the range move to its nearest end; else they are refused
    )
    confidence: float = 0.95
    limit: float | None = None
    seed: int | None = None  # replayable dice, for data one may lose


@dataclass(frozen=True, kw_only=True)
class TableAuc:
    """How well private scores tell two classes apart, and what that cost."""

    asked: TableQuestion
    found: AucEstimate
    positives: int
    negatives: int
    bins: int
    paid: Paid

    def plain(self) -> dict[str, Any]:
        """Plain data."""
        asked, found = self.asked, self.found
        return {
            "auc": found.value,
            "interval": [found.low, found.high],
            "confidence": asked.confidence,
            "error": found.error,
            "raw": found.raw,
            "epsilon": asked.epsilon,
            "delta": 0.0,
            "level": "user",
            "against": AGAINST,
            "bits_per_user": 1,
            "users": self.positives + self.negatives,
            "positives": self.positives,
            "negatives": self.negatives,
            "bins": self.bins,
            "protects": PROTECTS,
            "rehearsal": asked.seed is not None,
            "recorded": self.paid.record or None,
        }


@dataclass(frozen=True, kw_only=True)
class TableMean:
    """The mean of a private column, and what that cost."""

    asked: TableQuestion
    found: Estimate
    noise: MeanProtocol
    delta: float
    paid: Paid

    def plain(self) -> dict[str, Any]:
        """Plain data."""
        asked, found = self.asked, self.found
        return {
            "mean": found.value,
            "interval": [found.low, found.high],
            "confidence": asked.confidence,
            "error": found.error,
            "epsilon": asked.epsilon,
            "delta": self.delta,
            "level": "user",
            "against": AGAINST,
            "bits_per_user": self.noise.bits(),
            "users": found.reports,
            "protocol": self.noise.kind,
            "rehearsal": asked.seed is not None,
            "recorded": self.paid.record or None,
        }


def auc_of_table(
    asked: TableQuestion,
    score: str,
    label: str,
    positive: str | None = None,
    levels: int | None = None,
) -> TableAuc:
    """One randomized bit per user; labels are public. Without `levels` the bins follow from the
    counts."""
    columns = read_table(asked.table)
    scores, labels = column_of_numbers(columns, score), two_labels(columns, label, positive)
    up, down = (len(part) for part in two_classes(scores, labels))
    depth = choose_levels(up, down, asked.epsilon) if levels is None else levels
    protocol = PrivateAuc(depth, asked.epsilon, ties="half")
    _refuse_blind_auc(up, down, protocol)
    scores = np.clip(scores, asked.low, asked.high) if asked.clamp else scores
    bins = bins_of(scores, 1 << depth, asked.low, asked.high)
    title = f"auc of {score} by {label}"
    cost = price(title, asked.epsilon, 0.0, protocol.event())
    paid = pay(asked.table, asked.limit, cost, asked.seed)
    reports = protocol.report(bins, dice(asked.seed, protocol, bins))
    found = protocol.estimate(reports, labels, confidence=asked.confidence)
    return TableAuc(
        asked=asked, found=found, positives=up, negatives=down, bins=1 << depth, paid=paid
    )


def mean_of_table(
    asked: TableQuestion, column: str, delta: float = USUAL_DELTA, kind: str | None = None
) -> TableMean:
    """From numbers that were made noisy by the users who hold them; only Gaussian noise spends
    delta."""
    noise = mean_protocol(asked.low, asked.high, asked.epsilon, delta, kind)
    spent = delta if noise.kind == "gaussian" else 0.0
    values = column_of_numbers(read_table(asked.table), column)
    _refuse_blind_mean(noise, len(values))
    values = np.clip(values, asked.low, asked.high) if asked.clamp else values
    values = check_range(values, asked.low, asked.high)
    cost = price(f"mean of {column}", asked.epsilon, spent, noise.event())
    paid = pay(asked.table, asked.limit, cost, asked.seed)
    reports = noise.report(values, dice(asked.seed, noise, values))
    found = noise.estimate(reports, asked.confidence)
    return TableMean(asked=asked, found=found, noise=noise, delta=spent, paid=paid)


def _refuse_blind_auc(up: int, down: int, asked: PrivateAuc) -> None:
    """Before any report is made: an expected error above 1/2 is worse than guessing 1/2."""
    if predicted_error(up, down, asked.levels, asked.epsilon) > 0.5:
        raise ConfigError(
            too_few(up + down, asked.epsilon, users_needed(up / (up + down), asked.epsilon))
        )


def _refuse_blind_mean(protocol: MeanProtocol, users: int) -> None:
    """Before any report is made: an error above half of the range is worse than guessing its
    middle."""
    wide = protocol.high - protocol.low
    if users and protocol.variance(users) > (wide / 2) ** 2:
        raise ConfigError(too_few(users, protocol.epsilon, protocol.users_needed(wide / 10)))
