"""The rules by which a list is judged: how many there must be, and when nobody speaks any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll

SMALL = 8  # up to so many peers everybody hears all words, so that no leader can withhold a sum


@dataclass(frozen=True)
class BallotTerms:
    """What all peers of a run by ballots agreed on; `limit` is T_max, the most attempts that
    anybody is charged for."""

    peers: int
    dropouts: int
    colluders: int
    steps: int
    limit: int

    @property
    def quorum(self) -> int:
        """n - D: so many are needed for anything."""
        return self.peers - self.dropouts

    @property
    def decisive(self) -> int:
        """So many hold a base for good: one of them that does not lie is in every list of n - D."""
        return min(self.quorum, self.dropouts + self.colluders + 1)

    @property
    def everybody_hears(self) -> bool:
        return self.peers <= SMALL

    def leader(self, ballot: int) -> int:
        return ballot % self.peers

    def able(self, promise: Promise) -> bool:
        """Whether its author may still be charged."""
        return promise.charges < self.limit

    def exhausted(self, promises: Mapping[int, Promise]) -> bool:
        """Whether no list can be made any more, whatever those say who are not heard: too many
        have come to their last attempt, and charges never shrink."""
        spent = sum(not self.able(promise) for promise in promises.values())
        return self.peers - spent < self.quorum

    def settled(self, base: Base, promises: Mapping[int, Promise]) -> bool:
        """Whether the run ends with this base for everybody: nothing comes after it, and enough
        peers hold it, each of which had promised nothing beyond its ballot when it took it."""
        final = base.ended or base.round >= self.steps
        return final and sum(one.base == base for one in promises.values()) >= self.decisive

    def over(self, base: Base, promises: Mapping[int, Promise]) -> bool:
        """Whether nothing can come after this base."""
        return base.ended or base.round >= self.steps or self.exhausted(promises)

    def stuck(self, shown: Mapping[int, Promise]) -> bool:
        """Whether those who are shown can make no list among them: the others would be needed. A
        reason to end after a turn of all leaders in vain, never before: one liar that claims to be
        spent could end the run of all others."""
        return sum(self.able(promise) for promise in shown.values()) < self.quorum

    def wrong(self, roll: Roll) -> str:
        """Why no honest leader makes this list, if so; seals are looked at elsewhere."""
        shown = dict(roll.shown)
        if len(shown) < self.quorum:
            return f"shows {len(shown)} promises where {self.quorum} are due"
        for promise in shown.values():
            base = promise.base
            if not (-1 <= base.ballot < roll.ballot and 0 <= base.round <= self.steps):
                return f"shows a base of ballot {base.ballot} and round {base.round}"
            if not 0 <= promise.charges <= self.limit:
                return f"shows {promise.charges} charges where {self.limit} are the most"
        if not set(roll.members) <= set(shown):
            return "names members whose promises it does not show"
        over = self.over(roll.base, shown)
        if not roll.members:
            in_vain = roll.ballot - roll.base.ballot > self.peers
            ends = over or (in_vain and self.stuck(shown))
            return "" if ends else "ends a run that can go on"
        if over:
            return "lets peers speak after the last round"
        if len(roll.members) < self.quorum:
            return f"names {len(roll.members)} members where {self.quorum} are due"
        spent = [peer for peer in roll.members if not self.able(shown[peer])]
        return f"names peer {spent[0]}, which has no attempt left" if spent else ""
