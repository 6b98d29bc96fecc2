"""Ballots between peers: who fails costs the others an attempt, and nothing else (silo:SILO-5).

Ballots are numbered, and ballot b is led by peer b mod n. Who enters one says so to all, with the
base it goes on from. When all are there, or n - D and a grace time, the leader says who is to speak
and shows the promises it has: they go on from the base of the highest ballot shown. Each member
fetches what it missed, is charged, and says its words. All words together are the sum, which makes
the next base and the next ballot. A clock ends a ballot in which that fails, with more patience
each time.

    promise    who has entered a ballot adopts no sum of an earlier one by itself, only because of a
               list, or because enough peers say that they have: so no list misses an adopted base
    once       one row of words a ballot, said again word for word, never another one
    charge     the words are made in the input that is charged for them; whoever drives the machine
               commits both before anything leaves
    follow     a + 1 peers in later ballots: enter the (a + 1)-th largest of them
    clock      runs while n - D peers are in this ballot or later ones: nobody runs ahead alone
    end        D + a + 1 peers hold the same last base: after T rounds, or the end that was voted where
               no list is possible any more: more than D peers have no attempt left, or so many
               that those who are there cannot make one, through a turn of all leaders. An end is
               voted like a sum, of zeros, in a ballot of its own, so that later ballots go on from
               it: of two ends one is final. A peer for whom all leaders fail three times over
               stops by itself, with the rounds it has, and says that nobody has agreed: more than D
               are gone

Up to SMALL peers everybody says its words to all members, who sum for themselves, so that no leader
can withhold a sum; with more the leader sums for all, and one that withholds costs an attempt. By a
`route` words come together on the way, along a tree under the leader or a butterfly, where all sum
for themselves. After an attempt in vain they take no route, so that the leader hears who is silent.

With seals promises and sums are signed: a list cannot show a promise that nobody made, a fetched
sum shows the list it is over, and a leader that signs two sums of one ballot is convicted by
whoever has seen both: that peer skips its ballots, lists it only where it must, and keeps the two
signatures in `convicted` for others to check. Nobody is told of it by the machine. Lists and
words are not signed: a leader that shows two lists, and a peer that says two different rows, cost an
attempt or a choice between two sums in the next list, and leave no proof. Without seals
(simulation) everybody is believed.

With more than SMALL peers a promise that follows a sum goes to the leader alone, whose list shows it
to all: four messages a peer and round instead of n. Everybody hears it with the first repetition,
if there is no sum before; after the last round at once.

Lines may lose messages: what was said is said again, and asked for again, a few times in each
patience. Kept of the others: one promise each, the words of one ballot, and the sums that somebody
may still need: those since the round that every peer is known to have, or all if one never speaks.
"""

from __future__ import annotations

from bruit.algorithms.schedules.ballots.bulk import checked
from bruit.algorithms.schedules.ballots.leading import BallotLeader
from bruit.algorithms.schedules.ballots.rows import Promise, Roll, Tally
from bruit.algorithms.schedules.ballots.standing import AGAIN
from bruit.algorithms.schedules.machine import Alarm, Done, Effect, Envelope, Missed
from bruit.errors import RemoteProtocolError

GROWTH, LONGEST = 1.5, 10  # of the clock, with every ballot that fails, up to so many of them
TURNS, MORE = 3, 10  # who sees all leaders fail so often, and some more, in a row, gives up


class BallotPeer(BallotLeader):
    """One peer of a run by ballots; messages are numbered by the ballot they are about."""

    def begin(self, now: float) -> list[Effect]:
        self._start(self.seat.steps == 0)
        checked(self.example)
        if not self.seat.steps:
            self.finished = True
            return [Done()]
        self._states = [(0, self.history.chains[0], self.state)]
        return self._enter(now, 0)

    def renew(self, now: float, key: bytes) -> list[Effect]:
        """A new start has a new key, which its promises show from now on. Words that were said stay
        as they are; a list that shows the old key is not spoken for any more."""
        self.key = key
        return [] if self.state is None else [*self._promise(), *self._look(now)]

    def _enter(self, now: float, ballot: int, quietly: bool = False) -> list[Effect]:
        while self.terms.leader(ballot) in self.convicted:
            ballot += 1
        self.ballot = ballot
        self._roll = self.message = self._goal = None
        self._made = self._clocked = self._graced = self._waiting = False
        self._words, self._sought, self._passed = {}, set(), 0
        again = [] if self.finished else self._later(now, "again", 1 / AGAIN)
        return [*self._promise(quietly), *again, *self._look(now)]

    def _look(self, now: float) -> list[Effect]:
        """What follows from the promises that are known."""
        terms, promises = self.terms, self._promises
        above = sorted(
            (p.ballot for p in promises.values() if p.ballot > self.ballot), reverse=True
        )
        if len(above) > terms.colluders:
            return self._enter(now, above[terms.colluders])
        return [*self._start_clock(now), *self._propose(now), *self._agree(now)]

    def _start_clock(self, now: float) -> list[Effect]:
        here = sum(promise.ballot >= self.ballot for promise in self._promises.values())
        if self._clocked or here < self.terms.quorum or self.finished:
            return []
        self._clocked = True
        return self._later(now, "ballot", GROWTH ** min(self._slow, LONGEST))

    # inputs

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        self._check_neighbor(sender)
        kind, number, row = envelope.kind, envelope.number, envelope.row
        if kind == "ballot":
            return self._promised(now, sender, Promise.of(number, row))
        if kind == "speak":
            return self._heard(now, sender, envelope)
        if kind == "fetch":
            return self._fetched(sender, number, row.tobytes())
        if not row.shown.any():
            raise RemoteProtocolError(f"peer {sender} sent a {kind} that shows nobody")
        if kind != "list":
            return self._tallied(now, sender, Tally.of(number, row), kind == "sum")
        if sender != self.terms.leader(number):
            raise RemoteProtocolError(f"peer {sender} sent a list of ballot {number}")
        return self._listed(now, sender, Roll.of(number, row))

    def _promised(self, now: float, sender: int, promise: Promise) -> list[Effect]:
        known, terms = self._promises.get(sender), self.terms
        if known == promise:
            return self._remind(sender, repeated=True)
        base = promise.base
        if not (
            -1 <= base.ballot < promise.ballot
            and 0 <= base.round <= terms.steps
            and 0 <= promise.charges <= terms.limit
        ):
            raise RemoteProtocolError(f"peer {sender} sent a promise that cannot be")
        seals = self.seat.seals
        if seals is not None and not seals.check(sender, promise.text(), promise.seal):
            raise RemoteProtocolError(f"peer {sender} sent a promise that it has not signed")
        if not self._usable(promise.key):
            raise RemoteProtocolError(f"peer {sender} sent a key that hides nothing")
        if not self._newer(sender, promise):
            return []
        if known is not None and known.ballot < promise.ballot and promise.charges < known.charges:
            raise RemoteProtocolError(
                f"peer {sender} says that it was charged {promise.charges} times, and has signed "
                f"{known.charges} before: its journal was set back"
            )
        self._promises[sender] = promise
        return [*self._remind(sender, repeated=False), *self._look(now)]

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if number != self.ballot or self.finished:
            return []
        if alarm == "grace":
            self._graced = True
            return self._propose(now)
        if alarm == "again":
            return self._repeat(now)
        self._slow, self._vain = self._slow + 1, self._vain + 1
        missed = self._silent()
        self._quiet |= set(missed) if self._made and self._straight() else set()
        waited: list[Effect] = [Missed(peer, number) for peer in missed]
        if self._vain >= TURNS * self.terms.peers + MORE:
            return [*waited, *self._finish(now, agreed=False)]
        return [*waited, *self._enter(now, number + 1)]

    def _repeat(self, now: float) -> list[Effect]:
        """Say again, and ask again, what may have been lost."""
        mine = self._promises[self.seat.me]
        effects = self._tell(self._others(), Envelope("ballot", mine.ballot, mine.row()))
        roll = self._roll
        if self._made and roll is not None:
            silent = [p for p in roll.voices if p not in self._words or not self._straight()]
            effects += self._tell(silent, Envelope("list", self.ballot, roll.row(self.terms.peers)))
        if self._goal is None:
            ahead = [p.base for p in self._promises.values() if p.base.ballot >= self.ballot]
            goal = max(ahead, key=lambda base: base.ballot, default=None)
        else:
            goal = self._goal
        effects += self._later(now, "again", 1 / AGAIN)
        self._sought = set()
        effects += [*self._propose(now), *self._agree(now, hasty=True)]
        return effects if goal is None else [*effects, *self._pursue(now, goal)]
