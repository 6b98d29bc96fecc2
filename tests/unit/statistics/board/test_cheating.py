"""Every way to cheat that we could think of is caught, and its author named (perso:GOPA-9, 10; the
negative tests)."""

import contextlib
import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.board import BoardFile, Organizer, Prover, Record, verify
from bruit.statistics.average.board.coins import coins_of
from bruit.statistics.average.board.pair_secret import PairNoise, show
from bruit.statistics.average.board.payloads import _packed, shown_text
from bruit.statistics.average.board.posts import Post, SignedHead, next_head
from bruit.statistics.average.proofs.group import generator, random_scalar
from tests.unit.statistics.board.small_board import BITS, LEVELS, Small, changing, resigned


@pytest.fixture
def path(tmp_path):
    return tmp_path / "board.db"


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """One honest run, of which tests spoil copies."""
    made, place = Small(), tmp_path_factory.mktemp("honest") / "board.db"
    made.run(place)
    return made, place


@pytest.fixture
def small(honest, path):
    """Its peers; its board is copied to `path`."""
    shutil.copy(honest[1], path)
    return honest[0]


def kinds(report, peer):
    return {found.kind for found in report.findings if found.peer == peer}


def check_caught(report, peer, kind, text):
    """The cheater is named, alone; it is left out, and the mean of the others stands."""
    assert report.caught == (peer,)
    assert kind in kinds(report, peer)
    assert any(text in found.text for found in report.findings)
    assert report.accepted
    assert peer not in report.online
    assert report.mean is not None


class WrongSum(Prover):
    """Publishes a masked value that is one off."""

    def _masked(self, record, beacon):
        made = super()._masked(record, beacon)
        return replace(made, masked=(made.masked[0] + 1, *made.masked[1:]))


class OutOfRange(Prover):
    """Holds one level more than allowed: x = high + 1 level."""

    def __init__(self, *given):
        super().__init__(*given)
        self._levels = (LEVELS + 1,)


class FarOut(OutOfRange):
    def __init__(self, *given):
        super().__init__(*given)
        self._levels = (-5,)


class Biased(Prover):
    """Waits for the coins, then picks the bits that give the largest noise."""

    def proof(self, record):
        wanted = ~coins_of(record.beacon(), self.me, BITS)
        self._noise_bits = (
            wanted if np.any(wanted != self._noise_bits) else ~wanted
        )  # never what it committed to
        return super().proof(record)


class OwnNoise(Prover):
    """Keeps its bits, but adds other noise than they give."""

    def _noise(self, beacon):
        return [super()._noise(beacon)[0] + 1]


class OtherExchange(Prover):
    """Commits to other noise than agreed on with peer 0, and uses it."""

    def _exchange(self, record, other):
        honest = super()._exchange(record, other)
        return PairNoise((honest.noise[0] + 1000,), honest.blindings) if other == 0 else honest


@pytest.mark.parametrize(
    ("cheater", "kind", "text"),
    [
        (OutOfRange, "wrong proof", "out of range, or its noise is not as drawn"),
        (FarOut, "wrong proof", "out of range, or its noise is not as drawn"),
        (Biased, "wrong proof", "out of range, or its noise is not as drawn"),
        (OwnNoise, "wrong proof", "out of range, or its noise is not as drawn"),
        (
            OtherExchange,
            "non-canceling pair",
            "peer 2 committed to another exchange than the one agreed on with peer 0",
        ),
    ],
)
def test_a_cheater_is_named_and_left_out(cheater, kind, text, path):
    Small(kinds={2: cheater}).run(path)
    check_caught(verify(path), 2, kind, text)


def test_a_wrong_sum_is_named_and_there_is_no_mean(path):
    """All others had agreed to a mean with it: without its masked value there is none."""
    Small(kinds={2: WrongSum}).run(path)
    report = verify(path)
    assert not report.accepted
    assert report.caught == (2,)
    assert kinds(report, 2) == {"wrong mask", "withheld mask"}
    assert "not the sum of what it committed to" in report.findings[0].text


class ForeignKey(Prover):
    """Joins with the key of peer 0, or with one made from it: whoever blames it would show its
    secret with peer 0."""

    shift = 0

    def next(self, record):
        if 0 in record.joins and self.me not in record.joins:
            self._key = record.joins[0].key + self.shift * generator()
        return super().next(record)


class RelatedKey(ForeignKey):
    shift = 7


class RepeatedJoin(ForeignKey):
    """Repeats the proof of peer 0 too."""

    def join(self):
        mine = super().join()
        return replace(mine, owned=self.repeated)

    def next(self, record):
        if 0 in record.joins:
            self.repeated = record.joins[0].owned
        return super().next(record)


@pytest.mark.parametrize("cheater", [ForeignKey, RelatedKey, RepeatedJoin])
def test_a_key_made_from_that_of_another_peer_is_refused(cheater, path):
    """A blame shows b K: were K = A + k G allowed, it would open the exchange of two honest
    peers."""
    record = Small(kinds={2: cheater}).run(path)
    check_caught(
        verify(path), 2, "foreign key", "peer 2 joins with a key whose secret it does not know"
    )
    assert not record.blames
    assert record.roster == (0, 1, 3)


class WithoutShame(OtherExchange):
    """Its neighbor here is peer 0, and it shows their secret itself, which convicts it."""

    def _at_fault(self, record, other):
        return False


def test_of_two_ends_that_show_nothing_neither_is_convicted(path):
    """The honest end's blame may have been on its way when the organizer closed the list."""
    Small(kinds={2: OtherExchange}).run(path, silent={0: "blame 2", 2: "blame 0"})
    report = verify(path)
    assert {(found.peer, found.kind) for found in report.findings} == {
        (0, "unexplained pair"),
        (2, "unexplained pair"),
    }
    assert report.caught == ()


def test_a_blame_that_comes_late_does_not_convict_its_author(path):
    """Peer 2 convicts itself first, the list is closed, and only then the blame of peer 0
    arrives."""
    small, held = Small(kinds={2: WithoutShame}), []
    organizer, record = Organizer(small.agreement, small.signs[0]), Record(small.agreement)

    def say(board, posts):
        for post in posts:
            if post.slot == (0, "blame 2") and record.sealed is None:
                held[:] = [post]
            elif post.slot not in record.said:
                board.append(post)
                record.absorb(post)

    with BoardFile(path, durable=False) as board:
        say(board, [organizer.open()])
        for _ in range(40):
            before = record.length
            for prover in small.provers:
                say(board, prover.next(record))
            say(board, organizer.next(record) if record.length == before else ())
            say(board, held if record.sealed is not None else ())
    report = verify(path)
    assert (0, "late") in {(found.peer, found.kind) for found in report.findings}
    check_caught(report, 2, "non-canceling pair", "peer 2 committed to another exchange")
    assert report.online == (0, 1, 3)


def test_nobody_opens_the_board_again(small, path):
    with BoardFile(path) as board:
        again = Post(
            run=small.agreement.run,
            author=2,
            kind="open",
            seen=len(board),
            head=board.head(),
            payload="x",
        ).signed(small.signs[2])
        with pytest.raises(RemoteProtocolError, match="only the organizer opens"):
            board.append(again)
        assert board.evidence() == []
    assert verify(path).findings == ()
    write(
        path,
        "insert into entries values (?, 2, 'open', ?, ?)",
        (again.seen, again.to_bytes(), next_head(again.head, again)),
    )
    report = verify(path)
    assert [(found.peer, found.kind) for found in report.findings] == [(2, "malformed")]
    assert "peer 2 opens the board again" in report.findings[0].text


def test_a_replayed_proof(path):
    """Peer 2 posts what peer 0 posted before it: the proof speaks of another peer."""
    heard = {}

    def listen(post, sign):
        heard[post.kind] = post.payload
        return post

    def replay(post, sign):
        return resigned(post, sign, heard["proof"]) if post.kind == "proof" else post

    Small().run(path, meddle={0: listen, 2: replay})
    check_caught(verify(path), 2, "wrong proof", "peer 2")


def test_replayed_commitments_cannot_be_proven(path):
    """Peer 2 copies peer 0's value and bits, to have its value: it cannot prove what it does not
    know."""
    heard = {}

    def listen(post, sign):
        if post.kind == "commit":
            heard.update(json.loads(post.payload))
        return post

    copy = changing("commit", lambda p: p.update(value=heard["value"], bits=heard["bits"]))
    Small().run(path, meddle={0: listen, 2: copy})
    check_caught(verify(path), 2, "wrong proof", "peer 2")


def test_posts_of_another_run_are_refused(tmp_path):
    first, second = Small(n=2), Small(n=2)
    first.run(tmp_path / "one.db")
    second.run(tmp_path / "two.db")
    with BoardFile(tmp_path / "one.db") as one:
        stranger = one.posts()[1]
    with (
        BoardFile(tmp_path / "two.db") as two,
        pytest.raises(RemoteProtocolError, match="belongs to another run"),
    ):
        two.append(stranger)
    assert verify(tmp_path / "two.db", [tmp_path / "one.db"]).findings[0].kind == "another run"


def test_a_swapped_commitment(path):
    """Other commitments are posted than the ones the proof is about: of the value, and of two
    exchanges."""

    def other_value(payload):
        payload["value"] = [_packed((random_scalar() * generator()).encoded())]

    Small().run(path, meddle={2: changing("commit", other_value)})
    check_caught(verify(path), 2, "wrong proof", "peer 2 is wrong")


def test_swapped_exchanges(path):
    def swap(payload):
        pairs = payload["pairs"]
        pairs["0"], pairs["1"] = pairs["1"], pairs["0"]

    Small().run(path, meddle={2: changing("commit", swap)})
    check_caught(verify(path), 2, "non-canceling pair", "peer 2 committed to another exchange")


def test_a_pair_about_which_nobody_speaks(path):
    """Without the secret nobody can tell which end lied: both are left out."""
    small = Small(kinds={2: OtherExchange})
    small.run(path, silent={0: "blame 2"})
    report = verify(path)
    assert report.caught == (0, 2)
    assert not report.accepted  # the organizer is one of them


def test_false_blame(path):
    """Peer 2 spoils its exchange with peer 1 and blames peer 1, with a secret that is not
    theirs."""

    class Liar(OtherExchange):
        def _exchange(self, record, other):
            honest = Prover._exchange(self, record, other)
            return PairNoise((honest.noise[0] + 1000,), honest.blindings) if other == 1 else honest

        def _blame(self, record):
            return None if (2, "blame 1") in record.said else "blame 1"

        def _payload(self, kind, record):
            if kind != "blame 1":
                return super()._payload(kind, record)
            return shown_text(
                show(self.agreement.run, self._secret + 1, self._key, record.joins[1].key)
            )

    Small(kinds={2: Liar}).run(path)
    report = verify(path)
    assert kinds(report, 2) == {"false blame", "non-canceling pair"}
    assert report.accepted
    assert report.online == (0, 1, 3)


def test_a_late_change_of_a_commitment(path, small):
    """Peer 2 posts new commitments after the coins are public: refused, kept as evidence, and it is
    convicted; the mean that everybody had agreed to stands."""
    with BoardFile(path) as board:
        old = next(post for post in board.posts() if post.slot == (2, "commit"))
        fresh = Small().provers[2]
        late = Post(
            run=old.run,
            author=2,
            kind="commit",
            seen=len(board),
            head=board.head(),
            payload=Prover.join(fresh).text(),
        ).signed(small.signs[2])
        with pytest.raises(
            RemoteProtocolError, match="peer 2 signed two different posts of kind 'commit'"
        ):
            board.append(late)
    report = verify(path)
    assert report.accepted
    assert report.caught == (2,)
    assert kinds(report, 2) == {"refused post"}


def test_a_late_change_written_past_the_board(path, small):
    """The keeper writes peer 2's second commitment into the file itself."""
    with BoardFile(path) as board:
        length, head = len(board), board.head()
    late = Post(
        run=small.agreement.run, author=2, kind="commit", seen=length, head=head, payload="{}"
    ).signed(small.signs[2])
    write(
        path,
        "insert into entries values (?, 2, 'commit', ?, ?)",
        (length, late.to_bytes(), next_head(head, late)),
    )
    report = verify(path)
    assert not report.accepted
    assert kinds(report, 2) == {"late change"}


def test_history_rewritten_with_the_cheaters_signature(path, small):
    """Peer 2 and the keeper replace its commitment and chain everything anew: later signatures
    disagree."""
    with BoardFile(path) as board:
        posts = board.posts()
    place = next(k for k, post in enumerate(posts) if post.slot == (2, "commit"))
    old = json.loads(posts[place].payload)
    old["value"] = [_packed((random_scalar() * generator()).encoded())]
    posts[place] = resigned(posts[place], small.signs[2], json.dumps(old))
    rechain(path, posts)
    report = verify(path)
    assert not report.accepted
    assert any(
        found.kind == "history" and f"before entry {place + 1}" in found.text
        for found in report.findings
    )


def test_equivocation_between_copies(path, tmp_path, small):
    """Peer 2 tells one copy something else than the other: both posts carry its signature."""
    with BoardFile(path) as board, BoardFile(tmp_path / "copy.db", durable=False) as copy:
        posts = board.posts()
        place = next(k for k, post in enumerate(posts) if post.slot == (2, "join"))
        copy.extend(posts[:place])
        fresh = Small().provers[2].join().text()
        copy.append(resigned(posts[place], small.signs[2], fresh))
        assert verify(board).accepted
        report = verify(board, [copy])
    assert not report.accepted
    assert "equivocation" in kinds(report, 2)
    assert any("differs from this board from entry" in found.text for found in report.findings)


def test_two_signed_heads_of_one_length(path, small):
    with BoardFile(path) as board:
        board.sign_head(1, small.signs[1])
        assert verify(board).accepted
        board.add_head(
            SignedHead(small.agreement.run, 1, len(board), bytes(32)).signed(small.signs[1])
        )
        report = verify(board)
    assert not report.accepted
    assert kinds(report, 1) == {"equivocation"}


def test_the_organizer_states_a_wrong_result(path):
    Small().run(path, meddle={0: changing("result", lambda p: p.update(total=[p["total"][0] + 1]))})
    report = verify(path)
    assert not report.accepted
    assert kinds(report, 0) == {"wrong result"}


@pytest.mark.parametrize("kind", ["roster", "sealed", "dropped"])
def test_the_organizer_leaves_somebody_out(kind, path):
    def censor(payload):
        payload["peers"] = [3] if kind == "dropped" else payload["peers"][:-1]

    Small().run(path, meddle={0: changing(kind, censor)})
    report = verify(path)
    assert not report.accepted
    assert kinds(report, 0) == {"wrong list"}
    assert "it is wrong about [3]" in report.findings[0].text


def test_somebody_else_states_a_result(path, small):
    with BoardFile(path) as board:
        posts = board.posts()
    record = Record(small.agreement)
    for post in posts[:-1]:
        assert record.absorb(post) == []
    last = Post(
        run=posts[-1].run,
        author=1,
        kind="result",
        seen=posts[-1].seen,
        head=posts[-1].head,
        payload=posts[-1].payload,
    ).signed(small.signs[1])
    (found,) = record.absorb(last)
    assert (found.peer, found.kind) == (1, "malformed")
    assert "only the organizer" in found.text


def test_coins_that_stay_hidden_or_change(path, tmp_path):
    Small().run(path, silent={3: "reveal"})
    assert kinds(verify(path), 3) == {"withheld coin"}
    other = tmp_path / "other.db"
    Small().run(other, meddle={3: changing("reveal", lambda p: p.update(coin=_packed(bytes(32))))})
    report = verify(other)
    assert not report.accepted
    assert kinds(report, 3) == {"late change", "withheld coin"}


def test_a_coin_shown_too_early(path, small):
    """A coin must be revealed after, and because, all commitments are sealed: its author must have
    seen that."""
    with BoardFile(path) as board:
        posts = board.posts()
    place = next(k for k, post in enumerate(posts) if post.slot == (2, "reveal"))
    record = Record(small.agreement)
    for post in posts[:place]:
        record.absorb(post)
    early = replace(posts[place], seen=3, head=record.heads[3]).signed(small.signs[2])
    (found,) = record.absorb(early)
    assert (found.peer, found.kind) == (2, "early")


@pytest.mark.slow
def test_openings_that_are_wrong_or_do_not_come(path, tmp_path):
    def lie(payload):
        payload["pairs"]["3"]["noise"][0] += 1

    Small().run(path, silent={3: "proof"}, meddle={1: changing("rollback", lie)})
    report = verify(path)
    assert not report.accepted
    assert kinds(report, 1) == {"wrong opening", "withheld opening"}
    other = tmp_path / "other.db"
    Small().run(other, silent={3: "proof", 1: "rollback"})
    assert kinds(verify(other), 1) == {"withheld opening"}


def test_who_is_listed_as_gone_opens_nothing_and_who_agreed_and_left_is_named(path, tmp_path):
    """perso:GOPA-7: a masked value and the exchanges that hide it are never both opened."""
    small = Small()
    record = small.run(path, silent={3: "proof"})
    assert small.provers[3].next(record) == []
    with pytest.raises(RemoteProtocolError, match="a masked value stays closed"):
        small.provers[3].mask(record)
    other = tmp_path / "other.db"
    Small().run(other, silent={3: "mask"})
    assert kinds(verify(other), 3) == {"withheld mask"}
    third = tmp_path / "third.db"
    record = Small().run(third, silent={3: "agree"})
    assert (record.masks, record.rollbacks) == ({}, {})
    assert kinds(verify(third), 3) == {"no agreement"}
    assert verify(third).caught == ()


@pytest.mark.slow
def test_malformed_payloads_name_their_author(path):
    for number, junk in enumerate(({"proof": ""}, {"noise": [_packed(bytes(33))]})):
        place = path.with_name(f"{number}.db")
        Small(n=3).run(place, meddle={2: changing("proof", lambda p, junk=junk: p.update(junk))})
        report = verify(place)
        assert kinds(report, 2) == {"malformed"}
        assert report.accepted
        assert report.online == (0, 1)
    for number, junk in enumerate(({"masked": ["x"]}, {"masked": [2**62]})):
        place = path.with_name(f"{number + 2}.db")
        Small(n=3).run(place, meddle={2: changing("mask", lambda p, junk=junk: p.update(junk))})
        assert kinds(verify(place), 2) == {"malformed", "withheld mask"}


def test_a_forged_signature(path, small):
    with BoardFile(path) as board:
        posts = board.posts()
        mask = next(post for post in posts if post.slot == (2, "mask"))
        with pytest.raises(RemoteProtocolError, match="does not carry its signature"):
            board.append(resigned(mask, small.signs[1], "{}"))
    place = posts.index(mask)
    posts[place] = resigned(mask, small.signs[1], mask.payload)
    rechain(path, posts)
    report = verify(path)
    assert not report.accepted
    assert any(found.kind == "signature" and found.position == place for found in report.findings)


def test_keys_that_the_verifier_knows(path, small):
    known = dict(enumerate(small.agreement.keys))
    assert verify(path, keys=known, run=small.agreement.run).accepted
    report = verify(path, keys={**known, 1: "00" * 32})
    assert not report.accepted
    assert "another key for peer 1" in report.findings[0].text
    assert verify(path, run=bytes(32)).findings[0].kind == "another run"
    with pytest.raises(ConfigError, match="a key is given for peer 9"):
        verify(path, keys={9: "00" * 32})


@pytest.mark.parametrize("left", [1, 6, 12, -1])
def test_a_board_that_was_cut_off(left, path, small):
    """Every true beginning of a board is a true board, but not a finished one; a copy or a signed
    head shows more."""
    with BoardFile(path) as board:
        posts = board.posts()
        signed = board.sign_head(1, small.signs[1])
    rechain(path, posts[:left])
    report = verify(path)
    assert not report.accepted
    assert any(
        "ends before its" in found.text or "did not reveal" in found.text
        for found in report.findings
    )
    assert any(
        f"vouches for a board of {signed.length} entries" in found.text for found in report.findings
    )


def test_an_entry_that_is_missing(path, small):
    write(path, "delete from entries where position = 5", ())
    with pytest.raises(RemoteProtocolError, match="entries are missing between others"):
        verify(path)


@pytest.mark.parametrize("place", ["post", "head"])
def test_a_flipped_bit(place, path, small):
    file = sqlite3.connect(path)
    (data,) = file.execute(f"select {place} from entries where position = 6").fetchone()
    file.close()
    flipped = bytes([*data[:20], data[20] ^ 1, *data[21:]])
    write(path, f"update entries set {place} = ? where position = 6", (flipped,))
    report = verify(path)
    assert not report.accepted
    assert any(found.kind == "tampered" and found.position == 6 for found in report.findings)


@pytest.mark.slow
def test_any_damage_to_the_file_is_seen_or_harmless(path, small):
    """Flipped bits and cut files: refused with a clear error, or (unused bytes) the same verdict on
    the same head."""
    wanted, whole = verify(path), path.read_bytes()
    rng = np.random.default_rng(3)
    for trial in range(30):
        data = bytearray(whole)
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data[: int(rng.integers(len(data)))] if trial % 6 == 0 else data)
        with contextlib.suppress(ConfigError, RemoteProtocolError):
            report = verify(path)
            assert not report.accepted or (report.head, report.mean.tolist()) == (
                wanted.head,
                wanted.mean.tolist(),
            )


def test_files_that_are_no_board(tmp_path):
    with pytest.raises(ConfigError, match="there is no board"):
        verify(tmp_path / "none.db")
    junk = tmp_path / "junk.db"
    junk.write_bytes(np.random.default_rng(0).bytes(5000))
    with pytest.raises(ConfigError, match="damaged, or no board"):
        verify(junk)
    empty = tmp_path / "empty.db"
    BoardFile(empty).close()
    with pytest.raises(RemoteProtocolError, match="is empty"):
        verify(empty)


def write(path, query, values):
    """What somebody with the file in hand can do."""
    file = sqlite3.connect(path)
    file.execute(query, values)
    file.commit()
    file.close()


def rechain(path, posts):
    """Replace all entries, with hashes that fit."""
    write(path, "delete from entries", ())
    head, file = None, sqlite3.connect(path)
    for position, post in enumerate(posts):
        head = next_head(head or post.head, post)
        file.execute(
            "insert into entries values (?, ?, ?, ?, ?)",
            (position, *post.slot, post.to_bytes(), head),
        )
    file.commit()
    file.close()
