"""Group privacy: what a promise about one record says of a person with k of them (silo:SILO-12).

    mu-GDP for one record is k mu-GDP for k         (walk the k records one at a time: shifts add up)
    (eps, delta) for one is (k eps, delta (1 + e^eps + ... + e^((k-1) eps))) for k

The second follows from k steps of P(S) <= e^eps P'(S) + delta, and is used at the eps of the profile
that gives least. Known events are scaled one by one (k times the sensitivity); a sum over a secret
sample is taken by the better of the second law and of the same sum over everybody, scaled. Hypotheses:
the k records differ in k steps of the adjacency at hand; replacing a person with k records by one with
other k records is k replacements, removing one is k removals.

Finite precision stays what it is: R of fp:FP-0 compares the bits with real numbers on the *same*
records, so no step between records is in it. The records move in real numbers, and one comparison is
made at either end.

*Why a secret sample is charged as if every record were in it.* Fix the coins of all records, the
same for both sets of data; coins of records that are gone are thrown and not used. Given them, a
release is Gaussian around one of two sums that are at most k times a record's move apart. The
hockey-stick divergence is jointly convex, so that of the two mixtures over coins is at most the
mean over coins of those given the coins, each of which is at most that of rate 1. So the Gaussian
pair at rate 1 dominates every release given the past, and dominating pairs compose. Sampling helps
one record hide among others; it hides nobody who owns them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from bruit.errors import PrivacyError
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    Event,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
    SampledGaussianEvent,
    record_event,
)
from bruit.privacy.profile import (
    EventsProfile,
    GaussianProfile,
    MixtureProfile,
    Profile,
    Rounded,
    least_epsilon,
)
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.privacy.toolbox.sampled_pld import slack


def check_group(k: int) -> None:
    """Refuse what is no number of records."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise PrivacyError(f"a person has 1 record or more, found {k!r}")


def group_epsilon(profile: Profile, k: int, delta: float) -> float:
    """The epsilon at delta for a person with k records.

    >>> round(group_epsilon(GaussianProfile(0.2), 3, 1e-6), 4), round(GaussianProfile(0.6).epsilon(1e-6), 4)
    (2.756, 2.756)
    """
    check_group(k)
    if k == 1:
        return profile.epsilon(delta)
    found = _by_steps(profile, k, delta)
    scaled = scaled_profile(profile, k)
    return found if scaled is None else min(found, scaled.epsilon(delta))


def scaled_profile(profile: Profile, k: int) -> Profile | None:
    """The profile with k times the sensitivity, where it is known how."""
    if isinstance(profile, GaussianProfile):
        return GaussianProfile(k * profile.mu)
    if isinstance(profile, EventsProfile):
        return EventsProfile(tuple(scaled_events(profile.events, k)))
    if isinstance(profile, Rounded):
        inner = scaled_profile(profile.inner, k)
        return None if inner is None else Rounded(inner, profile.rounding)
    return profile.scaled(1 / k) if isinstance(profile, MixtureProfile) else None


def scaled_events(events: Iterable[tuple[Event, int]], k: int) -> list[tuple[Event, int]]:
    """The same releases for k records at once."""
    return [
        (_scaled(event, k), count * times)
        for whole, times in events
        for event, count in whole.parts()
    ]


def _scaled(event: Event, k: int) -> Event:
    if isinstance(event, Exact | Mask):
        return event
    if isinstance(event, SampledGaussianEvent):  # as if every record joined
        return _scaled(
            record_event(event.noise_multiplier, 1.0, event.adjacency, event.rounding), k
        )
    if isinstance(event, GaussianEvent | LaplaceEvent | DiscreteGaussianEvent):
        return replace(event, noise_multiplier=event.noise_multiplier / k)
    if isinstance(event, BoundedEvent):
        delta = event.delta * _steps(event.epsilon, k) if event.delta else 0.0
        return BoundedEvent(k * event.epsilon, min(1.0, delta))
    raise PrivacyError(
        f"what {event!r} says of one record is not known of several; ask about one record"
    )


def _steps(epsilon: float, k: int) -> float:
    """1 + e^eps + ... + e^((k-1) eps)."""
    if (k - 1) * epsilon > 700:
        return math.inf
    return math.fsum(math.exp(i * epsilon) for i in range(k))


def _by_steps(profile: Profile, k: int, delta: float) -> float:
    """k times the least eps whose delta, stepped k times, is small enough; what was checked is
    returned. Deltas are floats: they end (below 5e-324 is 0), those of composed distributions err, and
    e^((k-1) eps) has no end. So what is set aside for the arithmetic of samples is set aside here, too."""
    pure = k * profile.pure()
    if delta == 0:
        return pure
    releases = (
        sum(count for _, count in profile.events) if isinstance(profile, EventsProfile) else 1
    )
    aside = slack(releases)

    def stepped(epsilon: float) -> float:
        return (profile.delta(epsilon) + aside) * _steps(epsilon, k)

    return min(pure, k * least_epsilon(stepped, delta))


def mu_of(profile: Profile) -> float | None:
    """mu of a profile that is exactly a Gaussian one (or one of Gaussian releases); None else."""
    if isinstance(profile, GaussianProfile):
        return profile.mu
    if isinstance(profile, Rounded):
        return mu_of(profile.inner)
    if isinstance(profile, EventsProfile):
        parts = [(event, n * m) for whole, n in profile.events for event, m in whole.parts()]
        parts = [part for part in parts if not isinstance(part[0], Mask)]
        if all(isinstance(event, GaussianEvent) and event.noise_multiplier for event, _ in parts):
            return math.sqrt(
                sum(
                    n / event.noise_multiplier**2
                    for event, n in parts
                    if isinstance(event, GaussianEvent)
                )
            )
    return None


def mu_like(epsilon: float, delta: float) -> float:
    """mu of the Gaussian whose epsilon at delta is this one: a measure, no guarantee of its own."""
    if epsilon == math.inf or epsilon <= 0 or delta <= 0:
        return math.inf if epsilon > 0 else 0.0
    low, high = 0.0, 1.0
    while epsilon_of(high, delta) < epsilon:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if epsilon_of(middle, delta) < epsilon else (low, middle)
    return high
