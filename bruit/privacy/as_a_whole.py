"""What a statement about one record leaves of everything that a peer holds (silo:SILO-6).

Replace all m records of a peer one after the other: group privacy of m (`formulas/group.py`). A
release that moves by at most its sensitivity for one record moves by at most m times as much for all.
So Gaussian noise costs mu times m, sampled or not, and a pure epsilon costs m epsilon.

Usually this is very large, and then it is to be said as such: what the peer as a whole reveals is
not protected.
"""

from __future__ import annotations

from collections.abc import Iterable

from bruit.errors import PrivacyError
from bruit.privacy.events import Event
from bruit.privacy.formulas.group import scaled_events
from bruit.privacy.toolbox.pld import compose_epsilon


def as_a_whole(
    events_with_counts: Iterable[tuple[Event, int]], records: int, delta: float = 1e-6
) -> float:
    """The epsilon at delta of all `records` of a peer at once, whose releases are these events
    about one record (silo:SILO-6).

        Gaussian noise, sampled or not:   mu**2 = records**2 * sum of counts * (mu of one release at rate 1)**2

    >>> from bruit.privacy.events import GaussianEvent, SampledGaussianEvent
    >>> event = SampledGaussianEvent(noise_multiplier=200.0, rate=0.1)
    >>> as_a_whole([(event, 25)], 20) == compose_epsilon([(GaussianEvent(noise_multiplier=1.0), 1)], 1e-6)
    True
    """
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise PrivacyError(f"a peer as a whole holds 1 or more records, found {records!r}")
    return compose_epsilon(scaled_events(events_with_counts, records), delta)
