"""The threshold: strangers hold sockets, and neighbors get in all the same."""

import asyncio
import contextlib
import socket
from collections import Counter

import pytest

from bruit.peers.engine import free_ports
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.threshold import EACH, Threshold
from tests.unit.peers.small_network import found_small

CALLERS = 2
MOST = EACH + CALLERS


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def opened(patience=30.0):
    """A threshold before a server that says everything back and notes who called."""
    closed, names = Counter(), []
    threshold = Threshold(CALLERS, lambda address, why: closed.update([why]), patience)

    async def echo(reader, writer):
        names.append("unix:" + writer.get_extra_info("peername"))
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(2**16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(echo, threshold.private)
    (port,) = free_ports(1)
    await threshold.open(Entry(peer=0, name="a", host="127.0.0.1", port=port, certificate=""))
    try:
        yield threshold, port, closed, names
    finally:
        await threshold.close()
        server.close()


async def speak(port, text=b"hello"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    assert await asyncio.wait_for(reader.readexactly(len(text)), 30) == text
    return reader, writer


def test_idle_connections_make_room_for_new_ones():
    async def crowd():
        async with opened() as (threshold, port, closed, _):
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * MOST)]
            await until(lambda: closed["too many"] == 2 * MOST)
            assert threshold.unknown == MOST
            assert await asyncio.wait_for(idle[0][0].read(), 30) == b""
            _, writer = await speak(port)
            assert threshold.unknown == MOST
            writer.close()
            await until(lambda: threshold.unknown == MOST - 1)
            for _, one in idle:
                one.close()
            await until(lambda: threshold.unknown == 0)

    asyncio.run(crowd())


def test_who_says_nothing_of_use_is_closed_after_a_while_and_a_neighbor_is_not():
    async def wait():
        async with opened(patience=0.3) as (threshold, port, closed, names):
            silent = await asyncio.open_connection("127.0.0.1", port)
            talker = await speak(port)
            neighbor = await speak(port)
            ended = threshold.speaks(names[1])
            assert await asyncio.wait_for(silent[0].read(), 30) == b""
            assert await asyncio.wait_for(talker[0].read(), 30) == b""
            neighbor[1].write(b"still here")
            assert await asyncio.wait_for(neighbor[0].readexactly(10), 30) == b"still here"
            assert closed == {"silent": 2}
            ended()  # its line has ended, and so its connection is nobody's
            assert await asyncio.wait_for(neighbor[0].read(), 30) == b""

    asyncio.run(wait())


def test_a_neighbor_is_not_turned_away_by_a_crowd():
    async def crowd():
        async with opened() as (threshold, port, closed, names):
            reader, writer = await speak(port)
            threshold.speaks(names[0])
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MOST)]
            await until(lambda: closed["too many"] == MOST)
            writer.write(b"x" * 10**6)
            assert await asyncio.wait_for(reader.readexactly(10**6), 30) == b"x" * 10**6
            for _, one in [*idle, (reader, writer)]:
                one.close()

    asyncio.run(crowd())


def test_the_address_with_most_strangers_makes_room():
    """Four addresses may fill the house; then the one with most of them loses its oldest."""

    class Nobody:
        def __init__(self, threshold, number, address):
            self.number, self.address, self.open = number, address, True

        def close(self):
            self.open = False

        abort = close

    async def fill():
        threshold = Threshold(CALLERS, lambda *_: None)
        people = [Nobody(threshold, k, f"10.0.0.{k % 8}") for k in range(4 * MOST - 3)]
        people += [Nobody(threshold, 1000 + k, "10.0.0.9") for k in range(3)]
        crowded = [Nobody(threshold, 2000 + k, "10.0.0.1") for k in range(4)]
        for one in [*people, *crowded]:
            threshold.entered(one)
        last = Nobody(threshold, 3000, "10.1.1.1")
        threshold.entered(last)
        assert threshold.unknown == 4 * MOST
        assert last.open
        assert all(one.open for one in people if one.address == "10.0.0.9")
        assert {one.address for one in people if not one.open} <= {f"10.0.0.{k}" for k in range(8)}
        await threshold.close()

    asyncio.run(fill())


def test_a_port_in_use_is_told():
    async def twice():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            threshold = Threshold(CALLERS, lambda *_: None)
            with pytest.raises(RuntimeError, match="cannot bind the address"):
                await threshold.open(
                    Entry(
                        peer=0,
                        name="a",
                        host="127.0.0.1",
                        port=taken.getsockname()[1],
                        certificate="",
                    )
                )
            await threshold.close()

    asyncio.run(twice())


@pytest.mark.slow
def test_peers_meet_while_strangers_hold_their_ports(tmp_path):
    """Idle sockets before the start and all along, from the neighbors' own address: the run ends as
    if alone."""
    chosen = [participant(read_site(site), 4) for site in found_small(tmp_path)]
    ports = [one.host.book.entry(one.host.me).port for one in chosen]

    async def stranger(port, held):
        while True:
            with contextlib.suppress(OSError):
                held.append(await asyncio.open_connection("127.0.0.1", port))
            await asyncio.sleep(0.002)

    async def everybody():
        held = []
        strangers = [asyncio.create_task(stranger(port, held)) for port in ports]
        await asyncio.gather(*(one.host.run() for one in chosen))
        for task in strangers:
            task.cancel()
        for _, writer in held:
            writer.close()
        return len(held)

    try:
        assert asyncio.run(everybody()) > 3 * MOST
    finally:
        for one in chosen:
            one.host.journal.close()
    assert all(one.host.ended and not one.host.absences.missed for one in chosen)
    assert sum(one.host.refused["stranger"] for one in chosen) > 0
