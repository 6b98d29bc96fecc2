"""Posts: what a peer says on the board, signed, and bound to the run, to its place in the protocol,
and to the past.

    entry hash:  h_0 = SHA-256("bruit board"),   h_i = SHA-256(h_{i-1} | SHA-256(body_i) | signature_i)

The signed body names the run, the author, the kind, and the length and head of the board its author
had seen. So every post is also a signed head: whoever changes, drops or reorders what was there
before makes it disagree. A slot is a pair (author, kind), and holds one post: two different ones,
both signed, convict their author.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bruit.errors import RemoteProtocolError

Sign = Callable[[bytes], bytes]
"""Signs bytes with an Ed25519 key, as `Identity.sign` does."""

FIRST_HEAD = hashlib.sha256(b"bruit board").digest()
SIGNATURE_BYTES = 64
LONGEST_KIND = 32  # letters
FURTHEST = 2**62  # position on a board


@dataclass(frozen=True, kw_only=True)
class Post:
    """One signed statement. `seen` and `head` are the length and head of the board when it was
    written."""

    run: bytes
    author: int
    kind: str
    seen: int
    head: bytes
    payload: str
    signature: bytes = b""

    @property
    def slot(self) -> tuple[int, str]:
        return self.author, self.kind

    def body(self) -> bytes:
        """What is signed."""
        parts = [self.run.hex(), self.author, self.kind, self.seen, self.head.hex(), self.payload]
        return json.dumps(parts, separators=(",", ":")).encode()

    def signed(self, sign: Sign) -> Post:
        return Post(
            run=self.run,
            author=self.author,
            kind=self.kind,
            seen=self.seen,
            head=self.head,
            payload=self.payload,
            signature=sign(_signed_bytes(self.body())),
        )

    def is_signed_by(self, key: str) -> bool:
        return is_signature(key, _signed_bytes(self.body()), self.signature)

    def to_bytes(self) -> bytes:
        """For sending: signature, then body."""
        return self.signature + self.body()

    @classmethod
    def from_bytes(cls, data: bytes) -> Post:
        """Read what `to_bytes` wrote; anything else is refused."""
        signature, body = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
        try:
            run, author, kind, seen, head, payload = json.loads(body)
            types = (type(author), type(kind), type(seen), type(payload)) == (int, str, int, str)
            types = types and kind.isascii() and len(kind) <= LONGEST_KIND and 0 <= seen < FURTHEST
            made = cls(
                run=bytes.fromhex(run),
                author=author,
                kind=kind,
                seen=seen,
                head=bytes.fromhex(head),
                payload=payload,
                signature=signature,
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise RemoteProtocolError(
                f"{len(data)} bytes are no post of a board: {error}"
            ) from None
        if not types or made.body() != body:
            raise RemoteProtocolError(
                f"{len(data)} bytes are no post of a board in its one canonical form"
            )
        return made


@dataclass(frozen=True)
class SignedHead:
    """Somebody's word that the board had this head at this length."""

    run: bytes
    signer: int
    length: int
    head: bytes
    signature: bytes = b""

    def _body(self) -> bytes:
        return b"bruit board head 1" + self.run + self.length.to_bytes(8, "big") + self.head

    def signed(self, sign: Sign) -> SignedHead:
        return SignedHead(self.run, self.signer, self.length, self.head, sign(self._body()))

    def is_signed_by(self, key: str) -> bool:
        return is_signature(key, self._body(), self.signature)


def next_head(head: bytes, post: Post) -> bytes:
    """The head of the board after this post."""
    return hashlib.sha256(head + hashlib.sha256(post.body()).digest() + post.signature).digest()


def is_signature(key: str, data: bytes, signature: bytes) -> bool:
    """Whether the owner of the Ed25519 key (hexadecimal) signed the data."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed_bytes(body: bytes) -> bytes:
    return b"bruit board post 1" + body
