"""Spans: numbers of exchanges, kept in little memory however many there are.

    [[3, 7], [9, 9]]     3 to 7, and 9; at most KEPT such spans
    earlier, up_to       of older ones only how many there were, and that they are not above `up_to`

A neighbor that is away for a year is one span. One that comes and goes all the time makes many: the
oldest are then counted and no longer named.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import itemgetter

KEPT = 128  # spans that are named


@dataclass
class Spans:
    """A set of numbers that grows, and from which some are taken again."""

    named: list[list[int]] = field(default_factory=list)  # from first to last, both included
    earlier: int = 0
    up_to: int = -1

    def __len__(self) -> int:
        return self.earlier + sum(last - first + 1 for first, last in self.named)

    def add(self, number: int) -> None:
        """One more; nothing changes if it is named already."""
        place = self._place(number)
        if place and number <= self.named[place - 1][1]:
            return
        if number <= self.up_to:
            self.earlier += 1
            return
        joins = bool(place) and self.named[place - 1][1] == number - 1
        meets = place < len(self.named) and self.named[place][0] == number + 1
        if joins and meets:
            self.named[place - 1][1] = self.named.pop(place)[1]
        elif joins:
            self.named[place - 1][1] = number
        elif meets:
            self.named[place][0] = number
        else:
            self.named.insert(place, [number, number])
            self._forget()

    def remove(self, number: int) -> bool:
        """Take one away again; False if it is not known to be there."""
        place = self._place(number)
        if place and number <= self.named[place - 1][1]:
            first, last = self.named.pop(place - 1)
            parts = [[first, number - 1], [number + 1, last]]
            self.named[place - 1 : place - 1] = [part for part in parts if part[0] <= part[1]]
            self._forget()
            return True
        if number <= self.up_to and self.earlier:
            self.earlier -= 1
            return True
        return False

    def _place(self, number: int) -> int:
        return bisect_right(self.named, number, key=itemgetter(0))

    def _forget(self) -> None:
        while len(self.named) > KEPT:
            first, last = self.named.pop(0)
            self.earlier += last - first + 1
            self.up_to = last
