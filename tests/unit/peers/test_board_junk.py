"""Junk on the way to a board: refused at the door, stored nowhere, spread to nobody, and unable to
void a mean."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.averaging import _follow
from bruit.statistics.average.board import BoardFile, Organizer, Record, verify
from bruit.statistics.average.board.board_file import EVIDENCE_EACH
from bruit.statistics.average.board.kinds import EVERYBODYS, ORGANIZERS, longest_post, most_posts
from bruit.statistics.average.board.posts import Post
from bruit.statistics.average.service import MOST_REFUSED
from tests.unit.peers.small_village import Village

KINDS = (*EVERYBODYS, *ORGANIZERS, "blame 0", "blame 1", "blame 01", "note")


@pytest.fixture
def village(tmp_path):
    made = Village(tmp_path)
    yield made
    made.close()


def stored(village):
    """Everything that the organizer's file holds: posts, and evidence."""
    return len(village.board.file), len(village.board.file.evidence())


JUNK = (
    ("note", "x" * 1000, "there is no such kind of post"),
    ("blame 7", "{}", "no noise with such a peer"),
    ("blame 0", "{}", "has no exchange"),
    ("result", "{}", "only the organizer"),
    ("open", "{}", "only the organizer"),
    ("join", "x" * 100_000, "at most"),
    ("join", "\u20ac", "plain ones"),
    ("join", "{}", "cannot be read"),
    ("mask", "{}", "come after everybody"),
    ("rollback", '{"pairs":{}}', "open"),
    ("agree", '{"peers":[0,1,2]}', "only the peers that are left agree"),
    ("proof", "{}", "after all coins"),
)


def test_what_has_no_place_on_the_board_is_stored_nowhere(village):
    for kind, payload, why in JUNK:
        assert why in str(village.send(village.signed(kind, payload)))
        assert stored(village) == (1, 0)
    assert village.run() is not None
    assert verify(village.board.seat.board).accepted
    assert village.paid == [1, 1]


def test_a_board_file_takes_no_unknown_kind_and_nothing_too_long(village):
    """Also without a record: whoever keeps a copy from Python is not filled up."""
    for kind, payload in (("note", "x"), ("commit", "x" * 100_000)):
        with pytest.raises(RemoteProtocolError):
            village.board.file.append(village.signed(kind, payload))
    assert stored(village) == (1, 0)


def test_a_flood_of_signed_posts_stops_at_the_door(village):
    """Different kinds, different payloads, other histories: the file stays as it was, and the
    sender is not heard."""
    for number in range(300):
        village.send(village.signed(f"kind {number}", "x" * 1000))
        village.send(
            replace(village.signed("join", str(number)), head=bytes(32)).signed(
                village.identities[2].sign
            )
        )
    assert stored(village) == (1, 0)
    assert village.service.refused[2] > MOST_REFUSED  # and its line is closed: see test_framed
    assert village.run() is not None


def test_a_board_cannot_grow_beyond_its_agreement(village):
    """What everybody may say at most, together: some kilobytes each."""
    village.run()
    posts = village.board.file.posts()
    assert len(posts) <= most_posts(village.agreement)
    assert max(len(post.to_bytes()) for post in posts) <= longest_post(village.agreement) < 20_000


def test_junk_of_a_peer_that_is_in_the_mean_voids_nothing_at_any_stage(village):
    """Second versions, wrong kinds and other pasts, signed, before and after every one of its
    posts."""
    spoken = []

    def meddle(made, post):
        for old in spoken:
            made.send(replace(old, payload=old.payload + " ").signed(made.identities[2].sign))
        made.send(made.signed("note", "junk"))
        made.send(replace(post, head=bytes(32)).signed(made.identities[2].sign))
        spoken.append(post)

    assert village.run(meddle) is not None
    for old in spoken:
        village.send(replace(old, payload=old.payload + " ").signed(village.identities[2].sign))
    report = verify(village.board.seat.board)
    assert report.accepted
    assert report.online == (0, 1, 2)
    assert report.caught == (2,)  # named all the same
    assert village.paid == [1, 1]
    other = verify(village.copies[1].seat.board, copies=[village.board.file])
    assert other.accepted


def test_nothing_is_said_after_the_result(village):
    village.run()
    before = stored(village)
    for kind in (*EVERYBODYS, "blame 0", *ORGANIZERS):
        village.send(village.signed(kind, "{}"))
    assert stored(village)[0] == before[0]
    assert verify(village.board.seat.board).accepted


@pytest.mark.parametrize("kind", ["note", "join", "mask"])
def test_copies_refuse_what_a_dishonest_organizer_lets_in(village, kind):
    """It stores junk of peer 2 past its own rules: every copy refuses it, and its owner ends
    without having paid."""
    copy, junk = village.copies[1], village.signed(kind, "x" * 10)
    village.follow()
    with pytest.raises(RemoteProtocolError, match="no honest organizer lets in"):
        _follow(copy, [junk], "ada")
    assert len(copy.file) == 1
    assert village.paid == [0, 0]


def test_a_wrong_masked_value_is_refused_and_the_right_one_still_counts(village):
    def meddle(made, post):
        if post.kind == "mask":
            said = json.loads(post.payload)
            said["masked"][0] += 1
            answer = made.send(
                replace(post, payload=json.dumps(said)).signed(made.identities[2].sign)
            )
            assert "not the sum of what it committed to" in str(answer)

    assert village.run(meddle) is not None
    assert verify(village.board.seat.board).findings == ()


def test_a_wrong_proof_is_refused_and_nobody_has_paid_by_then(village):
    def meddle(made, post):
        if post.kind == "proof":
            said = json.loads(post.payload)
            said["noise"] = [json.loads(made.board.record.said[2, "commit"].payload)["bits"]]
            answer = made.send(
                replace(post, payload=json.dumps(said)).signed(made.identities[2].sign)
            )
            assert "noise is not as drawn" in str(answer)
            assert made.paid == [0, 0]

    assert village.run(meddle) is not None


@pytest.mark.parametrize("silent", ["commit", "reveal", "proof", "agree"])
def test_whoever_leaves_before_the_others_opened_costs_them_nothing(village, silent):
    """Without planned dropouts there is no mean, and nobody has paid for none."""
    honest, village.liar.next = (
        village.liar.next,
        lambda record: [post for post in honest(record) if post.kind != silent],
    )
    assert village.run() is None
    for post in village.board.own(village.organizer.next(village.board.record, True)):
        village.board.take(post)
    assert village.run() is None
    assert village.paid == [0, 0]


def mutated(rng, post, village):
    """One of many ways to spoil a post; most are signed again by its author."""
    sign, payload = village.identities[2].sign, post.payload
    cut = int(rng.integers(len(payload) + 1))
    letter = chr(int(rng.integers(32, 127)))
    junk = ("null", "[]", "1e999", "NaN", "[" * 500, '"', "{}", "-1", str(2**70), '{"a":' * 50)[
        int(rng.integers(10))
    ]
    ways = (
        lambda: replace(post, payload=payload[:cut] + letter + payload[cut + 1 :]),
        lambda: replace(post, payload=payload[:cut]),
        lambda: replace(post, payload=payload[:cut] + junk + payload[cut:]),
        lambda: replace(post, payload=payload.replace('"', "'", 2)),
        lambda: replace(
            post, payload=with_field(payload, rng, json.loads("1e400") if junk == "1e999" else junk)
        ),
        lambda: replace(post, payload=payload * int(rng.integers(2, 400))),
        lambda: replace(post, kind=KINDS[int(rng.integers(len(KINDS)))]),
        lambda: replace(post, seen=int(rng.integers(0, 40))),
        lambda: replace(post, head=rng.bytes(32)),
        lambda: replace(post, run=rng.bytes(32)),
    )
    made = ways[int(rng.integers(len(ways)))]().signed(sign)
    return replace(made, signature=rng.bytes(64)) if rng.random() < 0.1 else made


def with_field(payload, rng, junk):
    """One field of the payload, at any depth, replaced."""
    found = json.loads(payload)
    inside, names = found, list(found)
    while names:
        name = names[int(rng.integers(len(names)))]
        if isinstance(inside[name], dict) and inside[name] and rng.random() < 0.7:
            inside, names = inside[name], list(inside[name])
            continue
        inside[name] = [junk] if rng.random() < 0.5 else junk
        break
    return json.dumps(found)


def fuzz(folder, seed, each):
    """A run in which peer 2 sends so many spoiled posts before each of its own; gives what was
    sent."""
    rng, sent, folder = np.random.default_rng(seed), 0, folder / str(seed)
    folder.mkdir()
    made = Village(folder)

    def meddle(village, post):
        nonlocal sent
        if seed % 2 and post.kind in ("join", "commit"):
            # another coin, or another commitment, is a good post that ends the run later, unpaid
            return
        for _ in range(each):
            bad, before = mutated(rng, post, village), stored(village)[0]
            answer = village.send(
                bad
            )  # whatever else than the house's errors it raises fails the test
            sent += 1
            if "refused" in answer or "hung up" in answer:
                assert stored(village)[0] == before
            else:  # it is a good post in other words: then it counts
                assert village.board.file.posts()[-1] == bad
                break

    result = made.run(meddle)
    assert result is not None or made.paid == [0, 0]
    if result is not None:
        report = verify(made.board.seat.board)
        assert report.accepted
        assert made.paid == [1, 1]
        assert verify(made.copies[1].seat.board).mean == pytest.approx(report.mean)
    assert len(made.board.file.evidence()) <= EVIDENCE_EACH
    made.close()
    return sent, result is not None


def test_a_few_mutated_posts(tmp_path):
    found = [fuzz(tmp_path, seed, 12) for seed in (1,)]
    assert sum(sent for sent, _ in found) > 20


@pytest.mark.slow
def test_thousands_of_mutated_posts(tmp_path):
    found = [fuzz(tmp_path, seed, 40) for seed in range(100, 124)]
    assert sum(sent for sent, _ in found) >= 2000
    assert 0 < sum(done for _, done in found) < len(found)


def test_mutated_bytes_are_posts_or_refused(village):
    """Bits flipped in what is sent: nothing but the house's errors."""
    rng = np.random.default_rng(7)
    (post,) = village.liar.next(village.board.record)
    for _ in range(300):
        data = bytearray(post.to_bytes())
        for place in rng.integers(0, len(data), int(rng.integers(1, 4))):
            data[place] ^= 1 << int(rng.integers(8))
        try:
            village.board.take(Post.from_bytes(bytes(data)))
        except RemoteProtocolError:
            continue
        assert bytes(data) == post.to_bytes()
    assert len(village.board.file) <= 2


def test_boards_opened_read_only_stay_as_they_are(village):
    village.run()
    with (
        BoardFile(village.board.seat.board, read_only=True) as board,
        pytest.raises(RemoteProtocolError),
    ):
        board.append(village.signed("note", "x"))


def test_after_a_restart_a_run_is_another_one_and_nobody_comes_back_into_the_old_one(village):
    """The organizer opens a new board, on which words of the old one mean nothing; a peer's secrets
    died with it."""
    old = village.signed("join", village.liar.join().text())
    fresh = village.terms.agreement(village.book)
    record = Record(fresh)
    record.absorb(Organizer(fresh, village.identities[0].sign).open())
    with pytest.raises(RemoteProtocolError, match="belongs to another run"):
        record.admit(old)
    for me in range(2):
        with pytest.raises(ConfigError, match="written once"):
            village._copy(me)
        village.copies[me].seat.board.rename(village.folder / f"old-{me}.db")
        with pytest.raises(ConfigError, match="took part in run"):
            village._copy(me)
    assert village.paid == [0, 0]
