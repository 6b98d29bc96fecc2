"""What two holders of rows ask together: a pairwise statistic of all their rows, each row in at
most P noisy pairs.

    auc: P times, positives and negatives are matched at random, as many pairs as the smaller class has rows
    others: P times, all rows are cut into pairs at random (one is left out if their number is odd)    perso:LDP-10
    each pair shows one bit at epsilon / P;   estimate = the mean of the unbiased bits

Rows of the garbler come first. Which rows form a pair is public and drawn from what both holders
contributed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.privacy.events import BoundedEvent, Event
from bruit.randomness import Replay
from bruit.statistics.holders.noisy_bit import NoisyBit, Numbers, ordered
from bruit.statistics.local.coins import check_epsilon
from bruit.statistics.local.estimates import Estimate, quantile, score_interval
from bruit.statistics.local.two_party import pairings

MOST_ROWS = 2**24
MOST_PAIRS = 2**27


@final
@dataclass(frozen=True)
class TablesQuestion:
    """epsilon: of all bits that one row takes part in. rounds: P, the most pairs of one row. within:
    between which two numbers lie, where the statistic asks how far they are apart."""

    statistic: str
    epsilon: float
    rounds: int = 1
    noise_bits: int = 24
    within: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if type(self.rounds) is not int or not 1 <= self.rounds < 2**16:
            raise ConfigError(
                f"each row takes part in a whole number of pairs >= 1, found rounds={self.rounds!r}"
            )
        self._noisy_bit()

    def _noisy_bit(self) -> NoisyBit:
        share = self.epsilon / self.rounds
        return NoisyBit(self.statistic, share, self.noise_bits, self.within)

    @cached_property
    def bit(self) -> NoisyBit:
        """What each pair shows."""
        return self._noisy_bit()

    @property
    def name(self) -> str:
        """The statistic, with its range if it has one: what both holders must mean alike."""
        if self.within is None:
            return self.statistic
        low, high = self.within
        return f"{self.statistic} in {float(low)!r}..{float(high)!r}"

    @property
    def exact_epsilon(self) -> float:
        """P ln((2^k - t) / t): what one row pays in fact, at most epsilon."""
        return self.rounds * self.bit.exact_epsilon

    def event(self) -> Event:
        """For the ledger."""
        return BoundedEvent(self.exact_epsilon)

    @property
    def needs_labels(self) -> bool:
        return self.statistic == "auc"

    def pairs(self, labels: Bools, seed: int) -> Ints:
        """Rows of all pairs, a positive before a negative for auc; labels: of all rows  # (P, m,
        2)."""
        dice = Replay(seed)
        if not self.needs_labels:
            order = np.argsort(
                dice.words("two-party left out", np.arange(len(labels)), 0, 0, 1)[:, 0],
                kind="stable",
            )
            kept = np.sort(order[: len(labels) // 2 * 2])
            return np.asarray(kept[pairings(len(kept), self.rounds, dice)])
        up, down = np.flatnonzero(labels), np.flatnonzero(~labels)
        keys = dice.words("two-party pairs", np.arange(len(labels)), 0, 0, self.rounds)
        count = min(len(up), len(down))
        sides = [
            side[np.argsort(keys[side], axis=0, kind="stable")[:count].T] for side in (up, down)
        ]
        return np.stack(sides, axis=-1)

    def pairs_of(self, rows: int, positives: int) -> int:
        """How many bits all pairs show together."""
        return self.rounds * (min(positives, rows - positives) if self.needs_labels else rows // 2)

    def trouble(self, rows: int, positives: int) -> str:
        """Why these rows cannot answer, from what is public about them; empty if they can."""
        if self.needs_labels and not 0 < positives < rows:
            return f"together the rows hold {positives} positives of {rows}; an AUC compares two classes"
        if rows < 2:
            return f"a pairwise statistic needs at least two rows, found {rows} together"
        pairs = self.pairs_of(rows, positives)
        if pairs > MOST_PAIRS:
            return (
                f"{pairs} pairs are more than the {MOST_PAIRS} of one session; ask for fewer rounds"
            )
        low, high = self.bit.values
        if math.sqrt(self.bit.answer_variance / pairs) > (high - low) / 2:
            needed = math.ceil(self.bit.answer_variance / (self.rounds * ((high - low) / 10) ** 2))
            return (
                f"{pairs // self.rounds} pairs at epsilon = {self.epsilon:g} say nothing: a guess "
                f"without looking "
                f"is as good; it takes about {needed} pairs of different rows, or a larger epsilon"
            )
        return ""

    def estimate(self, bits: Bools, confidence: float = 0.95) -> Estimate:
        """From the bits of all pairs (P, m), 1 where the kernel takes its higher value; for the
        population's statistic.

            Var of the estimate at t <= (P (high - t) (t - low) + N) / (P m),    N: what the coin adds to one bit
            interval: all t that lie within z standard deviations of the estimate, and what one bit moves it by

        Pairs of one round are independent; those of different rounds share rows, which costs at
        most the factor P.
        """
        low, high = self.bit.values
        value, noise = (
            float(self.bit.unbiased(np.array([bits.mean()]))[0]),
            self.bit.answer_variance,
        )
        near = min(max(value, low), high)  # no farther from the statistic than value
        error = math.sqrt((self.rounds * (high - near) * (near - low) + noise) / bits.size)
        step = (high - low) / (1 - 2 * self.bit.flip) / bits.size
        low_end, high_end = score_interval(
            near,
            self.rounds / bits.size,
            noise / bits.size,
            (low, high),
            quantile(confidence),
            step,
        )
        return Estimate(
            value=value,
            error=error,
            low=low_end,
            high=high_end,
            confidence=confidence,
            reports=bits.size,
        )


class HolderRows(NamedTuple):
    """What one holder has: numbers in circuit form, and for auc the public labels."""

    numbers: Numbers  # (n, columns)
    # (n, columns) of the negated values where the second row of a pair enters them, else the same
    mirrored: Numbers
    labels: Bools  # (n,) all False where the question needs none


def rows_of(
    question: TablesQuestion, values: Array, labels: Array | Ints | Bools | None = None
) -> HolderRows:
    """Checked rows: values (n,) or (n, columns); labels 0 or 1 for auc, refused elsewhere."""
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    wanted = question.bit.comparison
    if table.ndim != 2 or table.shape[1] != wanted.columns or not 1 <= len(table) <= MOST_ROWS:
        raise ConfigError(
            f"{question.statistic} takes 1 to {MOST_ROWS} rows of {wanted.columns} numbers, found "
            f"shape {np.asarray(values).shape}"
        )
    if question.needs_labels == (labels is None):
        raise ConfigError(
            "an AUC needs labels, 0 or 1 for each row; they are public"
            if question.needs_labels
            else f"{question.statistic} takes no labels"
        )
    flags = (
        np.zeros(len(table), dtype=np.float64)
        if labels is None
        else np.asarray(labels, dtype=np.float64)
    )
    if flags.shape != (len(table),) or not np.isin(flags, (0.0, 1.0)).all():
        raise ConfigError(
            f"labels are 0 or 1, one for each of the {len(table)} rows, found shape {flags.shape}"
        )
    numbers = question.bit.numbers(table)
    return HolderRows(numbers, ordered(-table) if wanted.mirrored else numbers, flags > 0)
