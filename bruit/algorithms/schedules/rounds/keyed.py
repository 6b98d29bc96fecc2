"""Rounds whose first word hides under canceling noise: real neighbors agree on keys before it
(perso:GOPA-1).

    Delta_uv = +- discrete Gaussian noise of a cipher keyed by HKDF( X25519(K_u, K_v) ),    + for the smaller number

Every start has a key in memory. A peer shows it to each neighbor, with the key it holds of that
one (a pact). When the last pact of every neighbor holds the key of its present start, and not
before, a peer reads its value, draws the noise, and speaks; then rounds go on as usual.

    one key pair    if both ends speak, both used the same two keys: who has spoken changes its keys
                    no more, and pacts come in order
    said once       the masked value is in the journal beside the input that caused it. A later start,
                    which has another key, says it again as it is; it draws nothing in its place
    nothing spoken  a peer that starts again before it has spoken shows a new key. If a neighbor has
                    spoken by then, its noise is against the old key, and nobody can cancel it: this
                    peer releases nothing, for good. Nothing of it was spent
    all or none     without a pact of every neighbor it releases nothing, and gives up

Who sees what: a neighbor sees keys, its own exchanges, and masked values. Who dies between its pact
and its first word leaves noise in the sum of the others: the mean is off, nobody's privacy is.
What a peer says it has spent counts on its own noise only (local DP), whoever is missing.
Hypotheses, of what colluders cannot see: nobody breaks X25519, HKDF or AES.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.masks import pair_dice
from bruit.algorithms.messages import take
from bruit.algorithms.schedules.machine import Alarm, Effect, Envelope, GaveUp, Send
from bruit.algorithms.schedules.peer import ONE, Seat
from bruit.algorithms.schedules.rounds.pact import EXAMPLE, NO_KEY, made, read
from bruit.algorithms.schedules.rounds.peer import RoundPeer, Word
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import LocalProtocolError, RemoteProtocolError

STARTS = 256  # keys of one neighbor that are answered: no honest one starts more often meanwhile
PATIENCE = 2  # so many timeouts for the keys of all neighbors, who are there already


class KeyedRoundPeer(RoundPeer):
    """One real peer of an algorithm whose first word hides under canceling noise."""

    kinds: ClassVar[tuple[str, ...]] = (*RoundPeer.kinds, "pact")
    derived: ClassVar[tuple[str, ...]] = (*RoundPeer.derived, "_uttered", "_recited")
    keyed: ClassVar[bool] = True

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.key, self.starts = NO_KEY, 0
        self.agreeing = False  # begun, and not yet spoken
        self.lost: tuple[int, ...] = ()  # who spoke against a key of this peer that is gone
        self._others: list[int] = []  # the neighbors of the first round
        self._tired = False  # this start has waited long enough
        self._theirs: dict[int, bytes] = {}  # the last key that each neighbor showed
        self._agreed: set[int] = set()  # who holds the present key of this peer
        self._shown: dict[int, int] = {}  # how many keys each neighbor has shown
        self._uttered: list[Envelope] = []  # words that no later start can make again
        self._recited: list[Envelope] = []  # those of an earlier start, to be said again

    @property
    def listening(self) -> bool:
        return self.agreeing or super().listening

    def row_of(self, kind: str) -> Any:
        return EXAMPLE if kind == "pact" else super().row_of(kind)

    def value_of(self, envelope: Envelope) -> Any:
        return None if envelope.kind == "pact" else super().value_of(envelope)

    def reads_on(self, until: float) -> bool:
        return (self.agreeing and not self.lost) or super().reads_on(until)

    def uttered(self) -> list[Envelope]:
        found, self._uttered = self._uttered, []
        return found

    def recite(self, envelope: Envelope) -> None:
        self._recited.append(envelope)

    def told(self) -> dict[str, Any]:
        """With whom this peer shares noise, and whose noise it could not cancel."""
        return {
            "noise_shared_with": [] if self.state is None else sorted(self._agreed),
            "noise_against_lost_keys": list(self.lost),
        }

    # keys

    def begin(self, now: float) -> list[Effect]:
        self._links = self._around(0)
        self._others = [int(peer) for peer in self._links.senders]
        if not (self.seat.steps and self._others):
            return super().begin(now)
        self.example, self.agreeing = self.expected(), True
        return self._show(now)

    def renew(self, now: float, key: bytes) -> list[Effect]:
        """A new start has a new key. Who has spoken needs none any more; else all pacts are made
        again."""
        if self.state is not None:
            return []
        self.key, self.starts = key, self.starts + 1
        self._agreed, self._tired = set(), False
        self.lost = self.lost or tuple(sorted(self._spoke))
        return self._show(now) if self.agreeing else []

    def _show(self, now: float) -> list[Effect]:
        if self.lost:
            return [self._orphaned()]
        pacts = [self._pact(peer) for peer in self._others]
        return [*pacts, *self._patience(now, "grace", self.starts, PATIENCE)]

    def _pact(self, peer: int) -> Effect:
        held = self._theirs.get(peer, NO_KEY)
        row = made(self.seat.me, peer, self.key, held, self.seat.seals)
        return Send(peer, Envelope("pact", self.starts, row))

    def _take_pact(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if sender not in self._others:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")
        key, held = read(sender, self.seat.me, envelope.row, self.seat.seals)
        if not self._usable(key):
            raise RemoteProtocolError(f"peer {sender} shows a key that hides nothing")
        if sender in self._spoke:
            raise RemoteProtocolError(f"peer {sender} shows another key after it has spoken")
        if self.state is not None or self.lost or self._tired:
            return []  # too late: it finds out when it hears what was said
        effects: list[Effect] = []
        if self._theirs.get(sender) != key:
            self._shown[sender] = self._shown.get(sender, 0) + 1
            if self._shown[sender] > STARTS:
                raise RemoteProtocolError(f"peer {sender} shows more than {STARTS} keys")
            self._theirs[sender] = key
            effects.append(self._pact(sender))
        self._agreed = self._agreed | {sender} if held == self.key else self._agreed - {sender}
        return [*effects, *self._speak_if_agreed(now)]

    def _usable(self, key: bytes) -> bool:
        door = self.seat.door
        return not isinstance(door, TaskDoor) or door.masks is None or door.masks.usable(key)

    def _speak_if_agreed(self, now: float) -> list[Effect]:
        if self._agreed != set(self._others):
            return []
        self._start(False)
        self.agreeing = False
        return [*self._speak(now), *self._go_on(now)]

    def _start(self, last: bool) -> None:
        """The masked value: made now, or, if an earlier start has said it, as that one said it. Its
        key is gone, so what is made in its place is nothing."""
        door = self.seat.door
        if not isinstance(door, TaskDoor) or door.masks is None or last:
            super()._start(last)
            return
        secrets = {
            peer: door.masks.secret(self.seat.me, peer, self._theirs[peer]) for peer in self._others
        }
        pairs = {peer: pair_dice(secret) for peer, secret in secrets.items()}
        self.state = self._begun(self._home(0, last, replace(door, pairs=pairs)))
        row = take(self._say(self._links).rows, ONE)
        if self._recited:
            known = self._recited.pop(0)
            if known.number != 0 or np.shape(known.row) != np.shape(row):
                raise LocalProtocolError(
                    f"peer {self.seat.me} has said other words than those of its first round"
                )
            row = known.row
        else:
            self._uttered.append(Envelope("round", 0, row))
        self.state = self.seat.algorithm.retold(row)
        self.example = take(self._say(self._links).rows, ONE[:0])

    def _orphaned(self) -> Effect:
        names = ", ".join(f"peer {peer}" for peer in self.lost)
        return GaveUp(
            f"stopped before it spoke: {names} spoke under noise against a key of this peer that "
            "went with an earlier start, and nothing can cancel it; nothing was released and "
            "nothing was spent, and the mean of the others is off by that noise"
        )

    # inputs

    def hear(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if self.state is None and self.agreeing:
            self._check(sender, envelope)
            self._check_order(sender, envelope)
            return self._handle(now, sender, envelope)
        return super().hear(now, sender, envelope)

    def receive(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if self.state is None and self.agreeing:
            self._check(sender, envelope)
            return self._handle(now, sender, envelope)
        return super().receive(now, sender, envelope)

    def _check_order(self, sender: int, envelope: Envelope) -> None:
        if envelope.kind != "pact":
            super()._check_order(sender, envelope)

    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if envelope.kind == "pact":
            return self._take_pact(now, sender, envelope)
        if self.state is not None:
            return super()._handle(now, sender, envelope)
        return self._keep_word(sender, envelope)

    def _keep_word(self, sender: int, envelope: Envelope) -> list[Effect]:
        """A neighbor has spoken already. That is well if it holds the present key of this peer."""
        number = envelope.number
        if number >= self.seat.steps or sender not in self._around(number).senders:
            raise RemoteProtocolError(
                f"peer {sender} is no neighbor of peer {self.seat.me} in round {number}"
            )
        self._heard.setdefault(number, {}).setdefault(
            sender, Word(envelope.row, envelope.kind == "apart")
        )
        self._spoke[sender] = max(number, self._spoke.get(sender, -1))
        if sender in self._agreed or self.lost:
            return []
        self.lost = (sender,)
        return [self._orphaned()]

    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        if alarm != "grace":
            return super()._ring(now, alarm, number)
        if not self.agreeing or self.lost or number != self.starts:
            return []
        self._tired = True
        away = [f"peer {peer}" for peer in self._others if peer not in self._agreed]
        return [
            GaveUp(
                f"stopped before it spoke: no keys for canceling noise with {', '.join(away)}; "
                "nothing was released and nothing was spent"
            )
        ]

    def wake(self, now: float, alarm: Alarm = "call", number: int = 0) -> list[Effect]:
        if self.state is None and self.agreeing:
            return self._ring(now, alarm, number)
        return super().wake(now, alarm, number)
