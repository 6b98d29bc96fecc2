"""The losses of all pairs, packed for a page: every loss rounded up to one of a few levels, one or
two bytes a pair.

When there are few distinct losses the levels are those losses, and nothing is rounded. Otherwise
levels are even in the logarithm, and a pair gets the first level at or above its loss: what the
page says is never below the truth.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.privacy.guarantee import level_words
from bruit.show.drawing.markup import number
from bruit.show.report.story import Story

MOST = 2048  # rows and columns of the map; larger matrices are joined in blocks
WIDE = 1024  # up to here two bytes a pair
LEVELS_NARROW, LEVELS_WIDE = 250, 4000
SHADES = 16
CHOSEN = 16  # peers one can choose to be when there are more than MOST


@dataclass(frozen=True, eq=False)
class Levels:
    """Losses in increasing order, and whether they are exactly those of the pairs."""

    losses: Array  # (levels,)
    exact: bool

    def codes(self, losses: Array) -> Ints:
        """The number of the first level at or above each loss; one past the last for nan."""
        found = np.searchsorted(self.losses, losses, side="left")
        found[np.isnan(losses)] = len(self.losses)
        return found

    def shades(self) -> Ints:
        """0 (least) to 255 (most), even in the logarithm; -1 for no loss at all."""
        positive = (self.losses > 0) & np.isfinite(self.losses)
        shades = np.where(self.losses > 0, 255, -1)
        if positive.sum() > 1:
            logs = np.log(self.losses[positive])
            shades[positive] = np.round(255 * (logs - logs[0]) / (logs[-1] - logs[0]))
        return shades.astype(np.int64)


def levels_of(losses: Array, most: int) -> Levels:
    """At most so many levels for these losses; zero and infinity are always levels of their own."""
    distinct = np.unique(losses[~np.isnan(losses)])
    if len(distinct) <= most:
        return Levels(distinct, True)
    positive = distinct[(distinct > 0) & np.isfinite(distinct)]
    grid = np.geomspace(positive[0], positive[-1], most - 2)
    grid[0], grid[-1] = positive[0], positive[-1]
    ends = [np.zeros(int(distinct[0] == 0)), grid, np.full(int(np.isinf(distinct[-1])), np.inf)]
    return Levels(np.concatenate(ends), False)


def joined(losses: Array, block: int) -> Array:
    """The largest loss of every block of pairs: joining never hides a leak."""
    if block == 1:
        return losses
    n = -(-len(losses) // block) * block
    padded = np.full((n, n), -1.0)
    padded[: len(losses), : len(losses)] = np.where(np.isnan(losses), -1.0, losses)
    largest = padded.reshape(n // block, block, n // block, block).max(axis=(1, 3))
    return np.where(largest < 0, np.nan, largest)


def packed(codes: Ints, bytes_each: int) -> str:
    """Codes as little-endian bytes in base64, row after row."""
    kind = "<u1" if bytes_each == 1 else "<u2"
    return base64.b64encode(codes.astype(kind).tobytes()).decode("ascii")


def chosen_peers(story: Story) -> list[int]:
    """Whom a reader may choose to be: everybody, or a few and the worst pair in a large network."""
    n = story.run.n
    if n <= MOST:
        return list(range(n))
    return sorted({*np.linspace(0, n - 1, CHOSEN).astype(int).tolist(), *(story.worst or ())})


def pair_data(story: Story) -> dict[str, Any]:
    """Everything the script of the page needs about pairs, as plain data."""
    if story.losses is None:
        return {}
    n, block = story.run.n, -(-story.run.n // MOST)
    bytes_each = 2 if n <= WIDE else 1
    levels = levels_of(story.losses, LEVELS_WIDE if bytes_each == 2 else LEVELS_NARROW)
    you = chosen_peers(story)
    content: dict[str, Any] = {
        "n": n,
        "bytes": bytes_each,
        "block": block,
        "exact": levels.exact,
        "you": you,
        "losses": [number(loss) for loss in levels.losses.tolist()],
        "epsilons": [number(epsilon) for epsilon in story.epsilons(levels.losses).tolist()],
        "shades": levels.shades().tolist(),
        "codes": packed(levels.codes(joined(story.losses, block)), bytes_each),
        "labels": [story.label(peer) for peer in range(n)],
        "delta": f"{story.delta:g}",
        "protects": level_words(story.summary.level, story.summary.adjacency),
    }
    if block > 1:
        content["leaks"] = packed(levels.codes(story.losses[you]), bytes_each)
        content["learns"] = packed(levels.codes(story.losses[:, you].T), bytes_each)
    return content


def shade_classes(story: Story, losses: Array) -> list[str]:
    """The color class of every loss of one row, for the page before its script runs."""
    levels = levels_of(losses if story.losses is None else story.losses, LEVELS_NARROW)
    codes, shades = levels.codes(losses), np.append(levels.shades(), -2)
    names = {-1: "none", -2: "you"}
    return [names.get(int(shade), f"c{int(shade) * SHADES // 256}") for shade in shades[codes]]
