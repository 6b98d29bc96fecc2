"""One participant of GOPA as a machine without clock, thread or socket (perso:GOPA-1, 7).

    exchanging --(all neighbors confirmed, or patience ends)--> ready --(roster)--> masked --(dropped)--> done
         \\------------------------ too few exchanges, or listed as dropped -----------------------> withdrawn

Two rules it keeps whatever it is sent:
1. It publishes at most once, and only with noise for exactly the exchanges that both ends declared.
2. It opens an exchange only after the list of dropped peers was closed, only for peers on it, never
   for one whose masked value it has seen, and never when too few peers are online: masked value and
   exchanges of one peer together would show its value behind its own noise alone. Messages may come
   in any order and more than once. Late keys are ignored; what nobody expects is a
   RemoteProtocolError. With `open` strangers are welcome while it is exchanging: whoever sends a
   key becomes a neighbor and is answered with one. If everybody begins with the k peers it picked
   itself (`papers.baselines.canceling.picks`), the k-out graph is built and its keys are
   exchanged at once; since another picker may always come, it waits until its patience ends
   (perso:GOPA-1, GOPA-2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from bruit.arrays import Array, Words
from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.randomness import Dice, Secure
from bruit.statistics.average.canceling.seeds import (
    ZERO,
    KeyPair,
    confirmation,
    confirmed,
    pair_noise,
    round_key,
)
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.messages import (
    Alarm,
    Confirm,
    Dropped,
    Effect,
    Exposed,
    Key,
    Masked,
    Message,
    Opened,
    Post,
    Posted,
    Ready,
    Roster,
    Send,
    WakeAt,
    Withdrawn,
)

Stage = Literal["new", "exchanging", "ready", "masked", "done", "withdrawn"]


def checked_value(value: Array, terms: Terms, peer: int) -> Array:
    """The value of a peer, refused when it is out of range: nothing is clipped in silence."""
    row = np.asarray(value, np.float64)
    if row.shape != (terms.width,):
        raise ConfigError(
            f"peer {peer} holds a value of shape {row.shape}, and the terms say ({terms.width},)"
        )
    if not np.isfinite(row).all():
        raise ConfigError(
            f"peer {peer} holds a nan or infinite number; look for missing values in its records"
        )
    norm = float(np.linalg.norm(row))
    if norm > terms.clip * (1 + 1e-12):
        raise ConfigError(
            f"the value of peer {peer} is out of range: its norm {norm:.6g} exceeds {terms.clip:g};"
            " clip it, or agree on a larger range"
        )
    return row


class Participant:
    """One peer in one round; drive it with `begin`, `receive` and `wake`."""

    def __init__(
        self,
        me: int,
        neighbors: Iterable[int],
        value: Array,
        terms: Terms,
        patience: float = 60.0,
        keys: KeyPair | None = None,
        dice: Dice | None = None,
        open: bool = False,
    ) -> None:
        self.me, self.terms, self.patience, self.open = me, terms, patience, open
        self.neighbors = tuple(sorted(set(neighbors)))
        if me in self.neighbors or not all(0 <= v < terms.peers for v in (me, *self.neighbors)):
            raise ConfigError(
                f"peer {me} cannot exchange noise with {list(self.neighbors)} among {terms.peers} "
                f"peers"
            )
        most = terms.peers - 1 if open else len(self.neighbors)
        if most > terms.degree:
            raise ConfigError(
                f"peer {me} may have {most} neighbors, and the terms leave room for {terms.degree}:"
                f" sums could overflow; agree on degree = {most}"
            )
        self.stage: Stage = "new"
        self._value = checked_value(value, terms, me)
        self._keys = KeyPair() if keys is None else keys
        self._dice = Secure() if dice is None else dice
        self._seeds: dict[int, bytes] = {}
        self._tags: dict[int, bytes] = {}
        self._confirmed: set[int] = set()
        self._roster: Roster | None = None
        self._posted: set[int] = set()

    def begin(self, now: float) -> list[Effect]:
        """Tell every neighbor the public key."""
        if self.stage != "new":
            raise LocalProtocolError(f"peer {self.me} began twice")
        self.stage = "exchanging"
        if not self.neighbors and not self.open:
            return self._declare()
        keys: list[Effect] = [Send(v, Key(self._keys.public)) for v in self.neighbors]
        return [*keys, WakeAt(now + self.patience, "exchange")]

    def wake(self, now: float, alarm: Alarm = "exchange") -> list[Effect]:
        """Patience ended: go on with the neighbors that answered."""
        return self._declare() if self.stage == "exchanging" and alarm == "exchange" else []

    def receive(self, now: float, sender: int | None, message: Message) -> list[Effect]:
        """React to a neighbor, or to the board (sender None)."""
        if self.stage == "new":
            raise LocalProtocolError(
                "a participant was handed a message before it began; keep messages until then"
            )
        if sender is not None and sender not in self.neighbors:
            return self._meet(sender, message)
        if isinstance(message, Key | Confirm) and sender is not None:
            return self._exchange(sender, message)
        if isinstance(message, Roster) and sender is None:
            return self._publish(message)
        if isinstance(message, Posted) and sender is None:
            self._posted.add(message.peer)
            return []
        if isinstance(message, Dropped) and sender is None:
            return self._open(message)
        source = "the board" if sender is None else f"peer {sender}"
        raise RemoteProtocolError(
            f"{source} sent {type(message).__name__}, which peer {self.me} never expects from it"
        )

    def _meet(self, sender: int, message: Message) -> list[Effect]:
        """A stranger picked me: a neighbor from now on, unless it comes too late."""
        known = 0 <= sender < self.terms.peers and sender != self.me
        if not (self.open and known and isinstance(message, Key)):
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.me}")
        if self.stage != "exchanging":
            return []
        said = self._exchange(
            sender, message
        )  # an unusable key is refused before its sender is a neighbor
        self.neighbors = tuple(sorted((*self.neighbors, sender)))
        return [Send(sender, Key(self._keys.public)), *said]

    def _exchange(self, sender: int, message: Key | Confirm) -> list[Effect]:
        if self.stage != "exchanging":
            return []  # too late: the exchange is not declared, and counts for neither end
        said: list[Effect] = []
        if isinstance(message, Confirm):
            self._tags.setdefault(sender, message.tag)
        elif sender not in self._seeds:
            self._seeds[sender] = self._keys.agree(
                self.me, sender, message.public, self.terms.digest
            )
            said.append(Send(sender, Confirm(confirmation(self._seeds[sender], self.me))))
        if sender in self._seeds and sender in self._tags and sender not in self._confirmed:
            if not confirmed(self._seeds[sender], sender, self._tags[sender]):
                raise RemoteProtocolError(
                    f"peer {sender} agreed on another seed (a wrong key, or other terms); nothing"
                    " of the value was sent"
                )
            self._confirmed.add(sender)
        complete = not self.open and len(self._confirmed) == len(self.neighbors)
        return said + (self._declare() if complete else [])

    def _declare(self) -> list[Effect]:
        self.stage = "ready"
        return [Post(Ready(tuple(sorted(self._confirmed))))]

    def _publish(self, roster: Roster) -> list[Effect]:
        if self.stage != "ready":
            return []
        strangers = set(roster.partners) - self._confirmed
        if strangers or self.me not in roster.peers:
            found = f"exchanges with {sorted(strangers)}" if strangers else "a list without it"
            raise RemoteProtocolError(
                f"the board gave peer {self.me} {found}, which it never declared"
            )
        self._roster = roster
        if len(roster.partners) < self.terms.partners:
            self.stage = "withdrawn"
            return [
                Withdrawn(
                    f"only {len(roster.partners)} exchanges are left, {self.terms.partners} were"
                    " asked for: little but its own noise would protect the value"
                )
            ]
        self.stage = "masked"
        return [Post(Masked(self._masked(roster.partners)))]

    def _masked(self, partners: tuple[int, ...]) -> Words:
        terms, field = self.terms, self.terms.field
        own = self._dice.normal("noise", ZERO + self.me, terms.number, 0, terms.width)[0]
        words = field.encode(self._value) + field.noise(own, terms.own_sigma)
        for v in partners:
            words = words + pair_noise(round_key(self._seeds[v], terms.number), self.me, v, terms)
        return words

    def _open(self, dropped: Dropped) -> list[Effect]:
        if self.stage == "ready" and self.me in dropped.peers:
            self.stage = "withdrawn"
            return [Withdrawn("the board closed its list before the masked value was there")]
        if self.stage != "masked" or self._roster is None:
            return []
        self.stage = "done"
        if self.me in dropped.peers:
            return [
                Exposed(
                    "the masked value was published, and still the board lists the peer as dropped:"
                    " if others open their exchanges with it, only its own noise protects it"
                )
            ]
        gone = set(dropped.peers) & set(self._roster.partners) - self._posted
        online = len(set(self._roster.peers) - set(dropped.peers))
        if not gone or online < self.terms.online:
            return []
        return [
            Post(
                Opened(
                    tuple((v, round_key(self._seeds[v], self.terms.number)) for v in sorted(gone))
                )
            )
        ]
