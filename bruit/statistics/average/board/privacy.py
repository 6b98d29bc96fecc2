"""What the masked values on a board tell about their peers: `gopa_binomial` for the run that took
place."""

from __future__ import annotations

from collections.abc import Sequence

from bruit.errors import PrivacyError
from bruit.privacy.ahead.gopa_binomial import gopa_binomial_guarantee, worst_binomial_epsilon
from bruit.privacy.guarantee import Guarantee
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.verify import Report


def guarantee(report: Report, of: int, seen_by: int | Sequence[int]) -> Guarantee:
    """What these peers together learned about that one, from everything on the board."""
    if not report.accepted:
        raise PrivacyError(
            "this board was not accepted: what its posts tell is not what the theorem speaks of"
        )
    agreement = report.agreement
    gone = [u for u in range(agreement.peers) if u not in report.online]
    observers = (seen_by,) if isinstance(seen_by, int) else tuple(seen_by)
    return gopa_binomial_guarantee(
        agreement.graph(),
        agreement.levels,
        agreement.noise_bits,
        agreement.pair_sigma,
        of,
        observers,
        [u for u in gone if u not in observers],
        agreement.width,
    )


def worst_epsilon(report: Report, delta: float = 1e-6, levels: int | None = None) -> float:
    """An epsilon that no peer in the mean exceeds in the view of any one other peer.

    `levels` is how far a number may move: by default what the agreement protects, one row or the
    whole range."""
    return epsilon_among(report.agreement, report.online, delta, levels)


def epsilon_among(
    agreement: AverageAgreement, online: Sequence[int], delta: float, levels: int | None = None
) -> float:
    """The same, known before anything is opened: if these are the peers that are left."""
    moved = agreement.shift if levels is None else levels
    return worst_binomial_epsilon(
        agreement.graph(),
        moved,
        agreement.noise_bits,
        agreement.pair_sigma,
        tuple(online),
        delta,
        agreement.width,
    )
