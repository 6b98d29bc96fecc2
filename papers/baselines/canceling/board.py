"""The board of GOPA as a machine: it lists who takes part, closes lists, and sums what is public
(perso:GOPA-1, 7).

    ready --> values --> openings --> closed

It holds no secret: anybody can run a copy on the same posts and find the same sum. A list once
closed stays closed: the masked value of a peer on the list of dropped ones is refused for ever, so
that nobody's masked value and exchanges are both public. Without rollback, or when somebody does
not open its exchanges, their noise stays in the mean, is counted, and is in the stated variance.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bruit.arrays import Words
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.graphs import Graph, from_edges
from bruit.privacy.theorems.gopa import residual_variance
from bruit.statistics.average.canceling.seeds import pair_noise
from bruit.statistics.average.canceling.simulation import SimulatedAverage
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.messages import (
    Alarm,
    Dropped,
    Effect,
    Failed,
    Masked,
    Message,
    Opened,
    Ready,
    Roster,
    Send,
    WakeAt,
)

Stage = Literal["new", "ready", "values", "openings", "closed"]


class Board:
    """One round; drive it with `begin`, `receive` and `wake`."""

    def __init__(self, terms: Terms, patience: float = 60.0, rollback: bool = True) -> None:
        self.terms, self.patience, self.rollback = terms, patience, rollback
        self.stage: Stage = "new"
        self.ready: dict[int, tuple[int, ...]] = {}
        self.partners: dict[int, tuple[int, ...]] = {}
        self.masked: dict[int, Words] = {}
        self.dropped: tuple[int, ...] = ()
        self.opened: dict[tuple[int, int], bytes] = {}
        self._answered: set[int] = set()

    def graph(self) -> Graph:
        """Who exchanged noise with whom, as both ends declared it: what the exact view is computed
        on."""
        if self.stage in ("new", "ready"):
            raise LocalProtocolError("the list of exchanges is not closed yet: there is no graph")
        return from_edges(
            self.terms.peers,
            [(u, v) for u, others in self.partners.items() for v in others if u < v],
        )

    def begin(self, now: float) -> list[Effect]:
        if self.stage != "new":
            raise LocalProtocolError("the board began twice")
        self.stage = "ready"
        return [WakeAt(now + self.patience, "ready")]

    def wake(self, now: float, alarm: Alarm) -> list[Effect]:
        """Patience ended: close the list of this stage; an alarm of an earlier stage says
        nothing."""
        if alarm != self.stage:
            return []
        if alarm == "ready":
            return self._list(now)
        return self._close_values(now) if alarm == "values" else self._finish()

    def receive(self, now: float, sender: int, message: Message) -> list[Effect]:
        """A post of a participant."""
        if not 0 <= sender < self.terms.peers:
            raise RemoteProtocolError(
                f"there is no peer {sender} in this round of {self.terms.peers}"
            )
        if isinstance(message, Ready):
            return self._take_ready(now, sender, message)
        if isinstance(message, Masked):
            return self._take_masked(now, sender, message)
        if isinstance(message, Opened):
            return self._take_opened(sender, message)
        raise RemoteProtocolError(
            f"peer {sender} posted {type(message).__name__}, which the board never expects"
        )

    def _take_ready(self, now: float, sender: int, message: Ready) -> list[Effect]:
        if self.stage != "ready" or sender in self.ready:
            return []
        if sender in message.partners or not all(
            0 <= v < self.terms.peers for v in message.partners
        ):
            raise RemoteProtocolError(
                f"peer {sender} declares exchanges with {message.partners}, which cannot be"
            )
        self.ready[sender] = message.partners
        return self._list(now) if len(self.ready) == self.terms.peers else []

    def _list(self, now: float) -> list[Effect]:
        """Close the list of participants: an exchange counts when both ends declared it."""
        if len(self.ready) < 2:
            self.stage = "closed"
            return [
                Failed(
                    f"{len(self.ready)} of {self.terms.peers} peers were ready in time; two are "
                    f"needed"
                )
            ]
        self.stage = "values"
        peers = tuple(sorted(self.ready))
        both = {u: frozenset(partners) for u, partners in self.ready.items()}
        self.partners = {
            u: tuple(v for v in sorted(both[u]) if u in both.get(v, ())) for u in peers
        }
        lists: list[Effect] = [Send(u, Roster(peers, self.partners[u])) for u in peers]
        return [*lists, WakeAt(now + self.patience, "values")]

    def _take_masked(self, now: float, sender: int, message: Masked) -> list[Effect]:
        if self.stage != "values" or sender not in self.partners or sender in self.masked:
            return []  # too late, not listed, or said before: refused
        words = np.asarray(message.words)
        if words.dtype != np.uint64 or words.shape != (self.terms.width,):
            raise RemoteProtocolError(
                f"peer {sender} posted {words.dtype} of shape {words.shape}, not"
                f" {self.terms.width} words of 64 bits"
            )
        self.masked[sender] = words
        return self._close_values(now) if len(self.masked) == len(self.partners) else []

    def _close_values(self, now: float) -> list[Effect]:
        """Close the list of dropped peers, before any exchange is opened."""
        self.dropped = tuple(u for u in self.partners if u not in self.masked)
        if not self.masked:
            self.stage = "closed"
            return [Failed("nobody published a masked value in time")]
        said: list[Effect] = [Send(u, Dropped(self.dropped)) for u in self.partners]
        self.stage = "openings"
        if not self.rollback or not self._waiting():
            return [*said, *self._finish()]
        return [*said, WakeAt(now + self.patience, "openings")]

    def _waiting(self) -> set[int]:
        """Peers that exchanged noise with a dropped one and have not answered."""
        return {
            u for u in self.masked if set(self.partners[u]) & set(self.dropped)
        } - self._answered

    def _take_opened(self, sender: int, message: Opened) -> list[Effect]:
        if self.stage != "openings" or sender not in self.masked or sender in self._answered:
            return []
        for other, key in message.keys:
            if other not in self.dropped or other not in self.partners[sender]:
                raise RemoteProtocolError(
                    f"peer {sender} opens its exchange with peer {other}, which did not drop out"
                )
            if len(key) != 16:
                raise RemoteProtocolError(
                    f"peer {sender} opens an exchange with a key of {len(key)} bytes, not 16"
                )
        self._answered.add(sender)
        self.opened.update({(sender, other): key for other, key in message.keys})
        return [] if self._waiting() else self._finish()

    def _finish(self) -> list[Effect]:
        self.stage = "closed"
        total = np.zeros(self.terms.width, np.uint64)
        for words in self.masked.values():
            total = total + words
        for (u, v), key in self.opened.items():
            total = total - pair_noise(key, u, v, self.terms)
        online = len(self.masked)
        edges = sum(len(set(self.partners[u]) & set(self.dropped)) for u in self.masked)
        residual = edges - len(self.opened)
        variance = residual_variance(self.terms.own_sigma, self.terms.pair_sigma, online, residual)
        mean = self.terms.field.decode(total) / online
        return [
            SimulatedAverage(
                mean=mean,
                online=tuple(sorted(self.masked)),
                dropped=self.dropped,
                residual=residual,
                variance=variance,
                total=total,
            )
        ]
