"""Exact discrete Laplace numbers: every probability is that of the formula, since whole numbers
decide.

    P(Z = k) = (1 - a) / (1 + a) * a**|k|,   a = exp(-1 / s),   s = p / q: the rational number that the float s is

Canonne, Kamath, Steinke 2020 (arXiv:2004.00010, Algorithm 2): X = u + p V with u uniform below p
and kept by a coin of exp(-u / p), V counting coins of exp(-1), has P(X >= x) = exp(-x / p); then
floor(X / q) has P(. >= k) = exp(-k / s); a fair sign, and minus zero is drawn again. q is a power
of two and p < 2**53, because s is a float between 1 and 2**53.

Coins are those of bruit.randomness.exact_coins: floats decide when they are sure, exact whole
numbers otherwise. A row reads its own stream of words in order, so a row depends neither on the
batch nor on the path.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError
from bruit.randomness import Dice
from bruit.randomness.exact_coins import coin

FARTHEST = 2**51  # units of the grid within which data, and what is released, are kept
_MOST = 2**53  # of s
_BULK = 2**9  # numbers from which the compiled sampler is loaded
_CHUNK = 2**15  # numbers whose words are held at a time


class Draws(NamedTuple):
    """Where the words of some rows are."""

    dice: Dice
    purpose: str
    lanes: Ints
    steps: Ints | int
    use: int = 0
    run: Ints | int = 0

    def rows(self, chosen: Ints) -> "Draws":
        """Some of the rows."""
        steps, run = (
            np.broadcast_to(part, self.lanes.shape)[chosen] for part in (self.steps, self.run)
        )
        return self._replace(lanes=self.lanes[chosen], steps=steps, run=run)

    def words(self, count: int) -> Words:
        """So many words of each row, always the same  # (rows, count)."""
        return self.dice.words(self.purpose, self.lanes, self.steps, self.use, count, self.run)


def discrete_laplace(at: Draws, scales: Array | float, d: int) -> Ints:
    """d whole numbers for each row; scales: s of each row, between 1 and 2**53.

    A number beyond 2 * FARTHEST is cut to it: whoever adds data within FARTHEST and cuts the sum to
    FARTHEST gets what the uncut number would have given.
    """
    at = at._replace(lanes=np.asarray(at.lanes))
    s = np.broadcast_to(np.asarray(scales, dtype=np.float64), at.lanes.shape)
    if s.size and not (s.min() >= 1 and s.max() < _MOST):
        raise ConfigError(
            f"a discrete Laplace number has a scale of 1 to 2**53 units, found {s.min()} to"
            f" {s.max()}; choose another grid"
        )
    out = np.empty((len(at.lanes), d), dtype=np.int64)
    rows = max(1, _CHUNK // max(d, 1))
    for start in range(0, len(at.lanes), rows):
        part = np.arange(start, min(start + rows, len(at.lanes)))
        out[part] = _chunk(at.rows(part), s[part], d, out.size >= _BULK)
    return np.clip(out, -2 * FARTHEST, 2 * FARTHEST, out=out)


def _chunk(at: Draws, s: Array, d: int, many: bool) -> Ints:
    out = np.empty((len(s), d), dtype=np.int64)
    tops, shifts = fractions(s)
    undone, count = np.arange(len(s)), 7 * d + 32  # words of a row: 5.8 a number on average
    if many or "bruit.mechanisms.compiled" in sys.modules:
        undone = _compiled(at, out, tops, shifts, count)
    for row in undone:
        words = _stream(at.rows(np.array([row])), count)
        out[row] = [sample(words, int(tops[row]), int(shifts[row])) for _ in range(d)]
    return out


def fractions(s: Array) -> tuple[Ints, Ints]:
    """p and log2(q) with s = p / q, p < 2**53: the numbers that the floats are."""
    mantissa, exponent = np.frexp(s)  # s = mantissa * 2**exponent, exponent in 1..53
    return (mantissa * 2.0**53).astype(np.int64), 53 - exponent.astype(np.int64)


def _compiled(at: Draws, out: Ints, tops: Ints, shifts: Ints, count: int) -> Ints:
    """Fill rows of out at speed; return the rows floats could not decide. Rows short of words start
    again with more."""
    from bruit.mechanisms.compiled import laplace_rows
    from bruit.randomness.compiled import SHORT, UNSURE

    states = np.full(len(out), SHORT, dtype=np.int64)
    while (short := np.flatnonzero(states == SHORT)).size:
        rows, verdicts = out[short], states[short]
        laplace_rows(at.rows(short).words(count), rows, tops[short], shifts[short], verdicts)
        out[short], states[short], count = rows, verdicts, 2 * count
    return np.flatnonzero(states == UNSURE)


def _stream(at: Draws, count: int) -> Iterator[int]:
    """The words of one row, one by one, as many as are asked for."""
    done = 0
    while True:
        yield from at.words(count)[0][done:].tolist()
        done, count = count, 2 * count


def sample(words: Iterator[int], top: int, shift: int, band: float = 1e-12) -> int:
    """One number of scale top / 2**shift, cut to twice FARTHEST. A wide band sends every coin to
    the exact path."""
    end = 2**64 - 2**64 % top
    while True:
        word = next(words)
        if word >= end:
            continue
        u = word % top
        if not coin(words, u, top, band):
            continue
        turns = 0
        while coin(words, 1, 1, band):
            turns += 1
        size = min((u + top * turns) >> shift, 2 * FARTHEST)
        negative = next(words) & 1
        if not (negative and size == 0):
            return -size if negative else size
