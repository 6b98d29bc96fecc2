"""Later versions of an address book: they stand by a quorum of the version before, and nothing
else; forged, doubled, foreign and swapped signatures do not count, and old copies are refused."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bruit.errors import BrokenStateError, ConfigError, RemoteProtocolError
from bruit.peers.wire.address_book import AddressBook, merge, public_entry, run_id
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.revisions.chain import KnownVersion, book_as_it_was, standing_book
from bruit.peers.wire.revisions.memory import FILE, BookMemory
from bruit.peers.wire.revisions.proposing import Changes, differences, revise
from bruit.peers.wire.revisions.quorum import (
    asked_for,
    check_follows,
    signed_by,
    standing,
    with_signatures,
)
from bruit.peers.wire.succession import Succession

ADA, BOB, EVE, FAY, DORA = (Identity.create(name) for name in ("ada", "bob", "eve", "fay", "dora"))
SOON = datetime.now(UTC) + timedelta(days=1)


def public(one, port):
    return public_entry(one, "127.0.0.1", port)


FIRST = merge([public(one, 7000 + k) for k, one in enumerate((ADA, BOB, EVE, FAY))])
SECOND = revise(FIRST, Changes(add=[public(DORA, 7009)], remove=["fay"], from_run="spring"))


def signed(book, previous, *who):
    for one in who:
        book = signed_by(book, previous, one)
    return book


STANDING = signed(SECOND, FIRST, ADA, BOB, EVE)


def with_signature(book, **changes):
    first, *others = book.revision.signatures
    signatures = (replace(first, **changes), *others)
    return replace(book, revision=replace(book.revision, signatures=signatures))


def counted(book, previous=FIRST):
    return standing(book, previous, "book2.toml").signed


def test_a_version_stands_when_more_than_half_signed_it():
    assert asked_for(FIRST) == 3
    for who in ((), (ADA,), (ADA, FAY)):
        found = standing(signed(SECOND, FIRST, *who), FIRST, "book2.toml")
        assert not found.stands
        with pytest.raises(ConfigError, match=r"not signed by .*eve"):
            found.check("book2.toml")
    found = standing(STANDING, FIRST, "book2.toml")
    assert (found.stands, found.signed, found.missing) == (True, ("ada", "bob", "eve"), ("fay",))
    assert standing(signed(SECOND, FIRST, BOB, EVE, FAY), FIRST, "b").stands  # who leaves may agree


def test_it_is_written_and_read_back_and_names_other_runs():
    again = AddressBook.parse(STANDING.text())
    assert again == STANDING
    assert AddressBook.parse(STANDING.text().replace("\n", "\r\n")) == STANDING
    assert [one.name for one in again.entries] == ["ada", "bob", "eve", "dora"]
    assert again.digest == SECOND.digest  # whoever signed
    assert (
        len({run_id(one, "x") for one in (FIRST, STANDING, replace(STANDING, revision=None))}) == 3
    )
    moved = replace(STANDING, entries=(replace(STANDING.entries[0], port=9), *STANDING.entries[1:]))
    assert moved.digest == STANDING.digest
    assert standing(moved, FIRST, "b").stands


def test_what_changes_is_told():
    third = revise(
        STANDING,
        Changes(
            add=[public(Identity.create("bob"), 7001), public(EVE, 8000)],
            remove=["ada"],
            revoke=[BOB.fingerprint()[:24]],
            from_run="summer",
            quorum=3,
        ),
    )
    words = "\n".join(differences(third, STANDING))
    for word in (
        "leaves   ada",
        "new key  bob",
        "moves    eve",
        "seat     dora was peer 3, is peer 2",
        f"revoked  {BOB.fingerprint()}",
        "quorum   more than half before, 3",
    ):
        assert word in words
    assert (third.version, third.founding, asked_for(third)) == (3, FIRST.digest, 3)


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        (with_signature(STANDING, signature="0" * 128), "does not hold"),
        (with_signature(STANDING, fingerprint=FAY.fingerprint()), "does not hold"),
        (with_signature(STANDING, fingerprint=DORA.fingerprint()), "nobody in the version before"),
        (
            with_signature(STANDING, signature=STANDING.revision.signatures[1].signature),
            "does not hold",
        ),
        (with_signature(STANDING, successions=("nonsense",)), "no succession"),
    ],
)
def test_forged_and_foreign_signatures_do_not_count(forged, words):
    found = standing(forged, FIRST, "book2.toml")
    assert (len(found.signed), found.stands) == (2, False)
    assert words in found.refused[0]


def test_a_doubled_signature_counts_once():
    one = signed(SECOND, FIRST, ADA)
    double = replace(one, revision=replace(one.revision, signatures=3 * one.revision.signatures))
    assert counted(double) == ("ada",)
    assert not standing(double, FIRST, "b").stands


@pytest.mark.parametrize(
    "change",
    [
        {"from_run": "winter"},
        {"quorum": 4},
        {"revoked": (FAY.fingerprint(),)},
    ],
)
def test_signatures_are_over_every_field(change):
    assert counted(replace(STANDING, revision=replace(STANDING.revision, **change))) == ()


def test_signatures_are_over_who_sits_where():
    swapped = [replace(one, peer=(1, 0, 2, 3)[one.peer]) for one in STANDING.entries]
    book = AddressBook.of(swapped, revision=STANDING.revision)
    assert counted(book) == ()
    stranger = Identity.create("dora")
    entries = (*STANDING.entries[:3], replace(STANDING.entry(3), certificate=stranger.certificate))
    assert counted(AddressBook.of(entries, revision=STANDING.revision)) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 3}, "follows version 1"),
        ({"founding": "0" * 64}, "follows version 1"),
        ({"previous": "0" * 64}, "follows the book 0000"),
    ],
)
def test_what_does_not_follow_is_refused(change, words):
    book = replace(SECOND, revision=replace(SECOND.revision, **change))
    with pytest.raises(ConfigError, match=words):
        check_follows(book, FIRST, "book2.toml")
    with pytest.raises(ConfigError, match="follows no other"):
        check_follows(FIRST, FIRST, "book.toml")


def test_a_revoked_certificate_never_comes_back():
    second = revise(FIRST, Changes(revoke=[EVE.fingerprint()], from_run="x"))
    assert [one.name for one in second.entries] == ["ada", "bob", "fay"]
    assert counted(signed(second, FIRST, ADA, BOB, FAY)) == ("ada", "bob", "fay")
    with pytest.raises(ConfigError, match="is revoked"):  # not even for this version
        signed_by(second, FIRST, EVE)
    with pytest.raises(ConfigError, match="which it says is revoked"):
        revise(second, Changes(add=[public(EVE, 7002)], from_run="y"))
    third = revise(second, Changes(add=[public(DORA, 7002)], from_run="y"))
    assert third.revoked == (EVE.fingerprint(),)
    with pytest.raises(ConfigError, match="not in the version before"):
        signed_by(third, second, EVE)
    forgets = replace(third, revision=replace(third.revision, revoked=()))
    with pytest.raises(ConfigError, match="forgets"):
        standing(forgets, second, "book3.toml")
    back = Succession.of(replace(EVE, name="eve"), replace(EVE, name="eve"), SOON)
    with pytest.raises(RemoteProtocolError, match="revoked"):
        Members(second).learn(back.text().encode())


def test_a_member_signs_with_its_newest_key_and_counts_once():
    after = Identity.create("ada")
    last = Identity.create("ada")
    known = [Succession.of(ADA, after, SOON), Succession.of(after, last, SOON)]
    book = signed_by(signed(SECOND, FIRST, ADA, BOB), FIRST, last, known)
    assert counted(AddressBook.parse(book.text())) == ("ada", "bob")
    with pytest.raises(ConfigError, match="no succession leads there"):
        signed_by(SECOND, FIRST, last, known[1:])
    revoked = revise(FIRST, Changes(revoke=[after.fingerprint()], from_run="x"))
    with pytest.raises(ConfigError, match="is revoked"):
        signed_by(revoked, FIRST, last, known)
    mine = next(one for one in book.revision.signatures if one.successions)
    for chain in (mine.successions[1:], mine.successions[::-1], mine.successions[:1]):
        stripped = replace(mine, successions=chain)
        bad = replace(SECOND, revision=replace(SECOND.revision, signatures=(stripped,)))
        assert counted(bad) == ()


def test_signatures_of_copies_are_put_together():
    left, right = signed(SECOND, FIRST, ADA, BOB), signed(SECOND, FIRST, EVE, ADA)
    both = with_signatures(left, right.revision.signatures)
    assert both == with_signatures(right, left.revision.signatures) == STANDING
    assert standing(both, FIRST, "b").stands


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (Changes(from_run="x"), "changes nothing"),
        (Changes(from_run=" x"), "from_run"),
        (Changes(remove=["zoe"], from_run="x"), "no 'zoe'"),
        (Changes(add=[public(BOB, 1)], remove=["bob"], from_run="x"), "added and removed"),
        (Changes(add=[public(DORA, 1), public(DORA, 2)], from_run="x"), "same name"),
        (Changes(revoke=["3fa2"], from_run="x"), "neither a full fingerprint"),
        (Changes(quorum=2, from_run="x"), "quorum is 3 to 4 of 4"),
        (Changes(quorum=5, from_run="x"), "quorum is 3 to 4 of 4"),
        (Changes(add=[FIRST.text()], from_run="x"), "must be one unnumbered"),
        (Changes(add=[STANDING.text()], from_run="x"), "must be one unnumbered"),
        (Changes(remove=["ada", "bob", "eve", "fay"], from_run="x"), "lists nobody"),
    ],
)
def test_proposals_that_cannot_be_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        revise(FIRST, changes)


@pytest.fixture
def home(tmp_path):
    FIRST.write(tmp_path / "first.toml")
    STANDING.write(tmp_path / "book.toml")
    (tmp_path / "site.toml").write_text("peer = 0\n")
    (tmp_path / "junk.toml").write_bytes(b"\xff\x00")
    return tmp_path


def test_a_book_is_read_with_those_before_beside_it(home):
    assert standing_book(home / "first.toml") == FIRST
    assert standing_book(home / "book.toml") == STANDING
    third = revise(STANDING, Changes(remove=["bob"], from_run="autumn"))
    signed(third, STANDING, ADA, EVE, DORA).write(home / "third.toml")
    assert standing_book(home / "third.toml").version == 3
    SECOND.write(home / "book.toml")  # the middle one without its signatures
    with pytest.raises(ConfigError, match=r"version 2 before .* is signed by 0 members"):
        standing_book(home / "third.toml")
    seen = {FIRST.digest: KnownVersion(2, STANDING.digest)}
    assert standing_book(home / "third.toml", seen).version == 3  # seen before, with its quorum
    (home / "book.toml").unlink()
    with pytest.raises(ConfigError, match="is not beside it; put version 2 into"):
        standing_book(home / "third.toml", seen)


def test_an_old_copy_and_a_fork_are_refused(home):
    seen = {FIRST.digest: KnownVersion(2, STANDING.digest)}
    assert standing_book(home / "book.toml", seen) == STANDING
    with pytest.raises(ConfigError, match="is version 1, but version 2 has been seen"):
        standing_book(home / "first.toml", seen)
    fork = signed(revise(FIRST, Changes(remove=["bob"], from_run="x")), FIRST, ADA, EVE, FAY)
    fork.write(home / "fork.toml")
    assert standing_book(home / "fork.toml") == fork  # two members at least signed both
    with pytest.raises(ConfigError, match="two books of version 2"):
        standing_book(home / "fork.toml", seen)
    after = revise(fork, Changes(remove=["fay"], from_run="y"))
    signed(after, fork, ADA, EVE, FAY).write(home / "after.toml")
    with pytest.raises(ConfigError, match="two books of version 2"):
        standing_book(home / "after.toml", seen)
    other = merge([public(one, 1 + k) for k, one in enumerate((ADA, BOB))])
    other.write(home / "other.toml")  # another consortium
    assert standing_book(home / "other.toml", seen) == other


def test_a_member_signs_one_successor_of_a_book(tmp_path):
    other = revise(FIRST, Changes(remove=["bob"], from_run="x"))
    BookMemory.read(tmp_path).will_sign(SECOND, instead=False)
    BookMemory.read(tmp_path).will_sign(SECOND, instead=False)
    with pytest.raises(ConfigError, match="whoever signs two lets the members part"):
        BookMemory.read(tmp_path).will_sign(other, instead=False)
    BookMemory.read(tmp_path).will_sign(other, instead=True)
    BookMemory.read(tmp_path).has_seen(STANDING)
    with pytest.raises(ConfigError, match="has been seen here already"):
        BookMemory.read(tmp_path).will_sign(other, instead=True)
    assert oct((tmp_path / FILE).stat().st_mode & 0o777) == "0o600"


def test_a_damaged_memory_is_no_memory_of_nothing(tmp_path):
    BookMemory.read(tmp_path).has_seen(STANDING)
    good = (tmp_path / FILE).read_text()
    for bad in (
        good[: len(good) // 2],
        "[]",
        "{}",
        good.replace("seen", "sean"),
        good.replace("2", '"2"', 1),
        '{"seen": {"a": [2]}, "signed": {}}',
        '{"seen": {}, "signed": {"a": 1}}',
    ):
        (tmp_path / FILE).write_text(bad)
        with pytest.raises(BrokenStateError, match="is damaged"):
            BookMemory.read(tmp_path)


def test_a_book_before_may_have_expired(tmp_path):
    moment = datetime.now(UTC) - timedelta(days=30)
    old = [Identity.create(name, days=20, now=moment) for name in ("ada", "bob")]
    new = [Identity.create(name) for name in ("ada", "bob")]
    entries = [
        Entry(peer=k, name=one.name, host="h", port=7000 + k, certificate=one.certificate)
        for k, one in enumerate(old)
    ]
    first = AddressBook.of(entries, now=moment)
    second = revise(
        first,
        Changes(add=[public(one, 7000) for one in new[:1]] + [public(new[1], 7001)], from_run="x"),
    )
    signed(second, first, *old).write(tmp_path / "book.toml")
    first.write(tmp_path / "first.toml")
    assert standing_book(tmp_path / "book.toml").version == 2
    assert book_as_it_was(tmp_path / "first.toml") == first
    with pytest.raises(ConfigError, match="expired"):
        standing_book(tmp_path / "first.toml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("version = 2", "version = 1"),
        ("version = 2", "version = true"),
        ("version = 2", "version = 99999"),
        ("version = 2\n", ""),
        ('founding = "', 'founding = "x'),
        ('from_run = "spring"', "from_run = 1"),
        ('from_run = "spring"', f'from_run = "{"x" * 65}"'),
        ("revoked = []", 'revoked = ["3fa2"]'),
        ("revoked = []", "revoked = [ADA]"),
        ("revoked = []", "quorum = 1"),
        ("revoked = []", "quorum = 2.5"),
        ("revoked = []", "veto = true"),
        ('signature = "', 'signature = "00'),
        ("[[signature]]", "[[signature]]\nname = 'ada'"),
        ("[[signature]]", "[[signature]]\nsuccessions = 'x'"),
    ],
)
def test_books_that_say_nonsense_of_themselves_are_refused(before, after):
    assert before in STANDING.text()
    after = after.replace("[ADA]", f'["{ADA.fingerprint()}"]')
    with pytest.raises(ConfigError):
        AddressBook.parse(STANDING.text().replace(before, after, 1))


def test_no_bytes_raise_anything_but_a_refusal_or_make_another_book_stand():
    good = STANDING.text().encode()
    for turn in range(250):
        bad = bytearray(good)
        for place in os.urandom(1 + turn % 3):
            bad[(place * 31 + turn * 17) % len(bad)] ^= 1 << place % 8
        for some in (bytes(bad), bytes(bad[: turn * 23]), good[: turn * 23]):
            try:
                found = AddressBook.parse(some.decode("utf-8", "replace"))
                if not standing(found, FIRST, "b").stands:
                    continue
            except ConfigError:
                continue
            assert found.digest == SECOND.digest  # an address, or another spelling
