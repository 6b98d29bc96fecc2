"""The line between two parties: pinned both ways, strangers turned away, nobody waited for for
ever."""

import socket
import ssl
import threading
import time

import numpy as np
import pytest

from bruit.accounts.account import unrecorded
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.wire.address_book import public_entry
from bruit.peers.wire.framed import AT_DOOR_EACH, LARGEST
from bruit.peers.wire.identity import Identity
from bruit.statistics.holders import Parties, TablesQuestion, ask, channel, connect, listen, rows_of
from bruit.statistics.holders.channel import host_and_port


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three participants: two partners and a stranger."""
    root = tmp_path_factory.mktemp("keys")
    for name in ("alice", "bob", "eve"):
        identity = Identity.create(name)
        identity.save(root / name)
        (root / name / "public.toml").write_text(public_entry(identity, "127.0.0.1", 7400))
    return root


def parties(folders, me, partner, file="certificate.pem"):
    return Parties(folders / me, folders / partner / file)


class Listening(threading.Thread):
    """bob, listening for alice on a free port in another thread; `work` gets the channel."""

    def __init__(self, folders, work, partner="alice", **options):
        super().__init__(daemon=True)
        self.folders, self.work, self.options, self.partner = folders, work, options, partner
        self.port, self.known = 0, threading.Event()
        self.result = self.error = None
        self.start()
        assert self.known.wait(20)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def run(self):
        def ready(port):
            self.port = port
            self.known.set()

        try:
            with listen(
                "127.0.0.1:0",
                parties(self.folders, "bob", self.partner),
                ready=ready,
                **self.options,
            ) as line:
                self.result = self.work(line)
        except Exception as error:
            self.error = error

    def finish(self):
        self.join(20)
        assert not self.is_alive()
        return self.error


def still_open_to_the_partner(server):
    """Whoever was turned away, the listener goes on waiting for alice, and hears her."""
    with connect(server.address, parties(server.folders, "alice", "bob")) as line:
        line.send(b"hello")
        assert server.finish() is None
    assert server.result == b"hello"


def test_two_parties_find_the_same_answer(folders):
    question = TablesQuestion("auc", 8.0)
    scores, labels = np.arange(60.0), np.arange(60) % 2
    mine, theirs = (
        rows_of(question, scores[:20], labels[:20]),
        rows_of(question, scores[20:], labels[20:]),
    )
    told = []
    server = Listening(
        folders, lambda line: ask("evaluator", question, theirs, line, spend=unrecorded)
    )
    with connect(server.address, parties(folders, "alice", "bob", "public.toml")) as line:
        found = ask(
            "garbler",
            question,
            mine,
            line,
            spend=unrecorded,
            tell=lambda done, total: told.append((done, total)),
        )
    assert server.finish() is None
    assert (found.raw, found.pairs, found.crossing) == (
        server.result.raw,
        30,
        server.result.crossing,
    )
    assert (found.sent_bytes, found.received_bytes) == (
        server.result.received_bytes,
        server.result.sent_bytes,
    )
    assert told[-1] == (1, 1)


def test_strangers_are_turned_away_and_the_right_one_still_gets_through(folders):
    server = Listening(folders, lambda line: line.receive())
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n\r\n")
    eve = connect(server.address, parties(folders, "eve", "bob"))
    with pytest.raises(
        RemoteProtocolError, match=r"broke the line off|hung up|line to the other holder broke"
    ):
        eve.receive()
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        line.send(b"hello")
        assert server.finish() is None
    assert server.result == b"hello"


def test_strangers_that_say_nothing_do_not_hold_the_partner_up(folders):
    """Before, each of them was waited for in turn, 5 seconds each."""
    server = Listening(folders, lambda line: line.receive())
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(AT_DOOR_EACH - 1)]
    begin = time.monotonic()
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        line.send(b"hello")
        assert server.finish() is None
    assert time.monotonic() - begin < 5 * (
        len(silent) - 1
    )  # loaded machines are slow; in turn it would be 75 s
    assert server.result == b"hello"
    for one in silent:
        one.close()


def test_a_crowd_from_one_address_loses_its_oldest_and_the_partner_gets_in(folders, monkeypatch):
    """It was hung up on until the crowd left by itself; who came again and again kept it out."""
    monkeypatch.setattr(channel, "HANDSHAKE", 300.0)  # nobody leaves by itself
    server = Listening(folders, lambda line: line.receive())
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(AT_DOOR_EACH + 10)]
    for one in crowd:
        one.settimeout(20)
    assert [one.recv(1) for one in crowd[:10]] == [b""] * 10  # at once
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        line.send(b"hello")
        assert server.finish() is None
    assert server.result == b"hello"
    for one in crowd:
        one.close()


def test_a_message_longer_than_what_is_due_is_not_read(folders):
    server = Listening(folders, lambda line: line.receive(100), timeout_s=10.0)
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        line._line.sendall((101).to_bytes(4, "big"))
        error = server.finish()
    assert isinstance(error, RemoteProtocolError)
    assert "101 bytes is announced; there are 1 to 100" in str(error)


def test_a_listener_that_is_somebody_else_is_found_out(folders):
    server = Listening(folders, lambda line: line.receive(), partner="alice")
    with pytest.raises(RemoteProtocolError, match="does not show the expected certificate"):
        connect(server.address, parties(folders, "alice", "eve"))
    still_open_to_the_partner(server)


def test_older_versions_of_tls_are_refused(folders):
    server = Listening(folders, lambda line: line.receive())
    context, _ = parties(folders, "alice", "bob").context(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", server.port)) as raw, pytest.raises(OSError):  # noqa: PT011
        context.wrap_socket(raw).recv(1)
    still_open_to_the_partner(server)


@pytest.mark.parametrize("begun", [b"", b"\0\0\1\0"], ids=["not a word", "half a message"])
def test_a_partner_that_falls_silent_is_not_waited_for(folders, begun):
    server = Listening(folders, lambda line: line.receive(), timeout_s=0.3)
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        line._line.sendall(begun)
        error = server.finish()
    assert isinstance(error, RemoteProtocolError)
    assert "said nothing for 0.3 s" in str(error)


@pytest.mark.parametrize(
    ("misdeed", "message"),
    [
        (lambda line: line.close(), "hung up|broke"),
        (
            lambda line: line._line.sendall((LARGEST + 1).to_bytes(4, "big")),
            "a message of 67108865 bytes is announced",
        ),
        (lambda line: line._line.sendall(bytes(4)), "a message of 0 bytes is announced"),
    ],
)
def test_a_partner_that_misbehaves_ends_the_conversation(folders, misdeed, message):
    server = Listening(folders, lambda line: line.receive())
    with connect(server.address, parties(folders, "alice", "bob")) as line:
        misdeed(line)
        error = server.finish()
    assert isinstance(error, RemoteProtocolError)
    with pytest.raises(RemoteProtocolError, match=message):
        raise error


def test_a_partner_that_takes_nothing_is_not_waited_for(folders):
    server = Listening(folders, lambda line: line.send(bytes(LARGEST)), timeout_s=0.3)
    with connect(server.address, parties(folders, "alice", "bob")):
        error = server.finish()
    assert isinstance(error, RemoteProtocolError)
    assert "took nothing for 0.3 s" in str(error)


def test_nobody_there(folders):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))  # held, so that nobody else answers there
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(RemoteProtocolError, match="nobody answers at"):
            connect(address, parties(folders, "alice", "bob"), patience_s=0.2)
    with pytest.raises(RemoteProtocolError, match="nobody with the expected certificate came"):
        listen("127.0.0.1:0", parties(folders, "alice", "bob"), patience_s=0.1)


def test_addresses_and_files_are_checked(folders, tmp_path):
    for address in ("nowhere", "a:b", ":70", "a:70000", "a:-1"):
        with pytest.raises(ConfigError, match="HOST:PORT"):
            host_and_port(address)
    with pytest.raises(ConfigError, match="cannot read the other holder's certificate"):
        connect("127.0.0.1:1", parties(folders, "alice", "nobody"))
    with pytest.raises(ConfigError, match=r"no .*key\.pem"):
        connect("127.0.0.1:1", Parties(tmp_path, folders / "bob" / "certificate.pem"))
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match="cannot listen at"),
    ):
        listen(f"127.0.0.1:{taken.getsockname()[1]}", parties(folders, "alice", "bob"))
