"""The leader of a ballot: it asks for the bases it does not hold, and says who is to speak."""

from __future__ import annotations

from dataclasses import replace

from bruit.algorithms.schedules.ballots.member import BallotMember
from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll, text_row
from bruit.algorithms.schedules.machine import Effect, Envelope, Send


class BallotLeader(BallotMember):
    """What a peer does in the ballots that it leads."""

    def _propose(self, now: float) -> list[Effect]:
        """The leader's list, when it is time for one."""
        terms, me = self.terms, self.seat.me
        if self.leader != me or self._made:
            return []
        here = {v: p for v, p in sorted(self._promises.items()) if p.ballot == self.ballot}
        shown = {v: p for v, p in here.items() if self.history.holds(p.base)}
        sought = [
            effect for v, p in here.items() if v not in shown for effect in self._seek(v, p.base)
        ]
        if len(shown) < terms.quorum:
            return sought
        if len(shown) < terms.peers and not self._graced:
            if self._waiting:
                return sought
            self._waiting = True
            return [*sought, *self._later(now, "grace", self._grace)]
        members = self._chosen([peer for peer, p in shown.items() if terms.able(p)])
        roll = Roll(self.ballot, members, tuple(shown.items()))
        if terms.over(roll.base, shown):
            roll = self._closing(shown)
        elif terms.stuck(shown) and self._vain >= terms.peers:
            roll = replace(roll, members=())
        if terms.wrong(roll):
            return sought
        self._made = True
        word = Envelope("list", self.ballot, roll.row(terms.peers))
        return [*self._tell(list(shown), word), *self._listed(now, me, roll)]

    def _closing(self, shown: dict[int, Promise]) -> Roll:
        """The list of the end, without those who were silent lately where it is one all the same."""
        few = tuple((peer, shown[peer]) for peer in self._chosen(list(shown)))
        roll = Roll(self.ballot, (), few)
        return Roll(self.ballot, (), tuple(shown.items())) if self.terms.wrong(roll) else roll

    def _chosen(self, able: list[int]) -> tuple[int, ...]:
        """Without those who lied, and those who were silent lately, while enough others remain."""
        for shunned in (self._quiet | set(self.convicted), set(self.convicted)):
            left = [peer for peer in able if peer not in shunned]
            if len(left) >= self.terms.quorum:
                self._quiet -= set(able) - set(left)  # left out once, then asked again
                return tuple(left)
        return tuple(able)

    def _seek(self, peer: int, base: Base) -> list[Effect]:
        """The leader asks, once a while, for a base that it does not hold: nobody is listed whose
        base is mere words."""
        missing = self.history.way(base.chain)[1]
        if missing is None or missing in self._sought:
            return []
        self._sought.add(missing)
        return [Send(peer, Envelope("fetch", self.base.round, text_row(missing)))]
