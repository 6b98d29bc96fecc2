"""A picture of true and recovered images, one column a peer: truth above, what the attacker got
below. A PNG file."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.files import check_place, write_whole

Pixels = NDArray[np.uint8]

FRAME = 160
"""Gray of the lines between images."""


def grid(
    rows: list[Array], shape: tuple[int, ...], peak: float = 1.0, zoom: int = 4, columns: int = 12
) -> Pixels:
    """Rows of flat images as one array of pixels, a band of rows after `columns` images.

    rows: for instance [truth, recovered], each (k, pixels); shape: (height, width) or (height,
    width, 3). Values are clipped to 0..peak; what was not recovered (nan) is the gray of the frame.
    """
    _check(rows, shape, peak, zoom, columns)
    height, width, count = shape[0] * zoom, shape[1] * zoom, len(rows[0])
    across, bands = min(columns, count), -(-count // columns)
    colors = shape[2:] or ()
    canvas = np.full(
        (bands * len(rows) * (height + 1) + 1 + bands - 1, across * (width + 1) + 1, *colors),
        FRAME,
        dtype=np.uint8,
    )
    for k in range(count):
        band, column = divmod(k, columns)
        for i, images in enumerate(rows):
            top = 1 + (band * len(rows) + i) * (height + 1) + band
            left = 1 + column * (width + 1)
            canvas[top : top + height, left : left + width] = _tile(images[k], shape, peak, zoom)
    return canvas


def write_png(path: str | Path, pixels: Pixels) -> Path:
    """Write gray (h, w) or color (h, w, 3) pixels as a PNG file, whole or not at all."""
    if (
        pixels.dtype != np.uint8
        or pixels.ndim not in (2, 3)
        or (pixels.ndim == 3 and pixels.shape[2] != 3)
    ):
        raise ConfigError(
            f"a picture is (height, width) or (height, width, 3) bytes, found {pixels.shape} of "
            f"{pixels.dtype}"
        )
    place = Path(path)
    check_place(place)
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    # Every line of a PNG starts with the number of its filter; 0 is none.
    lines = np.zeros((height, 1 + pixels[0].size), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)
    write_whole(place, lambda stream: stream.write(content))
    return place


def save_grid(
    path: str | Path, truth: Array, recovered: Array, shape: tuple[int, ...], peak: float = 1.0
) -> Path:
    """True images above recovered ones, written to a PNG file."""
    return write_png(path, grid([truth, recovered], shape, peak))


def _tile(image: Array, shape: tuple[int, ...], peak: float, zoom: int) -> Pixels:
    shade = np.where(np.isnan(image), FRAME, np.clip(np.nan_to_num(image) / peak, 0.0, 1.0) * 255.0)
    return np.rint(shade).astype(np.uint8).reshape(shape).repeat(zoom, axis=0).repeat(zoom, axis=1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _check(rows: list[Array], shape: tuple[int, ...], peak: float, zoom: int, columns: int) -> None:
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3) or min(shape) < 1:
        raise ConfigError(
            f"the shape of an image is (height, width) or (height, width, 3), found {shape}"
        )
    if not rows or not len(rows[0]):
        raise ConfigError("a picture grid needs at least one image")
    wanted = (len(rows[0]), int(np.prod(shape)))
    for images in rows:
        if images.shape != wanted:
            raise ConfigError(
                f"images are {images.shape}; {wanted[0]} images of shape {shape} need {wanted}"
            )
    if not peak > 0 or zoom < 1 or columns < 1:
        raise ConfigError(
            f"a grid needs a positive peak, zoom and columns, found {peak}, {zoom} and {columns}"
        )
