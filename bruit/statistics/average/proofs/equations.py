"""Equations between points, checked many at once: a random combination of true ones is true.

    sum_i s_i P_i + base G + blinding H + inner U + sum_i left_i G_i + right_i H_i = 0

If one equation of a batch is false, the combination with 128-bit random coefficients holds with
probability 2**-128 at most. All proofs share their generators, so a batch pays for them once: that
is why it is fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bruit.statistics.average.proofs.group import ORDER, Point, generator
from bruit.statistics.average.proofs.multi_scalar import table, weighted_sum
from bruit.statistics.average.proofs.pedersen import blinding_base, inner_base, vector_bases

COEFFICIENT_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Equation:
    """One claim: this sum of points is the identity."""

    points: tuple[tuple[int, Point], ...] = ()
    base: int = 0
    blinding: int = 0
    inner: int = 0
    left: tuple[int, ...] = ()
    right: tuple[int, ...] = ()


def all_hold(equations: Sequence[Equation], coefficients: Sequence[int] | None = None) -> bool:
    """Whether all are true, in one multi-scalar multiplication; `coefficients` are fresh unless a
    test gives them."""
    if not equations:
        return True
    chosen = coefficients or [
        int.from_bytes(os.urandom(COEFFICIENT_BYTES), "big") for _ in equations
    ]
    length = max(len(equation.left) for equation in equations)
    left, right, fixed = [0] * length, [0] * length, [0, 0, 0]
    scalars: list[int] = []
    points: list[Point] = []
    for factor, equation in zip(chosen, equations, strict=True):
        for scalar, point in equation.points:
            if point.raw:
                scalars.append(factor * scalar)
                points.append(point)
        for place, scalar in enumerate((equation.base, equation.blinding, equation.inner)):
            fixed[place] += factor * scalar
        for place, scalar in enumerate(equation.left):
            left[place] += factor * scalar
        for place, scalar in enumerate(equation.right):
            right[place] += factor * scalar
    rows = [
        table([*points, generator(), blinding_base(), inner_base()]),
        *(vector_bases(length) if length else ()),
    ]
    together = [scalar % ORDER for scalar in (*scalars, *fixed, *left, *right)]
    return weighted_sum(np.concatenate(rows), together) == Point()


def failing(
    groups: Sequence[Sequence[Equation]], hold: Callable[[Sequence[Equation]], bool] = all_hold
) -> list[int]:
    """Which groups of equations do not all hold: the whole batch at once, and halves of halves of
    what is wrong."""
    return _failing(list(range(len(groups))), groups, hold)


def _failing(
    places: list[int],
    groups: Sequence[Sequence[Equation]],
    hold: Callable[[Sequence[Equation]], bool],
) -> list[int]:
    if not places or hold([equation for place in places for equation in groups[place]]):
        return []
    if len(places) == 1:
        return places
    middle = len(places) // 2
    return _failing(places[:middle], groups, hold) + _failing(places[middle:], groups, hold)
