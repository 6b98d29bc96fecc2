"""Equivocation: two signed statements that cannot both be honest, found by laying boards side by
side.

- Two different posts of one author for one slot convict the author, and spoil the mean if both
  stand on boards.
- Two signed heads of the same length convict their signer: one who keeps a copy only ever extends
  it.
- Copies whose histories part without such a pair show that somebody served two versions, and from
  which entry on.

Evidence is what the file kept of refused posts, the copies given, and the heads that posts and
peers signed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bruit.errors import RemoteProtocolError
from bruit.statistics.average.board.board_file import BoardFile, check_signature
from bruit.statistics.average.board.findings import NOT_STORED, BoardFinding
from bruit.statistics.average.board.posts import Post
from bruit.statistics.average.board.record import Record


def contradictions(
    board: BoardFile, record: Record, copies: Sequence[BoardFile]
) -> list[BoardFinding]:
    """Everything on this board and its copies that contradicts this board."""
    found: dict[tuple[int | None, str, str], BoardFinding] = {}
    for source in (board, *copies):
        if source is not board and source.agreement().run != record.agreement.run:
            text = f"{source.path} is the board of another run"
            found[None, "another run", text] = BoardFinding(None, "another run", text)
            continue
        posts = source.posts() if source is not board else []
        for finding in (
            *_against_posts(record, posts),
            *_refused(record, source.evidence()),
            *_against_heads(record, source),
            *_parting(record, source),
        ):
            found.setdefault((finding.peer, finding.kind, finding.text), finding)
    return list(found.values())


def _against_posts(record: Record, posts: Sequence[Post]) -> Iterator[BoardFinding]:
    for post in posts:
        try:
            check_signature(post, record.agreement)
        except RemoteProtocolError:
            continue  # anybody can write an unsigned post: it proves nothing
        recorded = record.said.get(post.slot)
        if recorded is not None and recorded != post:
            yield BoardFinding(
                post.author,
                "equivocation",
                f"peer {post.author} signed two different posts {post.kind!r}",
            )


def _refused(record: Record, posts: Sequence[Post]) -> Iterator[BoardFinding]:
    """A second post that no board holds convicts its author, and cannot take back what all others
    have agreed to: a mean would else stand or fall with anybody's last word. What the organizer
    signed twice is another board."""
    for found in _against_posts(record, posts):
        theirs = found.peer == record.agreement.organizer
        yield (
            found
            if theirs
            else BoardFinding(found.peer, NOT_STORED, f"{found.text}; the second was refused")
        )


def _against_heads(record: Record, source: BoardFile) -> Iterator[BoardFinding]:
    signed: dict[tuple[int, int], bytes] = {}
    for head in source.heads():
        if not 0 <= head.signer < record.agreement.peers or not head.is_signed_by(
            record.agreement.keys[head.signer]
        ):
            continue
        known = record.heads[head.length] if head.length <= record.length else None
        other = signed.setdefault((head.signer, head.length), head.head)
        mine = _own_heads(record, head.signer).get(head.length, other)
        if other != head.head or mine != head.head:
            yield BoardFinding(
                head.signer,
                "equivocation",
                f"peer {head.signer} signed two heads of length {head.length}",
            )
        elif known != head.head:
            yield BoardFinding(
                None,
                "history",
                f"peer {head.signer} vouches for a board of {head.length} entries that is"
                " not this one: it was cut off, or shown in two versions",
            )


def _own_heads(record: Record, peer: int) -> dict[int, bytes]:
    """Heads that a peer signed with its posts on this board."""
    return {post.seen: post.head for post in record.said.values() if post.author == peer}


def _parting(record: Record, source: BoardFile) -> Iterator[BoardFinding]:
    """Where a copy's history leaves this one; being shorter is no contradiction, being longer is
    one."""
    heads = [head for _, head in source.entries()]
    for position, head in enumerate(heads):
        if position + 1 > record.length:
            yield BoardFinding(
                None,
                "history",
                f"{source.path} has {len(heads)} entries, this board {record.length}: it was"
                " cut off",
                position,
            )
            return
        if head != record.heads[position + 1]:
            yield BoardFinding(
                None,
                "history",
                f"{source.path} differs from this board from entry {position} on",
                position,
            )
            return
