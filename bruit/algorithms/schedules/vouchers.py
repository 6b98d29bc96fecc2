"""Vouchers: who may say that a walk has ended, or that it goes on in a new epoch.

Who hands a token on signs to whom, at which number and at which attempt ("vouch"), and shows the
voucher that it was itself given: for the hop before, or for one so near to it that the token may
have stayed with it since. So nobody can hand on a token of a hop that the walk has not come to, and
a peer can show, to people it has never spoken to, up to where it has really held the token:

    fence   is signed by who begins the epoch, and shows the voucher of the last token it was given
    end     is signed by the last holder, with a digest of the last token, and shows a voucher for the last hop, or for
            one so near to it that the token may have stayed with its holder since

Vouchers are ordered by (number, attempt): of two, the later one is nearer to where the token is.
One peer alone can therefore neither end a walk that is elsewhere, nor stop it by an epoch of its
own: who holds a later voucher objects (see `tokens`). Two that collude can vouch for each other;
nothing here tells them from a token.
"""

from __future__ import annotations

import hashlib
import math
import struct
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bruit.graphs import Graph

Bytes = NDArray[np.uint8]  # (1, length)
SEAL = 64  # bytes of a signature
VOUCH, FENCE, END = (
    struct.Struct("<q64sqqq64s"),
    struct.Struct("<qqq64s64s"),
    struct.Struct("<qqqq64s64s32s"),
)
KINDS = ("vouch", "fence", "end")  # of messages that hold a proof, and no value
NOBODY = -1  # who gave the token to its first holder
# a token that stays with its holder so often that this is the chance of it has not stayed
RARE = 1e-12


class Seals(ABC):
    """Signatures of one run; everybody knows whose is whose."""

    @abstractmethod
    def sign(self, text: str) -> bytes:
        """This peer's signature of a text."""

    @abstractmethod
    def check(self, peer: int, text: str, seal: bytes) -> bool:
        """Whether that peer has signed it."""


class Voucher(NamedTuple):
    """`giver` has handed the token of this number to the one who shows this, at this attempt."""

    giver: int
    number: int
    attempt: int
    seal: bytes

    @property
    def order(self) -> tuple[int, int]:
        return self.number, self.attempt


FIRST = Voucher(NOBODY, 0, 0, bytes(SEAL))  # what the first holder shows


def example(kind: struct.Struct) -> Bytes:
    """No row, but of the type and width of one."""
    return np.zeros((0, kind.size), np.uint8)


def row(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)[None].copy()


def handover(number: int, attempt: int, holder: int) -> str:
    """What a giver signs."""
    return f"token {number}, attempt {attempt}, to {holder}"


def beginning(epoch: int, shown: Voucher) -> str:
    """What the author of an epoch signs."""
    return f"fence {epoch}, after {shown.number}, attempt {shown.attempt}"


def ending(number: int, digest: bytes) -> str:
    """What the last holder signs."""
    return f"end {number}, token {digest.hex()}"


def deputy(graph: Graph, first: int) -> int | None:
    """Who begins the walk if its first holder dies before it has handed the token on: the first of
    its neighbors; nobody for one who has none."""
    around = graph.neighbors(first)
    others = around[around != first]
    return int(others[0]) if len(others) else None


def proven(holder: int, shown: Voucher, seals: Seals, graph: Graph, first: int, epoch: int) -> bool:
    """Whether that holder was given that token; the token of nobody is the first holder's, and its
    deputy's in epochs that the deputy has begun."""
    if shown.giver == NOBODY:
        began = epoch % graph.n == holder and holder == deputy(graph, first)
        return shown == FIRST and (holder == first or began)
    if not (0 <= shown.giver < graph.n and shown.giver in graph.neighbors(holder)):
        return False
    return seals.check(shown.giver, handover(shown.number, shown.attempt, holder), shown.seal)


def longest_stay(graph: Graph, holder: int) -> int:
    """How many hops in a row a token may stay with that holder."""
    around, weights = graph.row(holder)
    stays = float(weights[around == holder].sum())
    return (
        0
        if stays <= 0
        else 1000
        if stays >= 1
        else min(1000, int(math.log(RARE) / math.log(stays)))
    )


def too_far(holder: int, shown: Voucher, hop: int, graph: Graph, steps: int) -> bool:
    """Whether a token which that holder was given cannot have come to that hop without leaving
    it."""
    return shown.number % steps + longest_stay(graph, holder) + 1 < hop


def digest(token: Any) -> bytes:
    """A name of a token's content; of no token, zeros."""
    if token is None:
        return bytes(32)
    found = hashlib.sha256()
    for part in [token] if isinstance(token, np.ndarray) else list(token):
        found.update(
            f"{part.dtype.str} {part.shape};".encode() + np.ascontiguousarray(part).tobytes()
        )
    return found.digest()
