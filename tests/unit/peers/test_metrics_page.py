"""Metrics are read by this machine, by GET /metrics, and by nobody else."""

import asyncio

import pytest

from bruit.peers.site.metrics_page import reply
from bruit.peers.site.running import _serve_metrics
from bruit.peers.site.site import participant, read_site
from tests.unit.peers.small_network import found_small


def asked(first="GET /metrics HTTP/1.1", *headers):
    return reply("\r\n".join([first, *headers, "", ""]).encode(), lambda: "bruit_step 3\n")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9100", "localhost", "LOCALHOST:80", "[::1]:9100", "[::1]"]
)
def test_this_machine_is_answered(host):
    head, _, body = asked("GET /metrics HTTP/1.1", f"Host: {host}").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK")
    assert b"text/plain; version=0.0.4" in head
    assert body == b"bruit_step 3\n"


@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.example"],
        ["Host: evil.example:9100"],
        ["Host: 127.0.0.1.evil.example:9100"],
        ["Host: "],
        ["Host: localhost.evil.example"],
        ["host: 10.0.0.7"],
        ["Host: 127.0.0.1", "Host: evil.example"],
        ["Host: localhost", "Origin: http://evil.example"],
        ["Host: [::2]"],
    ],
)
def test_a_name_that_somebody_gave_to_this_address_is_refused(headers):
    said = asked("GET /metrics HTTP/1.1", *headers)
    assert said.startswith(b"HTTP/1.0 403")
    assert b"bruit_step" not in said


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("GET / HTTP/1.1", 404),
        ("GET /metrics/ HTTP/1.1", 404),
        ("GET /metrics?x HTTP/1.1", 404),
        ("GET http://127.0.0.1/metrics HTTP/1.1", 404),
        ("POST /metrics HTTP/1.1", 405),
        ("HEAD /metrics HTTP/1.1", 405),
        ("\x16\x03\x01", 400),
        ("GET /metrics", 400),
        ("", 400),
    ],
)
def test_there_is_one_page_and_one_way_to_read_it(first, code):
    said = asked(first, "Host: localhost")
    assert said.startswith(f"HTTP/1.0 {code}".encode())
    assert b"bruit_step" not in said


def test_a_peer_serves_its_metrics_to_this_machine_only(tmp_path):
    (site, *_) = found_small(tmp_path)
    one = participant(read_site(site))

    async def answers():
        server = await _serve_metrics(one, 0)
        port = server.sockets[0].getsockname()[1]
        found = []
        for host in (f"127.0.0.1:{port}", "evil.example"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            found.append(await asyncio.wait_for(reader.read(), 30))
            writer.close()
        server.close()
        return found

    own, strange = asyncio.run(answers())
    one.host.journal.close()
    assert b'bruit_step{peer="0"} 0' in own
    assert strange.startswith(b"HTTP/1.0 403")
    assert b"bruit_" not in strange
