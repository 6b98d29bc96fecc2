"""What is known of a protocol's releases before it runs: what a mechanism asks when it is sized for
an epsilon.

Who builds a run knows the protocol and rehearses it on blank data (`bruit.runs.ahead.rehearsed`);
mechanisms know nothing of graphs and only ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from bruit.mechanisms.mechanism import Mechanism


class Costs(NamedTuple):
    """loss: what the releases of the busiest peer cost, in units of one release with all of the
    noise. rounding: R of all that is sent (fp:FP-0), whatever larger noise is chosen."""

    loss: float
    rounding: float


class ReleasesAhead(Protocol):
    """The releases of a run that was not made yet."""

    @property
    def dim(self) -> int:
        """Numbers in one value."""

    def most(self) -> int:
        """How often the busiest peer releases; at least once."""

    def costs(self, noise: Mechanism) -> Costs:
        """What all releases cost, if each has at least this noise."""
