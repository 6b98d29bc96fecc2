"""What a statement about one record leaves of everything that a peer holds (silo:SILO-6).

Replace all m records of a peer one after the other. A release that moves by at most its sensitivity
for one record moves by at most m times as much for all. So Gaussian noise costs mu times m, and a
pure epsilon costs m epsilon.

*Why a secret sample is charged as if every record were in it.* Fix the coins of all records, the
same for both sets of data; coins of records that are gone are thrown and not used. Given them, a
release is Gaussian around one of two sums that are at most m times a record's move apart. The
hockey-stick divergence is jointly convex, so that of the two mixtures over coins is at most the
mean over coins of those given the coins, each of which is at most that of rate 1. So the Gaussian
pair at rate 1 dominates every release given the past, and dominating pairs compose. Sampling helps
one record
hide among others; it hides nobody who owns them all.

Usually this is very large, and then it is to be said as such: what the peer as a whole reveals is
not protected.
"""

from __future__ import annotations

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
from bruit.privacy.toolbox.pld import compose_epsilon


def as_a_whole(
    events_with_counts: Iterable[tuple[Event, int]], records: int, delta: float = 1e-6
) -> float:
    """The epsilon at delta of all `records` of a peer at once, whose releases are these events
    about one record (silo:SILO-6).

        Gaussian noise, sampled or not:   mu**2 = records**2 * sum of counts * (mu of one release at rate 1)**2

    >>> event = SampledGaussianEvent(noise_multiplier=200.0, rate=0.1)
    >>> as_a_whole([(event, 25)], 20) == compose_epsilon([(GaussianEvent(noise_multiplier=1.0), 1)], 1e-6)
    True
    """
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise PrivacyError(f"a peer as a whole holds 1 or more records, found {records!r}")
    return compose_epsilon(
        [
            (_widened(event, records), count * times)
            for whole, times in events_with_counts
            for event, count in whole.parts()
        ],
        delta,
    )


def _widened(event: Event, records: int) -> Event:
    """The same release when all records move."""
    if isinstance(event, SampledGaussianEvent):
        return _widened(
            record_event(event.noise_multiplier, 1.0, event.adjacency, event.rounding), records
        )
    if isinstance(event, GaussianEvent | LaplaceEvent | DiscreteGaussianEvent):
        return replace(event, noise_multiplier=event.noise_multiplier / records)
    if isinstance(event, BoundedEvent) and event.delta == 0:
        return replace(event, epsilon=event.epsilon * records)
    if isinstance(event, Exact | Mask):
        return event
    raise PrivacyError(
        f"what {event} says of one record is not known of all that a peer holds; ask about one "
        f"record"
    )
