"""Peers and relays on IPv6 addresses."""

import socket

import pytest

from bruit.errors import ConfigError
from bruit.peers.founding.founding import found
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.place import place_of, written
from tests.unit.peers.relayed import live_through_relay, relayed_network
from tests.unit.peers.small_network import MEAN, live_together


def has_ipv6():
    if not socket.has_ipv6:
        return False
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(("::1", 0))
        except OSError:
            return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@needs_ipv6
def test_peers_listen_and_call_on_ipv6(tmp_path):
    (tmp_path / "agreed.toml").write_text(MEAN)
    sites = found(
        str(tmp_path / "agreed.toml"), 3, None, tmp_path / "network", host="::1", timeout=20.0
    )
    book = AddressBook.read(sites[0].parent / "book.toml")
    assert book.entry(0).address == f"[::1]:{book.entry(0).port}"
    _, reports = live_together(sites)
    assert [report["problems"] for report in reports] == [[], [], []]


@needs_ipv6
def test_a_relay_on_ipv6_is_reached(tmp_path):
    sites, folder = relayed_network(tmp_path, [1], host="::1")
    _, reports, relay = live_through_relay(sites, folder)
    assert [report["problems"] for report in reports] == [[], [], []]
    assert relay.books[0].relays[0].address.startswith("[::1]:")


@pytest.mark.parametrize(
    ("text", "place"),
    [("a.org:443", ("a.org", 443)), ("[::1]:7", ("::1", 7)), ("127.0.0.1:1", ("127.0.0.1", 1))],
)
def test_places_are_read_as_they_are_written(text, place):
    assert place_of(text, "relay") == place
    assert written(*place) == text


@pytest.mark.parametrize(
    "text", ["", ":", "a.org", "::1:7", "[::1]", "[::1]:", "[a.org]:1", "a.org:0", "a.org:70000",
             "[fe80::1%eth0]:1", "a b:1", "a.org:-1", "a.org:१"]
)  # fmt: skip
def test_no_other_text_is_a_place(text):
    with pytest.raises(ConfigError):
        place_of(text, "relay")
