"""A fixed front for small pictures: two layers of oriented waves, like a scattering transform.

    U1 = |x * w_t|,     U2 = | blur(U1) * w_s |,      s, t among `TURNS` directions
    features = windowed means of x, U1 (at two scales) and U2 on a grid of 7 x 7

w_t are Morlet waves, written down below: no number of it was learned, on any data. Every group of
maps (the picture, both scales of U1, U2 by direction t) is brought to mean 0 and deviation 1 within
its picture, and the whole row to norm 1: what is said of one picture depends on that picture alone.
After Bruna and Mallat, arXiv:1203.1513; for private learning Tramer and Boneh, arXiv:2011.11660.
"""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.networks.kept import folder
from bruit.arrays import Array

TURNS, GRID, SIDE = 4, 7, 28
WIDTH = (1 + 2 * TURNS + TURNS * TURNS) * GRID * GRID  # 1225 features
AT_ONCE = 1000
FLAT = 1e-4  # added to deviations: a group without contrast stays near 0


def features(pictures: Array) -> Array:
    """Pictures (r, 28, 28) of bytes as rows of norm 1  # (r, WIDTH)."""
    rows = np.empty((len(pictures), WIDTH))
    with torch.no_grad():
        for begin in range(0, len(pictures), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            rows[some] = _rows(torch.from_numpy(pictures[some].astype(np.float32))).numpy()
    return rows


def _rows(pictures: Tensor) -> Tensor:
    waves, step = morlets(), SIDE // GRID
    x = pictures[:, None] / 255
    fine, coarse = _modulus(x, waves), _modulus(_means(x, 2), waves)
    second = _modulus(_means(fine, 2), waves)
    maps = [_means(x, step), _means(fine, step), _means(coarse, step // 2)]
    maps += _means(second, step // 2).split(TURNS, 1)
    rows = torch.cat([_standard(one.flatten(1)) for one in maps], dim=1)
    return functional.normalize(rows, dim=1)


def morlets(size: int = 7, spread: float = 0.8, slant: float = 0.5) -> Tensor:
    """Waves of frequency 3 pi / 4 under a Gaussian, mean 0; real parts, then imaginary ones
    # (2 TURNS, 1, size, size)."""
    line = torch.arange(size) - (size - 1) / 2
    y, x = torch.meshgrid(line, line, indexing="ij")
    found = []
    for angle in math.pi / TURNS * torch.arange(TURNS):
        along = x * torch.cos(angle) + y * torch.sin(angle)
        across = y * torch.cos(angle) - x * torch.sin(angle)
        hill = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * spread**2))
        wave = torch.polar(hill, 3 * math.pi / 4 * along)
        wave = wave - hill * (wave.sum() / hill.sum())
        found.append(wave / wave.abs().sum())
    waves = torch.stack(found)[:, None]
    return torch.cat([waves.real, waves.imag])


def _modulus(maps: Tensor, waves: Tensor) -> Tensor:
    """The length of every map's answer to every wave: c maps become c TURNS."""
    count, channels, *side = maps.shape
    answer = functional.conv2d(maps.reshape(-1, 1, *side), waves, padding=waves.shape[-1] // 2)
    length = torch.hypot(answer[:, :TURNS], answer[:, TURNS:])
    return length.reshape(count, channels * TURNS, *side)


def _means(maps: Tensor, step: int) -> Tensor:
    """Means under Gaussian windows of twice the step, one every step."""
    line = torch.arange(2 * step) - (2 * step - 1) / 2
    hill = torch.exp(-(line**2) / (2 * (0.6 * step) ** 2))
    hill = hill / hill.sum()
    count, channels, *side = maps.shape
    window = torch.outer(hill, hill)[None, None]
    found = functional.conv2d(maps.reshape(-1, 1, *side), window, stride=step, padding=step // 2)
    return found.reshape(count, channels, *found.shape[2:])


def _standard(rows: Tensor) -> Tensor:
    centered = rows - rows.mean(1, keepdim=True)
    return centered / (centered.std(1, keepdim=True) + FLAT)


def kept_features(name: str, pictures: Array) -> Array:
    """The same, kept in the machine's temporary folder from one question to the next
    # (r, WIDTH)."""
    code = hashlib.sha256(Path(__file__).read_bytes() + pictures.tobytes()).hexdigest()[:16]
    file = folder() / f"{name}-{code}.npy"
    if not file.is_file():
        partial = file.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, features(pictures).astype(np.float32))
        partial.rename(file)
    rows: Array = np.load(file).astype(np.float64)
    return rows
