"""A member of a list: it is charged, says its words, or votes for the end, and sums what all say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, spoken
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Links
from bruit.algorithms.schedules.ballots.attempt import Attempt, Summed
from bruit.algorithms.schedules.ballots.bulk import checked
from bruit.algorithms.schedules.ballots.chain import total
from bruit.algorithms.schedules.ballots.recovery import STATES, BallotRecovery
from bruit.algorithms.schedules.ballots.rows import Base, Roll, SpeechRow, Tally, text_row
from bruit.algorithms.schedules.machine import Effect, Envelope, Missed
from bruit.arrays import Words
from bruit.errors import LocalProtocolError, RemoteProtocolError


class BallotMember(BallotRecovery):
    """What a peer does with a list, and with the words of the others on it."""

    def _listed(self, now: float, sender: int, roll: Roll) -> list[Effect]:
        if roll.ballot != self.ballot:
            return []
        if self._roll is not None:
            if self._roll.binding != roll.binding:
                self.lies += 1
                return []
            return self._again(sender)
        self._check_roll(sender, roll)
        if roll.base.ballot < self.base.ballot:
            return []
        self._roll = roll
        for peer, promise in roll.shown:
            if self._newer(peer, promise):
                self._promises[peer] = promise
        effects = self._start_clock(now)
        if not roll.members:
            effects += self._agree(now, hasty=True)  # what is settled needs no vote
        effects += self._speak(now) if roll.base == self.base else self._pursue(now, roll.base)
        return [*effects, *self._agree(now)]

    def _check_roll(self, sender: int, roll: Roll) -> None:
        """Refuse a list that no honest leader makes, or that shows promises that nobody made."""
        wrong = self.terms.wrong(roll)
        if not wrong and self.seat.seals is not None:
            forged = [
                peer
                for peer, promise in roll.shown
                if self._promises.get(peer) != promise
                and not self.seat.seals.check(peer, promise.text(), promise.seal)
            ]
            wrong = f"shows a promise that peer {forged[0]} has not signed" if forged else ""
        if not wrong:
            weak = [peer for peer, promise in roll.shown if not self._usable(promise.key)]
            wrong = f"shows a key of peer {weak[0]} that hides nothing" if weak else ""
        if wrong:
            raise RemoteProtocolError(f"peer {sender} sent a list that {wrong}")

    def _vote(self, now: float) -> list[Effect]:
        """A voice for the end: a row of zeros, for which nothing is read and nothing charged. The
        base that is voted on is taken with the vote's sum, not before: who has promised more than
        its ballot may not count among those who hold it."""
        roll, me = self._roll, self.seat.me
        if roll is None or me not in roll.voices or self.message is not None or self.finished:
            return []
        if not self.history.holds(roll.base):
            return []
        nothing: Words = np.zeros((1, *self.example.shape[1:]), np.uint64)
        row = SpeechRow(nothing, text_row(roll.binding))
        self.message = Envelope("speak", self.ballot, row)
        self._words[me] = row
        return [*self._pass_on(), *self._complete(now)]

    def _speak(self, now: float) -> list[Effect]:
        """One attempt: it is charged, and the words are made, in the same input."""
        roll, me = self._roll, self.seat.me
        if roll is not None and not roll.members:
            return self._vote(now)
        if roll is None or me not in roll.members or self.message is not None or self.finished:
            return []
        due = dict(roll.shown)[me].key == self.key and self.charges < self.terms.limit
        if not due or self.strayed or roll.base != self.base:
            return []
        start = self._absorbed(roll.base)
        if start is None:
            self.strayed = True
            return [*self._promise(), *self._look(now)]
        self.charges += 1
        base = roll.base
        self.attempts.append(Summed(roll.ballot, base.round, roll.members))
        others = np.array([peer for peer in roll.members if peer != me], np.int64)
        edges = Edges(self.ids, np.array([0, len(others)]), others)
        attempt = Attempt(
            ballot=roll.ballot,
            round=base.round,
            members=roll.members,
            bindings=(roll.binding,),
            keys=roll.keys,
        )
        self._absorb(start, attempt, edges)
        words: Words = spoken(self.seat.algorithm, self.state, edges).rows
        checked(words)
        self.message = self._said(
            Envelope("speak", self.ballot, SpeechRow(words, text_row(roll.binding)))
        )
        self._words[me] = self.message.row
        left_out: list[Effect] = [
            Missed(peer, self.ballot) for peer in self._others() if peer not in roll.members
        ]
        return [*left_out, *self._pass_on(), *self._complete(now)]

    def _straight(self) -> bool:
        """Whether the words of this ballot take no route: its leader hears who is silent."""
        return self._roll is None or self.terms.kind(self._roll) in ("all", "leader")

    def _heard_from(self, peers: Sequence[int]) -> list[Words] | None:
        """The own words and those of these peers for this attempt; None while some are missing. (A
        leader that is not on the list has none of its own.)"""
        roll, me = self._roll, self.seat.me
        if roll is None:
            return None
        said = [self._words.get(peer) for peer in (*([me] if me in roll.voices else []), *peers)]
        rows = [
            one.words
            for one in said
            if one is not None
            and one.binding.tobytes() == roll.binding
            and (roll.members or not one.words.any())
        ]
        return rows if len(rows) == len(said) else None

    def _pass_on(self) -> list[Effect]:
        """Those parts of the own way that are complete by now and were not said yet."""
        roll = self._roll
        if roll is None or self.message is None:
            return []
        effects: list[Effect] = []
        for part in self.terms.way(roll, self.seat.me).parts[self._passed :]:
            rows = self._heard_from(part.of)
            if rows is None:
                break
            self._passed += 1
            effects += self._tell(list(part.to), self._sum_of(rows))
        return effects

    def _sum_of(self, rows: list[Words]) -> Envelope:
        """One message of words: the own ones, or their sum with others'."""
        own = self.message
        if own is None:
            raise LocalProtocolError(f"peer {self.seat.me} has no words to pass on with others'")
        if len(rows) == 1:
            return own
        summed = total(np.concatenate(rows))[None]
        return replace(own, row=SpeechRow(summed, own.row.binding))

    def _again(self, leader: int) -> list[Effect]:
        """The list came again: words may have been lost."""
        roll = self._roll
        if roll is None or self.message is None:
            return []
        if self._straight():
            return self._tell([leader], self.message)
        effects: list[Effect] = []
        for part in self.terms.way(roll, self.seat.me).parts[: self._passed]:
            rows = self._heard_from(part.of)
            effects += [] if rows is None else self._tell(list(part.to), self._sum_of(rows))
        return effects

    def _said(self, now_made: Envelope) -> Envelope:
        """The words of this ballot: those just made, or, if an earlier start has said some in it,
        those, word for word. Its key is gone, so what was made in their place is nothing."""
        if not self._recited:
            self._uttered.append(now_made)
            return now_made
        known = self._recited.pop(0)
        if (
            known.number != self.ballot
            or known.row.binding.tobytes() != now_made.row.binding.tobytes()
        ):
            raise LocalProtocolError(
                f"peer {self.seat.me} has said words in ballot {known.number} and was about to say "
                f"them again as those of ballot {self.ballot}"
            )
        return known

    def _absorbed(self, base: Base) -> tuple[int, bytes, Any] | None:
        """The last state whose sums are all in the chain of this base."""
        chains = self.history.chains
        fit = [kept for kept in self._states if kept[1] in chains[kept[0] : kept[0] + 1]]
        return fit[-1] if fit else None

    def _absorb(self, start: tuple[int, bytes, Any], attempt: Attempt, edges: Edges) -> None:
        """The state after the sums that it has not absorbed yet, ready to say the words of the
        attempt, if it is one."""
        after, _, state = start
        tallies = self.history.sums(after)
        past = tuple(
            Summed(tally.base.ballot, tally.base.round - 1, tally.roll.members) for tally in tallies
        )
        rows = np.concatenate([self.example, *(tally.words for tally in tallies)])
        leaders = np.array([self.terms.leader(one.ballot) for one in past], np.int64)
        links = Links(
            ids=self.ids,
            start=np.array([0, len(past)]),
            senders=leaders,
            columns=np.arange(len(past)),
            weights=np.ones(len(past)),
            own=np.ones(1),
        )
        home = Home(
            self.seat.door,
            self.ids,
            np.array([self.charges]),
            np.array([attempt.ballot]),
            np.array([not attempt.members]),
            edges,
            self.seat.public,
        )
        home.attempt = replace(attempt, sums=past)
        self.state = absorbed(self.seat.algorithm, state, Inbox(links, rows, True, None), home)
        base = self.base
        known = [kept for kept in self._states if kept[0] < base.round and kept[0] <= after]
        self._states = [*known, (base.round, base.chain, self.state)][-STATES:]

    def _heard(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if envelope.number != self.ballot:
            return []
        known = self._words.setdefault(sender, envelope.row)
        if known is not envelope.row:
            same = np.array_equal(known.words, envelope.row.words)
            self.lies += not (same and np.array_equal(known.binding, envelope.row.binding))
            return []
        return [*self._pass_on(), *self._complete(now)]

    def _complete(self, now: float) -> list[Effect]:
        """The sum, when all members have spoken."""
        roll, me, terms = self._roll, self.seat.me, self.terms
        if roll is None:
            return []
        whole = terms.way(roll, me).whole
        if whole is None or (not roll.members and not self.history.holds(roll.base)):
            return []
        rows = self._heard_from(whole)
        if rows is None:
            return []
        tally = Tally.made(roll, total(np.concatenate(rows))[None], me)
        if self.seat.seals is not None:
            tally = replace(tally, seal=self.seat.seals.sign(tally.text()))
        self.history.tallies.setdefault(tally.base.chain, tally)
        told: list[Effect] = []
        if self.leader == me:
            hears = roll.voices if terms.everybody_sums(roll) else ()
            others = [peer for peer in self._others() if peer not in hears]
            told = self._tell(others, Envelope("sum", self.ballot, tally.row(terms.peers)))
        return [*told, *self._pursue(now, tally.base)]
