"""verify: a whole run judged from its board, offline, by anybody; whoever broke the rules is named.

The mean stands under six conditions. Every entry is signed and linked. All lists are what the posts
say. Every peer in the mean proved its value in range and its noise as drawn. Exchanges cancel or
are opened. The sum is right. Nobody in it equivocated. Peers that were caught and left out before
the sum do not spoil it, nor does what was refused at the door: their authors are named all the
same. Everybody in the mean signed the head of the board before anything was opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.board_file import BoardFile
from bruit.statistics.average.board.equivocation import contradictions
from bruit.statistics.average.board.findings import (
    INNOCENT,
    NOT_AGREED,
    NOT_STORED,
    REFUSED,
    BoardFinding,
)
from bruit.statistics.average.board.record import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """The verdict. `mean` is there only if it stands; `findings` are all broken rules, `caught` who
    broke them."""

    accepted: bool
    agreement: AverageAgreement
    findings: tuple[BoardFinding, ...]
    mean: Array | None  # (width,)
    online: tuple[int, ...]
    dropped: tuple[int, ...]
    posts: int
    head: bytes

    @property
    def caught(self) -> tuple[int, ...]:
        return tuple(
            sorted({f.peer for f in self.findings if f.peer is not None and f.kind not in INNOCENT})
        )

    @property
    def error(self) -> float:
        """Standard error of the mean that noise and rounding cause."""
        return self.agreement.error(max(1, len(self.online)))

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        rows = [
            {"peer": found.peer, "kind": found.kind, "text": found.text, "entry": found.position}
            for found in self.findings
        ]
        return {
            "accepted": self.accepted,
            "run": self.agreement.run.hex(),
            "title": self.agreement.title,
            "mean": None if self.mean is None else self.mean.tolist(),
            "standard_error": self.error,
            "peers": self.agreement.peers,
            "online": list(self.online),
            "dropped": list(self.dropped),
            "caught": list(self.caught),
            "findings": rows,
            "posts": self.posts,
            "head": self.head.hex(),
        }


def verify(
    board: BoardFile | str | Path,
    copies: Sequence[BoardFile | str | Path] = (),
    keys: Mapping[int, str] | None = None,
    run: bytes | None = None,
) -> Report:
    """Judge a board. `copies` of it, held by others, show who told them something else; `keys`
    (Ed25519, hexadecimal) and `run` are what the verifier knows from elsewhere: without them a
    board speaks for the keys it lists itself."""
    if not isinstance(board, BoardFile):
        with BoardFile(board, read_only=True) as opened:
            return verify(opened, copies, keys, run)
    agreement = board.agreement()
    record, findings = Record(agreement), list(_expected(agreement, keys, run))
    for position, (post, head) in enumerate(board.entries()):
        record.absorb(post)
        if record.heads[-1] != head:
            text = f"entry {position} does not hash to the head that the file claims: the file was tampered with"
            findings.append(BoardFinding(None, "tampered", text, position))
            break
    findings += record.findings
    with contextlib.ExitStack() as held:
        others = [
            copy
            if isinstance(copy, BoardFile)
            else held.enter_context(BoardFile(copy, read_only=True))
            for copy in copies
        ]
        findings += contradictions(board, record, others)
    if record.result is None:
        findings += _unfinished(record)
    return _report(record, findings, len(board))


def _report(record: Record, findings: Sequence[BoardFinding], posts: int) -> Report:
    inside = set(record.online()) | {record.agreement.organizer}
    guilty = [found for found in findings if found.kind not in (*INNOCENT, NOT_STORED)]
    spoiled = any(found.peer is None or found.peer in inside for found in guilty)
    accepted = record.result is not None and not spoiled
    mean = None
    if accepted and record.result is not None:
        mean = record.agreement.decode_mean(record.result.total, len(record.result.online))
    online, gone = record.online(), record.dropped or ()
    return Report(
        accepted=accepted,
        agreement=record.agreement,
        findings=tuple(findings),
        mean=mean,
        online=online,
        dropped=gone,
        posts=posts,
        head=record.heads[-1],
    )


def _expected(
    agreement: AverageAgreement, keys: Mapping[int, str] | None, run: bytes | None
) -> list[BoardFinding]:
    if run is not None and run != agreement.run:
        return [
            BoardFinding(
                None,
                "another run",
                f"this is the board of run {agreement.run.hex()}, not of {run.hex()}",
            )
        ]
    found = []
    for peer, key in sorted((keys or {}).items()):
        if not 0 <= peer < agreement.peers:
            raise ConfigError(
                f"a key is given for peer {peer}, but the peers are 0..{agreement.peers - 1}"
            )
        if agreement.keys[peer] != key.lower():
            text = f"the board lists another key for peer {peer} than the one you know: somebody speaks in its name"
            found.append(BoardFinding(None, "wrong key", text, 0))
    return found


def _unfinished(record: Record) -> list[BoardFinding]:
    """Why there is no result: who is waited for."""
    if record.sealed is not None and record.beacon() is None:
        missing = sorted(set(record.sealed) - set(record.coins))
        return [
            BoardFinding(
                u, "withheld coin", f"peer {u} did not reveal its coin: no public coins, no result"
            )
            for u in missing
        ]
    if record.dropped is not None and not record.is_agreed():
        return [_not_agreed(record, u) for u in record.online() if u not in record.agreed]
    if record.dropped is not None and (record.missing_masks() or record.missing_rollbacks()):
        masks = [
            BoardFinding(
                u, "withheld mask", f"peer {u} agreed, and then did not open its masked value"
            )
            for u in record.missing_masks()
        ]
        return masks + [
            BoardFinding(
                u, "withheld opening", f"peer {u} did not open its exchanges with dropped peers"
            )
            for u in record.missing_rollbacks()
        ]
    stages = {
        "list of participants": record.roster,
        "list of commitments": record.sealed,
        "list of dropped peers": record.dropped,
    }
    stage = next((word for word, done in stages.items() if done is None), "result")
    text = f"the board ends before its {stage}: the run stopped, or the board was cut off"
    return [BoardFinding(None, "unfinished", text)]


def _not_agreed(record: Record, peer: int) -> BoardFinding:
    """It left, or was shown another board, or its word was held back. Others may
    have been shown it, and opened theirs: this copy cannot tell."""
    if record.may_agree(peer):
        return BoardFinding(
            peer,
            NOT_AGREED,
            f"the word of peer {peer} that it agrees to this board is missing, and so nothing is opened"
            " on this copy",
        )
    return BoardFinding(
        peer,
        REFUSED,
        f"peer {peer} rightly keeps its exchanges with dropped peers closed: open, they would"
        " expose a value",
    )


def load_record(board: BoardFile) -> Record:
    """The record of a board as it is now, for a peer that joins or comes back."""
    record = Record(board.agreement())
    for post in board.posts():
        record.absorb(post)
    return record
