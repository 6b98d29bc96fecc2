"""The door before a handshake, frames of agreed size, and a board service that many call at
once."""

import asyncio
import json
import socket
import ssl
import sys
import threading
import time

import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.errors import RemoteProtocolError
from bruit.peers.engine import free_ports
from bruit.peers.wire import framed as framed_lines
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.framed import (
    AT_DOOR_EACH,
    Doorstep,
    announced,
    framed,
    read_message,
)
from bruit.peers.wire.identity import TLS_NAME
from bruit.peers.wire.pinned import pinned_context
from bruit.statistics.average import service as board_service
from bruit.statistics.average.service import LINES_EACH, MOST_REFUSED, packed, question_bytes
from tests.unit.peers.small_village import Village


def test_one_too_many_takes_the_place_of_the_oldest_where_most_are():
    door, gone = Doorstep(most=4, each=2), []
    tickets = [door.enter(place, lambda k=k: gone.append(k)) for k, place in enumerate("aabacdbbe")]
    # the third a takes the place of the first; then four are in, and d, b, b, e take those of the oldest
    # of a, of all (twice: one each), and of b
    assert gone == [0, 1, 2, 3, 6]
    assert (len(door), door.turned_away) == (4, 5)
    for ticket in tickets:  # those who are gone have left already
        door.leave(ticket)
    assert len(door) == 0


@pytest.mark.parametrize(("size", "largest"), [(0, 10), (11, 10), (2**31, 2**40)])
def test_a_length_that_is_not_allowed_is_refused_before_anything_is_read(size, largest):
    with pytest.raises(RemoteProtocolError, match=f"a message of {size} bytes is announced"):
        announced(size.to_bytes(4, "big"), largest)


def test_a_message_that_never_ends_is_not_waited_for():
    async def slow():
        reader = asyncio.StreamReader()
        reader.feed_data(framed(b"hello")[:6])
        await read_message(reader, 10, 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(slow())


class Serving(threading.Thread):
    """The board of a village, served at a free port from a thread of its own."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.ready, self.port = folder, threading.Event(), 0
        self.start()
        assert self.ready.wait(60)

    def run(self):
        self.village = Village(self.folder)  # sqlite wants one thread
        asyncio.run(self.serve())

    async def serve(self):
        (self.port,) = free_ports(1)
        own = self.village.book.entry(0)
        self.reception = self.village.service.serve(
            Entry(
                peer=0, name=own.name, host="127.0.0.1", port=self.port, certificate=own.certificate
            )
        )
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        self.ready.set()
        await self.end.wait()
        self.reception.close()
        self.village.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.end.set)
        self.join(60)

    def line(self, name="eve"):
        """A caller with that identity."""
        context = pinned_context(
            self.folder / name, [self.village.book.entry(0).certificate], ssl.PROTOCOL_TLS_CLIENT
        )
        return context.wrap_socket(self.raw(), server_hostname=TLS_NAME)

    def raw(self, place="127.0.0.1"):
        raw = socket.create_connection(("127.0.0.1", self.port), source_address=(place, 0))
        raw.settimeout(60)
        return raw


@pytest.fixture
def serving(tmp_path):
    made = Serving(tmp_path)
    yield made
    made.stop()


def asked(line, content):
    """The answer; None when the service hung up."""
    try:
        line.sendall(framed(json.dumps(content).encode()))
        return heard(line)
    except OSError:
        return None


def heard(line):
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        try:
            piece = line.recv(65536)
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    return json.loads(data[4:])


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def patient(monkeypatch):
    """Nobody leaves the door by itself while a test lasts."""
    monkeypatch.setattr(framed_lines, "HANDSHAKE", 300.0)


def served_beside(serving, crowd):
    """The oldest of the crowd is hung up on, a peer is served, and the newest are there still."""
    assert crowd[0].recv(1) == b""
    with serving.line() as line:
        assert asked(line, {"kind": "posts", "start": 0})["posts"]
    crowd[-1].setblocking(False)
    with pytest.raises(BlockingIOError):
        crowd[-1].recv(1)
    assert serving.reception.door.turned_away
    for one in crowd:
        one.close()
    until(lambda: len(serving.reception.door) == 0)


@pytest.mark.usefixtures("patient")
def test_strangers_at_the_door_of_a_board_do_not_keep_its_peers_out(serving):
    """More silent callers than one address may have: the oldest are hung up on, and a peer from the
    same address is served beside the others. It was turned away, again and again, until they left."""
    served_beside(serving, [serving.raw() for _ in range(3 * AT_DOOR_EACH)])


@pytest.mark.usefixtures("patient")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere loopback is one address")
def test_strangers_from_many_addresses_do_not_either(serving):
    places = [f"127.0.0.{2 + k}" for k in range(8)]
    served_beside(serving, [serving.raw(place) for place in places for _ in range(AT_DOOR_EACH)])


def test_a_peer_has_so_many_lines_and_its_newest_ones_count(serving):
    """Who calls again and again pushes out itself: a line that died unseen does not keep its owner
    out."""
    held = [serving.line() for _ in range(LINES_EACH)]
    assert all(asked(line, {"kind": "posts", "start": 0}) for line in held)
    with serving.line("bob") as other, serving.line() as more:
        assert asked(more, {"kind": "posts", "start": 0})
        assert asked(held[0], {"kind": "posts", "start": 0}) is None
        assert asked(held[1], {"kind": "posts", "start": 0})
        assert asked(other, {"kind": "posts", "start": 0})
    for line in held:
        line.close()


def test_a_peer_that_floods_the_board_is_not_heard_any_more(serving):
    junk = {"kind": "append", "post": packed(serving.village.signed("note", "x" * 1000))}
    with serving.line() as line:
        answers = [asked(line, junk) for _ in range(MOST_REFUSED + 5)]
    assert ["refused" in answer for answer in answers if answer] == [True] * MOST_REFUSED
    with serving.line() as again:
        assert asked(again, {"kind": "posts", "start": 0}) is None
    with serving.line("bob") as other:
        assert len(asked(other, {"kind": "posts", "start": 0})["posts"]) == 1


def test_a_message_longer_than_any_post_of_the_agreement_is_not_read(serving):
    most = question_bytes(serving.village.agreement)
    assert most < 2**15
    with serving.line() as line:
        line.sendall((most + 1).to_bytes(4, "big"))
        assert heard(line) is None


def test_who_says_nothing_is_hung_up_on(serving, monkeypatch):
    monkeypatch.setattr(board_service, "IDLE", 0.1)
    with serving.line() as line:
        assert heard(line) is None
