"""Absences: which neighbors a host has gone on without, and what its operator hears of them.

The operator is told once that a neighbor is missing, and once that it has been made up for. All of
it is counted for the status, the report and the exit code, and kept over a restart, in memory that
does not grow with the length of a run (`spans`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from bruit.algorithms.schedules.machine import Missed, Skipped
from bruit.peers.spans import Spans

log = logging.getLogger("bruit.peers")


@dataclass
class Absence:
    """Of one neighbor: how many exchanges were made without it, and how many of these were made up
    for late."""

    missed: int = 0
    late: int = 0
    without: Spans = field(default_factory=Spans)  # and not made up for
    made_up: Spans = field(default_factory=Spans)

    def note(self, missed: Missed) -> None:
        """One more, or one that was made up for."""
        if not missed.late:
            self.missed += 1
            self.without.add(missed.number)
            return
        self.late += 1
        self.without.remove(missed.number)
        self.made_up.add(missed.number)


@dataclass
class Absences:
    """Exchanges without a neighbor, and calls of the own clock that led to nothing."""

    of: dict[int, Absence] = field(default_factory=dict)
    skipped: int = 0  # calls of the own clock that led to nothing
    # for whom it waited then, and how often
    skipped_for: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # whom the operator knows to be missing

    @property
    def missed(self) -> int:
        """How many exchanges were made without somebody, made up for or not."""
        return sum(one.missed for one in self.of.values())

    @property
    def late(self) -> int:
        """How many of these were made up for."""
        return sum(one.late for one in self.of.values())

    def note_missed(self, missed: Missed, again: bool) -> None:
        """An exchange was missed, or made up for; `again` if a restart repeats what the operator has
        heard."""
        self.of.setdefault(missed.other, Absence()).note(missed)
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
