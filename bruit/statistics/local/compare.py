"""Which frequency protocol? Predicted errors of all of them for (k, epsilon, n), best first.

error of a value of share h: sqrt(variance(h)); total: sqrt(sum over values), which depends on k and n only
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.errors import ConfigError
from bruit.statistics.local.hadamard_response import HadamardResponse
from bruit.statistics.local.k_ary import KAry
from bruit.statistics.local.local_hashing import LocalHashing
from bruit.statistics.local.protocol import FrequencyProtocol, check_domain
from bruit.statistics.local.randomized_response import BinaryResponse
from bruit.statistics.local.unary_encoding import WIDEST, UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a protocol would give: errors are standard deviations, exact; users make a rare value
    known to +-0.05."""

    protocol: str
    rare: float  # error of a value that nobody holds
    certain: float  # error of a value that everybody holds
    total: float  # root of the summed squared errors over all values
    bits: float  # size of a report
    users: int  # how many users a 95 % interval of half-width 0.05 takes


def frequency_protocols(k: int, epsilon: float) -> list[FrequencyProtocol]:
    """All protocols that can report one of k values."""
    check_domain(k)
    found: list[FrequencyProtocol] = [
        KAry(k, epsilon),
        HadamardResponse(k, epsilon),
        LocalHashing(k, epsilon),
    ]
    if k <= WIDEST:
        found.append(UnaryEncoding(k, epsilon))
    if k == 2:
        found.insert(0, BinaryResponse(epsilon))
    return found


def compare(k: int, epsilon: float, n: int) -> list[Prediction]:
    """Predicted errors for n users, the least total error first.

    >>> [row.protocol for row in compare(4, 1.0, 10_000)][0], [row.protocol for row in compare(1000, 1.0, 10_000)][-1]
    ('k-ary', 'k-ary')
    """
    if n < 1:
        raise ConfigError(f"errors are predicted for at least one user, found {n}")
    rows = [_predict(protocol, n) for protocol in frequency_protocols(k, epsilon)]
    return sorted(rows, key=lambda row: (row.total, row.bits))


def best(k: int, epsilon: float) -> FrequencyProtocol:
    """The protocol with the least total error; among equals the shortest report."""
    ranked = {row.protocol: place for place, row in enumerate(compare(k, epsilon, 1))}
    return min(frequency_protocols(k, epsilon), key=lambda protocol: ranked[protocol.kind])


def _predict(protocol: FrequencyProtocol, n: int) -> Prediction:
    rare, certain = protocol.variance(0.0, n), protocol.variance(1.0, n)
    # The variance is linear in the share and shares sum to one.
    total = math.sqrt((protocol.k - 1) * rare + certain)
    return Prediction(
        protocol=protocol.kind,
        rare=math.sqrt(rare),
        certain=math.sqrt(certain),
        total=total,
        bits=protocol.bits(),
        users=protocol.users_needed(0.05),
    )
