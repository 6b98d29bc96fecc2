"""A token between peers: one model that walks, survives its holders' crashes and deaths, and is
never in two places.

The holder of hop h asks its predecessor before it lets the token go; the predecessor grants it
once. If the holder does not ask in time the predecessor takes the token back and sends it
elsewhere, to whom it has not tried yet if there is anybody; a holder that asks too late is told to
stop, and its token ends. So at every hop one token, and only one, goes on. After the last hop the
word that the walk has ended is passed to everybody: "end", or, where the algorithm says
`published`, "result" with the last token, which everybody then holds.

Between "ask" and "go" only two peers know who has the token, and nobody can tell a dead one from a
slow one. So whoever depends on another's word waits very long for it: the predecessor that has
granted, until the holder has granted in turn ("past"; "still" if it takes a while); the holder that
has asked, for its answer. After GONE patiences the other is held to be gone for good, and the walk
goes on in a new *epoch*. First everybody is told ("fence"). Who has heard of an epoch does nothing
for a token of an older one. When that word has had time to settle, whoever spoke it goes on with
its own copy, unless it has meanwhile heard of a still higher epoch. Epochs of different peers
differ.

Before the first handover nobody has given the token to its holder, so nobody would notice its
death. A *deputy*, a neighbor of the first holder that everybody can name, keeps the token of hop 0
as if it had let it go: it is told "past" and "still" like any predecessor. If it hears nothing it
begins an epoch and then the walk, with its own visit at hop 0; nothing of the first holder's is in
that token.

Among real peers a word that the walk has ended, or begins an epoch, is believed only with vouchers
of those who handed the token on (`vouchers`). Who is responsible for a token (holds it, keeps it,
or is about to go on with it) and has a later voucher than the author of an epoch does not give it
up, but begins a still higher epoch and goes on from there. So a false alarm costs SETTLE patiences,
and one peer can raise no more than FENCES of them with the same voucher; objections are not
counted. Whose holder begins an epoch goes on watching it: a holder that is then silent costs what a
silent holder costs. Kept of each neighbor: one voucher.

    always          one token per epoch; no hop of an epoch is left twice; who has heard of an epoch ends older tokens
    never two       if who is silent for GONE patiences is dead, and words reach the living in SETTLE patiences
    goes on         if of a holder and its predecessor (of the first holder: its deputy) one lives, and the living
                    are connected
    once            a word that comes again changes nothing: a token is visited once, an "ask" is granted once, and an
                    "ask" of a token that has long gone on ("past" was said) gets no answer, since it had its "go"

Where the second line fails (a partition, or a machine that slept), an older token may walk on among
those who have not heard of the newer one; it ends where the two are known together. Whatever
happens each visit is paid for by the one who is visited, with noise of its own: copies of a token
never share any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.doorway import absorbed, adopted, publishes
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox, Links, take
from bruit.algorithms.schedules import vouchers
from bruit.algorithms.schedules.machine import Alarm, Done, Effect, Envelope, Met, Missed, Send
from bruit.algorithms.schedules.peer import ONE, PeerMachine, Seat
from bruit.algorithms.schedules.vouchers import Voucher
from bruit.algorithms.schedules.walk.authority import Authority
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.errors import RemoteProtocolError

GONE = 10  # patiences without a word after which a peer is held to be gone for good
SETTLE = 2  # patiences that the word of a new epoch is given to reach everybody
EPOCHS = 2**24  # more than that nobody can mean
FENCES = 4  # epochs that one peer may begin with the same voucher


@dataclass
class Custody:
    """A token this peer has sent and may still take back: to whom, what, whether it was let go, and
    the last watch."""

    holder: int
    row: Any  # None: of the first holder, whose token everybody can make
    granted: bool = False
    watch: int = -1


@dataclass(frozen=True)
class Claim:
    """What this peer goes on with when its epoch has settled: its own visit, or the custody of who
    is gone."""

    epoch: int
    hop: int
    custody: Custody | None
    guard: int = -1  # who keeps the token of the own visit, if anybody does


class TokenPeer(PeerMachine):
    """One peer of a walk; messages are numbered epoch * steps + hop."""

    kinds: ClassVar[tuple[str, ...]] = (
        "token",
        "ask",
        "go",
        "stop",
        "past",
        "still",
        "fence",
        "end",
        "result",
        "vouch",
    )
    kept: ClassVar[tuple[str, ...]] = ("token",)

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._epoch, self._last = 0, -1  # the highest known, and the number of the last visit
        self._custody: dict[int, Custody] = {}  # by number
        self._gone_on: dict[
            int, int
        ] = {}  # by holder: the highest number of a token of which it said "past"
        self._stopped: set[tuple[int, int]] = set()  # (number, former holder): taken back
        self._held: tuple[int, int] | None = (
            None  # number and predecessor of the token waiting to be let go
        )
        self._asking = -1  # the watch over that answer
        self._guard: tuple[int, int] | None = (
            None  # who keeps the token that this peer was granted, and its number
        )
        self._claim: Claim | None = None
        self._again = 0  # tokens taken back so far
        self._watches = 0  # how often this peer has begun to wait for somebody's word
        self._ended = False
        self._voucher: Voucher | None = None  # for the token that this peer was given last
        self._vouched: dict[
            int, Voucher
        ] = {}  # the last voucher of each neighbor, for the token that follows it
        self._fences: dict[
            int, tuple[int, int, int]
        ] = {}  # by author: order of its voucher, epochs begun with it
        self._fenced: Envelope | None = None  # the word of the present epoch
        self._closing: Envelope | None = (
            None  # the word that the walk has ended, until the last token is told
        )

    def row_of(self, kind: str) -> Any:
        if self.seat.seals is None or kind not in vouchers.KINDS:
            return None if kind == "vouch" else super().row_of(kind)
        return vouchers.example(
            {"vouch": vouchers.VOUCH, "fence": vouchers.FENCE, "end": vouchers.END}[kind]
        )

    @property
    def _first(self) -> int:
        return self._walk.start(self._graph(0), self.seat.shared or self.seat.dice)

    @property
    def _walk(self) -> Walk:
        schedule = self.seat.algorithm.schedule
        return schedule if isinstance(schedule, Walk) else Walk()

    def reads_on(self, until: float) -> bool:
        return until > 0 and not self._ended

    @property
    def reads_with_one(self) -> bool:
        return True

    def _number(self, hop: int) -> int:
        return self._epoch * self.seat.steps + hop

    def begin(self, now: float) -> list[Effect]:
        self._start(False)
        if not self.seat.steps:
            return [Done()]
        first = self._first
        deputy = (
            vouchers.deputy(self._graph(0), first) if math.isfinite(self.seat.timeout) else None
        )
        if self.seat.me == first:
            self._guard = None if deputy is None else (deputy, 0)
            return self._set_out(now)
        if self.seat.me != deputy:
            return []
        self._voucher = vouchers.FIRST
        self._custody[0] = Custody(first, None, granted=True)
        return self._watch(now, self._custody[0])

    def _set_out(self, now: float) -> list[Effect]:
        """The first visit of all, in the present epoch."""
        self._voucher = vouchers.FIRST
        row = take(self._say(self._links).rows, ONE)
        return self._visit(now, self.seat.me, self._number(0), row)

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        number, kind = envelope.number, envelope.kind
        epoch = self._check_word(sender, envelope)
        if self._ended:
            return []
        if kind == "vouch":
            self._vouched[sender] = Voucher(
                sender, number, *vouchers.VOUCH.unpack(envelope.row.tobytes())[:2]
            )
            return []
        if kind == "end":
            self._closing = envelope
            return [] if publishes(self.seat.algorithm) else self._end(envelope)
        if kind == "result":
            self.state = adopted(self.seat.algorithm, self.state, envelope.row, self.seat.public)
            return self._end(*([] if self._closing is None else [self._closing]), envelope)
        learned = self._learn(now, sender, envelope, epoch) if kind in ("fence", "token") else []
        if kind == "fence":
            return learned
        if epoch < self._epoch:  # of a token that has ended; who speaks of it does not know yet
            return (
                []
                if sender == self.seat.me
                else [Send(sender, self._fenced or Envelope("fence", self._epoch))]
            )
        if kind == "token":
            if number > self._last and sender in self._vouched:
                self._voucher = self._vouched.pop(sender)
            return learned + (
                self._visit(now, sender, number, envelope.row) if number > self._last else []
            )
        if kind == "ask":
            return self._answer_question(now, sender, number)
        if kind in ("past", "still"):
            return self._heard_of(now, sender, envelope)
        return self._answered(now, sender, envelope)

    def _check_word(self, sender: int, envelope: Envelope) -> int:
        """The epoch that a message speaks of; one that cannot be is refused."""
        number, kind = envelope.number, envelope.kind
        if sender not in self._links.senders and sender != self.seat.me:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")
        epoch, hop = divmod(number, self.seat.steps) if kind != "fence" else (number, 1)
        if epoch >= EPOCHS or (kind == "token" and not hop):
            raise RemoteProtocolError(
                f"peer {sender} sent a {kind} of number {number} that cannot be"
            )
        if self.seat.seals is not None and sender != self.seat.me:
            self._check_authority(sender, envelope, epoch, hop)
        elif kind in ("end", "result") and (kind == "result") != publishes(self.seat.algorithm):
            agreed = "published" if kind == "end" else "not published"
            raise RemoteProtocolError(
                f"peer {sender} sent a message of kind {kind!r}, but the last token is {agreed}"
            )
        if kind == "result" and hop + 1 != self.seat.steps:
            raise RemoteProtocolError(
                f"peer {sender} sent the token of hop {hop} of {self.seat.steps} as the result"
            )
        return epoch

    def _answered(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        """The predecessor says "go" or "stop"."""
        if self._held != (envelope.number, sender):
            return []
        self._held = None
        if envelope.kind == "go":
            self._guard = (sender, envelope.number)
            return self._pass_on(now, envelope.number % self.seat.steps)
        self._last = (
            envelope.number - 1
        )  # the same token may come again, if its predecessor finds nobody else
        return []

    def _visit(self, now: float, sender: int, number: int, row: Any) -> list[Effect]:
        links, hop = Links.of_meetings(self.ids, np.array([sender])), number % self.seat.steps
        self.count, self._last = self.count + 1, number
        last = hop + 1 == self.seat.steps
        inbox = Inbox(links, row, False, take(self._say(links).rows, ONE))
        home = Home(
            self.seat.door,
            self.ids,
            np.array([self.count]),
            np.array([hop]),
            np.array([last]),
            self._links.edges,
            self.seat.public,
        )
        self.state = absorbed(self.seat.algorithm, self.state, inbox, home)
        if sender == self.seat.me:
            return [Met(sender, hop), *self._pass_on(now, hop)]
        self._held = (number, sender)
        self._watches += 1
        self._asking = self._watches
        return [
            Met(sender, hop),
            Send(sender, Envelope("ask", number)),
            *self._patience(now, "asked", self._asking, GONE),
        ]

    def _pass_on(self, now: float, hop: int) -> list[Effect]:
        if hop + 1 >= self.seat.steps:
            return self._end(*self._last_words(hop))
        target = self._walk.next(self._graph(0), self.seat.me, hop, self.seat.dice)
        return self._entrust(now, self._number(hop + 1), target, self._mine(target))

    def _last_words(self, hop: int) -> list[Envelope]:
        """What the last holder says: that the walk has ended, and with which token if that is
        published."""
        number, seals, shown = self._number(hop), self.seat.seals, self._voucher
        token = take(self._say(self._links).rows, ONE) if publishes(self.seat.algorithm) else None
        result = [] if token is None else [Envelope("result", number, token)]
        if seals is None or shown is None:
            return result or [Envelope("end", 0)]
        name = vouchers.digest(token)
        proof = vouchers.END.pack(
            self.seat.me, *shown, seals.sign(vouchers.ending(number, name)), name
        )
        return [Envelope("end", number, vouchers.row(proof)), *result]

    def _end(self, *words: Envelope) -> list[Effect]:
        """Pass on to the neighbors, once, that the walk is over."""
        if self._ended:
            return []
        self._ended, self._claim = True, None
        self._custody.clear()
        return [*(effect for word in words for effect in self._tell(word)), Done()]

    def _tell(self, envelope: Envelope, but: int = -1) -> list[Effect]:
        return [Send(int(peer), envelope) for peer in self._links.senders if peer != but]

    def _entrust(self, now: float, number: int, target: int, row: Any) -> list[Effect]:
        sent: list[Effect] = [Send(target, Envelope("token", number, row))]
        if target == self.seat.me:
            return sent
        if self.seat.seals is not None:
            seal = self.seat.seals.sign(vouchers.handover(number, self._again, target))
            shown = self._voucher or vouchers.FIRST
            voucher = vouchers.row(vouchers.VOUCH.pack(self._again, seal, *shown))
            sent.insert(0, Send(target, Envelope("vouch", number, voucher)))
        self._custody[number] = Custody(target, row)
        return sent + self._patience(now, "token", number)

    def _answer_question(self, now: float, sender: int, number: int) -> list[Effect]:
        if (number, sender) in self._stopped:
            return [Send(sender, Envelope("stop", number))]
        if number <= self._gone_on.get(
            sender, -1
        ):  # asked again by a copy that took long: it had its answer
            return []
        custody = self._custody.get(number)
        if custody is None or custody.holder != sender:
            raise RemoteProtocolError(
                f"peer {sender} asks for a token of number {number} that it was never given"
            )
        go: list[Effect] = [Send(sender, Envelope("go", number))]
        if custody.granted:
            return go
        custody.granted = True
        return go + self._report("past") + self._watch(now, custody)

    def _report(self, kind: str) -> list[Effect]:
        """Tell who guards this peer's token how it stands: another one guards it now, or wait a
        little longer."""
        if self._guard is None:
            return []
        peer, number = self._guard
        if kind == "past":
            self._guard = None
            return [Send(peer, Envelope("past", number))]
        return [Send(peer, Envelope("still", number))]

    def _watch(self, now: float, custody: Custody) -> list[Effect]:
        self._watches += 1
        custody.watch = self._watches
        return self._patience(now, "gone", custody.watch, GONE)

    def _heard_of(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        custody = self._custody.get(envelope.number)
        if custody is None or custody.holder != sender or not custody.granted:
            return []
        if envelope.kind == "still":
            return self._watch(now, custody)
        del self._custody[envelope.number]
        self._gone_on[sender] = max(envelope.number, self._gone_on.get(sender, -1))
        return []

    # the ends of patience

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if self._ended:
            return []
        if alarm == "token":
            return self._take_back(now, number)
        if alarm == "gone":
            found = [
                (at, custody) for at, custody in self._custody.items() if custody.watch == number
            ]
            return self._fence(now, *found[0]) if found else []
        if alarm == "asked" and self._held is not None and self._asking == number:
            return self._fence(now, self._held[0], None)
        claim = self._claim
        if alarm != "settled" or claim is None or claim.epoch != number:
            return []
        return self._go_on(now, claim)

    def _take_back(self, now: float, number: int) -> list[Effect]:
        custody = self._custody.get(number)
        if custody is None or custody.granted:
            return []
        others = self._links.senders[self._links.senders != custody.holder]
        if not len(others):
            return [*self._patience(now, "token", number), *self._report("still")]
        self._stopped.add((number, custody.holder))
        untried = others[[(number, int(peer)) not in self._stopped for peer in others]]
        target = self._anyone(number, untried if len(untried) else others)
        self._stopped.discard((number, target))
        return [
            Missed(custody.holder, number % self.seat.steps),
            *self._entrust(now, number, target, custody.row),
            *self._report("still"),
        ]

    def _anyone(self, number: int, peers: Any) -> int:
        self._again += 1
        draw = self.seat.dice.uniform("hop again", np.array([number]), self._again)[0, 0]
        return int(peers[min(int(draw * len(peers)), len(peers) - 1)])

    def _fence(
        self, now: float, number: int, custody: Custody | None, above: int = 0
    ) -> list[Effect]:
        """Whom this peer depends on is gone: begin an epoch of its own, and tell everybody before
        anything else. The same, with nobody gone, to object to an epoch `above` which this peer
        must be."""
        n, hop, known = self._graph(0).n, number % self.seat.steps, max(self._epoch, above)
        epoch = known + 1 + (self.seat.me - known - 1) % n
        if epoch >= EPOCHS:
            return []
        guard = (
            self._held[1]
            if self._held is not None
            else self._claim.guard
            if self._claim is not None
            else -1
        )
        gone = custody.holder if custody is not None else guard if guard >= 0 else self.seat.me
        self._forget(epoch)
        self._claim, self._fenced = Claim(epoch, hop, custody, guard), self._fence_word(epoch)
        return [
            *([] if above else [Missed(gone, hop)]),
            *self._tell(self._fenced),
            *self._patience(now, "settled", epoch, SETTLE),
        ]

    def _fence_word(self, epoch: int) -> Envelope:
        seals, shown = self.seat.seals, self._voucher
        if seals is None or shown is None:
            return Envelope("fence", epoch)
        proof = vouchers.FENCE.pack(*shown, seals.sign(vouchers.beginning(epoch, shown)))
        return Envelope("fence", epoch, vouchers.row(proof))

    def _forget(self, epoch: int) -> None:
        self._epoch, self._held, self._guard, self._claim = epoch, None, None, None
        self._custody.clear()
        self._stopped.clear()

    def _learn(self, now: float, sender: int, word: Envelope, epoch: int) -> list[Effect]:
        """Others have begun a higher epoch: nothing older counts any more, and the neighbors hear
        of it."""
        if epoch <= self._epoch:
            return []
        if self.seat.seals is None:
            self._forget(epoch)
            return self._tell(Envelope("fence", epoch), but=sender)
        return self._heed(now, sender, word, epoch)

    def _heed(self, now: float, sender: int, word: Envelope, epoch: int) -> list[Effect]:
        """The same when authors show vouchers; who is responsible for a later token objects."""
        author, shown = (
            epoch % self._graph(0).n,
            Voucher(*vouchers.FENCE.unpack(word.row.tobytes())[:4]),
        )
        *order, count = self._fences.get(author, (-1, -1, 0))
        same, later = shown.order == tuple(order), shown.order > self._in_force()
        if not later and (shown.order < tuple(order) or (same and count >= FENCES)):
            return []
        self._fences[author] = (*shown.order, count + (not later) if same else 1)
        claim = self._responsibility()
        if claim is not None and self._voucher is not None and self._voucher.order > shown.order:
            return self._fence(now, *claim, above=epoch)
        kept = None if claim is None or claim[1] is None or claim[1].holder != author else claim
        self._forget(epoch)
        self._fenced = word
        effects = self._tell(word, but=sender)
        if kept is None or kept[1] is None or kept[1].row is None:
            return effects
        number, custody = (
            self._number(kept[0] % self.seat.steps),
            Custody(author, kept[1].row, granted=True),
        )
        self._custody[number] = custody  # its holder goes on in its own epoch, and is still watched
        return effects + self._watch(now, custody)

    def _in_force(self) -> tuple[int, int]:
        """How late the token was that the author of the present epoch has shown. Who shows a later
        one objects, or knows better, and is heard however often: alarms are counted, not the
        answers to them."""
        if self._fenced is None or self._fenced.row is None:
            return -1, -1
        return Voucher(*vouchers.FENCE.unpack(self._fenced.row.tobytes())[:4]).order

    def _responsibility(self) -> tuple[int, Custody | None] | None:
        """With which token, if any, this peer would go on: its number, and the custody if another
        one holds it."""
        if self._claim is not None:
            return self._number(self._claim.hop), self._claim.custody
        if self._held is not None:
            return self._held[0], None
        if self._custody:
            return max(self._custody.items(), key=lambda entry: entry[0])
        return None

    def _check_authority(self, sender: int, envelope: Envelope, epoch: int, hop: int) -> None:
        """Refuse what nobody has vouched for."""
        if self.seat.seals is None or self._ended:  # who has ended does nothing for anybody
            return
        knows = Authority(
            seals=self.seat.seals,
            graph=self._graph(0),
            me=self.seat.me,
            steps=self.seat.steps,
            first=lambda: self._first,
            published=publishes(self.seat.algorithm),
            epoch=self._epoch,
            vouched=self._vouched,
            closing=self._closing,
        )
        wrong = knows.wrong_with(sender, envelope, epoch, hop)
        if wrong:
            raise RemoteProtocolError(
                f"peer {sender} sent a message of kind {envelope.kind} and number "
                f"{envelope.number}, {wrong}"
            )

    def _go_on(self, now: float, claim: Claim) -> list[Effect]:
        self._claim = None
        if claim.custody is None:
            self._last = self._number(claim.hop)
            if self.seat.seals is not None and claim.guard >= 0:
                self._guard = (claim.guard, self._last)  # who kept this token still does
            return self._pass_on(now, claim.hop)
        if claim.custody.row is None:
            return self._set_out(now)
        others = self._links.senders[self._links.senders != claim.custody.holder]
        number = self._number(claim.hop)
        target = self._anyone(number, others if len(others) else self._links.senders)
        return self._entrust(now, number, target, claim.custody.row)
