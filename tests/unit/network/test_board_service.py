"""What one participant may send to a board must not stop the others, nor be paid for twice."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.errors import RemoteProtocolError
from bruit.graphs import complete
from bruit.network.address_book import merge, public_entry
from bruit.network.identity import Identity, signing_key
from bruit.sites.averaging import Seat, _Copy
from bruit.sites.board_service import LARGEST, LONGEST, BoardService, packed
from bruit.verification import Organizer, Prover, agree
from bruit.verification.posts import Post, SignedHead
from bruit.verification.verified_run import signing_keys


@pytest.fixture
def board(tmp_path):
    """A service of three peers over a plain list; what it took, and how to sign."""
    public, signs = signing_keys(3)
    run = agree(public, complete(3), 0.0, 1.0, levels=3, noise_bits=6).run
    texts = [public_entry(Identity.create(name), "127.0.0.1", 1 + place) for place, name in enumerate(("a", "b", "c"))]
    taken = []
    service = BoardService(tmp_path, merge(texts), lambda start: taken[start:], taken.append, lambda head: None, run)
    return service, taken, lambda size, kind="mask": Post(run, 1, kind, 0, bytes(32), "x" * size).signed(signs[1])


def test_posts_that_are_too_long_are_refused(board):
    service, taken, post = board
    with pytest.raises(RemoteProtocolError, match=f"they have at most {LONGEST}"):
        service._reply(1, {"kind": "append", "post": packed(post(LONGEST))})
    assert not taken


def test_an_answer_always_fits_into_a_frame_and_nothing_is_left_out(board):
    service, taken, post = board
    for _ in range(5):
        service._reply(1, {"kind": "append", "post": packed(post(LONGEST * 3 // 4 - 1000))})
    read = []
    while len(read) < len(taken):
        answer = service._reply(2, {"kind": "posts", "start": len(read)})
        assert len(json.dumps(answer).encode()) < LARGEST
        assert answer["posts"]
        read += answer["posts"]
    assert read == [packed(post) for post in taken]


@pytest.mark.parametrize(("asked", "text"), [
    ({"kind": "posts", "start": 2**70}, "asks for posts from"),
    ({"kind": "head", "length": 2**70, "head": "", "signature": ""}, "vouches for a board of"),
    ({"kind": "head", "length": -1, "head": "", "signature": ""}, "vouches for a board of -1 posts"),
    ({"kind": "head", "length": float("inf"), "head": "", "signature": ""}, "cannot be read"),
])  # fmt: skip
def test_numbers_beyond_all_boards_are_refused(board, asked, text):
    with pytest.raises(RemoteProtocolError, match=text):
        board[0]._reply(1, asked)


@pytest.mark.parametrize("change", [
    {"kind": "\ud800"}, {"kind": "blame \u0663"}, {"kind": "k" * 33}, {"seen": -1}, {"seen": 2**70},
])  # fmt: skip
def test_posts_that_no_board_could_store_are_refused(board, change):
    made = board[2](1)
    odd = Post(made.run, 1, change.get("kind", "mask"), change.get("seen", 0), made.head, "x", made.signature)
    with pytest.raises(RemoteProtocolError, match="canonical form"):
        board[0]._reply(1, {"kind": "append", "post": base64.b64encode(odd.to_bytes()).decode()})


@pytest.fixture
def pair(tmp_path):
    """The organizer's copy of a board of two, the other peer's identity, and what the organizer paid."""
    identity, other, paid = Identity.create("a"), Identity.create("b"), []
    identity.save(tmp_path / "a")
    book = merge([public_entry(identity, "127.0.0.1", 1), public_entry(other, "127.0.0.1", 2)])
    keys = [signing_key(entry.certificate) for entry in book.entries]
    agreement = agree(keys, complete(2), 0.0, 1.0, levels=3, noise_bits=6)
    copy = _Copy(Seat(tmp_path / "a", book, 0, np.array([0.5]), tmp_path / "a.db", spend=paid.append), agreement)
    copy.take(Organizer(agreement, identity.sign).open())
    yield copy, other, paid
    copy.file.close()


def test_a_masked_value_that_is_sent_again_is_paid_once(pair):
    """An organizer that does not show it on the board is sent it again and again."""
    copy, other, paid = pair
    second, organizer = Prover(copy.agreement, 1, np.array([0.5]), other.sign), Organizer(copy.agreement, copy.sign)
    while not any(post.kind == "mask" for post in copy.next()):
        for post in [*copy.next(), *second.next(copy.record)] or copy.own(organizer.next(copy.record)):
            copy.take(post)
    assert [post.kind for post in copy.next()] == ["mask"]
    assert paid == [(0, 1)]


def test_one_word_about_another_board_does_not_spoil_this_one(pair):
    copy, other, _ = pair
    run = copy.agreement.run
    with pytest.raises(RemoteProtocolError, match="peer 1 vouches for a board of 1 posts that is not this one"):
        copy.hear(SignedHead(run, 1, 1, bytes(32)).signed(other.sign))
    with pytest.raises(RemoteProtocolError, match="peer 1 vouches for a board of 9 posts that is not this one"):
        copy.hear(SignedHead(run, 1, 9, bytes(32)).signed(other.sign))
    for _ in range(2):
        copy.hear(SignedHead(run, 1, 1, copy.file.head()).signed(other.sign))
    assert [head.signer for head in copy.file.heads()] == [1]
