"""Places on the network: a host and a port, checked and written in one way."""

from __future__ import annotations

import ipaddress
import re

from bruit.errors import ConfigError

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


def written(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def place_of(text: str, what: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[IPv6]:port`; `what` names it in errors."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    if (
        not (port.isascii() and port.isdecimal())
        or len(port) > 5
        or not host
        or bracketed != (":" in host)
    ):
        raise ConfigError(f"{what} must be host:port, or [IPv6 address]:port, found {text[:300]!r}")
    check_place(host, int(port), what)
    return host, int(port)


def check_place(host: str, port: int, whose: str, where: str = "") -> None:
    """Refuse what can be no host, or no port."""
    here = f"{where}: " if where else ""
    if not 1 <= port <= 65535:
        raise ConfigError(f"{here}the port of {whose} must be in 1..65535, found {port}")
    if not _is_host(host):
        raise ConfigError(f"{here}the host of {whose} is no host name or address: {host!r}")


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            return (
                ipaddress.IPv6Address(host).scope_id is None
            )  # a scope means something on one machine only
        except ValueError:
            return False
    return HOST.fullmatch(host) is not None
