"""Who may say what about a token: words among real peers are believed only with vouchers of those
who handed the token on (`vouchers`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bruit.algorithms.schedules import vouchers
from bruit.algorithms.schedules.machine import Envelope
from bruit.algorithms.schedules.vouchers import Seals, Voucher
from bruit.graphs import Graph

AHEAD = 64  # epochs of everybody that may have begun without this peer hearing of them


@dataclass(frozen=True, eq=False, kw_only=True)
class Authority:
    """What peer `me` knows when it judges a message: the agreed walk, the present epoch, the last
    voucher of each neighbor, and the word that the walk has ended, if it was heard."""

    seals: Seals
    graph: Graph
    me: int
    steps: int
    first: Callable[[], int]  # who began the walk
    published: bool  # whether everybody is told the last token
    epoch: int
    vouched: Mapping[int, Voucher]
    closing: Envelope | None

    def wrong_with(self, sender: int, envelope: Envelope, epoch: int, hop: int) -> str:
        """Why nobody has vouched for this message; empty if somebody has, or nobody needs to."""
        if envelope.kind == "vouch":
            return self._wrong_voucher(sender, envelope, epoch, hop)
        if envelope.kind == "token":
            return self._wrong_token(sender, envelope, epoch)
        if envelope.kind == "fence" and epoch > self.epoch:
            return self._wrong_fence(envelope, epoch)
        if envelope.kind == "end":
            return self._wrong_end(envelope, epoch, hop)
        if envelope.kind == "result":
            return self._wrong_result(envelope, hop)
        return ""

    def _wrong_voucher(self, sender: int, envelope: Envelope, epoch: int, hop: int) -> str:
        attempt, seal, *own = vouchers.VOUCH.unpack(envelope.row.tobytes())
        given = Voucher(*own)
        if not self.seals.check(sender, vouchers.handover(envelope.number, attempt, self.me), seal):
            return "which it has not signed"
        if vouchers.too_far(sender, given, hop, self.graph, self.steps):
            return f"but shows that it was given hop {given.number % self.steps}"
        if not self._is_proven(sender, given, epoch):
            return "but was never given that token"
        return ""

    def _wrong_token(self, sender: int, envelope: Envelope, epoch: int) -> str:
        voucher = self.vouched.get(sender)
        if voucher is None or voucher.number != envelope.number:
            return "without a voucher"
        return "of an epoch that nobody has begun" if epoch > self.epoch else ""

    def _wrong_fence(self, envelope: Envelope, epoch: int) -> str:
        *shown, seal = vouchers.FENCE.unpack(envelope.row.tobytes())
        author, voucher = epoch % self.graph.n, Voucher(*shown)
        if epoch > self.epoch + AHEAD * self.graph.n:
            return f"{epoch - self.epoch} epochs ahead"
        signed = self.seals.check(author, vouchers.beginning(epoch, voucher), seal)
        if not (signed and self._is_proven(author, voucher, epoch)):
            return f"which peer {author} has not signed, or may not begin"
        return ""

    def _wrong_end(self, envelope: Envelope, epoch: int, hop: int) -> str:
        holder, *shown, seal, name = vouchers.END.unpack(envelope.row.tobytes())
        voucher = Voucher(*shown)
        if hop + 1 != self.steps or not 0 <= holder < self.graph.n:
            return f"but the walk has {self.steps} hops"
        if self.published == (name == vouchers.digest(None)):
            return f"but the last token is {'' if self.published else 'not '}published"
        if vouchers.too_far(holder, voucher, self.steps, self.graph, self.steps):
            return f"after hop {voucher.number % self.steps} of {self.steps}"
        if not (
            self._is_proven(holder, voucher, epoch)
            and self.seals.check(holder, vouchers.ending(envelope.number, name), seal)
        ):
            return f"which peer {holder} has not signed, or may not say"
        return ""

    def _wrong_result(self, envelope: Envelope, hop: int) -> str:
        if not self.published:
            return "but the last token is not published"
        if hop + 1 != self.steps:
            return f"the token of hop {hop} of {self.steps} as the result"
        if self.closing is None:
            return "before the word that the walk has ended"
        known = vouchers.END.unpack(self.closing.row.tobytes())[-1]
        same = known == vouchers.digest(envelope.row)
        return "" if same else "which is not what its last holder signed"

    def _is_proven(self, peer: int, voucher: Voucher, epoch: int) -> bool:
        """Whether the peer was handed the token that its voucher speaks of, in that epoch."""
        return vouchers.proven(peer, voucher, self.seals, self.graph, self.first(), epoch)
