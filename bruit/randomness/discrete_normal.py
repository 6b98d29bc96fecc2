"""Discrete normal numbers, sampled exactly and fast: P(k) proportional to f(k) = exp(-k**2 / (2
s**2)) on the integers.

Rejection from a histogram. [0, 512 w) is cut into 512 blocks of w = 2**m integers, 16 w <= s < 32 w
(w = 1 below). Block j has the integer height c_j >= A f(j w), A an integer; the heights add up to
just below 2**64. A try reads:

    word 0    in which of the intervals [c_0 + ... + c_{j-1}, c_0 + ... + c_j) it lies chooses the block j
    word 1    its lowest m bits choose x in the block, the next bit a sign, the others are the first bits of U

    keep x (with its sign, and no -0) when U < A f(x) / c_j

so every x is kept with a chance proportional to f(x). Blocks j >= 512 have heights 2**-a_j, in all
less than one, and share the last of the 2**64 places of word 0; further words choose among them.
Nobody will ever see one of their numbers (512 w is at least 16 s), but without them the law would
end there, and noise that ends tells data apart that are far from each other in units of it. f is
decreasing, so U below A f((j + 1) w) / c_j keeps x at once; else floats decide, else integers
(`exact_coins`): every decision is that of real numbers, and the law is exact. A row reads its own
stream of words in order, so a row does not depend on the batch.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError
from bruit.randomness import Dice
from bruit.randomness.exact_coins import below_exponential

BLOCKS = 512
LARGEST = (
    2.0**47
)  # of s: offsets take at most 43 of the 64 bits of a word, and all numbers stay below 2**53
LAST = 2**64 - 1  # the place of word 0 that all blocks from the 512th on share
_BAND = 1e-11  # more than any error of a float here: exponents up to 512 are known to 2e-13
_BULK = 2**9  # numbers from which the compiled sampler is loaded
_CHUNK = 2**16  # numbers whose words are held at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Histogram:
    """The blocks for one s; `sure[j]`: first bits of U up to which every x of block j is kept."""

    s: float
    shift: int  # m
    unit: int  # A
    heights: Words  # (512,)
    ends: Words  # (512,) running sums of the heights
    sure: Words  # (512,)

    @property
    def bits(self) -> int:
        """How many bits of U the second word holds."""
        return 63 - self.shift


@lru_cache(maxsize=64)
def histogram(s: float) -> Histogram:
    """The blocks for s. Heights may be any integers that are high enough: floats, rounded to the
    safe side, will do."""
    if not 0 < s <= LARGEST:
        raise ConfigError(
            f"discrete normal numbers need a parameter between 0 and 2**47, found {s}; coarsen the "
            f"grid"
        )
    shift = max(0, math.frexp(s)[1] - 5)
    with np.errstate(over="ignore"):  # f is 0 there
        around = np.exp(
            -0.5 * (np.arange(BLOCKS + 1) * (2.0**shift / s)) ** 2
        )  # f(j w), to a relative 2e-13
    high = around[:-1] * (1 + _BAND)
    unit = int((2.0**64 - 2.0**32) / high.sum())
    heights = np.ceil(unit * high).astype(np.uint64) + np.uint64(1)
    least = unit * around[1:] * (1 - _BAND) / (heights.astype(np.float64) * (1 + _BAND))
    sure = np.floor(2.0 ** (63 - shift) * least)
    return Histogram(
        s=s,
        shift=shift,
        unit=unit,
        heights=heights,
        ends=np.cumsum(heights),
        sure=sure.astype(np.uint64),
    )


def discrete_normals(
    dice: Dice,
    purpose: str,
    lanes: Ints,
    steps: Ints | int,
    use: int,
    count: int,
    s: float,
    run: Ints | int = 0,
    grid: float = 1.0,
) -> Array:
    """grid times discrete normal numbers of parameter s, for each lane from its own words; exact
    while below 2**53."""
    lanes = np.asarray(lanes)
    out = np.empty((len(lanes), count))
    if out.size == 0:
        return out
    steps, run = np.broadcast_to(steps, lanes.shape), np.broadcast_to(run, lanes.shape)
    table, rows = histogram(s), max(1, _CHUNK // count)
    for start in range(0, len(lanes), rows):
        part = slice(start, start + rows)
        _fill(dice, purpose, (lanes[part], steps[part], use, run[part]), table, out[part], grid)
    return out  # (len(lanes), count)


def _fill(
    dice: Dice,
    purpose: str,
    address: tuple[Ints, Ints, int, Ints],
    table: Histogram,
    out: Array,
    grid: float,
) -> None:
    lanes, steps, use, run = address
    undone = np.arange(len(lanes))
    words = 2 * (
        out.shape[1] + out.shape[1] // 16 + 8
    )  # two a try, 1.03 tries a number: rarely short
    if out.size >= _BULK or "bruit.randomness.compiled" in sys.modules:
        undone = _compiled(dice, purpose, address, table, out, words, grid)
    for row in undone:
        one = slice(row, row + 1)
        stream = _stream(dice, purpose, (lanes[one], steps[one], use, run[one]), words)
        out[row] = [grid * sample(stream, table) for _ in range(out.shape[1])]


def _compiled(
    dice: Dice,
    purpose: str,
    address: tuple[Ints, Ints, int, Ints],
    table: Histogram,
    out: Array,
    count: int,
    grid: float = 1.0,
) -> Ints:
    """Fill rows of out at speed; return the rows floats could not decide. Rows short of words start
    again with more."""
    from bruit.randomness import compiled as noise

    lanes, steps, use, run = address
    rows_from = partial(
        noise.discrete_rows,
        s=table.s,
        shift=table.shift,
        unit=float(table.unit),
        heights=table.heights,
        ends=table.ends,
        sure=table.sure,
        grid=grid,
    )
    words = dice.words(purpose, lanes, steps, use, count, run)
    states = rows_from(words=words, out=out)
    while (short := np.flatnonzero(states == noise.SHORT)).size:
        count *= 2
        words = dice.words(purpose, lanes[short], steps[short], use, count, run[short])
        rows = out[short]
        states[short] = rows_from(words=words, out=rows)
        out[short] = rows
    return np.flatnonzero(states == noise.UNSURE)


def _stream(
    dice: Dice, purpose: str, address: tuple[Ints, Ints, int, Ints], count: int
) -> Iterator[int]:
    """The words of one row, one by one, as many as are asked for."""
    lanes, steps, use, run = address
    done = 0
    while True:
        words = dice.words(purpose, lanes, steps, use, count, run)[0]
        yield from words[done:].tolist()
        done, count = count, 2 * count


def sample(words: Iterator[int], table: Histogram) -> int:
    """One number, what is not sure decided in integers: what the compiled path does, word for
    word."""
    p, q = table.s.as_integer_ratio()
    while True:
        first, second = next(words), next(words)
        j = int(np.searchsorted(table.ends, np.uint64(first), side="right"))
        if j == BLOCKS:
            if first != LAST or (found := _far(second, words)) is None:
                continue
            j, second = found, next(words)
        x = (j << table.shift) + (second & (1 << table.shift) - 1)
        negative, head = second >> table.shift & 1, second >> table.shift + 1
        if negative and x == 0:
            continue
        if j < BLOCKS and head < table.sure[j]:
            return -x if negative else x
        factor, height = (
            (table.unit, int(table.heights[j])) if j < BLOCKS else (table.unit << _depth(j), 1)
        )
        if below_exponential(head, table.bits, factor, (x * q) ** 2, 2 * p * p, words, height):
            return -x if negative else x


def _depth(j: int) -> int:
    """a_j of a block beyond the table, with A f(j w) <= 2**-a_j. There f <= exp(-128) < 2**-184 and
    A < 2**64, and f falls at least by exp(-1/2) from block to block."""
    return 100 + (j - BLOCKS) // 2


def _far(word: int, words: Iterator[int]) -> int | None:
    """A block j beyond the table with the chance 2**-a_j, or None: `word` and 34 bits of the next
    one are zero with the chance 2**-98; then the zeros before the first one count pairs of blocks,
    and one bit more chooses of the two."""
    if word or (second := next(words)) >> 30:
        return None
    bits = chain(_bits(second, 30), chain.from_iterable(_bits(more, 64) for more in words))
    return BLOCKS + 2 * next(place for place, bit in enumerate(bits) if bit) + next(bits)


def _bits(word: int, count: int) -> Iterator[int]:
    """The lowest `count` bits, the highest of them first."""
    return (word >> k & 1 for k in range(count - 1, -1, -1))
