"""A key is changed in the middle of a run, and nobody else stops; forged successions are refused;
the stamps of before stop an old copy after."""

import asyncio
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.relay import way
from bruit.peers.relay.people import People
from bruit.peers.relay.way import Ways
from bruit.peers.site.rotating import finish, rotate
from bruit.peers.site.running import run_together, status, write_report
from bruit.peers.site.signed_report import check
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook, merge, public_entry
from bruit.peers.wire.identity import STAMPS, Identity
from bruit.peers.wire.members import FOLDER, MOST, Members
from bruit.peers.wire.seals import BookSeals
from bruit.peers.wire.stamps import Stamps, stamp_keys
from bruit.peers.wire.succession import LONGEST, Succession
from tests.unit.peers.relayed import relay_of, relayed_network
from tests.unit.peers.test_relay import MANY_STEPS

PEOPLE = [Identity.create(name) for name in ("ada", "bob", "eve")]
NEXT = Identity.create("ada")
BOOK = merge([public_entry(one, "127.0.0.1", 7000 + k) for k, one in enumerate(PEOPLE)])
SOON = datetime.now(UTC) + timedelta(days=1)
GOOD = Succession.of(PEOPLE[0], NEXT, SOON)


def data(one):
    return one.text().encode()


def test_both_certificates_are_taken_and_then_the_new_one_only():
    members = Members(BOOK)
    assert members.learn(data(GOOD))
    assert not members.learn(data(GOOD))
    assert members.taken(0) == [PEOPLE[0].certificate, NEXT.certificate]
    assert members.taken(0, SOON + timedelta(seconds=2)) == [NEXT.certificate]
    assert members.taken(1) == [PEOPLE[1].certificate]
    assert members.by_fingerprint(NEXT.fingerprint()) == BOOK.entry(0)
    assert members.by_fingerprint(PEOPLE[0].fingerprint()) == BOOK.entry(0)
    late = Members(BOOK)
    late.learn(data(Succession.of(PEOPLE[0], NEXT, datetime(2001, 1, 1, tzinfo=UTC))))
    assert late.by_fingerprint(PEOPLE[0].fingerprint()) is None
    assert late.by_fingerprint(NEXT.fingerprint()) == BOOK.entry(0)
    assert late.by_fingerprint("of nobody") is None


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        (Succession.of(PEOPLE[1], Identity.create("ada"), SOON), "not signed by its old|another"),
        (replace(GOOD, by_old=GOOD.by_new), "not signed by its old key"),
        (replace(GOOD, by_new=GOOD.by_old), "not signed by its new key"),
        (replace(GOOD, until="2099-01-01T00:00:00Z"), "not signed by its old key"),
        (replace(GOOD, certificate=PEOPLE[1].certificate), "another successor|nobody"),
        (Succession.of(Identity.create("ada"), NEXT, SOON), "nobody in the address book"),
        (Succession.of(PEOPLE[0], Identity.create("bob"), SOON), "names another participant"),
        (
            Succession.of(
                PEOPLE[0], Identity.create("ada", 1, datetime(2001, 1, 1, tzinfo=UTC)), SOON
            ),
            "expired",
        ),
    ],
)
def test_forged_successions_change_nothing(forged, words):
    members = Members(BOOK)
    with pytest.raises(RemoteProtocolError, match=words):
        members.learn(data(forged))
    assert members.known() == []
    assert members.taken(0) == [PEOPLE[0].certificate]


def test_of_two_successors_the_first_stands_and_the_other_is_told():
    members = Members(BOOK)
    members.learn(data(GOOD))
    thief = Succession.of(PEOPLE[0], Identity.create("ada"), SOON)
    with pytest.raises(RemoteProtocolError, match="whether its key was stolen"):
        members.learn(data(thief))
    assert members.known() == [GOOD]


def test_keys_do_not_change_without_end():
    members, before = Members(BOOK), PEOPLE[0]
    for _ in range(MOST):
        after = Identity.create("ada")
        assert members.learn(data(Succession.of(before, after, SOON)))
        before = after
    with pytest.raises(RemoteProtocolError, match=f"changed its key {MOST} times"):
        members.learn(data(Succession.of(before, Identity.create("ada"), SOON)))


def test_no_bytes_raise_anything_but_a_protocol_error_or_change_whose_it_is():
    good = data(GOOD)
    for turn in range(300):
        bad = bytearray(good)
        for place in os.urandom(1 + turn % 3):
            bad[(place * 7 + turn) % len(bad)] ^= 1 << place % 8
        for some in (bytes(bad), os.urandom(turn), bytes(bad[: turn * 3]), good * (turn % 12)):
            members = Members(BOOK)
            try:
                members.learn(some)
            except RemoteProtocolError:
                assert members.known() == []
            else:  # another spelling of the same
                assert members.fingerprints(0)[1:] == [NEXT.fingerprint()]
    with pytest.raises(RemoteProtocolError):
        Members(BOOK).learn(b"x" * (LONGEST + 1))


def test_a_folder_is_read_in_any_order_and_junk_in_it_is_told(tmp_path, caplog):
    third = Identity.create("ada")
    (tmp_path / "a.toml").write_bytes(data(Succession.of(NEXT, third, SOON)))
    (tmp_path / "b.toml").write_bytes(data(GOOD))
    (tmp_path / "c.toml").write_text("nonsense")
    members = Members(BOOK, tmp_path)
    assert members.look()
    assert members.ever(0)[1:] == [NEXT.certificate, third.certificate]
    assert "c.toml" in caplog.text
    assert not members.look()
    again = Members(BOOK, tmp_path)
    again.look()
    assert again.known() == members.known()


def test_a_relay_that_cannot_write_takes_a_new_key_all_the_same_and_says_so(tmp_path, caplog):
    (tmp_path / FOLDER).write_text("no folder can be made here")
    people = People(tmp_path, [BOOK])
    assert people.learn(data(GOOD))
    assert people.of(NEXT.fingerprint()) == PEOPLE[0].fingerprint()
    assert "the new key of a member is forgotten when this relay ends" in caplog.text


def test_a_relay_that_is_started_anew_without_its_folder_hears_of_new_keys_again(
    tmp_path, monkeypatch
):
    """Each member told it once in its life: who had a new key was never let in again."""
    sites, _ = relayed_network(tmp_path, [0, 1, 2])
    members = Members(AddressBook.read(sites[1].parent / "book.toml"))
    before = Identity.load(sites[0].parent)
    members.learn(data(Succession.of(before, Identity.create(before.name), SOON)))
    told = []

    async def ask(folder, relay, ask, more=b""):
        told.append(more)
        return None, SimpleNamespace(close=lambda: None)

    async def tell():
        ways = Ways(folder=sites[1].parent, members=members, me=1)
        await ways.open([])
        await asyncio.sleep(0.1)
        await ways.close()
        assert [len(one) for one in ways.told.values()] == [1]

    monkeypatch.setattr(way, "ask_relay", ask)
    monkeypatch.setattr(way, "LOOK", 0.001)
    asyncio.run(tell())
    assert len(told) == 1
    monkeypatch.setattr(way, "AGAIN", 0.01)
    asyncio.run(tell())
    assert len(told) > 2
    assert len(set(told)) == 1


def test_stamps_and_seals_of_before_are_read_after():
    after = replace(NEXT, stamps=stamp_keys(PEOPLE[0]))
    for rehearsal in (False, True):
        old = Stamps(PEOPLE[0], "ab" * 32, 0, rehearsal)
        new = Stamps(after, "ab" * 32, 0, rehearsal)
        made = new.make(1, 5, 3, b"life" * 2)
        assert old.read(1, 5, made) == new.read(1, 5, made)  # an old copy can read it, and stops
        assert old.make(1, 5, 3, b"life" * 2) == made
    assert Stamps(PEOPLE[0], "ab" * 32, 0).make(1, 5, 3, b"life" * 2) != made
    with pytest.raises(ConfigError, match=r"stamps\.key"):
        stamp_keys(replace(NEXT, stamps=b"short"))
    members = Members(BOOK)
    before = BookSeals(PEOPLE[0], members, "ab" * 32)
    seal = before.sign("a hop")
    members.learn(data(GOOD))
    reader = BookSeals(PEOPLE[1], members, "ab" * 32)
    assert reader.check(0, "a hop", seal)
    assert reader.check(0, "a hop", BookSeals(NEXT, members, "ab" * 32).sign("a hop"))
    assert not reader.check(1, "a hop", seal)


@pytest.mark.slow
@pytest.mark.parametrize("at_relay", [[], [0, 1, 2]])
def test_a_key_is_changed_in_the_middle_of_a_run_and_nobody_else_stops(tmp_path, at_relay):
    """Reached directly, and all at a relay: it knew the certificates of its book only, and a member
    with a new key was a stranger to it."""
    sites, folder = relayed_network(tmp_path, at_relay, text=MANY_STEPS, timeout=30.0)
    copy = tmp_path / "copy"
    people = [participant(read_site(site)) for site in sites]
    others = people[1:]
    relay, entry = relay_of(sites, folder)

    async def live():
        relay.open(entry.host, entry.port)
        others_live = asyncio.create_task(run_together(others, [None] * 2))
        first = asyncio.create_task(run_together(people[:1], [None]))
        while people[0].host.machine.count < 3:
            await asyncio.sleep(0.01)
        began = rotate(read_site(sites[0]), 1.0)
        assert began.untold
        heard = 2 + bool(at_relay)
        while len(status(people[0]).get("new_key", {}).get("heard", [])) < heard:
            people[0].host.people.look()
            people[0].host._pass_on()
            await asyncio.sleep(0.01)
        people[0].host.stop()
        await first
        people[0].host.journal.close()
        shutil.copytree(sites[0].parent, copy)  # with the old key, from before the change
        assert finish(read_site(sites[0])).finished
        people[0] = participant(read_site(sites[0]))
        await asyncio.gather(run_together(people[:1], [None]), others_live)
        await relay.close()

    try:
        asyncio.run(live())
    finally:
        for one in people:
            one.host.journal.close()
    reports = [write_report(one) for one in people]
    assert [report["problems"] for report in reports] == [[], [], []]
    assert all(report["missed"] == 0 for report in reports)
    told = [check(one.parent / "state" / "report.json", people[1].host.book) for one in sites]
    assert [one.wrong for one in told] == ["", "", ""]
    kept = list((folder / "successions").glob("*.toml"))
    assert len(kept) == bool(at_relay)
    assert relay_of(sites, folder)[0].people.of(people[0].host.identity.fingerprint()) == (
        people[0].host.book.entry(0).fingerprint if at_relay else ""
    )
    assert people[0].host.identity.fingerprint() != people[0].host.book.entry(0).fingerprint
    assert (sites[0].parent / STAMPS).stat().st_mode & 0o077 == 0
    assert people[0].host.run_id == people[1].host.run_id
    assert Members(people[2].host.book, sites[2].parent / "successions").look()  # it was kept
