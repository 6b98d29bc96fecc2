"""Linkage of report files: who is who in two batches of `bruit ldp report`, whatever the protocol.

Every frequency protocol of the library tells a set of values apart from the rest (its own value,
the indices of a Hadamard row, the cell of a hash, the bits that are on), and

    P(report | x) is e^epsilon times larger when the report supports x

so one formula serves them all. Numbers have the laws of their noise. Shares of values are estimated
from both batches.

How well can any attack do? Exchanging the data of two users changes the law of the second batch by
a factor of at most e^(2 epsilon), epsilon the whole budget of one user's second report, so of n
users in random order one is matched with

    P(right) <= 1 / (1 + (n - 1) e^(-2 epsilon))
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bruit.adversary.attacks.linkage import Linked, check_size, matched, number_odds, pair_odds
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.statistics.local.catalog import Known, protocol_from
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.protocol import FrequencyProtocol
from bruit.statistics.local.reports import Reports, merge

RARE = 1e-6  # share given to values that seem to be nobody's
WIDEST = 4_096  # values of one attribute: the likelihoods of all users and values are held at once


def link_reports(first: Sequence[Reports], second: Sequence[Reports], keep: float = 1.0) -> Linked:
    """The most likely matching of the rows of two batches, one pair of `Reports` for each
    attribute."""
    if not first or len(first) != len(second):
        raise ConfigError(
            f"every attribute is reported twice: found {len(first)} reports of the first time and"
            f" {len(second)} of the second"
        )
    users = {len(reports) for reports in (*first, *second)}
    if len(users) != 1 or users == {0}:
        raise ConfigError(
            f"linkage needs the same users in all reports, found {sorted(users)} rows;"
            " report on the same table both times"
        )
    n = users.pop()
    check_size(n)
    odds = np.zeros((n, n))
    for one, two in zip(first, second, strict=True):
        odds += _attribute_odds(one, two)
    return matched(odds, keep)


def _attribute_odds(one: Reports, two: Reports) -> Array:
    both = merge([one, two])  # refuses different protocols
    protocol = protocol_from(one.protocol)
    if isinstance(protocol, FrequencyProtocol):
        if protocol.k > WIDEST:
            raise ConfigError(
                f"an attribute of {protocol.k} values is too wide to compare users by; at most "
                f"{WIDEST}"
            )
        _check_rows(both, bool(protocol.valid(both).all()), protocol)
        shares = np.maximum(protocol.estimate(both).shares, RARE)
        likely = [_likelihoods(protocol, reports) for reports in (one, two)]
        return pair_odds(likely[0], likely[1], shares / shares.sum())
    values = np.asarray(both.column("value"))
    _check_rows(both, values.dtype.kind in "if" and bool(np.isfinite(values).all()), protocol)
    if not isinstance(protocol, LaplaceMean | GaussianMean):
        raise ConfigError(
            f"linkage knows the noise of laplace and gaussian reports, found {protocol.kind}"
        )
    rows = [np.asarray(reports.column("value"), np.float64)[:, None] for reports in (one, two)]
    return number_odds(rows[0], rows[1], protocol.mechanism)


def _check_rows(both: Reports, possible: bool, protocol: Known) -> None:
    if both.unreadable or not possible:
        raise ConfigError(
            f"some rows of these files are no possible reports of {protocol.kind}, so rows do not"
            " stand for users any more; write the files again with `bruit ldp report`"
        )


def _likelihoods(protocol: FrequencyProtocol, reports: Reports) -> Array:
    """P(report | x) up to a factor: e^epsilon where the report supports x, else 1  # (users, k)."""
    n = len(reports)
    found = np.ones((n, protocol.k))
    row = np.zeros(n, dtype=np.bool_)
    for user in range(n):
        row[user] = True
        found[user, protocol.supports(reports, row) > 0] = math.exp(min(protocol.epsilon, 300.0))
        row[user] = False
    return found


def most_right(users: int, epsilon: float) -> float:
    """The largest chance of any attack to match a user whose second report costs (pure) epsilon in
    all.

    >>> most_right(100, 0.0)
    0.01
    """
    if users < 1 or not epsilon >= 0:
        raise ConfigError(
            f"a bound on linkage needs users and an epsilon >= 0, found {users} and {epsilon}"
        )
    return 1.0 / (1.0 + (users - 1) * math.exp(-2 * epsilon))


def budget_for(users: int, times_chance: float = 2.0) -> float:
    """The largest epsilon of a user's second report that keeps every attack below this many times
    chance.

        epsilon = log((n - 1) / (n / times - 1)) / 2
    """
    if times_chance <= 1:
        raise ConfigError(
            f"a matching is at least as good as chance, found {times_chance} times chance"
        )
    if users <= times_chance:
        return math.inf
    return math.log((users - 1) / (users / times_chance - 1)) / 2
