"""The lattice attack: noisy values that are whole multiples of a known step, found again in the
messages of averaging.

    minimize    sum_u (k_u / S_u)^2 + |V (C g k - y)|^2    over whole k,   V^T V = (covariance of the error)^-1

y are the messages heard, C their exact coefficients, g k the unknown values on the grid. A mean of
several values has room for few multiples once it has more digits than the values have together.
Consider the lattice spanned by the columns (1 / S_u, V C g). Its point closest to (0, V y) is then
the only one that fits. It is found by LLL and Kannan's embedding: the lattice is reduced once, and
once more with the messages as one more vector.

Whether a value is *determined*: for normal unknowns and errors a lattice point at distance r from
the messages has posterior weight exp(-r^2 / 2). All other points together weigh (2 pi)^(m/2) / det
if the lattice, of rank m, is like a random one (Siegel's mean value); those that differ by a vector
of the basis, which need not be random, are counted on their own. The same is asked of the lattice
projected away from its first k basis vectors, and k is the least for which the odds against the
point found are below RISK. A value whose coordinate is 0 in the first k vectors is the same in all
points that differ by these only. Such a value is called determined. That is an estimate, not a
proof; scores look at the truth.

No theorem says how well LLL does; where the attack fails, nothing is proven (fp:FP-1 is what
proves). The reduction is that of FLINT (python-flint): lattices of 25 values take milliseconds
there and seconds in Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from bruit.adversary.attacks.lattice_forms import ViewMessages
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError

Dithers = Literal["noise", "unknown"]
MOST = 200
"""Unknowns that are still reduced: a lattice of 200 takes minutes."""

FINE = 1 << 10  # rounding of the lattice itself, in parts of the spread of one step of an unknown
EXACT = 64  # a message without error may be off by 1 / 64 of a step of the grid
RISK = 0.5  # odds up to which a point is believed: twice as likely as all others together
IMPLAUSIBLE, FAR = (
    1e-6,
    2.0,
)  # a point is believed up to FAR times as far as one normal vector in a million is long


class Solution(NamedTuple):
    """The multiples of the grid that fit best: `determined` where no others do, `fits` when the
    messages follow from them up to rounding. `distance` is in standard deviations; infinite when
    nothing was found."""

    peers: Ints
    values: Array  # (peers,)
    determined: Bools  # (peers,)
    fits: bool
    distance: float


@dataclass(frozen=True)
class Puzzle:
    """The lattice of one view, for any messages. Dithers are "noise" of known covariance, or
    further "unknown" whole numbers."""

    heard: ViewMessages
    dithers: Dithers = "noise"

    def __post_init__(self) -> None:
        if self.dithers not in ("noise", "unknown"):
            raise ConfigError(
                f"dithers are treated as 'noise' or as 'unknown' whole numbers, found "
                f"{self.dithers!r}"
            )
        check_size(self.unknowns)

    @property
    def unknowns(self) -> int:
        return len(self.heard.peers) + (len(self.heard.dithers) if self.dithers == "unknown" else 0)

    @cached_property
    def steps(self) -> list[Fraction]:
        """One step of the grid, in units of the spread of each unknown."""
        a = self.heard.arithmetic
        spreads = [a.spread] * len(self.heard.peers) + [a.dither] * (
            self.unknowns - len(self.heard.peers)
        )
        return [Fraction(a.grid) / Fraction(spread) for spread in spreads]

    @cached_property
    def scale(self) -> int:
        """Whole numbers per standard deviation: the finest step is worth FINE of them."""
        return math.ceil(FINE / min(self.steps)) if self.steps else FINE

    @cached_property
    def whitening(self) -> list[list[Fraction]]:
        """V, lower triangular: the errors of V y are independent and of size 1  # (keys, keys)."""
        a, size = self.heard.arithmetic, len(self.heard.keys)
        exact = (a.grid / EXACT) ** 2
        errors = np.diag(np.where(self.heard.error > 0, self.heard.error, exact))
        if a.dither and self.dithers == "noise":
            of_dithers = np.array(
                [[float(x) for x in row] for row in self.heard.of_dithers]
            ).reshape(size, -1)
            errors += a.dither**2 * of_dithers @ of_dithers.T
        inverse = np.linalg.inv(np.linalg.cholesky(errors)) if size else errors
        return [[Fraction(float(x)) for x in row[: i + 1]] for i, row in enumerate(inverse)]

    def whitened(self, column: list[Fraction]) -> list[int]:
        """V times a column of numbers, one a message, in whole numbers."""
        return [
            round(
                self.scale
                * sum((v * x for v, x in zip(row, column, strict=False) if v and x), Fraction(0))
            )
            for row in self.whitening
        ]

    @cached_property
    def weights(self) -> list[int]:
        """What one step of an unknown adds to its own coordinate."""
        return [round(self.scale * step) for step in self.steps]

    @cached_property
    def basis(self) -> list[list[int]]:
        """The reduced lattice: rows over the unknowns, then over the messages."""
        grid = Fraction(self.heard.arithmetic.grid)
        joined = [
            [*values, *(dithers if self.dithers == "unknown" else [])]
            for values, dithers in zip(self.heard.of_values, self.heard.of_dithers, strict=True)
        ]
        rows = [
            [weight if i == k else 0 for k in range(self.unknowns)]
            + self.whitened([grid * row[i] for row in joined])
            for i, weight in enumerate(self.weights)
        ]
        return lll(rows)

    @cached_property
    def frame(self) -> tuple[Array, Array]:
        """Gram-Schmidt of the reduced basis, in standard deviations: orthonormal columns, and the
        basis over them."""
        rows = np.array([[entry / self.scale for entry in row] for row in self.basis])
        frame: tuple[Array, Array] = np.linalg.qr(rows.T)
        return frame

    def _determined(self, found: Array) -> Bools:
        """The values that are the same in all likely points; `found` is what separates the best one
        from the target."""
        columns, triangle = self.frame
        place = columns.T @ found
        logs = math.log(2 * math.pi) / 2 - np.log(np.abs(np.diag(triangle)))
        for free in range(self.unknowns):
            rest, steps = place[free:], triangle[free:, free:]
            others = float(logs[free:].sum()) + float(rest @ rest) / 2
            shorter, across = (steps**2).sum(axis=0) / 2, rest @ steps
            if np.logaddexp.reduce([others, *(across - shorter), *(-across - shorter)]) <= math.log(
                RISK
            ):
                break
        else:
            free = self.unknowns
        moving = [any(row[i] for row in self.basis[:free]) for i in range(len(self.heard.peers))]
        return ~np.array(moving, dtype=bool)

    def solve(self, said: Array) -> Solution:
        """The values behind these messages (rounds, n); only what the observers said and heard is
        looked at."""
        from scipy.stats import chi2

        count = len(self.heard.peers)
        nothing = Solution(
            self.heard.peers, np.full(count, np.nan), np.zeros(count, dtype=bool), False, math.inf
        )
        if not count:
            return nothing._replace(fits=True, distance=0.0)
        target = [0] * self.unknowns + self.whitened(self.heard.right(said))
        found = lll([*([*row, 0] for row in self.basis), [*target, self.scale]])
        close = [row for row in found if abs(row[-1]) == self.scale]
        if not close:
            return nothing
        best = min(close, key=lambda row: sum(entry * entry for entry in row))
        sign = -1 if best[-1] > 0 else 1
        whole = [sign * entry // weight for entry, weight in zip(best, self.weights, strict=False)]
        gap = np.array([entry / self.scale for entry in best[:-1]])
        distance = float(np.linalg.norm(gap))
        values = self.heard.arithmetic.grid * np.array([float(k) for k in whole[:count]])
        fits = distance <= FAR * math.sqrt(chi2.isf(IMPLAUSIBLE, len(best) - 1))
        return Solution(self.heard.peers, values, self._determined(gap) & fits, fits, distance)


def check_size(unknowns: int, most: int = MOST) -> None:
    """Refuse lattices that would take too long."""
    if unknowns > most:
        raise ConfigError(
            f"the lattice of this view has {unknowns} unknown numbers, at most {most} are reduced;"
            " take fewer steps, or a smaller graph"
        )


def lll(rows: list[list[int]]) -> list[list[int]]:
    """A reduced basis of the lattice these rows span (Lenstra, Lenstra, Lovasz), by FLINT."""
    reduced: Any = _flint().fmpz_mat(rows).lll()
    return [[int(entry) for entry in row] for row in reduced.tolist()]


def _flint() -> Any:
    try:
        import flint
    except ImportError:
        raise ConfigError(
            "the lattice attack reduces lattices with python-flint, which is not installed; install"
            " bruit[attack]"
        ) from None
    return flint
