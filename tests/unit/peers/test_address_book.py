"""Address books: the same for all who merged the same snippets, and refused, by name, when anything
is amiss."""

import hashlib
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from bruit.errors import ConfigError
from bruit.peers.wire.address_book import AddressBook, merge, public_entry, run_id
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity

NAMES = ['Zoé "Z" Ünal', "Ana", "Ben \\ co"]
PEOPLE = [Identity.create(name) for name in NAMES]
SNIPPETS = [public_entry(person, "peer.example.org", 7000 + k) for k, person in enumerate(PEOPLE)]
BOOK = merge(SNIPPETS)
OLD = Identity.create("Old", days=1, now=datetime(2001, 1, 1, tzinfo=UTC))


def test_merging_in_any_order_gives_the_same_bytes():
    assert {merge(order).text() for order in permutations(SNIPPETS)} == {BOOK.text()}
    assert [entry.name for entry in BOOK.entries] == sorted(NAMES)
    assert [entry.peer for entry in BOOK.entries] == [0, 1, 2]


def test_written_and_read_back(tmp_path):
    BOOK.write(tmp_path / "peers.toml")
    assert AddressBook.read(tmp_path / "peers.toml") == BOOK
    assert AddressBook.parse(BOOK.text().replace("\n", "\r\n")) == BOOK
    tables = tomllib.loads(BOOK.text())["peer"]
    assert {table["name"]: table["port"] for table in tables} == dict(
        zip(NAMES, (7000, 7001, 7002), strict=True)
    )


def test_entries_are_found_by_number_and_by_fingerprint():
    assert BOOK.entry(0).name == "Ana"
    assert BOOK.by_fingerprint(PEOPLE[0].fingerprint()) == BOOK.entry(2)
    assert BOOK.by_fingerprint(OLD.fingerprint()) is None
    assert PEOPLE[1].fingerprint() in SNIPPETS[1]
    with pytest.raises(ConfigError, match=r"no peer 3: the address book lists 0..2"):
        BOOK.entry(3)
    with pytest.raises(ConfigError, match="no peer -1"):
        BOOK.entry(-1)


def test_certificates_are_concatenated_for_tls():
    assert BOOK.certificates().count(b"BEGIN CERTIFICATE") == 3
    assert BOOK.entry(1).certificate.encode() not in BOOK.certificates([0, 2])


def test_addresses():
    entry = BOOK.entry(0)
    assert entry.address == "peer.example.org:7001"
    assert replace(entry, host="::1").address == "[::1]:7001"


def test_the_run_id_is_sha256_of_seats_and_experiment():
    lines = "".join(f"{k} {entry.fingerprint}\n" for k, entry in enumerate(BOOK.entries))
    spelled = f"bruit run\n3\n{lines}steps = 5\n"
    assert run_id(BOOK, "steps = 5\n") == hashlib.sha256(spelled.encode()).hexdigest()
    assert run_id(BOOK, "steps = 5\r\n") == run_id(BOOK, "steps = 5\n")


def test_the_run_id_changes_with_people_seats_and_experiment_but_not_with_addresses():
    entries = BOOK.entries
    moved = AddressBook.of([replace(entries[0], host="10.0.0.7"), *entries[1:]])
    swapped = AddressBook.of([replace(entries[0], peer=1), replace(entries[1], peer=0), entries[2]])
    fewer = AddressBook.of(entries[:2])
    assert run_id(moved, "a") == run_id(BOOK, "a")
    assert (
        len({run_id(BOOK, "a"), run_id(BOOK, "b"), run_id(swapped, "a"), run_id(fewer, "a")}) == 4
    )


def entry(k, **changes):
    return replace(BOOK.entry(k), **changes)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "lists nobody"),
        ([entry(0), entry(1, peer=0)], "'Ana' and .* have the same peer, 0"),
        ([entry(0), entry(1, port=7001)], "have the same address, peer.example.org:7001"),
        ([entry(0), entry(2)], r"numbers must be 0..1, found 0, 2"),
        ([entry(0, peer=-1), entry(1, peer=0)], r"must be 0..1, found -1, 0"),
        ([entry(0, port=0)], r"port of 'Ana' must be in 1..65535, found 0"),
        ([entry(0, port=65536)], "found 65536"),
        ([entry(0, host="")], "no host name or address: ''"),
        ([entry(0, host="a b")], "no host name"),
        ([entry(0, host="::g")], "no host name"),
        ([entry(0, host="fe80::1%eth0")], "no host name"),
        ([entry(0, certificate="hello")], "certificate of 'Ana' must hold exactly one PEM block"),
        (
            [entry(0, certificate=BOOK.entry(0).certificate.replace("M", "N"))],
            "certificate of 'Ana' cannot be read",
        ),
        (
            [entry(0, certificate=BOOK.entry(1).certificate)],
            "an entry bears the name in its certificate",
        ),
        (
            [Entry(peer=0, name="Old", host="localhost", port=1, certificate=OLD.certificate)],
            "certificate of 'Old' expired on 2001-01-02",
        ),
    ],
)
def test_bad_books_are_refused(entries, words):
    with pytest.raises(ConfigError, match=words):
        AddressBook.of(entries)


def test_the_same_name_or_certificate_twice_is_refused():
    with pytest.raises(ConfigError, match="have the same name, Ana"):
        merge([SNIPPETS[1], public_entry(Identity.create("Ana"), "localhost", 9)])
    with pytest.raises(ConfigError, match="have the same name, Ana"):
        merge([SNIPPETS[1], SNIPPETS[1].replace("7001", "7009")])


def test_valid_at_another_moment():
    old = Entry(peer=0, name="Old", host="localhost", port=1, certificate=OLD.certificate)
    assert AddressBook.of([old], now=datetime(2001, 1, 1, tzinfo=UTC)).entry(0).name == "Old"
    with pytest.raises(ConfigError, match="not valid before 2000-12-31"):
        AddressBook.of([old], now=datetime(2001, 1, 1, tzinfo=UTC) - timedelta(days=2))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "is not TOML"),
        ("title = 1", r"\[\[relay\]\] tables only, found title"),
        ("peer = 3", r"\[\[relay\]\] tables only"),
        (
            BOOK.text().replace("port = 7000", "port = '7000'"),
            "port of .* must be of type int, found '7000'",
        ),
        (BOOK.text().replace("port = 7000", "port = true"), "must be of type int, found True"),
        (BOOK.text().replace("port = 7000", "port = 7000\ncolor = 1"), "has unknown key 'color'"),
        (
            BOOK.text().replace("port = 7000\n", ""),
            "has no port; an entry has peer, name, host, port, certificate",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, text, words):
    (tmp_path / "peers.toml").write_text(text)
    with pytest.raises(ConfigError, match=words) as failure:
        AddressBook.read(tmp_path / "peers.toml")
    assert "peers.toml" in str(failure.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(
        ConfigError, match=r"cannot read the address book .*peers.toml: No such file"
    ):
        AddressBook.read(tmp_path / "peers.toml")
    (tmp_path / "peers.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        AddressBook.read(tmp_path / "peers.toml")


def test_a_whole_book_is_no_snippet():
    with pytest.raises(ConfigError, match="snippet 1 must be one unnumbered"):
        merge([BOOK.text()])
    with pytest.raises(ConfigError, match="snippet 2: the entry of 'Ana' has no port"):
        merge([SNIPPETS[0], SNIPPETS[1].replace("port = 7001\n", "")])
