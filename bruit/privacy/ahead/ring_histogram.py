"""Private histogram on a directed ring: a token collects randomized responses among random ones
(gossip:RING-3).

    token <- histogram of ceil(gamma n) uniform values;   every peer adds RR_gamma(x), K times around
    h_i = (token_i - gamma n (K + 1) / L) / (1 - gamma),        E[token_i] = (1 - gamma) h_i + gamma n (K + 1) / L

Between two passages an observer sees the reports of the n - 1 others, in no order: amplification by
shuffling. To get epsilon per passage B.1 asks for epsilon_LDP = epsilon sqrt((n - 1) / log(1 /
delta)) / 12. What is known:

    K - 1 later passages      proven: n - 1 reports each, shuffled by the addition of counts
    the first passage         CONDITIONAL: few reports, hidden by random elements; no shuffle theorem says it. The
                              proven statement charges it epsilon_LDP in full
    a published token         the last window may hold one report alone: epsilon_LDP again, unless ceil(gamma n) fresh
                              random elements are added first (CONDITIONAL as the first passage)

The print has the calibration upside down, exp(12 epsilon sqrt(log(1 / delta) / n)): see
`papers/printed/ring.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.composition import compose, composed
from bruit.privacy.formulas import randomized_response as rr
from bruit.privacy.formulas import shuffling
from bruit.privacy.guarantee import Guarantee, Hypothesis, Status
from bruit.privacy.profile import Profile, StatementProfile
from bruit.privacy.theorem import STANDING

FIRST = Hypothesis(
    "the random elements hide the first passage as n - 1 reports would: not proven", checked=False
)


@dataclass(frozen=True)
class RingHistogram:
    """A histogram of n peers over L values, K cycles, every report uniform with probability
    gamma."""

    n: int
    cycles: int
    values: int
    gamma: float

    def __post_init__(self) -> None:
        if self.n < 3 or self.cycles < 1 or self.values < 2:
            raise PrivacyError(
                f"a ring histogram needs 3 peers, 1 cycle and 2 values or more, found {self.n},"
                f" {self.cycles} and {self.values}"
            )
        if not 0 < self.gamma < 1:
            raise PrivacyError(
                "reports are uniform with a probability gamma strictly between 0 and 1, found"
                f" {self.gamma}; gamma = 0 has no privacy, gamma = 1 no use"
            )

    @property
    def local_epsilon(self) -> float:
        """What one report alone costs."""
        return rr.epsilon_of_gamma(self.values, self.gamma)

    @property
    def random_elements(self) -> int:
        """How many uniform values the token starts with."""
        return math.ceil(self.gamma * self.n)

    def expected_random(self) -> float:
        """Expected number of uniform values in the final token, gamma n (K + 1)."""
        return self.gamma * self.n * (self.cycles + 1)

    def debiased(self, token: Array | Ints, fresh: float = 0.0) -> Array:
        """Unbiased counts from the final token; `fresh` random elements were added before
        publishing.

        >>> RingHistogram(1000, 1, 4, 0.2).debiased(np.array([500, 380, 200, 320])).round(9).tolist()
        [500.0, 350.0, 125.0, 275.0]
        """
        counts = np.asarray(token, dtype=np.float64)
        if counts.shape != (self.values,):
            raise PrivacyError(
                f"the token has shape {counts.shape}, not one count for each of {self.values} "
                f"values"
            )
        return np.asarray(
            (counts - (self.expected_random() + fresh) / self.values) / (1 - self.gamma)
        )


def gamma_b1(epsilon: float, delta: float, reports: int, values: int) -> float:
    """The gamma whose reports, shuffled among `reports`, cost epsilon by bound B.1 (gossip:RING-3,
    perso:NETDP-3).

    gamma = L / (exp(epsilon sqrt(n / log(1 / delta)) / 12) + L - 1); give n - 1 for a ring of n
    peers. Refused where B.1 does not hold: epsilon < 6 sqrt(log(1 / delta) / n), delta < 1/100, n
    >= 1000.

    >>> round(gamma_b1(0.2, 1e-6, 10_000, 10), 9), round(gamma_b1(0.2, 1e-6, 10_000, 4), 10)
    (0.946449475, 0.8760778336)
    """
    return rr.gamma(values, shuffling.local_budget_b1(epsilon, reports, delta))


def gamma_tight(epsilon: float, delta: float, reports: int, values: int) -> float:
    """The least gamma by the best of the shuffle bounds, for any parameters: never above
    `gamma_b1`."""
    return rr.gamma(values, shuffling.local_budget(epsilon, reports, delta))


def histogram_guarantee(
    histogram: RingHistogram, delta: float = 1e-6, published: bool = False
) -> Guarantee:
    """Proven: the first passage, and the published end, cost a whole report; the K - 1 others are
    amplified.

    `delta` is spent on every amplified passage.
    """
    whole = StatementProfile(histogram.local_epsilon, 0.0)
    amplified = _amplified(histogram, delta)
    parts = [composed(whole, 2 if published else 1)]
    if histogram.cycles > 1:
        parts.append(composed(amplified, histogram.cycles - 1))
    return _guarantee(histogram, "proven", compose(parts), published, ())


def conditional_guarantee(
    histogram: RingHistogram, delta: float = 1e-6, published: bool = False
) -> Guarantee:
    """Heuristic: all K passages amplified, as the source claims; one more for a token published
    with fresh elements."""
    passages = histogram.cycles + (1 if published else 0)
    found = composed(_amplified(histogram, delta), passages)
    return _guarantee(histogram, "heuristic", found, published, (FIRST,))


def _amplified(histogram: RingHistogram, delta: float) -> StatementProfile:
    found, name = shuffling.closed(histogram.local_epsilon, histogram.n - 1, delta)
    tight = shuffling.clones(histogram.local_epsilon, histogram.n - 1, delta)
    return StatementProfile(min(found, tight), 0.0 if name == "local" and tight >= found else delta)


def _guarantee(
    histogram: RingHistogram,
    status: Status,
    profile: Profile,
    published: bool,
    more: tuple[Hypothesis, ...],
) -> Guarantee:
    first = (
        "the first passage is charged a whole report"
        if status == "proven"
        else "the first passage is not covered"
    )
    return Guarantee(
        theorem="private histogram on a ring, amplification by shuffling",
        spec="gossip:RING-3",
        status=status,
        level="user",
        of="any peer",
        against="any other peer alone",
        hypotheses=(
            Hypothesis(
                f"reports are randomized responses with gamma = {histogram.gamma:g}", checked=False
            ),
            Hypothesis(
                f"the token starts with {histogram.random_elements} uniform elements", checked=False
            ),
            *more,
            *STANDING,
        ),
        profile=profile,
        notes=(first,),
        seen=f"the counts of the token at {histogram.cycles} passages"
        + (" and at the end" if published else ""),
        advice=("a larger gamma", "fewer cycles", "more peers"),
    )


ASK = {
    "ring-histogram": histogram_guarantee,
    "ring-histogram-estimate": conditional_guarantee,
}
