"""A verified average between real processes: one organizer who serves the board, and everybody else
(perso:GOPA-1, 9).

Every participant keeps its own copy of the board, checks it post by post, and says what its prover
says. The organizer is a participant too; it closes a list when everybody is on it, or when
`patience` seconds have passed.

- Nothing is stored that breaks a rule: the organizer refuses it at the door, and a copy that is
  served it ends.
- Nothing is opened, and nothing paid, before everybody who is left has signed the head of one and
  the same board.
- What a peer pays is written down before its masked value leaves, here and not by whoever calls
  (`payment`).
- A process that dies takes its secrets with it: it cannot come back into the same run, and the
  others go on without it if it had not agreed yet.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bruit.accounts.account import Account
from bruit.arrays import Array
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.files import write_whole
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.board_file import BoardFile, opened_agreement
from bruit.statistics.average.board.kinds import LISTS, OPEN
from bruit.statistics.average.board.organizer import Organizer
from bruit.statistics.average.board.posts import Post, SignedHead
from bruit.statistics.average.board.prover import Prover
from bruit.statistics.average.board.record import Record
from bruit.statistics.average.board.verify import Report, verify
from bruit.statistics.average.payment import Payment
from bruit.statistics.average.service import BoardLine, BoardService, packed, unpacked
from bruit.statistics.average.terms import MeanTerms

JOINED = "runs.txt"  # in the folder of an identity: the runs it took part in
PAUSE = 0.05  # seconds between two looks at the board
Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class AveragingSeat:
    """One's own place: keys, book, number, value, where the copy of the board goes, and how long
    lists stay open.

    record: where the price is written down before the masked value leaves, with the limit that may
    refuse it; for a table that is `bruit.accounts.account.beside`.
    """

    folder: Path
    book: AddressBook
    me: int
    value: Array = field(repr=False)
    board: Path
    patience: float = 60.0
    tell: Tell = lambda stage: None
    record: Account = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.board.exists():
            raise ConfigError(f"{self.board} exists; a board is written once: choose another file")
        if not self.patience > 0:
            raise ConfigError(f"patience is a positive number of seconds, found {self.patience}")


def seat_of(folder: Path, book: AddressBook) -> int:
    """The number under which the address book lists the identity in that folder."""
    found = book.by_fingerprint(Identity.load(folder).fingerprint())
    if found is None:
        raise ConfigError(
            f"the address book does not list the identity in {folder}; send its public.toml to the"
            " others and merge again"
        )
    return found.peer


def average(seat: AveragingSeat, terms: MeanTerms) -> Report:
    """Take part from beginning to end, pay, then verify one's own copy of the board.

    `terms` are what this participant agreed to; all but its nonce must be what the organizer opens
    the board with.
    """
    wanted, payment = terms.agreement(seat.book), Payment(terms, seat.record)
    seat.record.check(payment.least(wanted))
    working = _organize if seat.me == wanted.organizer else _join
    try:
        asyncio.run(working(seat, wanted, payment))
    except RemoteProtocolError as error:
        paid = (
            f"epsilon = {payment.paid:g} was paid"
            if payment.paid
            else "this peer opened nothing, and paid nothing"
        )
        raise RemoteProtocolError(f"{error}; {paid}") from None
    return verify(seat.board)


class _Copy:
    """One's own copy of the board, and the record of what it says."""

    def __init__(self, seat: AveragingSeat, agreement: AverageAgreement, payment: Payment) -> None:
        self.seat, self.agreement, self._payment = seat, agreement, payment
        self.file, self.record = BoardFile(seat.board), Record(agreement)
        identity = Identity.load(seat.folder)
        self.sign = identity.sign
        self.prover = Prover(agreement, seat.me, seat.value, identity.sign)
        self._stage_told, self._own = "", set[bytes]()
        _remember(seat.folder / JOINED, agreement.run)

    def take(self, post: Post) -> None:
        """Into the copy and the record, if it may stand there; a post that is there already changes
        nothing."""
        if post.author == self.seat.me and post.kind != OPEN and post.to_bytes() not in self._own:
            raise ConfigError(
                f"peer {post.author} took part in this run before, and its secrets died with that"
                " process; start a new run"
            )
        if post.slot not in self.record.said:
            self.record.admit(post)
        if self.file.append(post) == self.record.length:
            self.record.absorb(post)
        stage = _stage(self.record)
        if stage != self._stage_told:
            self._stage_told = stage
            self.seat.tell(stage)

    def let_in(self, post: Post) -> None:
        """The organizer's door, for posts of others: a proof must hold before it is stored and
        spread."""
        if post.kind == "proof" and post.slot not in self.record.said:
            self.record.admit(post)
            self.record.check_proof(post)
        self.take(post)

    def next(self) -> list[Post]:
        """What this participant says now; a masked value is paid for first."""
        return self.own(self.prover.next(self.record))

    def own(self, posts: list[Post]) -> list[Post]:
        """Posts of this process, remembered; one that is sent again is not paid for again."""
        fresh = {post.kind for post in posts if post.to_bytes() not in self._own}
        if "agree" in fresh:
            self._payment.check(self.agreement, self.record.online())
        if "mask" in fresh:
            self._payment.pay(self.agreement, self.record.online())
        self._own.update(post.to_bytes() for post in posts)
        return posts

    def hear(self, signed: SignedHead) -> None:
        """Keep a head that somebody signed, once, however often it signs it. One of another board
        would spoil this one for everybody on the word of its signer alone; who was shown another
        board has the copy that proves it."""
        if self.file.head_at(signed.length) != signed.head:
            raise RemoteProtocolError(
                f"peer {signed.signer} vouches for a board of {signed.length} posts that is not"
                " this one; compare copies: bruit gopa verify --against"
            )
        if (signed.signer, signed.length) not in {
            (known.signer, known.length) for known in self.file.heads()
        }:
            self.file.add_head(signed)

    def vouched(self) -> SignedHead:
        return self.file.sign_head(self.seat.me, self.sign)


def _remember(path: Path, run: bytes) -> None:
    """Write the run down before the first word: two sessions under one name would look like a peer
    that lies."""
    known = path.read_text().split() if path.exists() else []
    if run.hex() in known:
        raise ConfigError(
            f"this identity took part in run {run.hex()[:16]} before; start a new run"
        )
    write_whole(
        path, lambda stream: stream.write("\n".join([*known, run.hex(), ""]).encode()), private=True
    )


def _stage(record: Record) -> str:
    n = record.agreement.peers
    if record.roster is None:
        return f"{len(record.joins)} of {n} are there"
    if record.sealed is None:
        return f"{len(record.commits)} of {len(record.roster)} have committed"
    if record.dropped is None:
        return f"{len(record.proofs)} of {len(record.sealed)} have proven"
    if record.result is not None:
        return "done"
    gone = f" without {len(record.dropped)} who left" if record.dropped else ""
    if not record.is_agreed():
        return f"{len(record.agreed)} of {len(record.online())} have agreed to this board{gone}"
    return f"{len(record.masks)} of {len(record.online())} masked values{gone}"


async def _organize(seat: AveragingSeat, agreement: AverageAgreement, payment: Payment) -> None:
    copy = _Copy(seat, agreement, payment)
    organizer = Organizer(agreement, copy.sign)
    copy.take(organizer.open())
    service = BoardService(
        seat.folder, seat.book, agreement, copy.file.posts, copy.let_in, copy.hear
    )
    server = service.serve(seat.book.entry(seat.me))
    try:
        await _close_lists(copy, organizer, seat.patience)
        copy.vouched()
        await _linger(copy, service, seat)
    finally:
        server.close()
        copy.file.close()


async def _close_lists(copy: _Copy, organizer: Organizer, patience: float) -> None:
    """Until there is a result: every list has its own patience, and as much again before all is
    given up."""
    since = time.monotonic()
    while copy.record.result is None:
        waited = time.monotonic() - since
        posts = copy.next() or copy.own(organizer.next(copy.record, waited > patience))
        for post in posts:
            copy.take(post)
        if any(post.kind in LISTS for post in posts):
            since = time.monotonic()
        elif waited > 2 * patience:
            raise RemoteProtocolError(
                f"nobody goes on ({_stage(copy.record)}) and patience ended: there is no mean"
            )
        if not posts:
            await asyncio.sleep(PAUSE)


async def _linger(copy: _Copy, service: BoardService, seat: AveragingSeat) -> None:
    """Serve until everybody who took part has the whole board, or patience ends."""
    deadline = time.monotonic() + min(seat.patience, 30.0)
    waiting = set(copy.record.roster or ()) - {seat.me}
    while time.monotonic() < deadline:
        if all(service.reached.get(peer, 0) >= copy.record.length for peer in waiting):
            return
        await asyncio.sleep(PAUSE)


async def _join(seat: AveragingSeat, wanted: AverageAgreement, payment: Payment) -> None:
    organizer = seat.book.entry(wanted.organizer)
    line = BoardLine(seat.folder, organizer, wanted, seat.patience)
    copy: _Copy | None = None
    try:
        last = time.monotonic()
        while copy is None or copy.record.result is None:
            posts = await _served(line, 0 if copy is None else copy.record.length)
            if copy is None and posts:
                copy = _Copy(seat, _agreement_of(posts[0], wanted), payment)
            if copy is not None:
                _follow(copy, posts, organizer.name)
            last = time.monotonic() if posts else last
            if time.monotonic() > last + 3 * seat.patience:
                raise RemoteProtocolError(
                    f"the board of {organizer.name} has not grown for {3 * seat.patience:g} s;"
                    " there is no mean"
                )
            if copy is None or not await _say(line, copy, organizer.name):
                await asyncio.sleep(0 if posts else PAUSE)
        signed = copy.vouched()
        await line.ask(
            kind="head",
            length=signed.length,
            head=signed.head.hex(),
            signature=signed.signature.hex(),
        )
        await line.ask(kind="posts", start=copy.record.length)
    finally:
        await line.close()
        if copy is not None:
            copy.file.close()


async def _served(line: BoardLine, start: int) -> list[Post]:
    """What the board holds from a position on, or its next part."""
    found = (await line.ask(kind="posts", start=start)).get("posts")
    if not isinstance(found, list):
        raise RemoteProtocolError("the organizer serves no list of posts")
    return [unpacked(text) for text in found]


def _follow(copy: _Copy, posts: Sequence[Post], organizer: str) -> None:
    """Take what is served. An honest organizer serves nothing that would be refused here: if this
    one does, it ends."""
    for post in posts:
        try:
            copy.take(post)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(
                f"the board of {organizer} holds what no honest organizer lets in: {error}"
            ) from None


async def _say(line: BoardLine, copy: _Copy, organizer: str) -> bool:
    """Say what is due. A post that came too late is refused, and the board has gone on: then follow
    it."""
    posts = copy.next()
    for post in posts:
        refused = (await line.ask(kind="append", post=packed(post))).get("refused")
        if refused:
            fresh = await _served(line, copy.record.length)
            _follow(copy, fresh, organizer)
            if not fresh:
                raise RemoteProtocolError(
                    f"{organizer} refused the {post.kind!r} of this peer: {str(refused)[:300]}"
                )
    return bool(posts)


def _agreement_of(first: Post, wanted: AverageAgreement) -> AverageAgreement:
    """The agreement on the board, if it is what was agreed on."""
    found = opened_agreement(first)
    for term in dataclasses.fields(AverageAgreement):
        mine, theirs = getattr(wanted, term.name), getattr(found, term.name)
        if term.name != "nonce" and mine != theirs:
            raise RemoteProtocolError(
                f"the organizer's terms differ: {term.name} is {_short(theirs)} there and"
                f" {_short(mine)} here; nothing was said"
            )
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
