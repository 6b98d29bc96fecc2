"""A relay connects peers that open no port; it sees who and how much and nothing else; hostile
callers, members and relays cost little and change nothing."""

import asyncio
import os
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.relay import relay as relays
from bruit.peers.relay.allowance import Allowance
from bruit.peers.relay.preamble import Ask, asked, said
from bruit.peers.relay.way import RelayUnreachable, Ways, ask_relay
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook, merge, public_entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.pinned import pinned_context
from bruit.peers.wire.relay_entry import RelayEntry, public_relay
from bruit.peers.wire.succession import Succession
from tests.unit.peers.relayed import live_through_relay, relay_of, relayed_network

TOKEN, PRINT = "0" * 32, ":".join(["00ff"] * 16)


@pytest.mark.parametrize("at_relay", [[0, 1, 2], [1]])
def test_peers_without_a_port_take_part(tmp_path, at_relay):
    sites, folder = relayed_network(tmp_path, at_relay)
    _, reports, relay = live_through_relay(sites, folder)
    assert [report["problems"] for report in reports] == [[], [], []]
    assert all(report["met"] == 2 for report in reports)
    names = {row["callee"] for row in relay.seen.table(relay.names)}
    assert names == {f"peer-{peer}" for peer in at_relay}


def test_a_site_may_say_where_it_is_reached(tmp_path):
    sites, folder = relayed_network(tmp_path, [0, 1])
    book = AddressBook.read(sites[0].parent / "book.toml")
    for peer in (0, 1):  # its own book does not know that it has no port
        AddressBook.of(
            [*book.entries[:peer], found_port(book, peer), *book.entries[peer + 1 :]],
            relays=book.relays,
        ).write(sites[peer].parent / "book.toml")
        with open(sites[peer], "a") as site:
            site.write(f'relay = "{book.relays[0].address}"\n')
    people, reports, _ = live_through_relay(sites, folder)
    assert [report["problems"] for report in reports] == [[], [], []]
    assert people[0].host.ways.relayed is not None


def found_port(book, peer):
    return replace(book.entry(peer), host="192.0.2.1", port=9, relay=False)


def test_a_peer_that_stops_ends_its_lines_without_a_trace(tmp_path, caplog, monkeypatch):
    """It wrote the traceback of a line that was open to its log."""
    sites, _ = relayed_network(tmp_path, [1])
    book = AddressBook.read(sites[0].parent / "book.toml")
    ended = []

    async def connected(*_):
        return asyncio.StreamReader(), SimpleNamespace(close=lambda: ended.append("the line"))

    async def stop():
        ways = Ways(folder=sites[0].parent, members=Members(book), me=0)
        await ways.open([1])
        place = ways.address(book.entry(1)).removeprefix("unix:")
        reader, _ = await asyncio.open_unix_connection(place)
        await asyncio.sleep(0.05)
        await ways.close()
        assert await asyncio.wait_for(reader.read(), 10.0) == b""

    monkeypatch.setattr("bruit.peers.relay.way.ask_relay", connected)
    asyncio.run(stop())
    assert ended == ["the line"]
    assert [one.getMessage() for one in caplog.records if one.name == "asyncio"] == []


@pytest.mark.slow
def test_a_relay_that_starts_again_is_found_again(tmp_path):
    sites, folder = relayed_network(tmp_path, [0, 1, 2], text=MANY_STEPS, timeout=30.0)

    async def restart(relay, people):
        while people[0].host.machine.count < 5:
            await asyncio.sleep(0.01)
        for member in relay._members.values():
            member.hang_up()

    _, reports, relay = live_through_relay(sites, folder, restart)
    assert [report["problems"] for report in reports] == [[], [], []]
    assert sum(row["calls"] for row in relay.seen.table(relay.names)) > 6


MANY_STEPS = """\
graph = "ring:3"
steps = 40
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.5
"""


@pytest.mark.slow
def test_a_relay_that_alters_bytes_breaks_lines_and_nothing_else(tmp_path, monkeypatch):
    sites, folder = relayed_network(tmp_path, [0, 1, 2], text=MANY_STEPS, timeout=30.0)
    real, left = relays._pump, [6]

    async def alter(reader, writer, rate, pair, going):
        read, seen = reader.read, 0

        async def altered(count):
            nonlocal seen
            data = await read(count)
            seen += len(data)
            if seen > 9000 and left[0] and data:
                left[0] -= 1
                return data[:-1] + bytes([data[-1] ^ 1])
            return data

        monkeypatch.setattr(reader, "read", altered, raising=False)
        await real(reader, writer, rate, pair, going)

    monkeypatch.setattr(relays, "_pump", alter)
    _, reports, _ = live_through_relay(sites, folder)
    assert left == [0]
    assert [report["problems"] for report in reports] == [[], [], []]
    assert all(not report["refused"].get("frame") for report in reports)


def test_what_passes_through_a_relay_is_not_in_clear(tmp_path, monkeypatch):
    sites, folder = relayed_network(tmp_path, [0, 1, 2])
    real, passed = relays._pump, []

    async def listening(reader, writer, rate, pair, going):
        read = reader.read

        async def noted(count):
            passed.append(await read(count))
            return passed[-1]

        monkeypatch.setattr(reader, "read", noted, raising=False)
        await real(reader, writer, rate, pair, going)

    monkeypatch.setattr(relays, "_pump", listening)
    people, _, _ = live_through_relay(sites, folder)
    seen = b"".join(passed)
    assert len(seen) > 10_000
    for secret in (b"gossip-sgd", bytes.fromhex(people[0].host.run_id), b"peer-1", b"bruit.Peer"):
        assert secret not in seen
    assert b"bruit-peer" in seen  # the name before encryption begins, which is everybody's


# words


@pytest.mark.parametrize(
    "ask",
    [Ask("listen"), Ask("call", PRINT), Ask("take", TOKEN), Ask("succeed", "1500")],
    ids=lambda ask: ask.kind,
)
def test_words_are_read_back(ask):
    assert asked(ask.line()) == ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"GET / HTTP/1.1\n", "does not speak to a relay"),
        (b"bruit-relay 2 listen\n", "version '2'"),
        (b"bruit-relay 1 serve\n", "asks for 'serve'"),
        (b"bruit-relay 1 listen now\n", "nothing that can be"),
        (b"bruit-relay 1 call peer-1\n", "nothing that can be"),
        (b"bruit-relay 1 take " + b"0" * 31 + b"\n", "nothing that can be"),
        (b"bruit-relay 1 succeed 12345\n", "nothing that can be"),
        (b"bruit-relay 1 listen", "does not end"),
        (b"\xff\n", "not ASCII"),
        (b"a" * 300 + b"\n", "line of 301 bytes"),
    ],
)
def test_other_words_are_refused(line, words):
    with pytest.raises(RemoteProtocolError, match=words):
        asked(line)


def test_no_bytes_raise_anything_but_a_protocol_error():
    good = [Ask("call", PRINT).line(), Ask("take", TOKEN).line(), b"call " + TOKEN.encode() + b"\n"]
    for turn in range(3000):
        line = bytearray(good[turn % 3])
        for place in os.urandom(1 + turn % 4):
            line[place % len(line)] ^= 1 << place % 8
        for read in (asked, said):
            for data in (bytes(line), os.urandom(turn % 300), bytes(line[: turn % len(line)])):
                try:
                    read(data)
                except RemoteProtocolError:
                    continue


def test_an_allowance_fills_again():
    now = [0.0]
    some = Allowance(10.0, 20.0, lambda: now[0])
    assert some.take(20) == 0.0
    assert some.take(5) == pytest.approx(0.5)
    assert not some.try_to_take(1)
    now[0] = 1.0
    assert some.try_to_take(5)
    assert not some.try_to_take(1)
    now[0] = 100.0
    assert some.take(20) == 0.0


# callers


@pytest.fixture
def relayed(tmp_path):
    """A relay of three members, and a function that talks to it."""
    sites, folder = relayed_network(tmp_path, [0, 1, 2])
    relay, entry = relay_of(sites, folder)
    homes = [site.parent for site in sites]

    def talk(conversation):
        async def whole():
            relay.open(entry.host, entry.port)
            try:
                return await conversation(relay, entry, homes)
            finally:
                await relay.close()

        return asyncio.run(whole())

    return talk


def test_a_stranger_and_another_relay_are_refused(relayed, tmp_path):
    Identity.create("stranger").save(tmp_path / "stranger")

    async def conversation(relay, entry, homes):
        with pytest.raises(RelayUnreachable, match="does not know this peer's certificate"):
            await ask_relay(tmp_path / "stranger", entry, Ask("listen"))
        other = RelayEntry(entry.host, entry.port, Identity.create("relay").certificate)
        with pytest.raises(RelayUnreachable, match="does not show the relay's certificate"):
            await ask_relay(homes[0], other, Ask("listen"))
        nobody = RelayEntry("127.0.0.1", 1, entry.certificate)
        with pytest.raises(RelayUnreachable, match="cannot be reached"):
            await ask_relay(homes[0], nobody, Ask("listen"))
        assert relay.listening == 0

    relayed(conversation)


def test_calls_that_cannot_be_are_refused_by_name(relayed):
    async def conversation(relay, entry, homes):
        with pytest.raises(RelayUnreachable, match="nobody of that fingerprint"):
            await ask_relay(homes[0], entry, Ask("call", PRINT))
        me = relay.books[0].entry(0).fingerprint
        with pytest.raises(RelayUnreachable, match="nobody of that fingerprint"):
            await ask_relay(homes[0], entry, Ask("call", me))
        with pytest.raises(RelayUnreachable, match="is not connected to this relay"):
            await ask_relay(homes[0], entry, Ask("call", relay.books[0].entry(1).fingerprint))
        with pytest.raises(RelayUnreachable, match="no such call"):
            await ask_relay(homes[0], entry, Ask("take", TOKEN))

    relayed(conversation)


def test_a_token_is_for_the_one_who_was_called_and_for_once(relayed):
    async def conversation(relay, entry, homes):
        reader, writer = await ask_relay(homes[1], entry, Ask("listen"))
        called = relay.books[0].entry(1).fingerprint
        calling = asyncio.create_task(ask_relay(homes[0], entry, Ask("call", called)))
        token = said(await reader.readline()).what
        with pytest.raises(RelayUnreachable, match="no such call"):
            await ask_relay(homes[2], entry, Ask("take", token))
        theirs = await ask_relay(homes[1], entry, Ask("take", token))
        mine = await calling
        with pytest.raises(RelayUnreachable, match="no such call"):
            await ask_relay(homes[1], entry, Ask("take", token))
        mine[1].write(b"over")
        assert await theirs[0].readexactly(4) == b"over"
        theirs[1].close()
        assert await mine[0].read() == b""
        writer.close()
        mine[1].close()

    relayed(conversation)


def test_members_of_different_books_do_not_meet(tmp_path):
    people = [Identity.create(name) for name in ("ada", "bob")]
    for one in people:
        one.save(tmp_path / one.name)
    identity = Identity.create("relay")
    identity.save(tmp_path / "relay")
    books = [merge([public_entry(one, "127.0.0.1", 1)]) for one in people]

    async def conversation():
        relay = relays.Relay(tmp_path / "relay", books)
        entry = RelayEntry("127.0.0.1", relay.open("127.0.0.1", 0), identity.certificate)
        kept = await ask_relay(tmp_path / "bob", entry, Ask("listen"))
        with pytest.raises(RelayUnreachable, match="nobody of that fingerprint"):
            await ask_relay(tmp_path / "ada", entry, Ask("call", people[1].fingerprint()))
        kept[1].close()
        await relay.close()

    asyncio.run(conversation())


def test_a_member_that_comes_too_often_is_refused_and_others_are_not(relayed, monkeypatch):
    monkeypatch.setattr(relays, "CALLS", 0.001)

    async def conversation(relay, entry, homes):
        for member in relay._members.values():
            member.calls.rate, member.calls.most = 0.001, 3.0
            member.calls._level = 3.0
        for _ in range(3):
            with pytest.raises(RelayUnreachable, match="no such call"):
                await ask_relay(homes[0], entry, Ask("take", TOKEN))
        with pytest.raises(RelayUnreachable, match="too many lines in a short time"):
            await ask_relay(homes[0], entry, Ask("take", TOKEN))
        kept = await ask_relay(homes[1], entry, Ask("listen"))
        assert relay.listening == 1
        kept[1].close()
        assert relay.seen.refused == {"peer-0": 4}

    relayed(conversation)


def test_a_member_that_calls_one_without_end_keeps_nobody_else_from_it(relayed):
    """It has as many lines to one as there are, and the called one pays for none of them."""

    async def conversation(relay, entry, homes):
        reader, _ = await ask_relay(homes[1], entry, Ask("listen"))
        called = relay.books[0].entry(1).fingerprint
        relay._members[called].calls = Allowance(1e-9, 1e-9)  # it cannot come by itself any more

        async def call(home):
            calling = asyncio.create_task(ask_relay(home, entry, Ask("call", called)))
            token = said(await reader.readline()).what
            return await ask_relay(homes[1], entry, Ask("take", token)), await calling

        lines = [await call(homes[0]) for _ in range(relays.EACH)]
        with pytest.raises(RelayUnreachable, match="too many lines at once to that peer"):
            await ask_relay(homes[0], entry, Ask("call", called))
        lines.append(await call(homes[2]))
        lines[-1][1][1].write(b"here")
        assert await lines[-1][0][0].readexactly(4) == b"here"
        with pytest.raises(RelayUnreachable, match="too many lines in a short time"):
            await ask_relay(homes[1], entry, Ask("take", TOKEN))
        for one in (end for line in lines for end in line):
            one[1].close()
        while any(member.lines.total() for member in relay._members.values()):
            await asyncio.sleep(0.01)
        assert not relay._calls

    relayed(conversation)


@pytest.mark.parametrize("words", [b"", b"bruit-relay 1 take " + TOKEN.encode() + b"\n"])
def test_a_member_that_opens_lines_and_says_nothing_holds_few_of_them(relayed, words):
    """One member that came again and again took all files of the relay, and nobody else got in:
    only lines that had asked for something were counted. Nor does it help to leave a no unread."""

    async def conversation(relay, entry, homes):
        kept = await ask_relay(homes[1], entry, Ask("listen"))
        context = pinned_context(homes[0], [entry.certificate], ssl.PROTOCOL_TLS_CLIENT)
        mine = relay._members[relay.books[0].entry(0).fingerprint]
        mine.calls = Allowance(1e-9, 1e-9)
        lines = []
        for _ in range(3 * mine.most_asking):
            ends = await asyncio.open_connection(entry.host, entry.port, ssl=context)
            ends[1].transport.pause_reading()
            ends[1].write(words)
            lines.append(ends)
            assert len(mine.writers) <= mine.most_asking + 1
        assert mine.most_asking == relays.ASKING + 3
        await ask_relay(homes[2], entry, Ask("listen"))
        assert relay.listening == 2
        for one in lines:
            one[1].transport.abort()
        kept[1].close()

    relayed(conversation)


async def write_for_ever(writer):
    """Until it has to wait."""
    while True:
        writer.write(bytes(2**16))
        await writer.drain()


def test_who_sends_fast_waits(relayed):
    async def conversation(relay, entry, homes):
        reader, _ = await ask_relay(homes[1], entry, Ask("listen"))
        called, caller = (relay.books[0].entry(peer).fingerprint for peer in (1, 0))
        relay._members[caller].rate = Allowance(1.0, 1.0)
        calling = asyncio.create_task(ask_relay(homes[0], entry, Ask("call", called)))
        theirs = await ask_relay(homes[1], entry, Ask("take", said(await reader.readline()).what))
        mine = await calling
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(write_for_ever(mine[1]), 1.0)
        assert relay.seen.pairs[caller, called].to_callee <= relays.HELD
        theirs[1].transport.abort()
        mine[1].transport.abort()

    relayed(conversation)


def test_noise_at_the_door_and_inside_harms_nobody(relayed):
    async def conversation(relay, entry, homes):
        kept = await ask_relay(homes[1], entry, Ask("listen"))
        for size in (0, 1, 100, 5000):
            _, writer = await asyncio.open_connection(entry.host, entry.port)
            writer.write(os.urandom(size))
            writer.close()
        context = pinned_context(homes[0], [entry.certificate], ssl.PROTOCOL_TLS_CLIENT)
        for words in (os.urandom(100), bytes(2**18), b"bruit-relay 1 call \n", b"\n", b""):
            reader, writer = await asyncio.open_connection(entry.host, entry.port, ssl=context)
            writer.write(words)
            if words:
                writer.write_eof() if writer.can_write_eof() else writer.close()
            else:
                writer.close()
        reader, writer = await ask_relay(homes[2], entry, Ask("listen"))
        writer.write(b"call somebody\n")
        assert b"nothing but pong" in await reader.read()
        assert relay.listening == 1
        kept[1].close()

    relayed(conversation)


def test_who_leaves_the_book_is_cut_off_and_newcomers_are_served(tmp_path):
    people = [Identity.create(name) for name in ("ada", "bob", "eve")]
    for one in people:
        one.save(tmp_path / one.name)
    identity = Identity.create("relay")
    identity.save(tmp_path / "relay")
    snippets = [public_entry(one, "127.0.0.1", 1 + k) for k, one in enumerate(people)]

    async def conversation():
        relay = relays.Relay(tmp_path / "relay", [merge(snippets[:2])])
        entry = RelayEntry("127.0.0.1", relay.open("127.0.0.1", 0), identity.certificate)
        with pytest.raises(RelayUnreachable):
            await ask_relay(tmp_path / "eve", entry, Ask("listen"))
        bob, line = await ask_relay(tmp_path / "bob", entry, Ask("listen"))
        relay.renew([merge([snippets[0], snippets[2]])])
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await bob.readuntil(b"\n")
        line.close()
        with pytest.raises(RelayUnreachable):
            await ask_relay(tmp_path / "bob", entry, Ask("listen"))
        await ask_relay(tmp_path / "eve", entry, Ask("listen"))
        await relay.close()

    asyncio.run(conversation())


# books


def test_relays_are_merged_and_must_be_listed(tmp_path):
    ada = Identity.create("ada")
    relay = Identity.create("relay")
    at = public_entry(ada, "relay.example.org", 443, relay=True)
    book = merge([at, public_relay(relay, "relay.example.org", 443)])
    assert AddressBook.parse(book.text()) == book
    assert book.way(book.entry(0)).fingerprint == relay.fingerprint()
    with pytest.raises(ConfigError, match=r"relay relay\.example\.org:443, which is not listed"):
        merge([at])
    with pytest.raises(ConfigError, match="host:port"):
        book.reached_at(0, "relay.example.org")
    with pytest.raises(ConfigError, match="host:port"):
        book.reached_at(0, "::1:443")
    with pytest.raises(ConfigError, match="a relay has host, port, certificate"):
        AddressBook.parse(book.text().replace("[[relay]]\nhost", "[[relay]]\nname"))
    assert (
        merge([public_entry(ada, "x.org", 1), public_relay(relay, "::1", 443)]).relays[0].address
        == "[::1]:443"
    )


# relays that lie


def test_a_relay_that_brings_another_peer_is_found_out(tmp_path, monkeypatch):
    """Whoever is called, it connects peer 2: TLS inside shows another certificate than the
    book's."""
    sites, folder = relayed_network(tmp_path, [0, 1, 2], lines="start_timeout = 1.5\n", timeout=0.5)
    real = relays.Relay._call

    async def crossed(self, who, whom, member, ends):
        third = self.books[0].entry(2).fingerprint
        await real(self, who, whom if who == third else third, member, ends)

    monkeypatch.setattr(relays.Relay, "_call", crossed)
    _, reports, _ = live_through_relay(sites, folder)
    assert [report["step"] for report in reports] == [0, 0, 0]
    assert [report["epsilon"] for report in reports] == [0.0, 0.0, 0.0]


class Liar:
    """A relay that says what a test makes it say, to whoever comes with a certificate."""

    def __init__(self, relay, answer):
        self.relay, self.lines = relay, 0
        self._answer = answer
        relay._greet = self._greet

    async def _greet(self, ends):
        self.lines += 1
        line = await ends[0].readline()
        await self._answer(asked(line), ends)


def live_with_liar(tmp_path, answer, until):
    """One peer whose relay lies, until a test has seen enough."""
    sites, folder = relayed_network(tmp_path, [0, 1, 2])
    relay, entry = relay_of(sites, folder)
    liar = Liar(relay, answer)
    one = participant(read_site(sites[0]))

    async def live():
        relay.open(entry.host, entry.port)
        life = asyncio.create_task(one.host.run())
        while not until(liar, one):
            await asyncio.sleep(0.01)
        one.host.stop()
        await life
        await relay.close()

    try:
        asyncio.run(live())
    finally:
        one.host.journal.close()
    return one, liar


def test_a_relay_that_talks_nonsense_is_left_and_tried_again(tmp_path):
    words = [b"\xff\xfe\n", b"x" * 10_000, b"ok\nno way\n", b"ok\ncall me\n", b"", b"ok\nok\n"]

    async def answer(ask, ends):
        ends[1].write(words[liar_turn() % len(words)])
        ends[1].close()

    turns = iter(range(10**6))

    def liar_turn():
        return next(turns)

    one, _ = live_with_liar(tmp_path, answer, lambda liar, one: liar.lines > 2 * len(words))
    assert one.host.machine.state is None  # nothing was released


def test_a_relay_that_calls_without_end_costs_little(tmp_path):
    taken = []

    async def answer(ask, ends):
        if ask.kind == "call":
            ends[1].write(b"no\n")
        elif ask.kind == "listen":
            ends[1].write(b"ok\n" + b"".join(b"call %032x\n" % k for k in range(2000)))
            await ends[1].drain()
        else:
            taken.append(ends)  # and says nothing more: more than these it does not get

    one, _ = live_with_liar(tmp_path, answer, lambda liar, one: len(taken) >= 16)
    assert len(taken) == 16
    assert one.host.machine.state is None


def test_two_of_one_name_in_two_books_both_get_in(tmp_path):
    """OpenSSL looked at the first certificate of a name only, so that the other was a stranger."""
    networks = [relayed_network(tmp_path / name, [0, 1, 2]) for name in ("one", "two")]
    books = [AddressBook.read(sites[0].parent / "book.toml") for sites, _ in networks]
    relay = relays.Relay(networks[0][1], books)
    certificate = Identity.load(networks[0][1]).certificate

    async def conversation():
        entry = RelayEntry("127.0.0.1", relay.open("127.0.0.1", 0), certificate)
        for sites, _ in networks:
            (await ask_relay(sites[0].parent, entry, Ask("listen")))[1].close()
        await relay.close()

    asyncio.run(conversation())


def test_a_relay_believes_no_succession_that_is_not_signed_by_both(relayed, tmp_path):
    async def conversation(relay, entry, homes):
        old, new = Identity.load(homes[0]), Identity.create("peer-0")
        until = datetime.now(UTC) + timedelta(days=1)
        good = Succession.of(old, new, until)
        new.save(tmp_path / "new")

        async def tell(home, data, size=None):
            ask = Ask("succeed", str(len(data) if size is None else size))
            (await ask_relay(home, entry, ask, data))[1].close()

        with pytest.raises(RelayUnreachable, match="does not know this peer's certificate"):
            await tell(tmp_path / "new", good.text().encode())
        for wrong, words in (
            (replace(good, by_old=good.by_new), "not signed by its old key"),
            (Succession.of(Identity.create("peer-0"), new, until), "nobody in the address book"),
        ):
            with pytest.raises(RelayUnreachable, match=words):
                await tell(homes[1], wrong.text().encode())
        with pytest.raises(RelayUnreachable, match="no succession"):
            await tell(homes[1], b"x" * 100)
        with pytest.raises(RelayUnreachable, match="has no 9999 bytes"):
            await tell(homes[1], b"", 9999)
        assert not (tmp_path / "relay" / "successions").exists()
        await tell(homes[1], good.text().encode())  # of another, who has heard of it
        await tell(homes[2], good.text().encode())
        await tell(tmp_path / "new", good.text().encode())
        assert relay.people.of(new.fingerprint()) == relay.people.of(old.fingerprint())
        assert len(list((tmp_path / "relay" / "successions").iterdir())) == 1
        (tmp_path / "relay" / "successions" / "junk.toml").write_text("junk")
        relay.look()
        assert len(relay.people.certificates()) == 4

    relayed(conversation)
