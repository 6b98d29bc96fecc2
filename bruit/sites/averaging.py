"""A verified average between real processes: one organizer who serves the board, and everybody else (perso:GOPA-1, 9).

Every participant keeps its own copy of the board, checks it post by post, and says what its prover says. The organizer
is a participant too; it closes a list when everybody is on it, or when `patience` seconds have passed. What a peer pays
is written down before its masked value leaves. A process that dies takes its secrets with it: it cannot come back into
the same run, and the others go on without it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bruit.arrays import Array
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.network.address_book import AddressBook
from bruit.network.identity import Identity
from bruit.sites.board_service import BoardLine, BoardService, packed, unpacked
from bruit.verification.agreement import Agreement
from bruit.verification.board_file import OPEN, BoardFile, opened_agreement
from bruit.verification.organizer import Organizer
from bruit.verification.posts import Post, SignedHead
from bruit.verification.prover import Prover
from bruit.verification.record import Record
from bruit.verification.verify import Report, verify
from bruit.whole_files import write_whole

JOINED = "runs.txt"  # in the folder of an identity: the runs it took part in
PAUSE = 0.05  # seconds between two looks at the board
Spend = Callable[[Sequence[int]], None]  # given the peers that committed, whose noise will hide the value
Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Seat:
    """One's own place: keys, book, number, value, where the copy of the board goes, and how long lists stay open.

    spend: called with the peers that committed before the masked value leaves, to write the price down; it may refuse.
    `bruit.privacy.spent_file.unrecorded` is for data one may lose.
    """

    folder: Path
    book: AddressBook
    me: int
    value: Array = field(repr=False)
    board: Path
    patience: float = 60.0
    tell: Tell = lambda stage: None
    spend: Spend = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.board.exists():
            raise ConfigError(f"{self.board} exists; a board is written once: choose another file")
        if not self.patience > 0:
            raise ConfigError(f"patience is a positive number of seconds, found {self.patience}")


def seat_of(folder: Path, book: AddressBook) -> int:
    """The number under which the address book lists the identity in that folder."""
    found = book.by_fingerprint(Identity.load(folder).fingerprint())
    if found is None:
        raise ConfigError(f"the address book does not list the identity in {folder}; send its public.toml to the others"
                          " and merge again")  # fmt: skip
    return found.peer


def average(seat: Seat, wanted: Agreement) -> Report:
    """Take part from beginning to end, then verify one's own copy of the board.

    `wanted` is what this participant agreed to; all but its nonce must be what the organizer opens the board with.
    """
    if seat.me == wanted.organizer:
        asyncio.run(_organize(seat, wanted))
    else:
        asyncio.run(_join(seat, wanted))
    return verify(seat.board)


class _Copy:
    """One's own copy of the board, and the record of what it says."""

    def __init__(self, seat: Seat, agreement: Agreement) -> None:
        self.seat, self.agreement = seat, agreement
        self.file, self.record = BoardFile(seat.board), Record(agreement)
        identity = Identity.load(seat.folder)
        self.sign = identity.sign
        self.prover = Prover(agreement, seat.me, seat.value, identity.sign)
        self._told, self._own = "", set[bytes]()
        _remember(seat.folder / JOINED, agreement.run)

    def take(self, post: Post) -> None:
        """Into the copy and the record; a post that is there already changes nothing."""
        if post.author == self.seat.me and post.kind != OPEN and post.to_bytes() not in self._own:
            raise ConfigError(f"peer {post.author} took part in this run before, and its secrets died with that"
                              " process; start a new run")  # fmt: skip
        if self.file.append(post) == self.record.length:
            self.record.absorb(post)
        stage = _stage(self.record)
        if stage != self._told:
            self._told = stage
            self.seat.tell(stage)

    def next(self) -> list[Post]:
        """What this participant says now; a masked value is paid for first."""
        return self.own(self.prover.next(self.record))

    def own(self, posts: list[Post]) -> list[Post]:
        """Posts of this process, remembered; one that is sent again is not paid for again."""
        if any(post.kind == "mask" and post.to_bytes() not in self._own for post in posts):
            self.seat.spend(self.record.sealed or ())
        self._own.update(post.to_bytes() for post in posts)
        return posts

    def hear(self, signed: SignedHead) -> None:
        """Keep a head that somebody signed, once. One of another board would spoil this one for everybody on the word
        of its signer alone; who was shown another board has the copy that proves it."""
        if self.file.head_at(signed.length) != signed.head:
            raise RemoteProtocolError(f"peer {signed.signer} vouches for a board of {signed.length} posts that is not"
                                      " this one; compare copies: bruit gopa verify --against")  # fmt: skip
        if signed not in self.file.heads():
            self.file.add_head(signed)

    def vouched(self) -> SignedHead:
        return self.file.sign_head(self.seat.me, self.sign)


def _remember(path: Path, run: bytes) -> None:
    """Write the run down before the first word: two sessions under one name would look like a peer that lies."""
    known = path.read_text().split() if path.exists() else []
    if run.hex() in known:
        raise ConfigError(f"this identity took part in run {run.hex()[:16]} before; start a new run")
    write_whole(path, lambda stream: stream.write("\n".join([*known, run.hex(), ""]).encode()))


def _stage(record: Record) -> str:
    n = record.agreement.peers
    if record.roster is None:
        return f"{len(record.joins)} of {n} are there"
    if record.sealed is None:
        return f"{len(record.commits)} of {len(record.roster)} have committed"
    if record.dropped is None:
        return f"{len(record.masks)} of {len(record.sealed)} masked values"
    if record.result is not None:
        return "done"
    return f"opening exchanges with {len(record.dropped)} who left" if record.dropped else "summing"


async def _organize(seat: Seat, agreement: Agreement) -> None:
    copy = _Copy(seat, agreement)
    organizer = Organizer(agreement, copy.sign)
    copy.take(organizer.open())
    service = BoardService(seat.folder, seat.book, copy.file.posts, copy.take, copy.hear, agreement.run)
    server = await service.serve(seat.book.entry(seat.me))
    try:
        await _close_lists(copy, organizer, seat.patience)
        copy.vouched()
        await _linger(copy, service, seat)
    finally:
        server.close()
        copy.file.close()


async def _close_lists(copy: _Copy, organizer: Organizer, patience: float) -> None:
    """Until there is a result: every list has its own patience, and as much again before all is given up."""
    since = time.monotonic()
    while copy.record.result is None:
        waited = time.monotonic() - since
        posts = copy.next() or copy.own(organizer.next(copy.record, waited > patience))
        for post in posts:
            copy.take(post)
        if any(post.kind in ("roster", "sealed", "dropped") for post in posts):
            since = time.monotonic()
        elif waited > 2 * patience:
            raise RemoteProtocolError(f"nobody goes on ({_stage(copy.record)}) and patience ended: there is no mean")
        if not posts:
            await asyncio.sleep(PAUSE)


async def _linger(copy: _Copy, service: BoardService, seat: Seat) -> None:
    """Serve until everybody who took part has the whole board, or patience ends."""
    deadline = time.monotonic() + min(seat.patience, 30.0)
    waiting = set(copy.record.roster or ()) - {seat.me}
    while time.monotonic() < deadline:
        if all(service.reached.get(peer, 0) >= copy.record.length for peer in waiting):
            return
        await asyncio.sleep(PAUSE)


async def _join(seat: Seat, wanted: Agreement) -> None:
    organizer = seat.book.entry(wanted.organizer)
    line = BoardLine(seat.folder, organizer, seat.patience)
    copy: _Copy | None = None
    try:
        last = time.monotonic()
        while copy is None or copy.record.result is None:
            start = 0 if copy is None else copy.record.length
            answer = await line.ask(kind="posts", start=start)
            posts = [unpacked(text) for text in answer.get("posts", [])]
            if copy is None and posts:
                copy = _Copy(seat, _checked(posts[0], wanted))
            for post in posts:
                if copy is not None:
                    copy.take(post)
            last = time.monotonic() if posts else last
            if time.monotonic() > last + 3 * seat.patience:
                raise RemoteProtocolError(f"the board of {organizer.name} has not grown for {3 * seat.patience:g} s;"
                                          " there is no mean")  # fmt: skip
            said = [] if copy is None else copy.next()
            for post in said:
                refused = (await line.ask(kind="append", post=packed(post))).get("refused")
                if refused:
                    raise RemoteProtocolError(f"{organizer.name} refused the {post.kind!r} of this peer: {refused}")
            if not posts and not said:
                await asyncio.sleep(PAUSE)
        signed = copy.vouched()
        await line.ask(kind="head", length=signed.length, head=signed.head.hex(), signature=signed.signature.hex())
        await line.ask(kind="posts", start=copy.record.length)
    finally:
        await line.close()
        if copy is not None:
            copy.file.close()


def _checked(first: Post, wanted: Agreement) -> Agreement:
    """The agreement on the board, if it is what was agreed on."""
    found = opened_agreement(first)
    for term in dataclasses.fields(Agreement):
        mine, theirs = getattr(wanted, term.name), getattr(found, term.name)
        if term.name != "nonce" and mine != theirs:
            raise RemoteProtocolError(f"the organizer's terms differ: {term.name} is {_short(theirs)} there and"
                                      f" {_short(mine)} here; nothing was said")  # fmt: skip
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
