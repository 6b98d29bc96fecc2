"""A door that watches: it keeps what the observers themselves drew, since they know their own
releases and noises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.algorithms.door import Address, Door, OnGrid
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt
    from bruit.mechanisms.clip_votes import ClipVotes


class WatchedDoor:
    """Another door, watched. Whatever it does not keep rows of is asked of the door itself, by
    construction: a method that doors learn tomorrow is forwarded today.

    Lane c n + i is peer i of copy c. A noise is kept in units of the release's own (its level
    divided out), as `bruit.runs.engines.forms` counts it."""

    def __init__(self, inner: Door, peers: int, copies: int, observers: tuple[int, ...]) -> None:
        self._inner, self._peers, self._copies, self._observers = inner, peers, copies, observers
        self.own: list[Array] = []  # each (copies, d)
        self.masks: list[Words] = []  # what the observers' masks of each attempt add up to

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _record_seen(self, lanes: Ints, rows: Array, levels: Array | None = None) -> Array:
        mine = np.isin(lanes % self._peers, self._observers)
        seen, sigma = rows[mine], self._inner.sigma
        if levels is not None:
            level = levels[mine, None]
            seen = np.where(level > 0, seen * sigma / np.where(level > 0, level, 1.0), 0.0)
        if not len(seen):
            return rows
        who = (
            (lanes[mine] % self._peers).reshape(self._copies, -1)
            if len(seen) % self._copies == 0
            else None
        )
        if who is None or (who != who[0]).any():
            raise ConfigError(
                "the observers' reads differ from copy to copy: the algorithm draws who takes part"
                " anew in every run, so that the claim of one run is not that of another;"
                " audit it with everybody taking part"
            )
        each = seen.reshape(self._copies, -1, seen.shape[1])
        self.own.extend(each[:, k] for k in range(each.shape[1]))
        return rows

    def masked_gradient(
        self, at: Address, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        rows: Ints = self._inner.masked_gradient(at, x, grain, shares, votes)
        self._record_seen(at.ids, grain * rows.astype(np.float64))
        return rows

    def pair_words(self, at: Address, attempt: Attempt, colluders: int, width: int) -> Words:
        words: Words = self._inner.pair_words(at, attempt, colluders, width)
        mine = np.isin(at.ids % self._peers, self._observers)
        each = words[mine].reshape(self._copies, -1, width)
        self.masks.append(np.add.reduce(each, axis=1, dtype=np.uint64))
        return words

    def value(self, at: Address) -> Array:
        return self._record_seen(at.ids, self._inner.value(at))

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        return self._scaled(at.ids, self._inner.value_on(at, on, levels), on)

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        return self._scaled(at.ids, self._inner.gradient_on(at, x, batch, on), on)

    def descent_on(
        self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid
    ) -> Array:
        return self._scaled(at.ids, self._inner.descent_on(at, x, rate, count, batch, on), on)

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self._scaled(at.ids, self._inner.noise_on(at, sigma, width, on), on, sigma)

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        counts, rows = np.diff(edges.start), self._inner.copy_noise_on(at, edges, sigma, width, on)
        return self._scaled(np.repeat(at.ids, counts), rows, on, np.repeat(sigma, counts))

    def pair_noise_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        rows = self._inner.pair_noise_on(at, edges, sigma, width, on)
        self._record_shared(at, edges, rows / on.times, sigma)
        return rows

    def _scaled(self, lanes: Ints, rows: Array, on: OnGrid, levels: Array | None = None) -> Array:
        """What is on a grid carries a public factor, which is divided out; dithers, a thousandth of
        the noise, are not kept: the forms know of none."""
        self._record_seen(lanes, rows / on.times, levels)
        return rows

    def value_with(self, at: Address, levels: Array) -> Array:
        return self._record_seen(at.ids, self._inner.value_with(at, levels))

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._record_seen(at.ids, self._inner.gradient(at, x, batch))

    def gradient_with(self, at: Address, x: Array, levels: Array) -> Array:
        return self._record_seen(at.ids, self._inner.gradient_with(at, x, levels))

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        return self._record_seen(at.ids, self._inner.prox(at, x, rho))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        return self._record_seen(at.ids, self._inner.envelope_gradient(at, x, rho, level))

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        return self._record_seen(at.ids, self._inner.descent(at, x, rate, count, batch))

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        return self._record_seen(at.ids, self._inner.noise(at, sigma, width), sigma)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        counts = np.diff(edges.start)
        rows = self._inner.copy_noise(at, edges, sigma, width)
        return self._record_seen(np.repeat(at.ids, counts), rows, np.repeat(sigma, counts))

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        rows: Array = self._inner.pair_noise(at, edges, sigma, width)
        self._record_shared(at, edges, rows, sigma)
        return rows

    def _record_shared(self, at: Address, edges: Edges, rows: Array, sigma: float) -> None:
        """Noise that two share is kept once, as the end of the smaller number adds it."""
        lanes = np.repeat(at.ids, np.diff(edges.start))
        mine, other = lanes % self._peers, edges.peers % self._peers
        once = (mine < other) | ~np.isin(other, self._observers)
        signed = np.where(mine < other, 1.0, -1.0)[:, None] * rows
        self._record_seen(lanes[once], signed[once], np.full(int(once.sum()), sigma))
