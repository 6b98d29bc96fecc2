"""What peers learn of each other in meetings with message noise, message by message (gossip:MUF-X1,
ODO-1).

When a and b meet, each tells its value under fresh noise of tau, and keeps the mean of its own value
and of what it heard. In the view of v, given the message noises that were not told to v, a message is
k y + tau xi + known, y the noisy values of the others. Let C_v be what is left uncertain of y (the
identity at first). The message of w then costs, of every u,

    (C_v k)_u^2 / (tau^2 + k' C_v k),        C_v <- C_v - (C_v k) (C_v k)' / (tau^2 + k' C_v k)

in units of the release, and these add up to e_u' K' (K K' + tau^2 I)^-1 K e_u. Each term is a function
of who met before, so it is known before the message is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bruit.arrays import Array


class MeetingLosses:
    """The account of one release of each of n peers, while meetings go on. O(n^2) a meeting, and 16
    n^3 bytes. `loss[u, v]` is what v has learned of u, in units of the release."""

    def __init__(self, n: int, tau: float) -> None:
        peers = np.arange(n)
        self.n, self.tau, self.loss = n, tau, np.zeros((n, n))
        self._rows = np.tile(
            np.eye(n), (n, 1, 1)
        )  # [v, w]: the state of w, of what v does not know
        self._rows[peers, peers] = 0.0
        self._left = self._rows.copy()  # [v]: C_v

    def cost(self, speaker: int, listener: int) -> Array:
        """What the next message of one to the other would add to loss[:, listener]  # (n,)."""
        seen, scale = self._heard(speaker, listener)
        return np.asarray(seen * seen / scale)

    def meet(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Disjoint meetings, all at once."""
        for a, b in pairs:
            for speaker, listener in ((a, b), (b, a)):
                seen, scale = self._heard(speaker, listener)
                self.loss[:, listener] += seen * seen / scale
                self._left[listener] -= np.outer(seen, seen / scale)
        for a, b in pairs:
            mean = (self._rows[:, a] + self._rows[:, b]) / 2
            self._rows[:, a] = self._rows[:, b] = mean
            self._rows[a, a] = self._rows[b, b] = 0.0

    def _heard(self, speaker: int, listener: int) -> tuple[Array, float]:
        row = self._rows[listener, speaker]
        seen = self._left[listener] @ row
        return seen, float(row @ seen) + self.tau**2
