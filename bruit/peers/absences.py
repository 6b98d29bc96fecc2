"""Absences: which neighbors a host has gone on without, and what its operator hears of them.

The operator is told once that a neighbor is missing, and once that it has been made up for. All of
it is counted for the status, the report and the exit code, and kept over a restart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from bruit.algorithms.schedules.machine import Missed, Skipped

log = logging.getLogger("bruit.peers")


@dataclass
class Absences:
    """Exchanges without a neighbor, and calls of the own clock that led to nothing."""

    missed: list[Missed] = field(default_factory=list)
    skipped: int = 0  # calls of the own clock that led to nothing
    # for whom it waited then, and how often
    skipped_for: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # whom the operator knows to be missing

    def note_missed(self, missed: Missed, again: bool) -> None:
        """An exchange was missed, or made up for; `again` if a restart repeats what the operator has
        heard."""
        self.missed.append(missed)
        if again:
            return
        if missed.late:
            log.info("made up for peer %d in exchange %d", missed.other, missed.number)
            self.gone.discard(missed.other)
        elif missed.other not in self.gone:
            log.warning("going on without peer %d, since exchange %d", missed.other, missed.number)
            self.gone.add(missed.other)

    def note_skipped(self, call: Skipped) -> None:
        """A call of the own clock led to nothing."""
        self.skipped += 1
        for peer in call.others:
            if peer not in self.skipped_for:
                log.warning("peer %d has said nothing yet: this peer's clock calls in vain", peer)
            self.skipped_for[peer] = self.skipped_for.get(peer, 0) + 1
