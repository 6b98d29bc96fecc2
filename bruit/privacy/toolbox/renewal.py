"""Additive updates of a uniform walk, cycle by cycle between visits of the observers (mathematics
of walk:RW-1).

A cycle has M steps of others, Pr[M = j] = q (1 - q)^j with q = observers / n, and k of them by u, k
~ Bin(M, a) with a = 1 / (n - observers); its energy is k^2 / M. A walk of T steps is a renewal
process, so with g_j = E[f(k^2 / j)]

    A_0 = 1,   A_t = sum_{j < t} q (1 - q)^j g_j A_{t-1-j} + (1 - q)^t g_t      (last g_t is 1 if the end is not seen)

is the expectation of the product of f over the cycles: exponential moments, or a characteristic
function. All T holders are uniform here, the first one too. A first holder whom everybody knows is
worst for itself: if u begins, its first cycle has energy (k + 1)^2 / (M + 1) instead of k^2 / M,
which is never less, and with g'_j = E[f((k + 1)^2 / (j + 1))]

    A'_T = sum_{j < T - 1} q (1 - q)^j g'_j A_{T-2-j} + (1 - q)^(T-1) g'_{T-1}

where somebody else begins, the T - 1 steps after it cost u no less without that step than with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.toolbox.energy_sums import EnergyLaw, energy_sum, thinned

LOG_TINY, ALIAS, WORK, BLOCK, LEAST_TOP = -44.0, 1e-10, 4e9, 2**18, 3
LONG = 4096  # steps from which the recursion is solved by Fourier transforms
FOLDED = 1e-12  # what a circle folds back, relative to what is read off it
UNIT = 2.0**-53
LARGEST = 710.0  # its exponential is not a number any more
_Complex = NDArray[np.complex128]
_Entries = tuple[
    Ints, Ints, Array
]  # lengths of cycles, energies in cells, probabilities given the length


@dataclass(frozen=True)
class UniformWalk:
    """The next holder is uniform among n peers, some of whom observe together; u is another one.

    `begins`: the first holder is u, else it is uniform like all others.
    """

    n: int
    observers: int = 1
    begins: bool = False

    def __post_init__(self) -> None:
        if self.n < 2:
            raise PrivacyError(f"a walk needs at least two peers, found {self.n}")
        if not 1 <= self.observers < self.n:
            raise PrivacyError(
                f"the observers are 1 to {self.n - 1} of the {self.n} peers, found {self.observers}"
            )

    @property
    def seen(self) -> float:
        """q: the chance that a step is an observer's."""
        return self.observers / self.n

    @property
    def chance(self) -> float:
        """a: the chance that a step of somebody else is u's."""
        return 1 / (self.n - self.observers)

    @property
    def stays(self) -> float:
        """log(1 - q)."""
        return math.log1p(-self.seen)


def moments(scale: float, chance: float, length: int, begins: bool = False) -> Array:
    """g_j = E exp(scale k^2 / j), k ~ Bin(j, chance), for j = 0..length, rounded up where terms are
    left out.

    `begins`: g'_j, whose energy (k + 1)^2 / (j + 1) is at most k^2 / j + 1: what is left out grows
    by exp(scale).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if chance == 1:
            return np.asarray(np.exp(scale * np.arange(begins, length + 1 + begins)))
        found = np.full(length + 1, float(np.exp(LOG_TINY + scale * begins)))
        for k, active, terms in _binomials(scale, chance, length):
            more = (k + 1) ** 2 / (active + 1) - k * k / np.maximum(active, 1) if begins else 0.0
            found[active] += terms * np.exp(scale * more)
    return found


def walk_moment(walk: UniformWalk, scale: float, steps: int, published: bool) -> float:
    """log E exp(scale X) for the total energy X of a walk of that many steps; infinite where
    numbers overflow."""
    if (
        steps * (scale + math.log(walk.chance)) > LARGEST
    ):  # all steps in one cycle and u's: that chance alone does
        return math.inf
    first = moments(scale, walk.chance, steps, begins=True) if walk.begins else None
    return _renewed(walk, moments(scale, walk.chance, steps), published, first)


def _renewed(
    walk: UniformWalk, factors: Array, published: bool, first: Array | None = None
) -> float:
    """log A_T of the recursion above, or log A'_T with the factors g' of the first cycle; T + 1 =
    len(factors)."""
    steps = len(factors) - 1
    if not np.all(np.isfinite(factors)) or not (first is None or np.all(np.isfinite(first))):
        return math.inf
    if steps > LONG:
        return _renewed_fast(walk, factors, published, first)
    alive = np.exp(walk.stays * np.arange(steps + 1))
    cycles, last = walk.seen * alive * factors, alive * (factors if published else 1.0)
    backward = np.zeros(
        steps + 1
    )  # A_t at place T - t: the sum is one dot product of neighbors in memory
    backward[steps] = 1.0
    with np.errstate(over="ignore"):
        for t in range(1, steps + 1):
            found = float(cycles[:t] @ backward[steps - t + 1 :] + last[t])
            if found == math.inf:
                return math.inf
            backward[steps - t] = found
        if first is None:
            return math.log(backward[0])
        ended = float(alive[steps - 1] * (first[steps - 1] if published else 1.0))
        begun = float((walk.seen * alive * first)[: steps - 1] @ backward[2:])
    return math.log(begun + ended) if begun + ended < math.inf else math.inf


def _renewed_fast(walk: UniformWalk, factors: Array, published: bool, first: Array | None) -> float:
    """The same, rounded up, in O(T log T): A(x) = L(x) / (1 - x C(x)) for the series C of cycles
    and L of last ones.

    With A_t rho^-t for A_t, where rho makes the cycles a probability law, all numbers are of one
    size. A_T is read off N points of a circle of radius r = FOLDED^(1/N): what is read is A_T +
    A_(T+N) r^N + .., all of it positive, so that the circle rounds up. Rounding errors are bounded
    as they come and added: a transform of 2^k numbers errs by at most 8 k UNIT times the sum of
    their sizes, a quotient as its parts do, and a mean of N numbers by 8 k UNIT of theirs.
    """
    from scipy.fft import fft

    steps = len(factors) - 1
    numbers = np.arange(steps + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        logs: Array = walk.stays * numbers + np.log(factors)
        ends: Array = logs if published else walk.stays * numbers
        begun: Array | None = None if first is None else walk.stays * numbers + np.log(first)
    cycles: Array = math.log(walk.seen) + logs[:-1]
    growth = _growth(cycles)
    points = 1 << (8 * (steps + 1) - 1).bit_length()
    error, radius = 8 * (points.bit_length() - 1) * UNIT, math.log(FOLDED) / points
    tilt = radius - growth  # x = exp(tilt) on the real axis
    circle = np.exp(radius - 2j * np.pi * np.arange(points) / points)

    def series(logarithms: Array) -> tuple[_Complex, float]:
        """The values on the circle, and how far they may be off."""
        sizes = np.exp(logarithms + tilt * np.arange(len(logarithms)))
        off = (error + 16 * UNIT * (1 + abs(tilt) * steps)) * float(sizes.sum())
        return fft(sizes, points), off

    inner, inner_error = series(cycles)
    outer, outer_error = series(ends)
    turn = math.exp(-growth) * circle  # x itself, tilted
    rest = 1 - turn * inner
    off = math.exp(tilt) * (inner_error + 4 * UNIT * np.abs(inner)) + 4 * UNIT
    safe = np.abs(rest) - off
    if not np.all(safe > 0):
        return math.inf
    whole = outer / rest
    slack = (outer_error + np.abs(whole) * off) / safe + 8 * UNIT * np.abs(whole)
    ended = 0.0
    if begun is not None:
        shifted: Array = math.log(walk.seen) + begun[: steps - 1]
        opening, opening_error = series(shifted)
        once = turn * turn * opening
        slack = math.exp(2 * tilt) * (
            opening_error * np.abs(whole) + np.abs(opening) * slack
        ) + 8 * UNIT * np.abs(once * whole)
        whole = once * whole
        last = walk.stays * (steps - 1) + (
            math.log(first[steps - 1]) if first is not None and published else 0.0
        )
        ended = math.exp(min(700.0, last - growth * steps))
    total = _read_off(whole, slack, steps, error) * math.exp(-radius * steps) + ended
    return (
        math.log(total) + growth * steps + 16 * UNIT * (1 + abs(growth) * steps)
        if total > 0
        else math.inf
    )


def _read_off(values: _Complex, slack: Array, place: int, error: float) -> float:
    """A coefficient of a series from its values on a circle, rounded up: the values may be off by
    `slack`, their mean by `error` of their sizes."""
    points = len(values)
    turned = np.exp(2j * np.pi * (np.arange(points) * place % points) / points)
    found = float((values @ turned).real) / points
    bound = float(slack.mean()) + error * float(np.abs(values).mean()) + 8 * UNIT * abs(found)
    return found + bound


def _growth(cycles: Array) -> float:
    """g with sum_j exp(cycles_j - g (j + 1)) = 1, but for rounding: bisection, the sum falls with
    g."""
    lengths = np.arange(1, len(cycles) + 1)

    def above(g: float) -> bool:
        found = cycles - g * lengths
        top = float(found.max())
        return top + math.log(float(np.exp(found - top).sum())) > 0

    low, high = -1.0, 1.0
    while not above(low):
        low *= 2
    while above(high):
        high *= 2
    while high - low > 1e-13 * max(1.0, abs(low)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def cycle_moment(walk: UniformWalk, scale: float) -> float:
    """log E exp(scale k^2 / M) of one cycle of any length; infinite where the sum does not
    converge."""
    _, ahead = _envelope(scale, walk.chance)
    decay = walk.stays + float(ahead[0]) if walk.chance < 1 else walk.stays + scale
    if decay >= 0:
        return math.inf
    length = math.ceil((LOG_TINY + 3 * math.log(-math.expm1(decay))) / decay)
    if length > 10**7:
        return math.inf
    factors = moments(scale, walk.chance, length)
    ratio, past = math.exp(decay), length + 1
    tail = (
        walk.seen * math.exp(decay * past) * ((past + 1) / (1 - ratio) + ratio / (1 - ratio) ** 2)
    )
    total = float(np.sum(walk.seen * np.exp(walk.stays * np.arange(past)) * factors)) + tail
    return math.log(total) if math.isfinite(total) else math.inf


def cycles_law(walk: UniformWalk, count: int) -> EnergyLaw:
    """The law of the total energy of that many whole cycles, of a walk whose first holder is
    uniform too."""
    if walk.begins:
        raise PrivacyError(
            "whole cycles are alike only if the first holder of a walk is drawn like all others"
        )
    length = math.ceil(LOG_TINY / walk.stays)
    j, k, weight, lost = _entries(walk, length)
    weight = weight * walk.seen * np.exp(walk.stays * j)
    seen = k > 0
    total = energy_sum((k * k / np.maximum(j, 1))[seen], weight[seen], count)
    failure = total.failure + count * (math.exp(walk.stays * (length + 1)) + lost)
    return EnergyLaw(total.energies, total.weights, min(1.0, failure))


def walk_law(
    walk: UniformWalk, steps: int, published: bool, grid: float | None = None
) -> EnergyLaw:
    """The law of the total energy of a walk of that many steps, every cycle rounded up to the grid.

    One recursion per frequency; the coefficient of x^T is read off a circle inside the unit disk.
    What the circle folds back is positive, so the law is rounded up. The grid defaults to 0.04 / n;
    its inverse is a whole number.
    """
    from scipy.fft import next_fast_len

    fine = _fineness(walk, grid)
    length = min(steps, math.ceil((LOG_TINY - math.log(steps + 1)) / walk.stays))
    points = _points(steps)
    _check_work(LEAST_TOP * fine, points, steps)
    j, k, weight, lost = _entries(walk, length)
    place = -(
        (-k * k * fine) // np.maximum(j, 1)
    )  # ceil(k^2 / (j grid)) in whole numbers, at most k / grid
    first = (j, -((-((k + 1) ** 2) * fine) // (j + 1)), weight) if walk.begins else None
    top = _top(walk, (j, place, weight), first, steps, published, fine)
    width = int(next_fast_len(min(max(16, BLOCK // points), top)))
    cells = 2 * width * math.ceil(top / (2 * width))
    _check_work(cells, points, steps)
    law = _law_of(
        walk=walk,
        entries=(j, place, weight),
        first=first,
        cells=cells,
        width=width,
        points=points,
        steps=steps,
        length=length,
        published=published,
    )
    dropped = (steps + 1) * (
        lost + (math.exp(walk.stays * (length + 1)) if length < steps else 0.0)
    )
    rounding = float(-law[law < 0].sum()) + max(0.0, 1 - float(law.sum()))
    return thinned(1 / fine, np.maximum(law, 0.0), dropped + rounding + math.exp(LOG_TINY))


def too_long(walk: UniformWalk, steps: int, grid: float | None = None) -> bool:
    """Whether `walk_law` refuses a walk of that many steps at once, without looking at its
    energies."""
    return LEAST_TOP * _fineness(walk, grid) / 2 * _points(steps) > WORK


def _fineness(walk: UniformWalk, grid: float | None) -> int:
    return math.ceil(walk.n / 0.04 if grid is None else 1 / grid)


def _points(steps: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(max(1024, 3 * (steps + 1))))


def _check_work(cells: int, points: int, steps: int) -> None:
    if cells / 2 * points > WORK:
        raise ConfigError(
            f"the exact law of {steps} steps on a grid of {cells} energies or more is too long to"
            " compute; give a coarser grid or use route='renyi'"
        )


def _entries(walk: UniformWalk, length: int) -> tuple[Ints, Ints, Array, float]:
    """Every (j, k) with Pr[k | j], j = 0..length; what is left out weighs less than the last
    number, whatever j."""
    rows = np.arange(length + 1)
    if walk.chance == 1:
        return rows, rows, np.ones(length + 1), 0.0
    parts = [
        (active, np.full(len(active), k), pmf)
        for k, active, pmf in _binomials(0.0, walk.chance, length)
    ]
    j, k, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return j, k, weight, math.exp(LOG_TINY)


def _binomials(scale: float, chance: float, length: int) -> Iterator[tuple[int, Ints, Array]]:
    """For k = 0, 1, ..: the j <= length that matter still, and Pr[k | j] exp(scale k^2 / j).

    A j no longer matters when all its later terms together are below exp(LOG_TINY).
    """
    from scipy.special import gammaln

    active, k = np.arange(length + 1), 0
    factorial = gammaln(active + 1.0)
    edges, ahead = _envelope(scale, chance)
    while active.size:
        logs = (
            factorial[active]
            - factorial[k]
            - factorial[active - k]
            + scale * k * k / np.maximum(active, 1)
        )
        yield k, active, np.exp(logs + k * math.log(chance) + (active - k) * math.log1p(-chance))
        k += 1
        active = active[active >= k]
        place = np.searchsorted(edges, k / np.maximum(active, 1), "right") - 1
        active = active[
            active * ahead[np.minimum(place, len(ahead) - 1)] + np.log(active + 1.0) >= LOG_TINY
        ]


def _top(
    walk: UniformWalk,
    entries: _Entries,
    first: _Entries | None,
    steps: int,
    published: bool,
    fine: int,
) -> int:
    """Where the total energy of the entries stays below but for a chance of exp(LOG_TINY): a
    Chernoff bound."""

    def grown(some: _Entries, scale: float) -> Array:
        j, place, weight = some
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(
                np.bincount(j, weight * np.exp(scale / fine * place), steps + 1), np.float64
            )

    top = float(steps * fine)
    for scale in np.geomspace(
        16.0, 0.25, 13
    ).tolist():  # convex in the scale: stop when it grows again
        begun = None if first is None else grown(first, scale)
        found = (_renewed(walk, grown(entries, scale), published, begun) - LOG_TINY) / scale * fine
        if math.isfinite(found) and found > top:
            break
        top = min(top, found)
    return math.ceil(top) + 2


def _law_of(
    walk: UniformWalk,
    entries: _Entries,
    first: _Entries | None,
    cells: int,
    width: int,
    points: int,
    steps: int,
    length: int,
    published: bool,
) -> Array:
    """Characteristic function of the total energy at every frequency, then its inverse
    transform."""
    from scipy.fft import fft, irfft

    radius = math.log(ALIAS) / points
    circle = np.exp(radius + 2j * np.pi * -np.arange(points) / points)
    read = (
        np.exp(2j * np.pi * (np.arange(points) * steps % points) / points - radius * steps) / points
    )
    open_end = 1 / (1 - math.exp(walk.stays) * circle)
    damped = walk.seen * np.exp((walk.stays + radius) * np.arange(length + 1))
    parts = cells // width
    found = np.empty(cells, np.complex128)
    for residue in range(parts // 2 + 1):
        factors = _factors(entries, length, width, residue, parts)  # (width, length + 1)
        cycles = fft(factors * damped, points, axis=1)
        whole = (cycles / walk.seen if published else open_end) / (1 - circle * cycles)
        if first is not None:
            begun = fft(_factors(first, length, width, residue, parts) * damped, points, axis=1)
            whole = circle * (
                (begun / walk.seen if published else open_end) + circle * begun * whole
            )
        index = residue + parts * np.arange(width)
        found[index] = whole @ read
        found[-index % cells] = found[index].conj()  # the law is real
    return np.asarray(irfft(found[: cells // 2 + 1], cells))


def _factors(entries: _Entries, length: int, width: int, residue: int, parts: int) -> _Complex:
    """E[exp(-2 pi i f place / cells) | j] at frequencies f = residue + parts * m, m < width; cells
    = width * parts."""
    from scipy.fft import fft

    j, place, weight = entries
    angle = -2 * np.pi / (width * parts) * (place * residue % (width * parts))
    index, shape = j * width + place % width, (length + 1, width)
    folded = np.bincount(index, weight * np.cos(angle), (length + 1) * width).astype(np.complex128)
    folded += 1j * np.bincount(index, weight * np.sin(angle), (length + 1) * width)
    return np.ascontiguousarray(fft(folded.reshape(shape), axis=1).T)


def _envelope(scale: float, chance: float) -> tuple[Array, Array]:
    """Cells of x = k / j, and for each the largest rate b with Pr[k] exp(scale k^2 / j) <= exp(j b)
    from there on.

    Pr[k] <= exp(-j KL(x, a)); in a cell, scale x^2 is largest on the right and KL smallest on the
    left (x >= a).
    """
    edges = np.append(0.0, np.geomspace(chance, 1.0, 4001)) if chance < 1 else np.array([0.0, 1.0])
    left, right = np.maximum(edges[:-1], chance), edges[1:]
    rest = np.maximum(1 - left, 1e-300)
    away = np.where(
        left < 1, left * np.log(left / chance) + rest * np.log(rest / max(1 - chance, 1e-300)), 0.0
    )
    bound = scale * right**2 - np.maximum(away, 0.0)
    return edges[:-1], np.maximum.accumulate(bound[::-1])[::-1]
