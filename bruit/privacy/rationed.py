"""Meetings that no pair's cap forbids, chosen one round after the other (gossip:ODO-1).

What a message would cost is known before it is said (`MeetingLosses`): it depends on who met whom,
and on no value. So a pair whose meeting would pass a cap does not meet, and its peers meet others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs.sequence import ListedGraphs
from bruit.graphs.written_out import of_meetings
from bruit.privacy.exact import MeetingLosses

CLOSE = 1e-4  # peers whose values differ by less, squared and in noise of a release, need not meet

MOST_NOISE = 1e100  # of which, and of one through it, the square is a number


class RationedMeetings:
    """Meetings after one release, none of which passes a cap; `left[u, v]` is the squared mu that v may
    still learn of u, and `room[u, v]` the same in units of the release."""

    def __init__(self, left: Array, noise_multiplier: float, tau: float) -> None:
        if not all(1 / MOST_NOISE <= size <= MOST_NOISE for size in (noise_multiplier, tau)):
            raise PrivacyError(
                f"meetings are rationed with noise in releases and messages, found noise multiplier"
                f" {noise_multiplier:g} and tau {tau:g}; both are from {1 / MOST_NOISE:g} to"
                f" {MOST_NOISE:g}"
            )
        self.room, self.noise_multiplier = left * noise_multiplier**2, noise_multiplier
        self.losses, self.held = MeetingLosses(len(left), tau), list[list[tuple[int, int]]]()
        self.covariance = np.eye(len(left))  # of the values, in noise of a release

    def fits(self, a: int, b: int) -> bool:
        """Whether the two may meet."""
        return all(
            np.all(self.losses.loss[:, v] + self.losses.cost(w, v) <= self.room[:, v])
            for w, v in ((a, b), (b, a))
        )

    def go_on(self, wanted: Sequence[tuple[int, int]]) -> bool:
        """A round: of the wanted pairs those that fit and whose values differ, the most different ones
        first, each peer once. False if there was none: nothing happened then."""
        self._ends(wanted)
        spread = {pair: self._difference(*pair) for pair in wanted}
        busy, chosen = set[int](), list[tuple[int, int]]()
        for a, b in sorted(spread, key=lambda pair: (-round(spread[pair], 9), pair)):
            if a not in busy and b not in busy and spread[a, b] > CLOSE and self.fits(a, b):
                busy |= {a, b}
                chosen.append((a, b))
        if chosen:
            self.meet(chosen)
        return bool(chosen)

    def meet(self, pairs: Sequence[tuple[int, int]]) -> None:
        """A round of exactly these meetings; refused, as a whole, if one does not fit."""
        ends = self._ends(pairs)
        if not ends or len(set(ends)) < len(ends):
            raise ConfigError(
                f"a round is pairs of peers, each peer in one at most, found {list(pairs)}"
            )
        for a, b in pairs:
            if not self.fits(a, b):
                raise PrivacyError(
                    f"peers {a} and {b} may not meet now: some pair would pass its cap"
                )
        self.losses.meet(pairs)
        for a, b in pairs:
            for way in (self.covariance, self.covariance.T):
                way[a] = way[b] = (way[a] + way[b]) / 2
            for u in (a, b):
                self.covariance[u, u] += self.losses.tau**2 / 4
        self.held.append([(min(pair), max(pair)) for pair in pairs])

    def _ends(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """The peers of some pairs, if there are such."""
        ends = [u for pair in pairs for u in pair]
        odd = next((pair for pair in pairs if not set(pair) <= set(range(len(self.room)))), None)
        if odd is not None:
            raise ConfigError(f"peers are 0..{len(self.room) - 1}, found a meeting of {odd}")
        return ends

    def _difference(self, a: int, b: int) -> float:
        c = self.covariance
        return float(c[a, a] + c[b, b] - 2 * c[a, b])

    def graph(self) -> ListedGraphs:
        """The meetings, as a graph a round."""
        if not self.held:
            least = 1 / math.sqrt((1 + self.losses.tau**2) * float(self._loosest()))
            raise PrivacyError(
                "no two peers may meet: everybody's first message is its own noisy value. Some pair"
                f" may with a noise multiplier of {least:.4g}"
            )
        return of_meetings(self.held, len(self.room))

    def _loosest(self) -> float:
        both = np.minimum(self.room, self.room.T) / self.noise_multiplier**2
        np.fill_diagonal(both, 0.0)
        return max(float(both.max()), 1e-300)
