"""Stamps: what a peer's neighbors keep for it, so that a peer that was set back to an old state
finds out.

    stamp(receiver, sequence) = tag, sealed words
    words  = ledger lines so far, the life (start) in which the message was made
    tag    = HMAC(key 1; run, sender, receiver, sequence, words)       sealed words = words xor HMAC(key 2; tag)

The keys are derived from the peer's first identity key, which is not in the journal. Every message
carries its stamp; the receiver keeps the last one in its own journal and shows it back (`echo`)
with its receipts. Only this peer can have made it, and only this peer can read it: how often a peer
has released something is nobody else's business, since the path of a walk may be what hides people.

A receipt is then weighed. A valid stamp for a message that the journal does not know, or knows
otherwise, is a proof that the journal is an old copy (or that two processes live on copies of one
journal): the peer stops. A receipt beyond what was sent *without* a valid stamp is a lie, refused
and counted: no neighbor can stop a peer.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bruit.errors import BrokenStateError, ConfigError, RemoteProtocolError
from bruit.peers.journal.head import condemned
from bruit.peers.journal.journal import Journal
from bruit.peers.wire.codec import CONTROL, STAMP_BYTES, Frame, stamp_of
from bruit.peers.wire.identity import Identity

PLACE = struct.Struct("<32sqqq")  # run, sender, receiver, sequence
WORDS = struct.Struct("<q8s")  # ledger lines, life
TAG_BYTES = STAMP_BYTES - WORDS.size
NO_LIFE = bytes(8)  # of rehearsals, whose dice have no key of their own in every start


class Words(NamedTuple):
    """What a stamp tells the peer that made it."""

    lines: int  # of its ledger, when the message was made
    life: bytes  # which start made it


def stamp_keys(identity: Identity) -> bytes:
    """The keys of all stamps that this peer ever makes, 64 bytes for runs and 64 for rehearsals:
    they follow from its first key, and stay when that is changed. Else a copy from before the
    change could not read the stamps made after it, and nothing would stop it."""
    if identity.stamps:
        if len(identity.stamps) != 128:
            raise ConfigError(f"stamps.key of {identity.name} is damaged; put back the right file")
        return identity.stamps
    key = load_pem_private_key(identity.key, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"the key of {identity.name} is not a P-256 key")
    secret = key.private_numbers().private_value.to_bytes(32, "big")
    return b"".join(
        HKDF(SHA256(), 64, None, purpose).derive(secret)
        for purpose in (b"bruit stamps 1", b"bruit stamps 1, rehearsal")
    )


class Stamps:
    """Makes and reads the stamps of one peer in one run; those of a rehearsal say nothing about the
    real run."""

    def __init__(self, identity: Identity, run_id: str, me: int, rehearsal: bool = False) -> None:
        keys = stamp_keys(identity)[64 * rehearsal :][:64]
        self._tag_key, self._word_key = keys[:32], keys[32:]
        self._run, self._me = bytes.fromhex(run_id), me

    def make(self, to: int, sequence: int, lines: int, life: bytes) -> bytes:
        """The stamp of one message; the same bytes whenever it is made."""
        words = WORDS.pack(lines, life)
        tag = self._tag(to, sequence, words)
        return tag + self._veil(tag, words)

    def read(self, to: int, sequence: int, stamp: bytes) -> Words | None:
        """What a stamp says, if this peer made it for that message to that receiver; else None."""
        if len(stamp) != STAMP_BYTES:
            return None
        tag = stamp[:TAG_BYTES]
        words = self._veil(tag, stamp[TAG_BYTES:])
        return (
            Words(*WORDS.unpack(words))
            if hmac.compare_digest(tag, self._tag(to, sequence, words))
            else None
        )

    def _tag(self, to: int, sequence: int, words: bytes) -> bytes:
        place = PLACE.pack(self._run, self._me, to, sequence)
        return hmac.digest(self._tag_key, place + words, "sha256")[:TAG_BYTES]

    def _veil(self, tag: bytes, words: bytes) -> bytes:
        mask = hmac.digest(self._word_key, tag, "sha256")[: WORDS.size]
        return (int.from_bytes(words, "little") ^ int.from_bytes(mask, "little")).to_bytes(
            WORDS.size, "little"
        )


@dataclass
class Scale:
    """Weighs what neighbors say to have; `stop` is called once there is a proof that this journal
    is an old copy."""

    journal: Journal
    stamps: Stamps
    stop: Callable[[BrokenStateError], None]

    def weigh(self, peer: int, frame: Frame) -> None:
        """Take note of the receipt in a frame. RemoteProtocolError: a lie. BrokenStateError: the
        journal is an old copy, and the stop was called."""
        said, sent = frame.acknowledged, self.journal.last_sent(peer)
        if frame.kind in CONTROL and said > self.journal.confirmed(peer):
            words = self.stamps.read(peer, said, frame.echo)
            if words is not None and (said > sent or frame.echo != self._own(peer, said)):
                raise self._prove(peer, said, sent, words)
            if words is None and said <= sent:
                raise RemoteProtocolError(
                    f"peer {peer} acknowledges message {said} without the stamp it came with"
                )
        self.journal.acknowledge(peer, said)

    def _own(self, peer: int, sequence: int) -> bytes:
        """The stamp that this journal holds for a message which is not yet confirmed."""
        return stamp_of(next(self.journal.outbox(peer, sequence - 1))[1])

    def _prove(self, peer: int, said: int, sent: int, words: Words) -> BrokenStateError:
        known = f"knows {sent}" if said > sent else "knows another one at that place"
        why = (
            f"peer {peer} holds message {said} of this peer with a valid stamp, the journal "
            f"{known}; the ledger had "
            f"at least {words.lines} lines then, and has {self.journal.lines} here"
        )
        error = condemned(f"the journal {self.journal.path}", why)
        self.stop(error)
        return error
