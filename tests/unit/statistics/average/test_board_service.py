"""What one participant may send to a board must not stop the others, nor be paid for twice."""

import asyncio
import base64
import json
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.accounts.account import Account
from bruit.errors import RemoteProtocolError
from bruit.graphs import complete
from bruit.peers.wire.address_book import merge, public_entry
from bruit.peers.wire.identity import Identity, signing_key
from bruit.statistics.average.averaging import AveragingSeat, _Copy
from bruit.statistics.average.board import Organizer, Prover, agree
from bruit.statistics.average.board.kinds import longest_post
from bruit.statistics.average.board.posts import Post, SignedHead
from bruit.statistics.average.board.verified_run import signing_keys
from bruit.statistics.average.payment import Payment
from bruit.statistics.average.service import BoardService, answer_bytes, packed
from bruit.statistics.average.terms import MeanTerms


@pytest.fixture
def board(tmp_path):
    """A service of three peers over a plain list; what it took, and how to sign."""
    public, signs = signing_keys(3)
    agreement = agree(public, complete(3), 0.0, 1.0, levels=3, noise_bits=6)
    run = agreement.run
    texts = [
        public_entry(Identity.create(name), "127.0.0.1", 1 + place)
        for place, name in enumerate(("a", "b", "c"))
    ]
    taken = []
    service = BoardService(
        tmp_path,
        merge(texts),
        agreement,
        lambda start: taken[start:],
        taken.append,
        lambda head: None,
    )
    service.agreement = agreement
    return (
        service,
        taken,
        lambda size, kind="mask": Post(
            run=run, author=1, kind=kind, seen=0, head=bytes(32), payload="x" * size
        ).signed(signs[1]),
    )


def test_posts_that_are_too_long_are_refused(board):
    service, taken, post = board
    most = longest_post(service.agreement)
    with pytest.raises(RemoteProtocolError, match=f"they have at most {most}"):
        service._reply(1, {"kind": "append", "post": packed(post(most))})
    assert not taken


def test_an_answer_always_fits_into_a_message_and_nothing_is_left_out(board):
    service, taken, post = board
    for _ in range(100):
        service._reply(
            1, {"kind": "append", "post": packed(post(longest_post(service.agreement) - 600))}
        )
    read = []
    while len(read) < len(taken):
        answer = service._reply(2, {"kind": "posts", "start": len(read)})
        assert len(json.dumps(answer).encode()) < answer_bytes(service.agreement)
        assert answer["posts"]
        read += answer["posts"]
    assert read == [packed(post) for post in taken]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"kind": "posts", "start": 2**70}, "asks for posts from"),
        ({"kind": "head", "length": 2**70, "head": "", "signature": ""}, "vouches for a board of"),
        (
            {"kind": "head", "length": -1, "head": "", "signature": ""},
            "vouches for a board of -1 posts",
        ),
        ({"kind": "head", "length": float("inf"), "head": "", "signature": ""}, "cannot be read"),
    ],
)
def test_numbers_beyond_all_boards_are_refused(board, asked, text):
    with pytest.raises(RemoteProtocolError, match=text):
        board[0]._reply(1, asked)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "\ud800"},
        {"kind": "blame \u0663"},
        {"kind": "k" * 33},
        {"seen": -1},
        {"seen": 2**70},
    ],
)
def test_posts_that_no_board_could_store_are_refused(board, change):
    made = board[2](1)
    odd = Post(
        run=made.run,
        author=1,
        kind=change.get("kind", "mask"),
        seen=change.get("seen", 0),
        head=made.head,
        payload="x",
        signature=made.signature,
    )
    with pytest.raises(RemoteProtocolError, match="canonical form"):
        board[0]._reply(1, {"kind": "append", "post": base64.b64encode(odd.to_bytes()).decode()})


def test_who_is_hung_up_on_again_and_again_does_not_fill_the_log(board, caplog):
    service = board[0]
    certificate = next(shown for shown, peer in service._known.items() if peer == 1)

    async def call():
        reader, writer = asyncio.StreamReader(), Mock()
        writer.get_extra_info("ssl_object").getpeercert.return_value = certificate
        reader.feed_data((2**25).to_bytes(4, "big"))
        await service._answer((reader, writer))
        writer.close.assert_called_once()

    for _ in range(20):
        asyncio.run(call())
    assert [line.getMessage().partition(":")[0] for line in caplog.records] == ["hung up on peer 1"]


@pytest.fixture
def pair(tmp_path):
    """The organizer's copy of a board of two, the other peer's identity, and what the organizer
    paid."""
    identity, other = Identity.create("a"), Identity.create("b")
    identity.save(tmp_path / "a")
    book = merge([public_entry(identity, "127.0.0.1", 1), public_entry(other, "127.0.0.1", 2)])
    keys = [signing_key(entry.certificate) for entry in book.entries]
    agreement = agree(keys, complete(2), 0.0, 1.0, levels=3, noise_bits=60)
    seat = AveragingSeat(
        folder=tmp_path / "a",
        book=book,
        me=0,
        value=np.array([0.5]),
        board=tmp_path / "a.db",
        record=Account(tmp_path / "spent.jsonl"),
    )
    copy = _Copy(
        seat, agreement, Payment(MeanTerms(column="x", low=0.0, high=1.0, epsilon=9.0), seat.record)
    )
    copy.take(Organizer(agreement, identity.sign).open())
    yield copy, other, seat.record
    copy.file.close()


def test_a_masked_value_that_is_sent_again_is_paid_once(pair):
    """An organizer that does not show it on the board is sent it again and again."""
    copy, other, paid = pair
    second, organizer = (
        Prover(copy.agreement, 1, np.array([0.5]), other.sign),
        Organizer(copy.agreement, copy.sign),
    )
    while not any(post.kind == "mask" for post in copy.next()):
        for post in [*copy.next(), *second.next(copy.record)] or copy.own(
            organizer.next(copy.record)
        ):
            copy.take(post)
    assert [post.kind for post in copy.next()] == ["mask"]
    assert len(paid.balance().charged) == 1


def test_one_word_about_another_board_does_not_spoil_this_one(pair):
    copy, other, _ = pair
    run = copy.agreement.run
    with pytest.raises(
        RemoteProtocolError, match="peer 1 vouches for a board of 1 posts that is not this one"
    ):
        copy.hear(SignedHead(run, 1, 1, bytes(32)).signed(other.sign))
    with pytest.raises(
        RemoteProtocolError, match="peer 1 vouches for a board of 9 posts that is not this one"
    ):
        copy.hear(SignedHead(run, 1, 9, bytes(32)).signed(other.sign))
    for number in range(3):  # a key has many signatures for one head
        signed = SignedHead(run, 1, 1, copy.file.head()).signed(other.sign)
        copy.hear(replace(signed, signature=bytes([number]) * 64) if number else signed)
    assert [head.signer for head in copy.file.heads()] == [1]
