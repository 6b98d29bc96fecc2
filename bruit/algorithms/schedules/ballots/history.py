"""History: the sums that a peer holds, the chain it goes on from, and the way to another base."""

from __future__ import annotations

from dataclasses import dataclass, field

from bruit.algorithms.schedules.ballots.attempt import Summed
from bruit.algorithms.schedules.ballots.rows import Base, Tally


@dataclass
class History:
    """`chains[t]` is the hash after t rounds, `summed[t]` says over which list round t was, and
    `closing` are the ends that were voted after the last of them, each over the one before. Sums
    are found by the hash they lead to; some of them may never become part of the chain."""

    chains: list[bytes]
    summed: list[Summed] = field(default_factory=list)
    tallies: dict[bytes, Tally] = field(default_factory=dict)
    closing: list[Tally] = field(default_factory=list)

    @property
    def base(self) -> Base:
        return self.closing[-1].base if self.closing else self._at(len(self.summed))

    def _at(self, number: int) -> Base:
        """The base after so many rounds of the chain."""
        ballot = self.summed[number - 1].ballot if number else -1
        return Base(ballot, number, self.chains[number])

    def passes(self, chain: bytes) -> bool:
        """Whether this history goes through that hash."""
        return chain in self.chains or any(tally.base.chain == chain for tally in self.closing)

    def holds(self, base: Base) -> bool:
        """Whether all sums that lead to this base are here, and it is what it says."""
        if base.chain in self.chains:
            return base == self._at(self.chains.index(base.chain))
        path, missing = self.way(base.chain)
        if missing is not None or path[-1].base != base:
            return False
        before = self._at(self.chains.index(path[0].roll.base.chain))
        for tally in path:  # what a list goes on from must be what the sum before it made
            if tally.roll.base != before:
                return False
            before = tally.base
        return True

    def way(self, chain: bytes) -> tuple[list[Tally], bytes | None]:
        """The sums that lead from this history to that hash; or those of its end, and the hash
        whose sum is missing."""
        path: list[Tally] = []
        while chain not in self.chains:
            tally = self.tallies.get(chain)
            if tally is None:
                return path[::-1], chain
            path.append(tally)
            chain = tally.roll.base.chain
        return path[::-1], None

    def adopt(self, path: list[Tally]) -> None:
        """Go on from the end of a way that nothing is missing from; rounds beyond its beginning are
        given up."""
        if not path:
            return
        after = self.chains.index(path[0].roll.base.chain)
        del self.chains[after + 1 :], self.summed[after:]
        self.closing = [tally for tally in path if tally.base.ended]
        for tally in path[: len(path) - len(self.closing)]:
            self.chains.append(tally.base.chain)
            self.summed.append(Summed(tally.base.ballot, tally.base.round - 1, tally.roll.members))

    def sums(self, after: int) -> list[Tally]:
        """Those of the chain, from that round on."""
        return [self.tallies[chain] for chain in self.chains[after + 1 :]]

    def asked(self, chain: bytes, after: int) -> list[Tally]:
        """What somebody needs who holds so many rounds and asks for the way to that hash: at least
        the last sum of it, if it is here."""
        path: list[Tally] = []
        while (tally := self.tallies.get(chain)) is not None:
            if path and tally.base.round <= after and not tally.base.ended:
                break
            path.append(tally)
            chain = tally.roll.base.chain
        return path[::-1]

    def forget(self, known: int, applied: int) -> None:
        """Drop the sums that everybody has, up to that round, and this peer has absorbed; and
        those that led nowhere."""
        own = set(self.chains)
        last = len(self.summed)
        self.tallies = {
            chain: tally
            for chain, tally in self.tallies.items()
            if (
                tally.base.round > min(known, applied)
                if chain in own
                else tally.base.round >= last - 1
            )
        }
