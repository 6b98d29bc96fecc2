"""The printed pairwise sum of Muffliato for all pairs at once: columns of W^t are streamed through the cache in tiles.

    shares[w, u] = sum_{t < T} (W^t)_{uw}^2 / ||(W^t)_{.w}||^2,    then    m[u, v] = sum over w in N(v) of shares[w, u]

Column w of W^t needs only column w, so a tile of columns takes all its steps while it stays in cache: one pass per step
mixes, sums the norms of the new columns and adds the shares of the old ones. Single precision: the relative error of a
sum is below 1e-5.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.kernels.mixing import REGISTER, _aligned, _Rows

WIDE = 32  # columns of a tile: states and shares of some thousand peers fit in a core's own cache
LANES = REGISTER // 4


@intrinsic
def _step(
    typing: Any, x: Any, y: Any, shares: Any, indptr: Any, indices: Any, weights: Any, rows: Any, inverse: Any,
    norms: Any, registers: Any,
) -> Any:  # fmt: skip
    """For every row: y = W x, shares += x^2 * inverse; norms = the column sums of y^2, in registers meanwhile.

    The type of `registers`, a tuple, says by its length how many vector registers one row takes.
    """
    signature = types.void(x, y, shares, indptr, indices, weights, types.int64, inverse, norms, registers)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target, total, starts, columns, factors = (
            context.make_array(sig.args[k])(context, builder, args[k]).data for k in range(6)
        )  # fmt: skip
        inverses, squares = (context.make_array(sig.args[k])(context, builder, args[k]).data for k in (7, 8))
        line, word = _Rows(builder, 32, len(registers)), ir.IntType(64)
        zero, one = ir.Constant(word, 0), ir.Constant(word, 1)

        def place(base: Any, kind: Any, number: Any) -> Any:
            found = builder.load(builder.gep(base, [number]))
            return builder.sext(found, word) if kind.dtype.bitwidth < 64 else found

        scales = [line.load(inverses, zero, part) for part in range(len(registers))]
        norms_of = [cgutils.alloca_once_value(builder, line.zero) for _ in registers]
        sums = [cgutils.alloca_once_value(builder, line.zero) for _ in registers]
        for each in norms_of:
            builder.store(line.zero, each)
        with cgutils.for_range_slice(builder, zero, args[6], one, intp=word) as (row, _):
            for each in sums:
                builder.store(line.zero, each)
            first, stop = place(starts, sig.args[3], row), place(starts, sig.args[3], builder.add(row, one))
            with cgutils.for_range_slice(builder, first, stop, one, intp=word) as (k, _):
                column = place(columns, sig.args[4], k)
                weight = line.splat(builder.load(builder.gep(factors, [k])))
                for part, each in enumerate(sums):
                    builder.store(line.fma(weight, line.load(source, column, part), builder.load(each)), each)
            for part, (each, norm) in enumerate(zip(sums, norms_of, strict=True)):
                new, old = builder.load(each), line.load(source, row, part)
                line.store(new, target, row, part)
                builder.store(line.fma(new, new, builder.load(norm)), norm)
                grown = line.fma(builder.fmul(old, old), scales[part], line.load(total, row, part))
                line.store(grown, total, row, part)
        for part, norm in enumerate(norms_of):
            line.store(builder.load(norm), squares, zero, part)
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True, boundscheck=False)
def _start(
    indptr: Ints, indices: Ints, weights: Any, steps: int, w: int, j: int, x: Any, shares: Any, inverse: Any
) -> None:
    """Shares of I and W in column j of the tile, and W^2 (or the last power there is) in x: these have few entries."""
    shares[w, j] = 1
    first, stop = indptr[w], indptr[w + 1]
    square = np.float32(0)
    for k in range(first, stop):
        square += weights[k] * weights[k]
    if steps == 2:
        for k in range(first, stop):
            x[indices[k], j] = weights[k]
        inverse[0, j] = 1 / square
    if steps < 3:
        return
    for k in range(first, stop):
        shares[indices[k], j] += weights[k] * weights[k] / square
        for other in range(indptr[indices[k]], indptr[indices[k] + 1]):
            x[indices[other], j] += weights[k] * weights[other]
    square = np.float32(0)
    for i in range(x.shape[0]):
        square += x[i, j] * x[i, j]
    inverse[0, j] = 1 / square


@njit(cache=True, nogil=True, boundscheck=False)
def _tile(
    indptr: Ints, indices: Ints, weights: Any, steps: int, left: int, x: Any, y: Any, shares: Any, inverse: Any,
    norms: Any, out: Any, registers: Any,
) -> None:  # fmt: skip
    """Shares of the columns left, left + 1, ...; they go out as rows."""
    n, wide = x.shape
    columns = min(wide, n - left)
    x[:] = 0
    shares[:] = 0
    for j in range(columns):
        _start(indptr, indices, weights, steps, left + j, j, x, shares, inverse)
    for _ in range(steps - 3):
        _step(x, y, shares, indptr, indices, weights, n, inverse, norms, registers)
        for j in range(columns):
            inverse[0, j] = 1 / norms[0, j]
        x, y = y, x
    if steps > 1:
        for i in range(n):
            for j in range(columns):
                shares[i, j] += x[i, j] * x[i, j] * inverse[0, j]
    for j in range(columns):
        for i in range(n):
            out[left + j, i] = shares[i, j]


@njit(cache=True, nogil=True, boundscheck=False)
def _gather(indptr: Ints, indices: Ints, shares: Any, first: int, stop: int, out: Array) -> None:
    """out[v] = sum of shares[w] over the neighbors w of v, for first <= v < stop."""
    n = shares.shape[1]
    row = np.empty(n, shares.dtype)
    for v in range(first, stop):
        row[:] = 0
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            if w != v:
                other = shares[w]
                for u in range(n):
                    row[u] += other[u]
        for u in range(n):
            out[v, u] = row[u]


def printed_sums(matrix: csr_array, steps: int) -> Array:
    """m[u, v] for all pairs and steps >= 1, the diagonal included, W symmetric; by two threads  # (n, n)."""
    n = int(matrix.shape[0])
    weights = np.ascontiguousarray(matrix.data, np.float32)
    registers = (0,) * (WIDE // LANES)
    shares, out = np.empty((n, n), np.float32), np.empty((n, n))
    lefts = list(range(0, n, WIDE))
    hands = min(2, os.cpu_count() or 1, len(lefts))

    def work(hand: int) -> None:
        x, y, kept = (_aligned(n, WIDE, np.float32) for _ in range(3))
        # Sums of two threads on one cache line would make each wait for the other.
        inverse, norms = (_aligned(4, WIDE, np.float32)[:1] for _ in range(2))
        for left in lefts[hand::hands]:
            _tile(matrix.indptr, matrix.indices, weights, steps, left, x, y, kept, inverse, norms, shares, registers)

    with ThreadPoolExecutor(hands) as pool:
        list(pool.map(work, range(hands)))
        cuts = np.linspace(0, n, hands + 1).astype(int).tolist()
        list(pool.map(lambda a, b: _gather(matrix.indptr, matrix.indices, shares, a, b, out), cuts[:-1], cuts[1:]))
    return out.T
