"""The short recurrence of block Lanczos, compiled: without the interpreter between steps, threads
do not wait."""

import math

import numba as nb
import numpy as np

from bruit.arrays import Array, Ints

_FAST = {"contract", "reassoc", "nsz"}


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def _multiply(indptr: Ints, indices: Ints, data: Array, x: Array, out: Array) -> None:
    """out = W x for W in CSR form; three entries at a time, so that each row of out is touched less
    often."""
    width = x.shape[1]
    for i in range(indptr.size - 1):
        row = out[i]
        for j in range(width):
            row[j] = 0.0
        k, stop = indptr[i], indptr[i + 1]
        while k + 3 <= stop:
            w0, w1, w2 = data[k], data[k + 1], data[k + 2]
            x0, x1, x2 = x[indices[k]], x[indices[k + 1]], x[indices[k + 2]]
            for j in range(width):
                row[j] += w0 * x0[j] + w1 * x1[j] + w2 * x2[j]
            k += 3
        while k < stop:
            w0, x0 = data[k], x[indices[k]]
            for j in range(width):
                row[j] += w0 * x0[j]
            k += 1


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def _subtract(rest: Array, part: Array) -> None:
    flat, other = rest.ravel(), part.ravel()
    for i in range(flat.size):
        flat[i] -= other[i]


@nb.njit(nogil=True, cache=True)
def _inverse_factor(gram: Array, factor: Array) -> bool:
    """Overwrite G = L L^T by L^-T and fill L; False when the columns behind G are nearly
    dependent."""
    d = gram.shape[0]
    smallest, largest = math.inf, 0.0
    for j in range(d):
        pivot = gram[j, j]
        for k in range(j):
            pivot -= gram[j, k] ** 2
        if not pivot > 0.0:
            return False
        root = math.sqrt(pivot)
        smallest, largest = min(smallest, root), max(largest, root)
        gram[j, j] = root
        for i in range(j + 1, d):
            value = gram[i, j]
            for k in range(j):
                value -= gram[i, k] * gram[j, k]
            gram[i, j] = value / root
    if smallest < 1e-2 * largest or largest < 1e-6:
        return False
    for i in range(d):
        for j in range(d):
            factor[i, j] = gram[i, j] if j <= i else 0.0
    for j in range(d):
        gram[j, j] = 1.0 / gram[j, j]
        for i in range(j + 1, d):
            value = 0.0
            for k in range(j, i):
                value -= gram[i, k] * gram[k, j]
            gram[i, j] = value / gram[i, i]
    for j in range(d):
        for i in range(j + 1, d):
            gram[j, i] = gram[i, j]
            gram[i, j] = 0.0
    return True


@nb.njit(nogil=True, cache=True)
def recurrence(
    indptr: Ints, indices: Ints, data: Array, silent: Ints, blocks: Array, coefficients: Array
) -> int:
    """Fill blocks[1], blocks[2], ... from the orthonormal blocks[0]; how many are good, blocks[0]
    included.

    blocks[t] is W blocks[t - 1], without its parts along blocks[t - 1] and blocks[t - 2],
    orthonormalized by Cholesky; it stops before a nearly dependent block. The parts along blocks[t
    - 2] are known from the last normalization, by symmetry. coefficients[t] (3, d, d) keeps what
    was used: along blocks[t - 1], along blocks[t - 2], and the matrix that normalizes.
    """
    count = len(blocks)
    n, d = blocks.shape[1], blocks.shape[2]
    part = np.empty((n, d))
    rest = np.empty((n, d))
    here = np.empty((d, d))
    earlier = np.zeros((d, d))
    gram = np.empty((d, d))
    for t in range(1, count):
        block = blocks[t - 1]
        _multiply(indptr, indices, data, block, rest)
        for v in silent:
            rest[v] = 0.0
        if t > 1:
            np.dot(blocks[t - 2], earlier, part)
            _subtract(rest, part)
        coefficients[t, 1] = earlier
        np.dot(block.T, rest, here)
        np.dot(block, here, part)
        _subtract(rest, part)
        coefficients[t, 0] = here
        np.dot(rest.T, rest, gram)
        if not _inverse_factor(gram, earlier):
            return t
        np.dot(rest, gram, blocks[t])
        coefficients[t, 2] = gram
    return count


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def _add_squares(block: Array, out: Array) -> None:
    for i in range(block.shape[0]):
        row = block[i]
        total = 0.0
        for j in range(row.size):
            total += row[j] * row[j]
        out[i] += total


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def _disturb(
    rest: Array,
    indptr: Ints,
    indices: Ints,
    data: Array,
    sizes: Array,
    around: Array,
    unit: float,
    normals: Array,
) -> None:
    """Add normal numbers, row by row of the size of what is rounded there: |W| sizes, and what is
    around."""
    width = rest.shape[1]
    place = 0
    for i in range(rest.shape[0]):
        size = around[i]
        for k in range(indptr[i], indptr[i + 1]):
            size += abs(data[k]) * sizes[indices[k]]
        size *= unit
        if place + width > normals.size:
            place = 0
        row, drawn = rest[i], normals[place : place + width]
        for j in range(width):
            row[j] += size * drawn[j]
        place += width


@nb.njit(nogil=True, cache=True)
def _without(rest: Array, blocks: Array, part: Array, inner: Array) -> None:
    """Remove the parts along orthonormal blocks."""
    for s in range(blocks.shape[0]):
        np.dot(blocks[s].T, rest, inner)
        np.dot(blocks[s], inner, part)
        _subtract(rest, part)


@nb.njit(nogil=True, cache=True)
def drift(
    indptr: Ints,
    indices: Ints,
    data: Array,
    silent: Ints,
    blocks: Array,
    coefficients: Array,
    unit: float,
    normals: Array,
    every: int,
) -> tuple[Array, Array, Array]:
    """What errors of size `unit`, made afresh at every step of the recurrence, have become in the
    blocks.

    The recurrence is linear once its coefficients are fixed: new errors (normal numbers, each times
    the size of what is rounded there) follow it like the blocks themselves. Parts along the blocks
    only change the basis, not the space, and are removed every so many steps. Returns squared
    lengths of the rows of all errors, and the last two blocks of them.
    """
    count, n, d = blocks.shape
    total = np.zeros(n)
    before, last, rest = np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d))
    part, inner = np.empty((n, d)), np.empty((d, d))
    far, near, here = np.zeros(n), np.zeros(n), np.zeros(n)
    _add_squares(blocks[0], near)
    near = np.sqrt(near)
    for t in range(1, count):
        here[:] = 0.0
        _add_squares(blocks[t], here)
        here = np.sqrt(here)
        _multiply(indptr, indices, data, last, rest)
        np.dot(last, coefficients[t, 0], part)
        _subtract(rest, part)
        np.dot(before, coefficients[t, 1], part)
        _subtract(rest, part)
        _disturb(rest, indptr, indices, data, near, far + near + here, unit, normals[97 * t :])
        for v in silent:
            rest[v] = 0.0
        before, last = last, before
        np.dot(rest, coefficients[t, 2], last)
        far, near, here = near, here, far
        if t % every == 0:
            _without(before, blocks[:t], part, inner)
            _without(last, blocks[: t + 1], part, inner)
        _add_squares(last, total)
    return total, before, last


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def row_norms(blocks: Array, signs: Array) -> tuple[Array, float]:
    """Squared row norms of Q = [blocks[0], blocks[1], ...], and the largest |(Q^T Q - I) g| / |g| over two probes g.

    signs (T, d, 2) holds two probes with entries -1 and 1.
    """
    steps, n, d = blocks.shape
    values = np.zeros(n)
    image = np.zeros((n, 2))
    for t in range(steps):
        for i in range(n):
            row = blocks[t, i]
            total, first, second = 0.0, 0.0, 0.0
            for j in range(d):
                total += row[j] * row[j]
                first += row[j] * signs[t, j, 0]
                second += row[j] * signs[t, j, 1]
            values[i] += total
            image[i, 0] += first
            image[i, 1] += second
    errors = np.zeros(2)
    back = np.empty((d, 2))
    for t in range(steps):
        np.dot(blocks[t].T, image, back)
        for j in range(d):
            for q in range(2):
                errors[q] += (back[j, q] - signs[t, j, q]) ** 2
    return values, math.sqrt(errors.max() / (steps * d))
