"""Compiled loops over a token's walk: the visited peers, and private logistic steps along them."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bruit.algorithms.compiled.clipping import clip_factor
from bruit.arrays import Array, Bools, Ints

U = np.uint64  # unsigned indices need no test for negative ones
_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 1.5 * 2.0**52  # adding it leaves the nearest whole number in the low bits
_BLOCK = 8  # records computed with at once, in two vector registers


@njit(cache=True, nogil=True)
def visits(indptr: Ints, indices: Ints, law: Array, uniform: Array, first: int) -> Ints:
    """The walk v_0 = first, v_1, ...: one uniform draw per hop, inverted by search in the row's
    cumulative law."""
    path = np.empty(len(uniform) + 1, np.int64)
    path[0] = first
    for t in range(len(uniform)):
        u, low, high = uniform[t], U(indptr[U(path[t])]), U(indptr[U(path[t] + 1)]) - U(1)
        while high - low > U(16):
            middle = (low + high) >> U(1)
            if law[middle] < u:
                low = middle + U(1)
            else:
                high = middle
        entry = low
        for k in range(low, high):  # few are left: counting them has no branch to mispredict
            entry += U(law[k] < u)
        path[t + 1] = indices[entry]
    return path


class _Vectors:
    """Writes arithmetic on vectors of four doubles into a function under construction."""

    lanes = 4
    word = ir.IntType(64)
    kind = ir.VectorType(ir.DoubleType(), 4)

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        shape = ir.FunctionType(self.kind, [self.kind] * 3)
        self._fma = cgutils.get_or_insert_function(builder.module, shape, "llvm.fma.v4f64")

    def same(self, value: float) -> Any:
        return ir.Constant(self.kind, [value] * self.lanes)

    def splat(self, number: Any) -> Any:
        none, zeros = ir.Constant(self.kind, ir.Undefined), [0] * self.lanes
        one = self.builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(
            one, none, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), zeros)
        )

    def load(self, base: Any, offset: Any) -> Any:
        found = self.builder.load(
            self.builder.bitcast(self.builder.gep(base, [offset]), self.kind.as_pointer())
        )
        found.align = 8
        return found

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, [a, b, c])

    def limit(self, sign: str, x: Any, bound: Any) -> Any:
        """x, or bound where x is beyond it on that side; what is no number stays."""
        return self.builder.select(self.builder.fcmp_ordered(sign, x, bound), bound, x)

    def total(self, x: Any) -> Any:
        """Sum of the four numbers."""
        pairs, none = ir.VectorType(ir.IntType(32), 2), ir.Constant(self.kind, ir.Undefined)
        low, high = (
            self.builder.shuffle_vector(x, none, ir.Constant(pairs, part))
            for part in ([0, 1], [2, 3])
        )
        both = self.builder.fadd(low, high)
        one, two = (
            self.builder.extract_element(both, ir.Constant(ir.IntType(32), k)) for k in (0, 1)
        )
        return self.builder.fadd(one, two)

    def pull(self, margin: Any) -> Any:
        """1 / (1 + exp(z)): exp(r + k log 2) = 2^k exp(r) with |r| < 0.35 and Taylor's polynomial
        of degree 12."""
        z = self.limit("<", self.limit(">", margin, self.same(700.0)), self.same(-700.0))
        shifted = self.builder.fadd(self.builder.fmul(z, self.same(_LOG2E)), self.same(_ROUND))
        k = self.builder.fsub(shifted, self.same(_ROUND))
        r = self.fma(k, self.same(-_LN2_LOW), self.fma(k, self.same(-_LN2_HIGH), z))
        terms, power = [self.same(1.0 / math.factorial(n)) for n in range(13)], r
        while len(terms) > 1:  # Estrin: neighbors are joined by r, then r^2, then r^4
            joined = [
                self.fma(high, power, low)
                for low, high in zip(terms[0::2], terms[1::2], strict=False)
            ]
            terms = joined + terms[2 * len(joined) :]
            power = self.builder.fmul(power, power)
        integers = ir.VectorType(self.word, self.lanes)
        exponent = self.builder.add(
            self.builder.bitcast(shifted, integers), ir.Constant(integers, [1023] * self.lanes)
        )
        scale = self.builder.bitcast(
            self.builder.shl(exponent, ir.Constant(integers, [52] * self.lanes)), self.kind
        )
        return self.builder.fdiv(self.same(1.0), self.fma(terms[0], scale, self.same(1.0)))


class _RecordBlock(_Vectors):
    """The eight records of one block, records[block, :, 0..7], as two vectors for each of d
    coordinates."""

    def __init__(self, builder: Any, data: Any, block: Any, d: Any) -> None:
        super().__init__(builder)
        self._data, self.d = data, d
        self._first = builder.mul(builder.mul(block, self.number(_BLOCK)), d)

    def number(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def coordinate(self, j: Any, half: int) -> Any:
        """Coordinate j of four of the records."""
        offset = self.builder.add(
            self.builder.mul(j, self.number(_BLOCK)), self.number(half * self.lanes)
        )
        return self.load(self._data, self.builder.add(self._first, offset))

    def each(self, begin: Any, end: Any, step: int) -> Any:
        """A loop over coordinates."""
        return cgutils.for_range_slice(self.builder, begin, end, self.number(step), intp=self.word)

    def scores(self, point: Any) -> list[Any]:
        """The products of the eight records with a point: two chains of sums at once, over even and
        odd coordinates."""
        zero, build = self.same(0.0), self.builder
        sums = [[cgutils.alloca_once_value(build, zero) for _ in range(2)] for _ in range(2)]
        for total in (*sums[0], *sums[1]):
            build.store(zero, total)

        def add(j: Any, totals: list[Any]) -> None:
            weight = self.splat(build.load(build.gep(point, [j])))
            for half, total in enumerate(totals):
                build.store(self.fma(self.coordinate(j, half), weight, build.load(total)), total)

        even = build.sub(self.d, build.and_(self.d, self.number(1)))
        with self.each(self.number(0), even, 2) as (j, _):
            add(j, sums[0])
            add(build.add(j, self.number(1)), sums[1])
        with self.each(even, self.d, 1) as (j, _):
            add(j, sums[0])
        return [build.fadd(build.load(a), build.load(b)) for a, b in zip(*sums, strict=True)]


@intrinsic
def _add_pulls(
    typing: Any, records: Any, block: Any, x: Any, share: Any, bound: Any, g: Any
) -> Any:
    """g -= share * sum over the eight records r of a block of min(1 / (1 + exp(r x)), bound) * r.

    Record s of the block is records[block, :, s], already multiplied by its label, which is 1 or
    -1.
    """
    signature = types.void(records, types.int64, x, types.float64, types.float64, g)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        table, point, slope = (
            context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2, 5)
        )
        block = _RecordBlock(builder, table.data, args[1], builder.extract_value(point.shape, 0))
        steepest = block.splat(args[4])
        low, high = (
            block.limit(">", block.pull(score), steepest) for score in block.scores(point.data)
        )
        with block.each(block.number(0), block.d, 1) as (j, _):
            both = block.fma(
                high, block.coordinate(j, 1), builder.fmul(low, block.coordinate(j, 0))
            )
            place = builder.gep(slope.data, [j])
            builder.store(
                builder.fsub(builder.load(place), builder.fmul(args[3], block.total(both))), place
            )
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def logistic_steps(
    path: Ints,
    may: Bools,
    noise: Array,
    start: Ints,
    sizes: Ints,
    records: Array,
    token: Array,
    x: Array,
    rates: Array,
    radius: float,
    l2: float,
    bound: float,
    clip: float,
    spacing: float,
    lattice: float,
    trail: Array,
) -> int:
    """x <- x - rate (clip(g_v(x)) + noise) where the holder v may contribute, x - rate noise where
    not; on a grid x <- nearest(x) - (toward_zero(rate clip(g_v(x))) + noise), and the noise knows
    the rate. Off it, gradients lie on the mechanism's own lattice, if it has one (0: none).

    Then x is projected on the ball of that radius; where the rate is 0 nothing is done. Peer v
    holds the blocks start[v] .. start[v + 1] of records; token[v] keeps x as v handed it on, and
    `trail` that of every hop, unless it is empty. Gives the first hop whose gradient is not finite,
    -1 if none.
    """
    g = np.empty(len(x))
    inside = (
        0.99 * clip * clip
    )  # surely not to be clipped: the branch keeps the square root out of the way
    finer = 1.0 / spacing if spacing > 0.0 else 0.0  # exact: spacing is a power of two
    for t in range(len(path)):
        v = U(path[t])
        for j in range(U(len(x))):
            g[j] = l2 * x[j]
        if may[U(t)]:
            share = 1.0 / sizes[v]
            for block in range(start[v], start[v + U(1)]):
                _add_pulls(records, block, x, share, bound, g)
            square = 0.0
            for j in range(U(len(x))):
                square += g[j] * g[j]
            if not math.isfinite(square):
                return t
            if square > inside:
                factor = clip_factor(math.sqrt(square), clip, len(x))
                for j in range(U(len(x))):
                    g[j] *= factor
        else:
            g[:] = 0.0
        rate = rates[U(t)]
        if spacing > 0.0 and rate > 0.0:
            for j in range(U(len(x))):
                step = np.trunc(rate * g[j] * finer) * spacing
                x[j] = (np.rint(x[j] * finer) * spacing + 0.0) - (
                    step + noise[U(t), j]
                )  # -0.0 would tell a sign
        else:
            if lattice > 0.0:
                for j in range(U(len(x))):
                    g[j] = np.trunc(g[j] / lattice) * lattice
            for j in range(U(len(x))):
                x[j] -= rate * (g[j] + noise[U(t), j])
        if rate > 0.0 and radius < math.inf:
            square = 0.0
            for j in range(U(len(x))):
                square += x[j] * x[j]
            shorter = radius / max(math.sqrt(square), radius)
            for j in range(U(len(x))):
                x[j] *= shorter
        for j in range(U(len(x))):
            token[v, j] = x[j]
        if len(trail) > 0:
            for j in range(U(len(x))):
                trail[U(t), j] = x[j]
    return -1
