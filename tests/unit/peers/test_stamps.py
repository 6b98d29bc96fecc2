"""Stamps: only who made one can make or read it; a valid one that is not known is a proof, anything
else a lie."""

import pytest

from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import BrokenStateError, RemoteProtocolError
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.codec import Conversation, Frame, encode
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.seals import BookSeals
from bruit.peers.wire.stamps import NO_LIFE, Scale, Stamps
from tests.unit.peers.toy_peer import RUN, open_journal

ME, LIFE = Identity.create("me"), b"life one"
VOICE, THEIRS = Conversation(RUN, "averaging", 0), Conversation(RUN, "averaging", 1)


@pytest.fixture
def stamps():
    return Stamps(ME, RUN, 0)


def test_who_made_a_stamp_reads_it(stamps):
    stamp = stamps.make(1, 7, 40, LIFE)
    assert len(stamp) == 32
    assert Stamps(ME, RUN, 0).read(1, 7, stamp) == (40, LIFE)
    assert stamps.make(1, 7, 40, LIFE) == stamp  # a retransmission is the same bytes


def test_nothing_else_passes_for_it(stamps):
    stamp = stamps.make(1, 7, 40, LIFE)
    for other in (
        Stamps(Identity.create("me"), RUN, 0),
        Stamps(ME, "cd" * 32, 0),
        Stamps(ME, RUN, 2),
        Stamps(ME, RUN, 0, rehearsal=True),
    ):
        assert other.read(1, 7, stamp) is None
    assert stamps.read(2, 7, stamp) is None  # to somebody else
    assert stamps.read(1, 8, stamp) is None  # of another message
    for place in range(32):
        changed = bytearray(stamp)
        changed[place] ^= 1
        assert stamps.read(1, 7, bytes(changed)) is None
    assert stamps.read(1, 7, b"") is None
    assert stamps.read(1, 7, stamp[:-1]) is None


def test_who_keeps_it_cannot_read_how_much_was_released(stamps):
    """The visits of a walk must not be counted by a neighbor: equal counts look different, and no
    byte stands still."""
    shown = [stamps.make(1, sequence, 40, LIFE) for sequence in range(1, 200)]
    assert len(set(shown)) == len(shown)
    for place in range(32):
        assert len({stamp[place] for stamp in shown}) > 20


def post(journal, stamps, life=LIFE, count=1):
    for _ in range(count):
        with journal.step() as step:
            place = step.next_sequence(1)
            stamp = stamps.make(1, place, 0, life)
            step.send(1, encode(Frame.of(VOICE, place, Envelope("offer", 0), 0, stamp)))


@pytest.fixture
def journal(tmp_path):
    with open_journal(tmp_path / "journal.db") as opened:
        yield opened


@pytest.fixture
def proofs():
    return []


@pytest.fixture
def scale(journal, stamps, proofs):
    return Scale(journal, stamps, proofs.append)


def receipt(said, echo=b"", kind="ack"):
    return Frame(conversation=THEIRS, sequence=0, kind=kind, acknowledged=said, echo=echo)


def test_an_honest_receipt_is_taken(journal, stamps, scale, proofs):
    post(journal, stamps, count=3)
    for said in (2, 2, 1, 3):
        scale.weigh(1, receipt(said, stamps.make(1, said, 0, LIFE)))
    assert (journal.confirmed(1), proofs) == (3, [])


@pytest.mark.parametrize("kind", ["ack", "hello", "bye"])
def test_a_valid_stamp_of_an_unknown_message_is_a_proof(journal, stamps, scale, proofs, kind):
    post(journal, stamps, count=3)
    words = r"peer 1 holds message 5 .*the journal knows 3; .*at least 34 lines"
    with pytest.raises(BrokenStateError, match=words) as proof:
        scale.weigh(1, receipt(5, stamps.make(1, 5, 34, NO_LIFE), kind))
    assert proofs == [proof.value]
    assert journal.confirmed(1) == 0


def test_a_valid_stamp_of_another_message_at_that_place_is_a_proof(journal, stamps, scale, proofs):
    """Two histories of equal length, or two processes on copies of one journal."""
    post(journal, stamps, b"life two", count=3)
    with pytest.raises(BrokenStateError, match="knows another one at that place"):
        scale.weigh(1, receipt(2, stamps.make(1, 2, 0, LIFE)))
    assert len(proofs) == 1


@pytest.mark.parametrize("said", [2, 4, 10**6])
@pytest.mark.parametrize("kind", ["ack", "hello", "bye", "offer"])
def test_a_lie_is_refused_and_stops_nobody(journal, stamps, scale, proofs, said, kind):
    """Without a stamp, with a made up one, with one of another message, of another's."""
    post(journal, stamps, count=3)
    lies = [
        b"",
        b"x" * 32,
        stamps.make(1, 1, 0, LIFE),
        stamps.make(2, said, 0, LIFE),
        Stamps(Identity.create("you"), RUN, 1).make(0, said, 0, LIFE),
    ]
    for echo in lies:
        frame = Frame(
            conversation=THEIRS,
            sequence=int(kind == "offer"),
            kind=kind,
            acknowledged=said,
            echo=echo,
        )
        if kind == "offer" and said <= 3:
            continue  # messages carry receipts without stamps, up to what was sent
        with pytest.raises(RemoteProtocolError, match=f"peer 1 acknowledges message {said}") as lie:
            scale.weigh(1, frame)
        assert str(journal.path.parent) not in str(lie.value)
    assert proofs == []
    scale.weigh(1, receipt(3, stamps.make(1, 3, 0, LIFE)))
    assert journal.confirmed(1) == 3


def test_what_was_signed_in_a_rehearsal_is_nothing_in_the_run_itself():
    """A rehearsal has the name of the run: else one that held its last token could end the run."""
    people = [Identity.create(f"peer-{k}") for k in range(2)]
    book = AddressBook.of(
        Entry(peer=k, name=one.name, host="127.0.0.1", port=5000 + k, certificate=one.certificate)
        for k, one in enumerate(people)
    )
    text = "token 11, attempt 0, to 1"
    real, rehearsed = (BookSeals(people[0], Members(book), RUN, which) for which in (False, True))
    reader = BookSeals(people[1], Members(book), RUN)
    assert reader.check(0, text, real.sign(text))
    assert not reader.check(0, text, rehearsed.sign(text))
    assert not BookSeals(people[1], Members(book), "cd" * 32).check(0, text, real.sign(text))
