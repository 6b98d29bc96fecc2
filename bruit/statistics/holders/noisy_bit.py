"""One noisy bit about two rows: a comparison, then randomized response, all inside one circuit
(perso:LDP-11).

    z = h(x, y) xor [r < t],   r = r_garbler xor r_evaluator (k bits),   t = ceil(2^k / (e^eps + 1)),   p = t / 2^k
    epsilon of the bit = ln((2^k - t) / t) <= eps, exactly;      h^ = low + (high - low) (z - p) / (1 - 2 p)

    auc         [x > y]                       values 0, 1       one number per row, labels public
    kendall     [x > y] = [x' > y']           values -1, 1      two numbers per row
    wilcoxon    [x > -y]                      values 0, 1
    duplicates  [x = y]                       values 0, 1

Each party contributes r whole, so one honest party is enough to make it uniform, and neither knows
it. Where numbers are equal, `auc` and `kendall` decide by one more such coin per comparison: the
mean over coins is the usual 1/2 (auc) and 0 (tau-a), and a noisy bit is still all that comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError, PrivacyError
from bruit.statistics.holders.circuits import Builder, Circuit, below, equal, evaluate, greater
from bruit.statistics.local.coins import flip_threshold

WIDTH = 32  # bits of a number
Numbers = NDArray[np.uint32]


class Comparison(NamedTuple):
    """columns: numbers per row. coins: shared fair bits. mirrored: the evaluator enters -y. values:
    of bits 0 and 1."""

    columns: int
    coins: int
    mirrored: bool
    values: tuple[float, float]
    bit: Callable[[Builder, list[list[int]], list[list[int]], list[int]], int]


def _kendall(make: Builder, x: list[list[int]], y: list[list[int]], coins: list[int]) -> int:
    return make.not_(
        make.xor(greater(make, x[0], y[0], coins[0]), greater(make, x[1], y[1], coins[1]))
    )


COMPARISONS = {
    "auc": Comparison(
        1, 1, False, (0.0, 1.0), lambda make, x, y, coins: greater(make, x[0], y[0], coins[0])
    ),
    "kendall": Comparison(2, 2, False, (-1.0, 1.0), _kendall),
    "wilcoxon": Comparison(
        1, 0, True, (0.0, 1.0), lambda make, x, y, coins: greater(make, x[0], y[0])
    ),
    "duplicates": Comparison(
        1, 0, False, (0.0, 1.0), lambda make, x, y, coins: equal(make, x[0], y[0])
    ),
}


@final
@dataclass(frozen=True)
class NoisyBit:
    """epsilon: what one pair may cost each of its two rows, by noise on a lattice of
    2^-noise_bits."""

    statistic: str
    epsilon: float
    noise_bits: int = 24

    def __post_init__(self) -> None:
        if self.statistic not in COMPARISONS:
            raise ConfigError(
                f"no circuit compares rows for {self.statistic!r}; there are: "
                f"{', '.join(COMPARISONS)}"
            )
        if type(self.noise_bits) is not int or not 4 <= self.noise_bits <= 63:
            raise ConfigError(f"the noise takes 4 to 63 bits, found {self.noise_bits!r}")
        if 2 * self.threshold >= 1 << self.noise_bits:
            raise PrivacyError(
                f"epsilon = {self.epsilon:g} per pair is below what {self.noise_bits} bits of "
                f"noise "
                "can show; give a larger epsilon, fewer rounds, or more noise_bits"
            )

    @property
    def comparison(self) -> Comparison:
        return COMPARISONS[self.statistic]

    @cached_property
    def threshold(self) -> int:
        """t: this many of the 2^noise_bits words flip the bit; rounded to the private side.

        >>> NoisyBit("auc", 1.0, 8).threshold, NoisyBit("auc", 1.0, 16).threshold
        (69, 17626)
        """
        return -(-flip_threshold(self.epsilon) >> (64 - self.noise_bits))

    @property
    def flip(self) -> float:
        """p = t / 2^noise_bits."""
        return self.threshold / (1 << self.noise_bits)

    @property
    def exact_epsilon(self) -> float:
        """What the bit costs in fact, at most `epsilon`.

        >>> round(NoisyBit("auc", 1.0, 8).exact_epsilon, 10), round(NoisyBit("auc", 1.0, 16).exact_epsilon, 10)
        (0.9970021123, 0.9999491662)
        """
        return math.log(((1 << self.noise_bits) - self.threshold) / self.threshold) * (
            1 + 1e-15
        )  # rounded up

    @property
    def input_bits(self) -> int:
        """Of each party: its numbers, its share of the coins, its share of the noise."""
        return WIDTH * self.comparison.columns + self.shared_bits

    @property
    def shared_bits(self) -> int:
        return self.comparison.coins + self.noise_bits

    @cached_property
    def circuit(self) -> Circuit:
        """The same for both parties."""
        make = Builder(self.input_bits, self.input_bits)
        mine, theirs = range(self.input_bits), range(self.input_bits, 2 * self.input_bits)
        count = WIDTH * self.comparison.columns
        shared = [make.xor(a, b) for a, b in zip(mine[count:], theirs[count:], strict=True)]
        coins, word = shared[: self.comparison.coins], shared[self.comparison.coins :]
        exact = self.comparison.bit(make, _columns(mine[:count]), _columns(theirs[:count]), coins)
        return make.circuit(make.xor(exact, below(make, word, self.threshold)))

    def bits_of(self, numbers: Numbers, draw: Callable[[int], bytes]) -> Bools:
        """One party's input: its numbers (N, columns), least bit first, then fresh random bits
        # (N, input_bits)."""
        rows = len(numbers)
        data = (
            np.ascontiguousarray(numbers, dtype="<u4")
            .view(np.uint8)
            .reshape(rows, 4 * numbers.shape[1])
        )
        spelled = np.unpackbits(data, axis=1, bitorder="little")
        size = (rows * self.shared_bits + 7) // 8
        drawn = np.unpackbits(
            np.frombuffer(draw(size), dtype=np.uint8), count=rows * self.shared_bits
        )
        return np.concatenate((spelled, drawn.reshape(rows, self.shared_bits)), axis=1).astype(
            np.bool_
        )

    def in_the_clear(self, x: Numbers, y: Numbers, draw: Callable[[int], bytes]) -> Bools:
        """The noisy bits of pairs whose rows are all in one place: the same circuit, hence the same
        law  # (N,)."""
        return evaluate(self.circuit, self.bits_of(x, draw), self.bits_of(y, draw))[:, 0]

    def unbiased(self, bits: Bools | Array) -> Array:
        """Answers whose mean over noise and coins is the kernel's value; bits, or shares of
        ones."""
        low, high = self.comparison.values
        return np.asarray(
            low + (high - low) * (bits - self.flip) / (1 - 2 * self.flip), dtype=np.float64
        )

    @property
    def answer_variance(self) -> float:
        """p (1 - p) (high - low)^2 / (1 - 2 p)^2: what the noise adds to one answer."""
        low, high = self.comparison.values
        return self.flip * (1 - self.flip) * ((high - low) / (1 - 2 * self.flip)) ** 2


def ordered(values: Array) -> Numbers:
    """32-bit whole numbers in the same order: the bits of the nearest single-precision number, made
    monotone.

    Nobody has to declare a range; numbers closer than 6e-8 of their size may become equal.

    >>> ordered(np.array([-2.5, -0.0, 0.0, 1e-30, 7.0])).argsort().tolist()
    [0, 1, 2, 3, 4]
    """
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32) + np.float32(0.0)  # -0 becomes 0
    if not np.isfinite(single).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(single))[0])
        raise ConfigError(
            f"value {np.asarray(values)[place]} at {place} is not a single-precision number; "
            f"remove "
            "rows with missing or infinite numbers, or rescale"
        )
    bits = single.view(np.uint32)
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31)).astype(np.uint32)


def _columns(wires: Sequence[int]) -> list[list[int]]:
    return [list(wires[start : start + WIDTH]) for start in range(0, len(wires), WIDTH)]
