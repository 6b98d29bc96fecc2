"""A local protocol: a client's randomized report, and the aggregator's unbiased estimate from all
of them.

    estimate of a share   (C_v / n - q) / (p - q)            C_v: reports that support v
    exact variance        (h p (1 - p) + (1 - h) q (1 - q)) / (n (p - q)^2)

p, q: the chances that a report supports the true value, and any other value. Every frequency
protocol here has this form (Wang et al. 2017, "pure" protocols), so that estimate, error and
interval are written once. What one user sends is epsilon-DP against everybody who sees it, the
aggregator first (level: user; perso:LDP-1 to LDP-4).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.privacy.events import BoundedEvent, Event
from bruit.randomness import Dice
from bruit.statistics.local.coins import lanes_of
from bruit.statistics.local.estimates import Estimate, Shares, quantile, share_interval
from bruit.statistics.local.reports import Reports


class ReportProtocol(ABC):
    """One randomized report per user. Below it: frozen dataclasses, one per file."""

    kind: ClassVar[str]
    epsilon: float

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A JSON-able description, written into every file of reports; `protocol_from` reads it
        back."""

    @abstractmethod
    def report(self, values: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Reports:
        """The client side: one report per value. A (user, step) is used once: a second report costs
        epsilon again."""

    @abstractmethod
    def bits(self) -> float:
        """The size of one report."""

    def event(self) -> Event:
        """What one report costs the user who sends it."""
        return BoundedEvent(self.epsilon)

    def check(self, reports: Reports) -> None:
        """Refuse reports made by another protocol, or with other parameters."""
        if reports.protocol != self.describe():
            raise ConfigError(
                f"these reports were made by {reports.protocol}, but the estimate is for "
                f"{self.describe()}; use the protocol of the reports"
            )


class FrequencyProtocol(ReportProtocol):
    """Estimates the share of each of k values."""

    k: int

    @abstractmethod
    def chances(self) -> tuple[float, float]:
        """(p, q): that a report supports the true value, and any other value."""

    @abstractmethod
    def valid(self, reports: Reports) -> Bools:
        """Which rows can be reports of this protocol at all  # (n,)."""

    @abstractmethod
    def supports(self, reports: Reports, rows: Bools) -> Ints:
        """How many of the chosen reports support each value  # (k,)."""

    @abstractmethod
    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        """Reports of values that were checked."""

    @final
    def report(self, values: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Reports:
        cells = check_values(values, self.k)
        return self._randomize(cells, dice, lanes_of(users, len(cells)), step)

    @final
    def variance(self, share: float, reports: int) -> float:
        """Mean squared error of the estimate of a share h, exactly, whatever the others hold."""
        p, q = self.chances()
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (reports * (p - q) ** 2)

    @final
    def estimate(self, reports: Reports, confidence: float = 0.95) -> Shares:
        """The aggregator side: unbiased shares, errors and intervals; impossible reports are
        counted and left out."""
        self.check(reports)
        rows = self.valid(reports)
        n = int(rows.sum())
        refused = len(reports) - n + reports.unreadable
        if n == 0:
            raise ConfigError(
                f"not one of {refused} reports is a possible report of {self.kind}; nothing to "
                f"estimate"
            )
        p, q = self.chances()
        shares = (self.supports(reports, rows) / n - q) / (p - q)
        fixed, whole = self.variance(0.0, n), self.variance(1.0, n)
        likely = np.clip(shares, 0.0, 1.0)
        errors = np.sqrt((1 - likely) * fixed + likely * whole)
        low, high = share_interval(
            shares, fixed, whole - fixed, quantile(confidence), 1 / (n * (p - q))
        )
        return Shares(
            shares=shares,
            errors=errors,
            low=low,
            high=high,
            confidence=confidence,
            reports=n,
            refused=refused,
        )

    @final
    def users_needed(self, half_width: float, confidence: float = 0.95) -> int:
        """How many users make the interval of a rare value this narrow (half of its width)."""
        return math.ceil(self.variance(0.0, 1) * (quantile(confidence) / half_width) ** 2)


class MeanProtocol(ReportProtocol):
    """Estimates the mean of numbers between low and high from additive noise."""

    low: float
    high: float

    @abstractmethod
    def sigma(self) -> float:
        """Standard deviation of the noise of one report."""

    @abstractmethod
    def half_width(self, reports: int, confidence: float) -> float:
        """Half of the interval of a mean of so many reports."""

    @abstractmethod
    def _randomize(self, centered: Array, dice: Dice, users: Ints, step: int) -> Array:
        """Noisy copies of values that were checked, as distances from the middle of the range."""

    @property
    def middle(self) -> float:
        """The middle of the declared range."""
        return self.low + (self.high - self.low) / 2

    @final
    def report(self, values: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Reports:
        cells = check_range(values, self.low, self.high)
        noisy = self._randomize(cells - self.middle, dice, lanes_of(users, len(cells)), step)
        return Reports(self.describe(), {"value": noisy})

    @final
    def variance(self, reports: int) -> float:
        """Mean squared error of the estimated mean of the users' values, exactly."""
        return self.sigma() ** 2 / reports

    @final
    def estimate(self, reports: Reports, confidence: float = 0.95) -> Estimate:
        """The aggregator side: the mean of the reports, its error and interval; impossible reports
        are left out."""
        self.check(reports)
        column = np.asarray(reports.column("value"))
        if column.dtype.kind not in "if":
            raise ConfigError(f"reports of {self.kind} are numbers, found {column.dtype}")
        # A report farther than 60 deviations is no noise (chance below 1e-35) but an attempt to
        # move the mean.
        rows = np.isfinite(column) & (
            np.abs(column) <= (self.high - self.low) / 2 + 60 * self.sigma()
        )
        n = int(rows.sum())
        refused = len(reports) - n + reports.unreadable
        if n == 0:
            raise ConfigError(
                f"not one of {refused} reports is a possible report of {self.kind}; nothing to "
                f"estimate"
            )
        value = self.middle + float(column[rows].mean())
        half = self.half_width(n, confidence)
        near = min(
            max(value, self.low), self.high
        )  # no farther from the mean than value: no interval is empty
        return Estimate(
            value=value,
            error=math.sqrt(self.variance(n)),
            low=max(near - half, self.low),
            high=min(near + half, self.high),
            confidence=confidence,
            reports=n,
            refused=refused,
        )

    @final
    def users_needed(self, half_width: float, confidence: float = 0.95) -> int:
        """How many users make the interval this narrow (half of its width)."""
        return math.ceil((self.sigma() * quantile(confidence) / half_width) ** 2)


def check_values(values: Any, k: int) -> Ints:
    """Whole numbers 0..k-1, one a user."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iub":
        raise ConfigError(
            f"values to report are a list of whole numbers 0..{k - 1}, found {found.dtype} of shape"
            f" {found.shape}"
        )
    outside = (found < 0) | (found >= k)
    if outside.any():
        user = int(np.flatnonzero(outside)[0])
        raise ConfigError(
            f"user {user} holds {found[user]}, outside the declared domain 0..{k - 1} "
            f"({int(outside.sum())} of {len(found)} users do); declare a larger domain"
        )
    return found.astype(np.int64)


def check_range(values: Any, low: float, high: float) -> Array:
    """Finite numbers between low and high, one a user."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise ConfigError(
            f"values to report are a list of numbers, one a user, found shape {found.shape}"
        )
    outside = ~((found >= low) & (found <= high))
    if outside.any():
        user = int(np.flatnonzero(outside)[0])
        raise ConfigError(
            f"user {user} holds {found[user]:g}, outside the declared range {low:g}..{high:g} "
            f"({int(outside.sum())} of {len(found)} users do); declare a wider range, or clip first"
        )
    return found


def check_domain(k: int) -> None:
    """A frequency protocol has at least two values, and few enough for the aggregator's tables."""
    if isinstance(k, bool) or not isinstance(k, int) or not 2 <= k <= 2**30:
        raise ConfigError(
            f"a frequency protocol needs a whole number of values between 2 and 2**30, found {k!r}"
        )


def check_ends(low: float, high: float) -> None:
    """The declared range of a mean."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"a mean needs a finite range low < high, found {low}..{high}")


def in_range(column: Any, size: int) -> Bools:
    """Rows that are whole numbers 0..size-1."""
    found = np.asarray(column)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        return np.zeros(len(found), dtype=np.bool_)
    whole = found.dtype.kind != "f" or (np.isfinite(found) & (found == np.floor(found)))
    return np.asarray((found >= 0) & (found < size) & whole)
