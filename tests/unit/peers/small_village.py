"""A mean among three in one process: the organizer's copy behind its service, an honest peer, and
one that may lie."""

from __future__ import annotations

import numpy as np

from bruit.accounts.account import Account
from bruit.errors import RemoteProtocolError
from bruit.peers.wire.address_book import merge, public_entry
from bruit.peers.wire.identity import Identity
from bruit.statistics.average.averaging import AveragingSeat, _Copy
from bruit.statistics.average.board import Organizer, Prover
from bruit.statistics.average.board.posts import Post
from bruit.statistics.average.payment import Payment
from bruit.statistics.average.service import BoardService, packed
from bruit.statistics.average.terms import MeanTerms

TERMS = MeanTerms(column="x", low=0.0, high=1.0, epsilon=6.0)
VALUE = np.array([0.5])


class Village:
    """Peer 0 organizes and peer 1 is honest, each with its own copy; peer 2 says what a test makes
    it say."""

    def __init__(self, folder, terms=TERMS):
        self.terms, self.folder = terms, folder
        self.identities = [Identity.create(name) for name in ("ada", "bob", "eve")]
        texts = []
        for place, identity in enumerate(self.identities):
            identity.save(folder / identity.name)
            texts.append(public_entry(identity, "127.0.0.1", 1 + place))
        self.book = merge(texts)
        self.agreement = terms.agreement(self.book)
        self.copies = [self._copy(me) for me in range(2)]
        self.liar = Prover(self.agreement, 2, VALUE, self.identities[2].sign)
        self.organizer = Organizer(self.agreement, self.identities[0].sign)
        self.board.take(self.organizer.open())
        self.service = BoardService(
            folder / "ada",
            self.book,
            self.agreement,
            self.board.file.posts,
            self.board.let_in,
            self.board.hear,
        )

    def _copy(self, me):
        name = self.identities[me].name
        seat = AveragingSeat(
            folder=self.folder / name,
            book=self.book,
            me=me,
            value=VALUE,
            board=self.folder / f"{name}.db",
            record=Account(self.folder / f"{name}.account.jsonl"),
        )
        copy = _Copy(seat, self.agreement, Payment(self.terms, seat.record))
        copy.file._file.execute("pragma synchronous = off")
        return copy

    @property
    def board(self):
        return self.copies[0]

    @property
    def paid(self):
        return [len(copy.seat.record.balance().charged) for copy in self.copies]

    def send(self, post, peer=2):
        """Through the service: the answer, or the error that hangs up."""
        try:
            return self.service._reply(peer, {"kind": "append", "post": packed(post)})
        except RemoteProtocolError as error:
            return {"hung up": str(error)}

    def follow(self):
        """The honest peer reads along."""
        for post in self.board.file.posts(self.copies[1].record.length):
            self.copies[1].take(post)

    def signed(self, kind, payload, sign=None):
        """A post of peer 2, written on the board as it is."""
        made = Post(
            run=self.agreement.run,
            author=2,
            kind=kind,
            seen=self.board.record.length,
            head=self.board.record.heads[-1],
            payload=payload,
        )
        return made.signed(sign or self.identities[2].sign)

    def run(self, meddle=lambda village, post: None, turns=60):
        """Everybody speaks until there is a result, or nobody goes on; `meddle` comes before each
        word of peer 2."""
        for _ in range(turns):
            self.follow()
            before = self.board.record.length
            for post in self.liar.next(self.board.record):
                meddle(self, post)
                self.send(post)
            for post in self.copies[1].next():
                self.send(post, 1)
            for post in self.board.next() or self.board.own(self.organizer.next(self.board.record)):
                self.board.take(post)
            if self.board.record.result is not None or self.board.record.length == before:
                break
        self.follow()
        return self.board.record.result

    def close(self):
        for copy in self.copies:
            copy.file.close()
