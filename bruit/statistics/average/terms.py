"""What the peers of a private mean agree on: ranges, rows, level and budget; and the coins that
keep the budget.

    level "record":  a peer's number is sum_i (x_i - low) / (high - low) over its rows; one row moves it by at most 1
    level "user":    its number is the mean of its rows, in [low, high]; all its rows together may move it anywhere

The mean over all rows (record) or over all peers (user) follows from the sum. At record level the
numbers of rows are public: replacing a row does not change them. Coins are as few as keep (epsilon,
delta) against any one other peer when `dropouts` peers leave before the rest has agreed.
(perso:GOPA-3, 10; LDP-1 for rounding at random.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import complete
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import signing_key
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.statistics.average.board.agreement import AverageAgreement, agree
from bruit.statistics.average.board.verify import Report
from bruit.statistics.local.estimates import quantile

Level = Literal["record", "user"]
PER_ROW, PER_PEER = 2, 4  # levels by which one row, or one peer, may move its number
MOST_COINS = 2**14


@dataclass(frozen=True, kw_only=True)
class MeanTerms:
    """The same at every peer, to the letter; `rows` are the numbers of rows of the peers, in the
    order of the book."""

    column: str
    low: float
    high: float
    epsilon: float
    delta: float = 1e-6
    rows: tuple[int, ...] | None = None
    dropouts: int = 0
    organizer: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(
                f"values lie between --low and --high, found {self.low:g} and {self.high:g}"
            )
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)) or not 0 < self.delta < 1:
            raise PrivacyError(
                f"a budget is a positive epsilon and a delta between 0 and 1, found {self.epsilon}"
                f" and {self.delta}"
            )
        if self.rows is not None and (not self.rows or min(self.rows) < 1):
            raise ConfigError(f"every peer holds at least one row, found {self.rows}")
        if self.dropouts < 0:
            raise ConfigError(f"dropouts are a number of peers >= 0, found {self.dropouts}")

    @property
    def level(self) -> Level:
        return "user" if self.rows is None else "record"

    @property
    def shift(self) -> int:
        """Levels by which what is protected may move a peer's number."""
        return PER_PEER if self.rows is None else PER_ROW

    def coins(self, peers: int) -> int:
        """The fewest coins per peer: those of everybody but the observer and the dropouts hide one
        move."""
        honest = peers - 1 - self.dropouts
        if honest < 1:
            raise PrivacyError(
                f"among {peers} peers with {self.dropouts} dropouts nobody is left to hide anybody;"
                " ask more peers"
            )

        def enough(pairs: int) -> bool:
            return (
                BinomialProfile(2 * pairs * honest, self.shift, 1, 0.0).epsilon(self.delta)
                <= 0.999 * self.epsilon
            )

        low, high = 0, 1
        while not enough(high):
            low, high = high, 2 * high
            if 2 * high > MOST_COINS:
                raise PrivacyError(
                    f"epsilon = {self.epsilon:g} among {peers} peers takes more than {MOST_COINS}"
                    " coins a peer; ask more peers, or for a larger epsilon"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return 2 * high

    def agreement(self, book: AddressBook) -> AverageAgreement:
        """The terms as a board opens with them: everybody exchanges noise with everybody."""
        peers = len(book.entries)
        if self.rows is not None and len(self.rows) != peers:
            raise ConfigError(
                f"--rows names {len(self.rows)} peers, the address book lists {peers}"
            )
        most = float(max(self.rows)) if self.rows is not None else self.high
        levels = PER_PEER if self.rows is None else PER_ROW * max(self.rows)
        rows = "" if self.rows is None else f", rows {','.join(map(str, self.rows))}"
        title = f"mean of {self.column} in {self.low!r}..{self.high!r}, {self.level} level{rows}"
        keys = [signing_key(entry.certificate) for entry in book.entries]
        stay = (
            peers - self.dropouts
        )  # with fewer nobody publishes, and nothing is opened: the budget holds, or no mean
        return agree(
            keys,
            complete(peers),
            self.low if self.rows is None else 0.0,
            most,
            levels=levels,
            noise_bits=self.coins(peers),
            organizer=self.organizer,
            title=title,
            partners=stay - 1,
            online=max(2, stay),
            moved=None if self.rows is None else PER_ROW,
        )

    def value(self, values: Array, me: int) -> Array:
        """This peer's number from its rows; out of range is refused, not clipped in silence
        # (1,)."""
        if not len(values) or not np.isfinite(values).all():
            raise ConfigError(
                f"the column {self.column!r} is empty, or holds missing numbers; look for holes"
            )
        if values.min() < self.low or values.max() > self.high:
            raise ConfigError(
                f"the column {self.column!r} reaches from {values.min():g} to {values.max():g},"
                f" beyond {self.low:g}..{self.high:g}; add --clamp, or agree on a larger range"
            )
        if self.rows is None:
            return np.array([values.mean()])
        if len(values) != self.rows[me]:
            raise ConfigError(
                f"--rows says that this peer holds {self.rows[me]} rows, and its table has "
                f"{len(values)}"
            )
        return np.array([((values - self.low) / (self.high - self.low)).sum()])

    def error(self, peers: int, online: tuple[int, ...] | None = None) -> float:
        """Standard error of the mean that coins and rounding cause."""
        stayed = tuple(range(peers)) if online is None else online
        return self._level(stayed) * math.sqrt((self.coins(peers) + 1) * len(stayed) / 4)

    def refuse_blind(self, peers: int) -> None:
        """Before anybody is called: an error above half of the range is worse than guessing its
        middle."""
        if self.error(peers) > (self.high - self.low) / 2:
            raise ConfigError(
                f"{peers} peers at epsilon = {self.epsilon:g}, {self.level} level, say nothing: the"
                f" expected error {self.error(peers):.3g} is above half of the range; ask more"
                " peers, allow a larger epsilon, or protect rows instead of peers (--rows)"
            )

    def half_width(self, peers: int, online: tuple[int, ...], confidence: float) -> float:
        """Half of the interval of the mean: z standard errors and, since coins are whole, one level
        of the sum."""
        return quantile(confidence) * self.error(peers, online) + self._level(online)

    def _level(self, stayed: tuple[int, ...]) -> float:
        """What one level of the sum moves the mean by."""
        if self.rows is None:
            return (self.high - self.low) / PER_PEER / len(stayed)
        return (self.high - self.low) / PER_ROW / sum(self.rows[u] for u in stayed)

    def mean(self, report: Report) -> float:
        """The mean over the rows, or the peers, that are in the sum."""
        if report.mean is None:
            raise PrivacyError("the board does not hold a mean that can be believed")
        if self.rows is None:
            return float(report.mean[0])
        whole = (
            float(report.mean[0]) * len(report.online) / sum(self.rows[u] for u in report.online)
        )
        return self.low + (self.high - self.low) * whole

    def price(self, agreement: AverageAgreement, online: Sequence[int]) -> float:
        """What a masked value costs a row, or everything of a peer, against any one other peer, if
        these are left."""
        from bruit.statistics.average.board.privacy import epsilon_among

        return epsilon_among(agreement, online, self.delta)

    def spent(self, report: Report) -> float:
        """What was paid by those in the mean: the same price, since nobody leaves after it was
        paid."""
        return self.price(report.agreement, report.online)
