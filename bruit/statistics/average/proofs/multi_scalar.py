"""Many points times many scalars in one sum, by buckets (Pippenger), on the library's additions.

    sum_i s_i P_i = sum over bits b of 2**b Z_b,    Z_{cw+j} = sum of the buckets of window w whose digit has bit j

The points of one bucket are added in one call of libsecp256k1, at some 0.4 microseconds a point
against 45 for a multiplication, and so are the buckets of one bit; then 256 doublings finish. The
width c of a window follows from the number of points. Variable time: verification has no secrets;
for provers see `group`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Ints
from bruit.errors import LocalProtocolError
from bruit.statistics.average.proofs.group import (
    ORDER,
    RAW_BYTES,
    SCALAR_BYTES,
    Library,
    Point,
    library,
    total,
)

Table = NDArray[np.uint8]  # (n, 64): points in the library's own form, none of them the identity

BITS = 8 * SCALAR_BYTES
ADDITION, CALL = 0.36, 4.0  # microseconds: they only choose the width
FEW = 600  # points below which multiplying one by one is faster


def table(points: Sequence[Point]) -> Table:
    """Points side by side in memory, as the sums below want them."""
    if any(not point.raw for point in points):
        raise LocalProtocolError("the identity is no row of a table of points")
    return np.frombuffer(b"".join(point.raw for point in points), np.uint8).reshape(-1, RAW_BYTES)


def weighted_sum(points: Table, scalars: Sequence[int]) -> Point:
    """sum_i scalars_i points_i."""
    if len(points) != len(scalars):
        raise LocalProtocolError(f"{len(points)} points have {len(scalars)} scalars")
    if not len(scalars):
        return Point()
    if len(scalars) < FEW:
        return total(
            scalar * Point(row.tobytes()) for scalar, row in zip(scalars, points, strict=True)
        )
    sums = _BucketSums(np.ascontiguousarray(points))
    reduced = b"".join((scalar % ORDER).to_bytes(SCALAR_BYTES, "big") for scalar in scalars)
    bits = np.unpackbits(
        np.frombuffer(reduced, np.uint8).reshape(-1, SCALAR_BYTES), axis=1
    )  # (n, 256) high first
    width = window_width(len(scalars))
    parts: list[bytes] = []
    for top in range(0, BITS, width):
        chunk = bits[:, top : top + width]
        digits = chunk @ (1 << np.arange(chunk.shape[1] - 1, -1, -1))
        parts += sums.of_window(digits, chunk.shape[1])
    return _doubled_up(parts)


def window_width(count: int) -> int:
    """The width c that costs least: (256 / c) (n additions + 2**c calls + c 2**(c-1) additions)."""

    def cost(width: int) -> float:
        filled = min(count, 1 << width)
        return (count * ADDITION + filled * CALL + width * (filled / 2 * ADDITION + CALL)) / width

    return min(range(2, 15), key=cost)


def subset_sum(points: Table, chosen: Ints) -> Point:
    """The sum of the chosen rows."""
    return Point(_BucketSums(np.ascontiguousarray(points)).of(chosen))


class _BucketSums:
    """Sums of rows of one table, by pointers into it."""

    def __init__(self, points: Table) -> None:
        self._used, self._points = library(), points
        self._out = self._used.ffi.new("secp256k1_pubkey *")

    def of(self, rows: Ints) -> bytes:
        """The sum of these rows of the table; empty for the identity."""
        return self._added(self._pointers(self._points, rows), len(rows)) if len(rows) else b""

    def _pointers(self, points: Table, rows: Ints) -> Any:
        addresses = np.uint64(points.ctypes.data) + rows.astype(np.uint64) * np.uint64(RAW_BYTES)
        return self._used.ffi.from_buffer("secp256k1_pubkey *[]", addresses)

    def _added(self, pointers: Any, count: int) -> bytes:
        used = self._used
        if not used.lib.secp256k1_ec_pubkey_combine(used.context, self._out, pointers, count):
            return b""
        return bytes(used.ffi.buffer(self._out, RAW_BYTES))

    def of_window(self, digits: Ints, width: int) -> list[bytes]:
        """For each bit of the window, highest first, the sum of all points whose digit has it."""
        order = np.argsort(digits, kind="stable")
        present, starts = np.unique(digits[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        pointers = self._pointers(self._points, order)
        buckets, names = [], []
        for digit, start, end in zip(present.tolist(), starts.tolist(), ends.tolist(), strict=True):
            summed = self._added(pointers + start, end - start) if digit else b""
            if summed:
                buckets.append(summed)
                names.append(digit)
        held = np.frombuffer(b"".join(buckets), np.uint8).reshape(-1, RAW_BYTES)
        has = (np.array(names, dtype=np.int64) >> np.arange(width - 1, -1, -1)[:, None] & 1).astype(
            bool
        )  # (width, k)
        counts = has.sum(axis=1).tolist()
        pointers = self._pointers(held, np.nonzero(has)[1])
        sums, start = [], 0
        for count in counts:
            sums.append(self._added(pointers + start, count) if count else b"")
            start += count
        return sums


def _doubled_up(parts: Sequence[bytes]) -> Point:
    """sum of 2**b parts_b, the highest bit first."""
    used: Library = library()
    current, out = b"", used.ffi.new("secp256k1_pubkey *")
    for part in parts:
        held = [raw for raw in (current, current, part) if raw]
        pointers = [used.ffi.from_buffer("secp256k1_pubkey *", raw) for raw in held]
        fits = held and used.lib.secp256k1_ec_pubkey_combine(used.context, out, pointers, len(held))
        current = bytes(used.ffi.buffer(out, RAW_BYTES)) if fits else b""
    return Point(current)
