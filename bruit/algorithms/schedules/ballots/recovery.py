"""Sums that were told or missed: a peer on ballots keeps them, goes on from the base that they lead
to, gives them to those who ask, and stops when nothing can come any more."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bruit.algorithms.messages import Edges
from bruit.algorithms.schedules.ballots.attempt import Attempt
from bruit.algorithms.schedules.ballots.chain import binding, digest
from bruit.algorithms.schedules.ballots.rows import Base, Tally, text_row
from bruit.algorithms.schedules.ballots.standing import AGAIN, BallotStanding
from bruit.algorithms.schedules.machine import Done, Effect, Envelope, Send
from bruit.errors import RemoteProtocolError

STATES = 3  # how many states are kept that a peer may be set back to
SIGNED = 64  # ballots of which the leader's first signature is remembered


class BallotRecovery(BallotStanding):
    """From told sums to the base that this peer goes on from, and to the end."""

    def _tallied(self, now: float, sender: int, tally: Tally, live: bool) -> list[Effect]:
        """A sum was told. It is kept; by itself it is adopted only where this peer has promised
        nothing beyond its ballot."""
        leader, known = self.terms.leader(tally.roll.ballot), self.history.tallies
        vouched = tally.witness == leader or (
            self.terms.everybody_sums(tally.roll) and tally.witness in tally.roll.voices
        )
        if not vouched or (live and sender != leader) or (tally.base.ended and tally.words.any()):
            raise RemoteProtocolError(
                f"peer {sender} sent a sum of ballot {tally.roll.ballot} that it may not vouch for"
            )
        seals = self.seat.seals
        if seals is not None and not seals.check(tally.witness, tally.text(), tally.seal):
            raise RemoteProtocolError(
                f"peer {sender} sent a sum that peer {tally.witness} has not signed"
            )
        if tally.base.chain not in known:
            self._check_roll(sender, tally.roll)
            known[tally.base.chain] = tally
        if tally.witness == leader and (live or seals is not None):
            self._convict(leader, tally)
        if live and tally.roll.ballot >= self.ballot and leader not in self.convicted:
            return self._pursue(now, tally.base)
        if self._goal is not None:
            return [*self._pursue(now, self._goal, ask=False), *self._propose(now)]
        return self._propose(now)

    def _convict(self, leader: int, tally: Tally) -> None:
        """Two sums of one ballot, signed by its leader, are a lie that nobody else can have
        told."""
        ballot = tally.roll.ballot
        first = self._signed.setdefault(ballot, (digest(tally.words), tally.text(), tally.seal))
        if first[1] != tally.text() and leader != self.seat.me:
            self.convicted.setdefault(leader, (*first[1:], tally.text(), tally.seal))
        while len(self._signed) > SIGNED:
            del self._signed[min(self._signed)]

    def _pursue(self, now: float, goal: Base, ask: bool = True) -> list[Effect]:
        """Go on from that base, when all sums that lead to it are here; else ask for them."""
        if self.finished or goal.ballot < self.base.ballot:
            return []
        path, missing = self.history.way(goal.chain)
        if missing is not None:
            fresh, self._goal = goal != self._goal, goal
            return self._ask(missing) if ask or fresh else []
        self._goal = None
        if goal == self.base or not self.history.holds(goal):
            return []
        if goal.ballot < self.ballot and self._to_vote_on(goal):
            return self._vote(now)
        self.history.adopt(path)
        self.count, self._vain = self.base.round, 0
        self._forget()
        if goal.ballot >= self.ballot:
            self._slow = max(0, self._slow - 1)
            quietly = not (self.terms.few or self.terms.over(goal, self._promises))
            return self._enter(now, goal.ballot + 1, quietly)
        if self._roll is not None and self._roll.members and self._roll.base == self.base:
            return self._speak(now)
        return [*self._promise(), *self._look(now)]

    def _to_vote_on(self, goal: Base) -> bool:
        """Whether the list of this ballot asks to end with that base, which too few hold yet."""
        roll = self._roll
        ending = roll is not None and not roll.members and roll.base == goal
        return ending and not self.terms.settled(goal, self._promises)

    def _ask(self, missing: bytes) -> list[Effect]:
        """Ask one of those who go on from there, another one each time."""
        goal = self._goal
        holders = {v for v, p in self._promises.items() if p.base == goal}
        if self._roll is not None:
            holders |= {v for v, p in self._roll.shown if p.base == goal}
            holders.add(self.leader)  # who made the list has what it rests on
        asked = sorted(holders - {self.seat.me}) or self._others()
        peer = asked[(self.seat.me + self._asks) % len(asked)]
        self._asks += 1
        return [Send(peer, Envelope("fetch", self.base.round, text_row(missing)))]

    def _fetched(self, sender: int, number: int, chain: bytes) -> list[Effect]:
        return self._records(sender, self.history.asked(chain, number))

    def _records(self, peer: int, tallies: list[Tally]) -> list[Effect]:
        n = self.terms.peers
        return [Send(peer, Envelope("record", one.roll.ballot, one.row(n))) for one in tallies]

    def _forget(self) -> None:
        known = [promise.base.round for promise in self._promises.values()]
        everybody = len(known) == self.terms.peers
        needed = (
            min(known) - STATES if everybody else 0
        )  # who is set back needs a few of them again
        self.history.forget(needed, self._states[0][0])

    def _agree(self, now: float, hasty: bool = False) -> list[Effect]:
        """A base that enough peers hold is final for its rounds: take it; and stop if it is the
        last. While their promises may be on their way, n - D are waited for."""
        terms, promises = self.terms, self._promises
        held = Counter(promise.base for promise in promises.values())
        enough = terms.decisive if hasty else terms.quorum
        agreed = [base for base, peers in held.items() if peers >= enough]
        base = max(agreed, key=lambda one: one.ballot, default=None)
        if self.finished or base is None:
            return []
        if terms.settled(base, promises) and self.history.passes(base.chain):
            return self._finish(now)
        return self._pursue(now, base) if base != self.base else []

    def _finish(self, now: float, agreed: bool = True) -> list[Effect]:
        """Absorb the last sums, give what they miss to those who are behind, and stop."""
        self.finished, self.agreed = True, agreed
        base, start = self.base, self._absorbed(self.base)
        if start is None:
            self.strayed = True
        else:
            bound = binding(base.chain, self.ballot, base.round, (), ())
            none = Edges(self.ids, np.array([0, 0]), self.ids[:0])
            self._absorb(
                start,
                Attempt(ballot=self.ballot, round=base.round, members=(), bindings=(bound,)),
                none,
            )
        behind = [peer for peer in self._others() if self._behind(peer)]
        return [*(effect for peer in behind for effect in self._bring(peer)), Done()]

    def _bring(self, peer: int) -> list[Effect]:
        """What a peer that is behind misses; a + D + 1 peers are enough to say it."""
        ready = sorted(v for v in range(self.terms.peers) if not self._behind(v))
        if self.seat.me not in ready[: self.terms.colluders + self.terms.dropouts + 1]:
            return []
        promise = self._promises.get(peer)
        after = 0 if promise is None else min(promise.base.round, self.base.round - 1)
        return self._records(peer, self.history.asked(self.base.chain, after))

    def _remind(self, sender: int, repeated: bool) -> list[Effect]:
        """Who has come to the end tells those who still speak, a few times in one ballot: what they
        miss, or, if they hold the last base too, that all others do; they may have been away when
        that was said."""
        if not self.finished:
            return []
        behind, told = self._behind(sender), self._told.get(sender, 0)
        further = self._promises[sender].ballot > self.ballot
        if not further and (told >= AGAIN or not (behind or repeated)):
            return []
        self._told[sender] = 0 if further else told + 1
        return [*self._reassured(sender), *(self._bring(sender) if behind else ())]

    def _reassured(self, sender: int) -> list[Effect]:
        """The own promise, in the ballot of who is told if that is later: nothing else is adopted
        in any."""
        if self._promises[sender].ballot > self.ballot:
            self.ballot = self._promises[sender].ballot
            self._roll = self.message = self._goal = None
            self._promise()
        mine = self._promises[self.seat.me]
        return [Send(sender, Envelope("ballot", mine.ballot, mine.row()))]
