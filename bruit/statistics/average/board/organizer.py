"""The organizer: the peer that opens a board and closes its lists. It holds no secret, and what it
lists is checked.

It may hold posts back, and show different boards to different peers: then nobody has agreed to one
of them, nothing is opened, and there is no mean. It cannot make two boards of what honest peers
opened (`record`)."""

from __future__ import annotations

from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.kinds import OPEN
from bruit.statistics.average.board.payloads import list_text
from bruit.statistics.average.board.posts import FIRST_HEAD, Post, Sign
from bruit.statistics.average.board.record import Record


class Organizer:
    """Closes a list when everybody is on it, or when it is told that patience ended."""

    def __init__(self, agreement: AverageAgreement, sign: Sign) -> None:
        self.agreement, self._sign = agreement, sign

    def open(self) -> Post:
        """The first post: the agreement itself."""
        return self._post(OPEN, self.agreement.to_json(), 0, FIRST_HEAD)

    def next(self, record: Record, patience_ended: bool = False) -> list[Post]:
        """The list that can be closed now, or the result; nothing if there is something to wait
        for.

        Append it to the board before any other post: a list must hold everything that stands before
        it."""
        found = self._next(record, patience_ended)
        if found is None or (self.agreement.organizer, found[0]) in record.said:
            return []
        return [self._post(*found, record.length, record.heads[-1])]

    def _post(self, kind: str, payload: str, seen: int, head: bytes) -> Post:
        return Post(
            run=self.agreement.run,
            author=self.agreement.organizer,
            kind=kind,
            seen=seen,
            head=head,
            payload=payload,
        ).signed(self._sign)

    def _next(self, record: Record, ended: bool) -> tuple[str, str] | None:
        if record.roster is None:
            closing = len(record.joins) == self.agreement.peers or (ended and len(record.joins) > 1)
            return ("roster", list_text(tuple(sorted(record.joins)))) if closing else None
        if record.sealed is None:
            return self._seal(record, ended)
        if record.dropped is None:
            closing = record.beacon() is not None and (
                ended or set(record.proofs) == set(record.sealed)
            )
            if not closing:
                return None
            faults = record.proof_faults()
            gone = tuple(u for u in record.sealed if u not in record.proofs or u in faults)
            return ("dropped", list_text(gone)) if len(gone) < len(record.sealed) else None
        total = record.total()
        return ("result", total.text()) if total is not None else None

    def _seal(self, record: Record, ended: bool) -> tuple[str, str] | None:
        blamed = all(
            (u, v) in record.blames or (v, u) in record.blames for u, v in record.mismatches
        )
        if not ended and not (set(record.commits) == set(record.roster or ()) and blamed):
            return None
        kept = sorted(set(record.commits) - set(record.pair_cheaters()))
        return ("sealed", list_text(tuple(kept))) if len(kept) > 1 else None
