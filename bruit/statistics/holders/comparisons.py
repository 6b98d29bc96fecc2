"""What two rows are asked inside a circuit, one bit: whether one is larger, whether they are equal,
or whether they are farther apart than a number that nobody knows (perso:LDP-11).

    auc         [x > y]                                  values 0, 1       one number per row, labels public
    kendall     [x > y] = [x' > y']                      values -1, 1      two numbers per row
    wilcoxon    [x > -y]                                 values 0, 1
    duplicates  [x = y]                                  values 0, 1
    gini        [r < |u - v|]                            E = |x - y|       numbers in a declared range
    variance    [r < |u - v|] and [r' < |u - v|]         E = (x - y)^2 / 2
    scatter     [r < |u - v|] and [c = c']               E = |x - y| where clusters are equal, else 0

u, v: the numbers as whole multiples of (high - low) / (2^24 - 1), the nearest ones; r, r': uniform
words of 24 bits that both holders make together, so that P([r < |u - v|]) = |u - v| / 2^24. The bit
is drawn, unbiased, and then flipped like the others: its epsilon does not depend on how it was
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bruit.statistics.holders.circuits import Builder, equal, greater, subtract

RANGE_BITS = 24  # of a number in a declared range
Wires = list[list[int]]


class Comparison(NamedTuple):
    """columns: numbers per row. coins: shared fair bits. mirrored: the evaluator enters -y. values:
    of bits 0 and 1, in units of the declared range if there is one. ranged: how many of the columns,
    the first ones, have such a range. power: of the range in the statistic."""

    columns: int
    coins: int
    mirrored: bool
    values: tuple[float, float]
    bit: Callable[[Builder, Wires, Wires, list[int]], int]
    ranged: int = 0
    power: int = 1


def farther(make: Builder, x: Sequence[int], y: Sequence[int], *words: Sequence[int]) -> int:
    """[|x - y| > w] for every word w: a subtraction, and a comparison a word, one AND a bit each.

    d = x - y modulo 2^b, s = [x < y].  Where s = 0, |x - y| = d;  where s = 1 it is (not d) + 1,
    which is above w exactly if (not d) >= w.  So both are [e > w], ties by s, of e = d xor s.
    """
    difference, below = subtract(make, x, y)
    size = [make.xor(wire, below) for wire in difference]
    found = [greater(make, size, word, below) for word in words]
    both = found[0]
    for one in found[1:]:
        both = make.and_(both, one)
    return both


def _kendall(make: Builder, x: Wires, y: Wires, coins: list[int]) -> int:
    return make.not_(
        make.xor(greater(make, x[0], y[0], coins[0]), greater(make, x[1], y[1], coins[1]))
    )


def _apart(make: Builder, x: Wires, y: Wires, coins: list[int]) -> int:
    words = [coins[start : start + RANGE_BITS] for start in range(0, len(coins), RANGE_BITS)]
    return farther(make, x[0][:RANGE_BITS], y[0][:RANGE_BITS], *words)


def _scatter(make: Builder, x: Wires, y: Wires, coins: list[int]) -> int:
    return make.and_(_apart(make, x, y, coins), equal(make, x[1], y[1]))


BITS = (0.0, 1.0)
COMPARISONS = {
    "auc": Comparison(
        1, 1, False, BITS, lambda make, x, y, coins: greater(make, x[0], y[0], coins[0])
    ),
    "kendall": Comparison(2, 2, False, (-1.0, 1.0), _kendall),
    "wilcoxon": Comparison(1, 0, True, BITS, lambda make, x, y, coins: greater(make, x[0], y[0])),
    "duplicates": Comparison(1, 0, False, BITS, lambda make, x, y, coins: equal(make, x[0], y[0])),
}
DISTANCES = {
    "gini": Comparison(1, RANGE_BITS, False, BITS, _apart, 1),
    "variance": Comparison(1, 2 * RANGE_BITS, False, (0.0, 0.5), _apart, 1, 2),
    "scatter": Comparison(2, RANGE_BITS, False, BITS, _scatter, 1),
}
STATISTICS = {**COMPARISONS, **DISTANCES}
