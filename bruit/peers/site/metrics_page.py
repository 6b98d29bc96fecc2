"""The one page of a peer's metrics: whom it answers, and what else it says.

It listens on loopback, but that alone keeps nobody out: a page of a stranger, open in a browser of
this machine, can give this machine's address a name of its own (DNS rebinding) and read what is
answered to that name. So only requests for `/metrics` that name this machine are answered, and none
that a browser sends for a page of another origin.
"""

from __future__ import annotations

from collections.abc import Callable

PATH = "/metrics"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PROMETHEUS = "text/plain; version=0.0.4"


def host_name(host: str) -> str:
    """The name in a Host header, without its port and as names are compared."""
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return name.strip().lower()


def reply(request: bytes, metrics: Callable[[], str]) -> bytes:
    """The whole answer to the head of a request."""
    first, *lines = request.decode("latin-1").split("\r\n")
    words = first.split(" ")
    headers = [
        (name.strip().lower(), value.strip())
        for name, found, value in (line.partition(":") for line in lines)
        if found
    ]
    hosts = [value for name, value in headers if name == "host"]
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _page("400 Bad Request", "this is no HTTP request")
    if len(hosts) > 1 or any(
        host_name(host) not in LOOPBACK for host in hosts
    ):  # a browser always names one
        return _page(
            "403 Forbidden", f"metrics are for this machine: ask for http://127.0.0.1:PORT{PATH}"
        )
    if any(name == "origin" for name, _ in headers):
        return _page("403 Forbidden", "no other page may read these metrics")
    if words[1] != PATH:
        return _page("404 Not Found", f"there is {PATH} here, and nothing else")
    if words[0] != "GET":
        return _page("405 Method Not Allowed", f"{PATH} is read with GET", "Allow: GET\r\n")
    return _page("200 OK", metrics(), kind=PROMETHEUS)


def _page(status: str, text: str, more: str = "", kind: str = "text/plain") -> bytes:
    body = text.encode() if text.endswith("\n") else text.encode() + b"\n"
    head = (
        f"HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n{more}\r\n"
    )
    return head.encode() + body
