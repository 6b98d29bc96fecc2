"""The rules by which a list is judged: how many there must be, and when nobody speaks any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bruit.algorithms.schedules.ballots.routes import Kind, Route, Way, way
from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll

SMALL = 8  # up to so many peers everybody hears all words, so that no leader can withhold a sum


@dataclass(frozen=True, kw_only=True)
class BallotTerms:
    """What all peers of a run by ballots agreed on; `limit` is T_max, the most attempts that
    anybody is charged for."""

    peers: int
    dropouts: int
    colluders: int
    steps: int
    limit: int
    route: Route = "complete"

    @property
    def quorum(self) -> int:
        """n - D: so many are needed for anything."""
        return self.peers - self.dropouts

    @property
    def decisive(self) -> int:
        """So many hold a base for good: one of them that does not lie is in every list of n - D."""
        return min(self.quorum, self.dropouts + self.colluders + 1)

    @property
    def few(self) -> bool:
        return self.peers <= SMALL

    def kind(self, roll: Roll) -> Kind:
        """How the words of a list come together: by the route of the run where its list goes on
        from the ballot before. After an attempt in vain, and for an end, without detours: so that
        who makes the list sees itself who is silent."""
        if self.route != "complete" and roll.members and roll.ballot == roll.base.ballot + 1:
            return self.route
        return "all" if self.few else "leader"

    def everybody_sums(self, roll: Roll) -> bool:
        """Whether everybody on the list comes to the sum by itself."""
        return self.kind(roll) in ("all", "butterfly")

    def way(self, roll: Roll, me: int) -> Way:
        """What this peer does with the words of a list."""
        return way(self.kind(roll), roll.voices, self.leader(roll.ballot), me)

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
