"""Ports for peers on loopback: nobody else is given them between being found and being listened to."""

import socket

import pytest

from bruit.engines import network
from bruit.engines.network import free_ports
from bruit.errors import ConfigError


def test_no_port_that_the_system_gives_to_who_asks_for_any():
    """Others ask for any port all the time, callers for their own end too: none of them may be given one of ours."""
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


def test_two_who_look_at_once_begin_at_different_places():
    firsts = {free_ports(1)[0] for _ in range(20)}
    assert len(firsts) > 1  # false alarm: about 20000 ** -19


def test_ports_in_use_are_passed_over_and_too_few_are_told(monkeypatch):
    (first,) = free_ports(1)
    monkeypatch.setattr(network, "PORTS", range(first, first + 1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        with pytest.raises(ConfigError, match="1 ports of loopback are needed, 0 are free"):
            free_ports(1)
    assert free_ports(1) == [first]
