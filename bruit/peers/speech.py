"""Speech: what a host says, from the word of its machine to the bytes in the outbox.

Each message says how far its receiver has been heard (a receipt that needs no frame of its own),
carries a stamp of this life of the peer, and has its place in the journal before it leaves. A row
that goes to several neighbors is encoded once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from bruit.algorithms.messages import row_bytes
from bruit.algorithms.schedules.machine import Send
from bruit.algorithms.schedules.peer import PeerMachine
from bruit.algorithms.schedules.vouchers import KINDS as PROOFS
from bruit.peers.journal.journal import Journal
from bruit.peers.journal.receipts import Receipts
from bruit.peers.journal.step import Step
from bruit.peers.wire.codec import Conversation, Frame, Limits, encode_parts
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.stamps import NO_LIFE, Stamps
from bruit.privacy.ledger import Ledger

log = logging.getLogger("bruit.peers")
HOARD = 256 * 2**20  # bytes kept for an absent neighbor, from which on the operator hears of them


@dataclass(kw_only=True)
class Speech:
    """The messages of one peer; what it counts is kept over a restart."""

    machine: PeerMachine
    journal: Journal
    ledger: Ledger
    stamps: Stamps
    voice: Conversation
    limits: Limits
    receipts: Receipts = field(default_factory=Receipts)
    sent: int = 0  # messages put into the outbox; see `receipts` for those that arrived
    payloads: int = 0  # how many of those carried values
    payload_bytes: int = 0
    life: bytes = NO_LIFE  # a name for this start
    volume: int = 0  # bytes of messages of the step under way
    spoken_to: set[int] = field(default_factory=set)  # to whom this step says something
    # up to which message of a peer our words to it are a receipt
    carried: dict[int, int] = field(default_factory=dict)
    _last: tuple[Any, bytes] = (None, b"")  # the last row that was said, and its bytes
    _warned: SaidOnce = field(default_factory=lambda: SaidOnce(log))

    def post(self, effect: Send, step: Step | None) -> None:
        """Into the outbox; when inputs are executed again it is there already."""
        self.spoken_to.add(effect.to)
        self._count(effect)
        if step is not None:
            self._write(effect, step)

    def committed(self) -> set[int]:
        """The step is in the journal: to whom its messages may leave."""
        spoken_to, self.spoken_to = self.spoken_to, set()
        return spoken_to

    def _count(self, effect: Send) -> None:
        self.sent += 1
        proof = effect.envelope.kind in PROOFS
        value = None if proof else self.machine.value_of(effect.envelope)
        self.receipts.posted(effect.to, 0 if value is None else self.ledger.calls)
        if value is not None:
            self.payloads += 1
            self.payload_bytes += row_bytes(value)

    def _write(self, effect: Send, step: Step) -> None:
        to, row = effect.to, effect.envelope.row
        heard, place = step.last_sequence(to), step.next_sequence(to)
        stamp = self.stamps.make(to, place, self.ledger.calls, self.life)
        frame = Frame.of(self.voice, place, effect.envelope, heard, stamp)
        known = self._last[1] if row is not None and row is self._last[0] else None
        head, body = encode_parts(frame, known, self.limits)
        self._warn_of_full_outbox(to, place, len(head) + len(body))
        self.volume += len(head) + (len(body) if known is None else 0)
        step.send(to, head, body)
        self._last, self.carried[to] = (row, body), heard

    def _warn_of_full_outbox(self, to: int, sequence: int, size: int) -> None:
        """All messages that an absent neighbor has not confirmed are kept on disk: the operator
        hears of it when they are many."""
        kept = sequence - self.journal.confirmed(to)
        if kept * size > HOARD:
            self._warned.warn(
                (to, "outbox"),
                "peer %d is away: %d messages for it, some %d MiB, are kept on disk "
                "until it comes back",
                to,
                kept,
                kept * size // 2**20,
            )
