"""Ports for peers on loopback: nobody else is given them between being found and being listened
to."""

import asyncio
import socket

import grpc
import pytest

from bruit.errors import ConfigError
from bruit.peers import engine as network
from bruit.peers.engine import free_ports, held_ports


def test_no_port_that_the_system_gives_to_who_asks_for_any():
    """Others ask for any port all the time, callers for their own end too: none of them may be
    given one of ours."""
    ports = set(free_ports(50))
    assert len(ports) == 50
    asked = []
    for _ in range(50):
        asked.append(socket.socket())
        asked[-1].bind(("127.0.0.1", 0))
    given = [one.getsockname()[1] for one in asked]
    for one in asked:
        one.close()
    assert max(ports) < min(given)


def test_no_port_that_a_worker_of_ray_listens_to_when_it_starts():
    """Its workers take 10002 to 19999, in any test beside this one: a peer whose port was gone
    when it came to listen was missed by its neighbors."""
    assert network.PORTS.start > 19_999


def test_two_who_look_at_once_begin_at_different_places():
    firsts = {free_ports(1)[0] for _ in range(20)}
    assert len(firsts) > 1  # false alarm: about 12768 ** -19


def test_ports_in_use_are_passed_over_and_too_few_are_told(monkeypatch):
    (first,) = free_ports(1)
    monkeypatch.setattr(network, "PORTS", range(first, first + 1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        with pytest.raises(ConfigError, match="1 ports of loopback are needed, 0 are free"):
            free_ports(1)
    assert free_ports(1) == [first]


def test_held_ports_are_found_by_nobody_and_can_be_listened_to():
    (port,) = free_ports(1)
    with held_ports([port]):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))

        async def listen():
            server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
            assert server.add_insecure_port(f"127.0.0.1:{port}") == port
            await server.start()
            with socket.create_connection(("127.0.0.1", port), timeout=60):
                pass
            await server.stop(None)

        asyncio.run(listen())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
