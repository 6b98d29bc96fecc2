"""BoardFile: the bulletin board in one sqlite file, append-only; any peer keeps a copy, serves it
and audits it.

Tables: `entries` (position, post, head after it), `heads` (signed ones, from whoever vouches for
this history), and `evidence` (signed posts that disagree with what is in the chain: never thrown
away, since they convict somebody). `append` checks kind, size, signature, slot and past, and stores
nothing else; what a post may say at its stage is for `Record.admit` to ask before it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.kinds import OPEN, check_kind
from bruit.statistics.average.board.posts import FIRST_HEAD, Post, Sign, SignedHead, next_head

EVIDENCE_EACH = 2  # posts of one author: one convicts it
TABLES = """
create table if not exists entries
    (position integer primary key, author integer, kind text, post blob not null, head blob not null);
create index if not exists slots on entries (author, kind);
create table if not exists heads (signer integer, length integer, head blob, signature blob);
create table if not exists evidence (post blob unique);
"""


class BoardFile:
    """One copy of the board of one run. Use as a context manager, or `close` it.

    Every post is on the disk before `append` returns, unless `durable` is False: enough for a
    rehearsal."""

    def __init__(self, path: str | Path, read_only: bool = False, durable: bool = True) -> None:
        self.path = Path(path)
        self._agreement: AverageAgreement | None = None
        if read_only and not self.path.is_file():
            raise ConfigError(f"there is no board {self.path}")
        with self._reading():
            place = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._file = sqlite3.connect(place, uri=True, isolation_level=None)
            if not read_only:
                self._file.execute(f"pragma synchronous = {'full' if durable else 'off'}")
                self._file.executescript(TABLES)

    def __enter__(self) -> BoardFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def __len__(self) -> int:
        return int(self._rows("select count(*) from entries")[0][0])

    def head(self) -> bytes:
        """The hash of everything on this board."""
        rows = self._rows("select head from entries order by position desc limit 1")
        return bytes(rows[0][0]) if rows else FIRST_HEAD

    def posts(self, start: int = 0) -> list[Post]:
        """All posts from a position on: what is served to other copies."""
        return [post for post, _ in self.entries(start)]

    def entries(self, start: int = 0) -> list[tuple[Post, bytes]]:
        """Posts with the head that the file claims after each."""
        rows = self._rows(
            "select position, post, head from entries where position >= ? order by position", start
        )
        if [row[0] for row in rows] != list(range(start, start + len(rows))):
            raise RemoteProtocolError(
                f"{self.path} was tampered with: entries are missing between others"
            )
        try:
            return [(Post.from_bytes(_blob(post)), _blob(head)) for _, post, head in rows]
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{self.path} was tampered with: {error}") from None

    def agreement(self) -> AverageAgreement:
        """What the first post says."""
        if self._agreement is None:
            first = self._rows("select post from entries where position = 0")
            if not first:
                raise RemoteProtocolError(f"{self.path} is empty: no run was opened on it")
            self._agreement = opened_agreement(Post.from_bytes(_blob(first[0][0])))
        return self._agreement

    def append(self, post: Post) -> int:
        """Add a post and return its position; one that is already there is not added again.

        Refused: an unknown kind, one that is too long or not its author's to write, a wrong
        signature, another run, a past that is not this board's, and a second post in a slot; the
        last two are kept as evidence."""
        with self._writing():
            return self._append(post)

    def _append(self, post: Post) -> int:
        length, head = len(self), self.head()
        agreement = self.agreement() if length else opened_agreement(post)
        check_kind(post, agreement)
        check_signature(post, agreement)
        for position, old in self._rows(
            "select position, post from entries where author = ? and kind = ?", *post.slot
        ):
            if Post.from_bytes(_blob(old)) == post:
                return int(position)
            self.keep_evidence(post)
            raise RemoteProtocolError(
                f"peer {post.author} signed two different posts of kind {post.kind!r}; the second"
                " is kept as evidence"
            )
        if post.seen > length or post.head != self.head_at(post.seen):
            self.keep_evidence(post)
            raise RemoteProtocolError(
                f"the {post.kind!r} of peer {post.author} was written on another history of the"
                " board; it is kept as evidence"
            )
        row = (length, *post.slot, post.to_bytes(), next_head(head, post))
        self._file.execute("insert into entries values (?, ?, ?, ?, ?)", row)
        return length

    def head_at(self, length: int) -> bytes | None:
        """The head after the first `length` posts; None beyond the end."""
        rows = (
            self._rows("select head from entries where position = ?", length - 1)
            if length > 0
            else []
        )
        return bytes(rows[0][0]) if rows else (FIRST_HEAD if length == 0 else None)

    def extend(self, posts: Iterable[Post], start: int = 0) -> int:
        """Add what another copy serves from a position on; returns how many posts were new.

        A copy whose history is not this one's, in the same order, is refused, and what differs kept
        as evidence."""
        before = len(self)
        for position, post in enumerate(posts, start):
            if position >= before:
                same = self.append(post) == position
            else:
                (row,) = self._rows("select post from entries where position = ?", position)
                same = row[0] == post.to_bytes()
            if not same:
                self.keep_evidence(post)
                raise RemoteProtocolError(
                    f"the board that is served differs from {self.path} at entry {position};"
                    " compare both: bruit gopa verify --against"
                )
        return len(self) - before

    def keep_evidence(self, post: Post) -> None:
        """Up to a limit: one post convicts, and a flood of them must not fill the disk."""
        known = self.evidence()
        if post in known or sum(old.author == post.author for old in known) >= EVIDENCE_EACH:
            return
        with self._reading():
            self._file.execute("insert or ignore into evidence values (?)", (post.to_bytes(),))

    def evidence(self) -> list[Post]:
        return [Post.from_bytes(_blob(row[0])) for row in self._rows("select post from evidence")]

    def sign_head(self, signer: int, sign: Sign) -> SignedHead:
        """Vouch for the board as it is; whoever signs two heads of one length is convicted by
        them."""
        return self.add_head(
            SignedHead(self.agreement().run, signer, len(self), self.head()).signed(sign)
        )

    def add_head(self, signed: SignedHead) -> SignedHead:
        agreement = self.agreement()
        if not 0 <= signed.signer < agreement.peers or not signed.is_signed_by(
            agreement.keys[signed.signer]
        ):
            raise RemoteProtocolError(
                f"a head in the name of peer {signed.signer} does not carry its signature"
            )
        row = (signed.signer, signed.length, signed.head, signed.signature)
        with self._reading():
            self._file.execute("insert into heads values (?, ?, ?, ?)", row)
        return signed

    def heads(self) -> list[SignedHead]:
        run = self.agreement().run
        rows = self._rows("select signer, length, head, signature from heads")
        if not all(type(row[0]) is type(row[1]) is int and 0 <= row[1] < 2**62 for row in rows):
            raise RemoteProtocolError(f"{self.path} was tampered with: a signed head is no head")
        return [
            SignedHead(run, signer, length, _blob(head), _blob(signed))
            for signer, length, head, signed in rows
        ]

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._reading():
            return self._file.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, evidence included when it ends in a refusal; other processes wait for
        it."""
        with self._reading():
            self._file.execute("begin immediate")
        try:
            with self._reading():
                yield
        finally:
            with self._reading():
                self._file.execute("commit")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ConfigError(
                f"the board {self.path} cannot be used ({error}): damaged, or no board"
            ) from None


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise RemoteProtocolError(f"where bytes belong there is {type(value).__name__}")
    return value


def opened_agreement(post: Post) -> AverageAgreement:
    """The agreement in an opening post, which its organizer must have written, first of all."""
    if post.kind != OPEN:
        raise RemoteProtocolError(f"a board begins with the post {OPEN!r}, found {post.kind!r}")
    agreement = AverageAgreement.from_json(post.payload)
    if (
        post.author != agreement.organizer
        or post.run != agreement.run
        or (post.seen, post.head) != (0, FIRST_HEAD)
    ):
        raise RemoteProtocolError(
            "the opening of the board is not the organizer's, or belongs to another run"
        )
    return agreement


def check_signature(post: Post, agreement: AverageAgreement) -> None:
    """Refuse a post of another run, of nobody, or without its author's signature."""
    if post.run != agreement.run:
        raise RemoteProtocolError(
            f"the {post.kind!r} in the name of peer {post.author} belongs to another run"
        )
    if not 0 <= post.author < agreement.peers:
        raise RemoteProtocolError(
            f"there is no peer {post.author} in this run of {agreement.peers}"
        )
    if not post.is_signed_by(agreement.keys[post.author]):
        raise RemoteProtocolError(
            f"the {post.kind!r} in the name of peer {post.author} does not carry its signature:"
            " a wrong key, or a forgery"
        )
