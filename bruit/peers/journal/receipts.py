"""Receipts: which of a peer's messages arrived, and which of its releases somebody has therefore
seen.

A release is unseen as long as no message with a value that was posted with it or after it is
confirmed: what is in a state is in every later message, but not in those that carry none (offers,
words about tokens). So the unseen releases are the last ones of the ledger. They stay spent: a
message that was not confirmed may have been read all the same.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from bruit.peers.journal.journal import Journal


@dataclass
class Receipts:
    """Messages by receiver, and how many ledger lines there were when they were posted."""

    messages: dict[int, int] = field(default_factory=dict)
    marks: dict[int, list[tuple[int, int]]] = field(
        default_factory=dict
    )  # (message, lines), where lines have grown
    seen: int = 0  # ledger lines that somebody has seen

    def posted(self, to: int, lines: int) -> None:
        """One more message to that peer, when the ledger held so many lines; 0 lines if it carries
        no value."""
        self.messages[to] = self.messages.get(to, 0) + 1
        if not lines:
            return
        marks = self.marks.setdefault(to, [])
        if not marks or marks[-1][1] < lines:
            marks.append((self.messages[to], lines))

    def confirmed(self, journal: Journal) -> int:
        """How many messages have arrived, by the word of who received them."""
        return sum(min(count, journal.confirmed(to)) for to, count in self.messages.items())

    def unconfirmed(self, journal: Journal) -> dict[int, int]:
        """How many have not, by receiver."""
        open_ = {to: count - journal.confirmed(to) for to, count in self.messages.items()}
        return {to: count for to, count in open_.items() if count > 0}

    def seen_lines(self, journal: Journal) -> int:
        """How many lines of the ledger, from the first on, are in messages that have arrived."""
        for to, marks in self.marks.items():
            place = bisect_right(marks, journal.confirmed(to), key=lambda mark: mark[0])
            if place:
                self.seen = max(self.seen, marks[place - 1][1])
        for to, marks in self.marks.items():  # what one has seen nobody else need confirm
            self.marks[to] = marks[bisect_right(marks, self.seen, key=lambda mark: mark[1]) :]
        return self.seen
