"""What the masked values on a board tell about their peers: `gopa_binomial` for the run that took place."""

from __future__ import annotations

from collections.abc import Sequence

from bruit.errors import PrivacyError
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.network.gopa_binomial import gopa_binomial_guarantee, worst_binomial_epsilon
from bruit.verification.verify import Report


def guarantee(report: Report, of: int, seen_by: int | Sequence[int]) -> Guarantee:
    """What these peers together learned about that one, from everything on the board."""
    if not report.accepted:
        raise PrivacyError("this board was not accepted: what its posts tell is not what the theorem speaks of")
    told = report.agreement
    hiding = (of,) if of in report.exposed else report.online  # its exchanges are open: only its own coins hide it
    gone = [u for u in range(told.peers) if u not in hiding]
    observers = (seen_by,) if isinstance(seen_by, int) else tuple(seen_by)
    return gopa_binomial_guarantee(told.graph(), told.levels, told.noise_bits, told.pair_sigma, of, observers,
                                   [u for u in gone if u not in observers], told.width)  # fmt: skip


def worst_epsilon(report: Report, delta: float = 1e-6, levels: int | None = None, sent: Sequence[int] = ()) -> float:
    """An epsilon that no peer exceeds whose masked value left it, in the view of any one other peer.

    `levels` is how far a number may move, its whole range by default; `sent` are peers that are known to have sent a
    masked value. If one of them is not in the mean, its exchanges may be open, and only its own coins hide it."""
    told, moved = report.agreement, report.agreement.levels if levels is None else levels
    worst = worst_binomial_epsilon(told.graph(), moved, told.noise_bits, told.pair_sigma, report.online, delta,
                                   told.width)  # fmt: skip
    if report.exposed or set(sent) - set(report.online):
        worst = max(worst, BinomialProfile(told.noise_bits, moved, told.width).epsilon(delta))
    return worst
