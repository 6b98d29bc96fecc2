"""How far rounding moves a space computed step by step: its errors, drawn at random and carried
along.

A basis Q made from exact data by linear steps with fixed coefficients is off by D, and D follows
the same steps, fed by what each step rounds. Fed with normal numbers of that size instead, D has
the size the true one has, unless the true errors are aligned better than chance; `SAFETY` times its
rows is what a loss is raised by. Proof and use: bruit.privacy.exact.krylov.

    sqrt(m(u))  <=  |Q_u| sqrt(1 + omega) + SAFETY |D_u|,   omega >= |Q^T Q - I|
"""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array
from bruit.privacy.exact.modular import mixed_words

if TYPE_CHECKING:
    from bruit.privacy.exact.refined import Basis

UNIT = 4 * float(np.finfo(float).eps)
"""Relative size of the error put in at every step of a computation in doubles: eight times a single
rounding."""

SAFETY = 10.0
"""What errors are multiplied by before they are believed."""

HOPELESS = 1e-2
"""Errors beyond which a computation is given up."""

POOL = 65_521
"""How many normal numbers there are; a prime, so that steps do not see them in step."""


@cache
def normals() -> Array:
    """A fixed sequence of standard normal numbers, by Box and Muller  # (POOL,)."""
    words = (mixed_words(2 * POOL) >> np.uint64(11)).astype(np.float64).reshape(2, -1)
    first, second = (words + 0.5) * 2.0**-53
    return np.asarray(np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second))


def noise(sizes: Array, width: int, drawn: int) -> Array:
    """Normal numbers, as many in a row as the width, rows scaled by the sizes; from a place in the
    sequence on."""
    places = (drawn + np.arange(sizes.size * width)) % POOL
    return np.asarray(sizes[:, None] * normals()[places].reshape(sizes.size, width))


def lengths(block: Array) -> Array:
    """Lengths of rows."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", block, block)))


def raised(basis: "Basis") -> Array:
    """The squared row lengths that the true space has at most."""
    skewed = basis.values * (1.0 + 2.0 * basis.error * np.sqrt(basis.rank))
    return np.asarray((np.sqrt(skewed) + SAFETY * basis.drift) ** 2)
