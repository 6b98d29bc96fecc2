"""Versions of the wire: two releases talk when they share one, and say so when they do not.

A hello carries the oldest and the newest version that its sender speaks. What a hello looks like
never changes, so that it can be read and refused by words. Releases before there were versions say
nothing, and speak version 1.
"""

from __future__ import annotations

from typing import NamedTuple

from bruit.errors import RemoteProtocolError

MOST = 2**16 - 1


class Versions(NamedTuple):
    """What one side speaks, from the oldest to the newest."""

    oldest: int
    newest: int

    @property
    def number(self) -> int:
        """As a hello carries it."""
        return self.oldest << 16 | self.newest

    @classmethod
    def of(cls, number: int) -> Versions:
        """What a hello says; of a range that cannot be RemoteProtocolError."""
        if number == 0:
            return cls(1, 1)
        found = cls(number >> 16, number & MOST)
        if not 1 <= found.oldest <= found.newest:
            raise RemoteProtocolError(f"a hello of impossible versions ({number})")
        return found

    def check(self, other: Versions, who: str) -> None:
        """Refuse one with whom no version is shared, saying who has to change."""
        if self.oldest <= other.newest and other.oldest <= self.newest:
            return
        change = "upgrade it" if other.newest < self.oldest else "upgrade bruit here"
        raise RemoteProtocolError(
            f"{who} speaks {other} of the wire and this peer {self}: they cannot talk; {change}"
        )

    def __str__(self) -> str:
        if self.oldest == self.newest:
            return f"version {self.newest}"
        return f"versions {self.oldest} to {self.newest}"


SPOKEN = Versions(1, 1)
