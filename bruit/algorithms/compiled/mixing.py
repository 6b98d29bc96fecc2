"""Many gossip steps at once: columns are cut into tiles, and every tile takes all its steps while
it stays in cache.

    y <- scale_t W x + rest_t y,   then x and y change places

A tile is n rows of a few vector registers; two buffers serve the whole recursion, so main memory is
read once and written once instead of three times a step. The row of W is summed in registers by
vector instructions, which the compiler does not find by itself in short inner loops. Summation
order and fused multiply-adds differ from a sparse product's: equal to it up to rounding.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints

REGISTER = 32  # bytes of one vector register
LINE = 64  # bytes of one cache line
WIDEST = 4  # registers in a row of a tile
MANY = 1 << 14  # peers whose widest tiles no longer fit in cache


class _RowRegisters:
    """Writes arithmetic on rows of `count` vector registers into a function under construction."""

    def __init__(self, builder: Any, bits: int, count: int) -> None:
        self.builder, self.bytes, self.count, self.lanes = (
            builder,
            bits // 8,
            count,
            8 * REGISTER // bits,
        )
        self.kind = ir.VectorType(ir.FloatType() if bits == 32 else ir.DoubleType(), self.lanes)
        self.zero = ir.Constant(self.kind, [0.0] * self.lanes)
        shape, name = ir.FunctionType(self.kind, [self.kind] * 3), f"llvm.fma.v{self.lanes}f{bits}"
        self._fma = cgutils.get_or_insert_function(builder.module, shape, name)

    def splat(self, number: Any) -> Any:
        none, zeros = ir.Constant(self.kind, ir.Undefined), [0] * self.lanes
        one = self.builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(
            one, none, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), zeros)
        )

    def _place(self, base: Any, row: Any, part: int) -> Any:
        word = ir.IntType(64)
        offset = self.builder.mul(row, ir.Constant(word, self.count * self.lanes))
        offset = self.builder.add(offset, ir.Constant(word, part * self.lanes))
        return self.builder.bitcast(self.builder.gep(base, [offset]), self.kind.as_pointer())

    def load(self, base: Any, row: Any, part: int) -> Any:
        found = self.builder.load(self._place(base, row, part))
        found.align = self.bytes
        return found

    def store(self, value: Any, base: Any, row: Any, part: int) -> None:
        self.builder.store(value, self._place(base, row, part)).align = self.bytes

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, [a, b, c])


@intrinsic
def _mix_row(
    typing: Any,
    x: Any,
    y: Any,
    indices: Any,
    weights: Any,
    first: Any,
    stop: Any,
    row: Any,
    scale: Any,
    rest: Any,
    registers: Any,
) -> Any:
    """y[row] = scale * sum of weights[k] * x[indices[k]] over first <= k < stop, + rest * y[row].

    The type of `registers`, a tuple, says by its length how many vector registers one row takes.
    """
    place, number = types.int64, x.dtype
    signature = types.void(x, y, indices, weights, place, place, place, number, number, registers)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target, columns, factors = (
            context.make_array(sig.args[k])(context, builder, args[k]).data for k in range(4)
        )
        rows, word = _RowRegisters(builder, number.bitwidth, len(registers)), ir.IntType(64)
        sums = [cgutils.alloca_once_value(builder, rows.zero) for _ in registers]
        for total in sums:
            builder.store(rows.zero, total)
        with cgutils.for_range_slice(
            builder, args[4], args[5], ir.Constant(word, 1), intp=word
        ) as (k, _):
            column = builder.load(builder.gep(columns, [k]))
            if sig.args[2].dtype.bitwidth < 64:
                column = builder.sext(column, word)
            weight = rows.splat(builder.load(builder.gep(factors, [k])))
            for part, total in enumerate(sums):
                builder.store(
                    rows.fma(weight, rows.load(source, column, part), builder.load(total)), total
                )
        scaled, kept = rows.splat(args[7]), rows.splat(args[8])
        for part, total in enumerate(sums):
            old = builder.fmul(kept, rows.load(target, args[6], part))
            rows.store(rows.fma(scaled, builder.load(total), old), target, args[6], part)
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True, boundscheck=False)
def _tile(
    indptr: Ints,
    indices: Ints,
    weights: Any,
    scale: Any,
    rest: Any,
    value: Array,
    left: int,
    x: Any,
    y: Any,
    last: Array,
    before: Array,
    registers: Any,
) -> None:
    """All steps of the columns left, left + 1, ... of value, in the buffers x and y; the last state
    goes out, and the one before it unless `before` has no rows."""
    n, wide = x.shape
    columns = min(wide, value.shape[1] - left)
    for i in range(n):
        for j in range(columns):
            x[i, j] = value[i, left + j]
        for j in range(columns, wide):
            x[i, j] = 0
        for j in range(wide):
            y[i, j] = 0
    for t in range(scale.size):
        a, b = scale[t], rest[t]
        for i in range(n):
            _mix_row(
                x,
                y,
                indices,
                weights,
                np.int64(indptr[i]),
                np.int64(indptr[i + 1]),
                i,
                a,
                b,
                registers,
            )
        x, y = y, x
    for i in range(n):
        for j in range(columns):
            last[i, left + j] = x[i, j]
    for i in range(len(before)):
        for j in range(columns):
            before[i, left + j] = y[i, j]


def mix(
    matrix: csr_array,
    value: Array,
    scale: Array,
    rest: Array,
    single: bool = False,
    previous: bool = True,
) -> tuple[Array, Array]:
    """x_{t+1} = scale_t W x_t + rest_t x_{t-1} for t = 0 .. len(scale) - 1, x_0 = value and x_{-1}
    = 0.

    Gives the last state and, if `previous`, the one before  # (n, d), (n, d). `single`: steps in
    single precision.
    """
    number: Any = np.float32 if single else np.float64
    n, d = value.shape
    weights, scale, rest = (
        np.ascontiguousarray(part, number) for part in (matrix.data, scale, rest)
    )
    wide = _width(n, d, np.dtype(number).itemsize)
    registers = (0,) * (wide * np.dtype(number).itemsize // REGISTER)
    last, before = np.empty((n, d)), np.empty((n if previous else 0, d))
    lefts = list(range(0, d, wide))
    hands = min(len(lefts), 2, os.cpu_count() or 1) if matrix.nnz * d > 1 << 18 else 1

    def work(mine: list[int]) -> None:
        x, y = (_aligned(n, wide, number) for _ in range(2))
        for left in mine:
            _tile(
                matrix.indptr,
                matrix.indices,
                weights,
                scale,
                rest,
                value,
                left,
                x,
                y,
                last,
                before,
                registers,
            )

    if hands == 1:
        work(lefts)
    else:
        with ThreadPoolExecutor(hands) as pool:
            list(pool.map(work, [lefts[hand::hands] for hand in range(hands)]))
    return last, before


def _width(n: int, d: int, size: int) -> int:
    """Columns of a tile: rows of whole registers, as few as d needs and at most the widest.

    When several tiles are needed anyway, those of many peers are half as wide: two of them fit in a
    shared cache.
    """
    lanes = REGISTER // size
    needed = -(-d // lanes)
    return lanes * min(needed, WIDEST if n <= MANY or needed <= WIDEST else WIDEST // 2)


def _aligned(n: int, wide: int, number: Any) -> NDArray[Any]:
    """An empty (n, wide) buffer that starts on a cache line."""
    size = n * wide * np.dtype(number).itemsize
    raw = np.empty(size + LINE, np.uint8)
    skip = -raw.ctypes.data % LINE
    buffer: NDArray[Any] = raw[skip : skip + size].view(number).reshape(n, wide)
    return buffer
