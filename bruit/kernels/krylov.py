"""The short recurrence of block Lanczos, compiled: without the interpreter between steps, threads do not wait."""

import math

import numba as nb
import numpy as np

from bruit.arrays import Array, Ints

_FAST = {"contract", "reassoc", "nsz"}


@nb.njit(nogil=True, cache=True, fastmath=_FAST)
def _multiply(indptr: Ints, indices: Ints, data: Array, x: Array, out: Array) -> None:
    """out = W x for W in CSR form; three entries at a time, so that each row of out is touched less often."""
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
    """Overwrite G = L L^T by L^-T and fill L; False when the columns behind G are nearly dependent."""
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
    indptr: Ints, indices: Ints, data: Array, silent: Ints, blocks: Array, count: int, remembered: bool
) -> int:
    """Fill blocks[1] .. blocks[count - 1] from the orthonormal blocks[0]; how many are good, blocks[0] included.

    blocks[t + 1] is W blocks[t], without its parts along blocks[t] and blocks[t - 1], orthonormalized by Cholesky; it
    stops before a nearly dependent block. remembered takes the coefficients along blocks[t - 1] from the last
    normalization, to which they are equal by symmetry; else all coefficients are computed before anything is removed.
    """
    n, d = blocks.shape[1], blocks.shape[2]
    part = np.empty((n, d))
    rest = np.empty((n, d))
    here = np.empty((d, d))
    earlier = np.empty((d, d))
    gram = np.empty((d, d))
    for t in range(1, count):
        block = blocks[t - 1]
        _multiply(indptr, indices, data, block, rest)
        for v in silent:
            rest[v] = 0.0
        if not remembered:
            np.dot(block.T, rest, here)
        if t > 1:
            if not remembered:
                np.dot(blocks[t - 2].T, rest, earlier)
            np.dot(blocks[t - 2], earlier, part)
            _subtract(rest, part)
        if remembered:
            np.dot(block.T, rest, here)
        np.dot(block, here, part)
        _subtract(rest, part)
        np.dot(rest.T, rest, gram)
        if not _inverse_factor(gram, earlier):
            return t
        np.dot(rest, gram, blocks[t])
    return count


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
