"""Compiled bulk draws: the same numbers as bruit.randomness, bit for bit, at memory speed.

Counter blocks are filled, encrypted by AES and turned into numbers in chunks that stay in cache. No
fast-math and no fused multiply-add: the arithmetic is exactly that of the numpy path.
`discrete_rows` is the bulk form of the exact sampler of bruit.randomness.discrete_normal.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bruit.arrays import Array, Ints, Words

CHUNK = 8192  # blocks encrypted at a time: 128 KiB of words
U = np.uint64
V = np.uint32
F = np.float32
LAST = U(2**64 - 1)  # of bruit.randomness.discrete_normal
MANTISSA, ONE = U(2**52 - 1), U(1023 << 52)
ROOT_HALF = U(
    0x3FE6A09E667F3BCD
)  # the bits of sqrt(1/2): mantissas are taken in [sqrt(1/2), sqrt(2))
MANTISSA32, ONE32, ROOT_HALF32 = V(2**23 - 1), V(127 << 23), V(0x3F3504F3)
SHIFT = 1.0 - 2.0**-53
EXPONENT, EXPONENT_BIAS = (
    U(1075 << 52),
    2.0**52 + 1023.0,
)  # 2**52 as a float: an integer below it becomes a double
LN2, HALF_PI = math.log(2.0), math.pi / 2
# Minimax coefficients (fdlibm's) of 2 artanh, sine and cosine on the reduced ranges;
# bruit.randomness has them too.
L0, L1, L2, L3 = 0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784
L4, L5, L6 = 0.1818357216161805, 0.15313837699209373, 0.14798198605116586
S1, S2, S3 = -0.16666666666666632, 0.00833333333332249, -0.0001984126982985795
S4, S5, S6 = 2.7557313707070068e-06, -2.5050760253406863e-08, 1.58969099521155e-10
C2, C3, C4 = 0.0416666666666666, -0.001388888888887411, 2.480158728947673e-05
C5, C6, C7 = -2.7557314351390663e-07, 2.087572321298175e-09, -1.1359647557788195e-11


@intrinsic
def _as_double(typing: Any, x: Any) -> Any:
    return types.float64(types.uint64), lambda context, builder, sig, args: builder.bitcast(
        args[0], ir.DoubleType()
    )


@intrinsic
def _as_word(typing: Any, x: Any) -> Any:
    return types.uint64(types.float64), lambda context, builder, sig, args: builder.bitcast(
        args[0], ir.IntType(64)
    )


@intrinsic
def _as_single(typing: Any, x: Any) -> Any:
    return types.float32(types.uint32), lambda context, builder, sig, args: builder.bitcast(
        args[0], ir.FloatType()
    )


@intrinsic
def _as_word32(typing: Any, x: Any) -> Any:
    return types.uint32(types.float32), lambda context, builder, sig, args: builder.bitcast(
        args[0], ir.IntType(32)
    )


@njit(cache=True, nogil=True, boundscheck=False)
def fill(high: Words, low: Words, blocks: int, start: int, stop: int, counters: Words) -> None:
    """Counter blocks start..stop of the rows laid end to end."""
    row, j, b = start // blocks, start % blocks, 0
    while b < stop - start:
        length = min(blocks - j, stop - start - b)
        first, second = high[row], low[row] + (U(j) << U(32))
        for i in range(length):
            counters[2 * (b + i)] = first
            counters[2 * (b + i) + 1] = second + (U(i) << U(32))
        b += length
        row += 1
        j = 0


@njit(cache=True, nogil=True, inline="always")
def _uniform(word: Any) -> Any:
    return _as_double((word >> U(12)) | ONE) - SHIFT


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _log(u: Any) -> Any:
    bits = _as_word(u) + (ONE - ROOT_HALF)
    exponent = _as_double((bits >> U(52)) | EXPONENT) - EXPONENT_BIAS
    m = _as_double((bits & MANTISSA) + ROOT_HALF)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    w = z * z
    p = ((L0 + z * L1) + w * (L2 + z * L3)) + (w * w) * ((L4 + z * L5) + w * L6)
    return exponent * LN2 + (2.0 * s + s * z * p)


@njit(cache=True, nogil=True, boundscheck=False)
def copy_words(words: Words, out: Words) -> None:
    """Words as they are."""
    for i in range(out.size):
        out[i] = words[i]


@njit(cache=True, nogil=True, boundscheck=False)
def uniforms(words: Words, out: Array) -> None:
    """Uniform numbers in (0, 1), one per word."""
    for i in range(out.size):
        out[i] = _uniform(words[i])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def normals(words: Words, out: Array) -> None:
    """Standard normals by Box-Muller, two per block."""
    for i in range(out.size // 2):
        turn = words[2 * i + 1]
        radius = math.sqrt(-2.0 * _log(_uniform(words[2 * i])))
        angle = (_uniform(turn) - 0.5) * HALF_PI
        z = angle * angle
        w = z * z
        v = w * w
        sine = angle * (((1.0 + z * S1) + w * (S2 + z * S3)) + v * ((S4 + z * S5) + w * S6))
        cosine = ((1.0 + z * -0.5) + w * (C2 + z * C3)) + v * ((C4 + z * C5) + w * (C6 + z * C7))
        cosine = _as_double(_as_word(cosine) ^ ((turn & U(2)) << U(62)))
        swap = (turn & U(1)) != U(0)
        out[2 * i] = radius * (sine if swap else cosine)
        out[2 * i + 1] = radius * (cosine if swap else sine)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def normals32(words: NDArray[np.uint32], out: NDArray[np.float32]) -> None:
    """Single-precision normals, two per pair of 32-bit words; 31 bits of radius, 23 of angle, two
    of quadrant."""
    for i in range(out.size // 2):
        turn = words[2 * i + 1]
        u = (F(np.int32(words[2 * i] >> V(1))) + F(0.5)) * F(2.0**-31)
        bits = V(_as_word32(u) + V(ONE32 - ROOT_HALF32))
        exponent = F(np.int32(bits >> V(23)) - np.int32(127))
        m = _as_single(V((bits & MANTISSA32) + ROOT_HALF32))
        s = (m - F(1.0)) / (m + F(1.0))
        z = s * s
        p = (F(2 / 3) + z * F(2 / 5)) + (z * z) * (F(2 / 7) + z * F(2 / 9))
        log = min(
            exponent * F(LN2) + (F(2.0) * s + s * z * p), F(-(2.0**-32))
        )  # u rounds to 1 at the very top
        radius = F(math.sqrt(F(-2.0) * log))
        angle = (_as_single((turn >> V(9)) | ONE32) - F(1.5 - 2.0**-24)) * F(HALF_PI)
        z = angle * angle
        w = z * z
        sine = angle * ((F(1.0) + z * F(-1 / 6)) + w * (F(1 / 120) + z * F(-1 / 5040)))
        cosine = ((F(1.0) + z * F(-0.5)) + w * (F(1 / 24) + z * F(-1 / 720))) + (w * w) * F(
            1 / 40320
        )
        cosine = _as_single(_as_word32(cosine) ^ ((turn & V(2)) << V(30)))
        swap = (turn & V(1)) != V(0)
        out[2 * i] = radius * (sine if swap else cosine)
        out[2 * i + 1] = radius * (cosine if swap else sine)


@njit(cache=True, nogil=True, boundscheck=False)
def trim(numbers: Any, width: int, start: int, out: Any) -> None:
    """Copy a run of padded rows (width numbers each) into rows of out, dropping the padding."""
    row, column, i = start // width, start % width, 0
    while i < numbers.size:
        length = min(width - column, numbers.size - i)
        for k in range(min(length, out.shape[1] - column)):
            out[row, column + k] = numbers[i + k]
        i += length
        column = 0
        row += 1


TRANSFORMS: dict[str, Callable[..., None]] = {
    "words": copy_words,
    "uniform": uniforms,
    "normal": normals,
}


def draw(kind: str, cipher: Any, high: Words, low: Words, count: int) -> Any:
    """Numbers of one kind for each row address (high, low); see bruit.randomness."""
    if kind == "words" and count % 2 == 0:
        return _encrypted(cipher, high, low, count // 2)
    out = np.empty((len(high), count), dtype=np.uint64 if kind == "words" else np.float64)
    _stream(cipher, high, low, out, TRANSFORMS[kind], np.dtype(np.uint64))
    return out


def _encrypted(cipher: Any, high: Words, low: Words, blocks: int) -> Words:
    """Words as the cipher leaves them, in place."""
    total = len(high) * blocks
    words = np.empty(2 * total + 2, dtype=np.uint64)  # update_into asks for a block of slack
    counters, room = np.empty(2 * min(CHUNK, total), dtype=np.uint64), words.view(np.uint8)
    for start in range(0, total, CHUNK):
        stop = min(start + CHUNK, total)
        fill(high, low, blocks, start, stop, counters)
        cipher.update_into(counters.view(np.uint8)[: 16 * (stop - start)], room[16 * start :])
    return words[: 2 * total].reshape(len(high), 2 * blocks)


def draw32(cipher: Any, high: Words, low: Words, count: int) -> NDArray[np.float32]:
    """Single-precision normals for each row address."""
    out = np.empty((len(high), count), dtype=np.float32)
    _stream(cipher, high, low, out, normals32, np.dtype(np.uint32))
    return out


def _stream(
    cipher: Any,
    high: Words,
    low: Words,
    out: Any,
    transform: Callable[..., None],
    word: np.dtype[Any],
) -> None:
    """Fill, encrypt and transform, chunk by chunk; rows whose length is no multiple of a block are
    trimmed."""
    per_block = 16 // word.itemsize
    blocks = -(-out.shape[1] // per_block)
    width, total = blocks * per_block, len(high) * blocks
    if total == 0:
        return
    high, low = np.ascontiguousarray(high), np.ascontiguousarray(low)
    size = min(CHUNK, total)
    counters, words = np.empty(2 * size, dtype=np.uint64), np.empty(2 * size + 2, dtype=np.uint64)
    counter_bytes, word_bytes, typed = (
        counters.view(np.uint8),
        words.view(np.uint8),
        words.view(word),
    )
    whole = width == out.shape[1]
    flat, scratch = out.reshape(-1), np.empty(0 if whole else size * per_block, dtype=out.dtype)
    for start in range(0, total, size):
        stop = min(start + size, total)
        fill(high, low, blocks, start, stop, counters)
        cipher.update_into(counter_bytes[: 16 * (stop - start)], word_bytes)
        if whole:
            transform(typed, flat[per_block * start : per_block * stop])
        else:
            numbers = scratch[: per_block * (stop - start)]
            transform(typed, numbers)
            trim(numbers, width, per_block * start, out)


DONE, SHORT, UNSURE = 0, 1, 2


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def discrete_rows(
    words: Words,
    out: Array,
    s: float,
    shift: int,
    unit: float,
    heights: Words,
    ends: Words,
    sure: Words,
    grid: float,
) -> Ints:
    """grid times discrete normal numbers of bruit.randomness.discrete_normal, one row of words (k,
    w) a row of out (k, d).

    The state of each row: DONE, SHORT of words, or UNSURE because floats could not decide.
    """
    guide = np.empty(1024, np.uint64)  # the block in which each 1024th part of the words begins
    j = U(0)
    for part in range(U(1024)):
        while j < U(ends.size - 1) and ends[j] <= part << U(54):
            j += U(1)
        guide[part] = j
    states = np.empty(out.shape[0], np.int64)
    mask, lowest, top = (U(1) << U(shift)) - U(1), U(shift), U(shift + 1)
    half, unit_of_head, last = 0.5 / (s * s), 2.0 ** (shift - 63), ends[U(ends.size - 1)]
    columns, length = U(out.shape[1]), U(words.shape[1])
    for i in range(U(out.shape[0])):
        p, n, states[i] = U(0), U(0), DONE
        while n < columns:
            if p + U(2) > length:
                states[i] = SHORT
                break
            first, second = words[i, p], words[i, p + U(1)]
            p += U(2)
            if first >= last:
                if first == LAST and second == U(
                    0
                ):  # perhaps a number beyond all blocks: 2**-128 of all tries
                    states[i] = UNSURE
                    break
                continue
            j = guide[first >> U(54)]
            while ends[j] <= first:
                j += U(1)
            offset, head = second & mask, second >> top
            x = np.int64((j << lowest) | offset)
            negative = (second >> lowest) & U(1)
            if x == 0 and negative == U(1):
                continue
            if head >= sure[j]:
                chance = math.exp(-half * (float(x) * float(x))) * unit / float(heights[j])
                below = float(head) * unit_of_head
                if below >= chance * (1.0 + 1e-11):
                    continue
                if below + unit_of_head > chance * (1.0 - 1e-11):
                    states[i] = UNSURE
                    break
            out[i, n] = grid * (float(-x) if negative == U(1) else float(x))
            n += U(1)
    return states
