"""Whether the head of a cluster of Ray still answers. Ray waits a minute for it, and then ends this
process without a word of ours; so we look more often, and give up before."""

from __future__ import annotations

import socket
import time

from bruit.errors import ConfigError

EVERY = 5.0  # seconds between two looks
MISSED = 3  # looks in a row
GONE = "what was kept is kept, and the same command on another place does the rest"


def knock(address: str) -> None:
    """OSError, if nobody listens at host:port."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=EVERY).close()


class Pulse:
    """`address` is host:port; empty for a client, which hears of it by itself."""

    def __init__(self, address: str) -> None:
        self._address, self._next, self._missed = address, time.monotonic() + EVERY, 0

    def check(self) -> None:
        """Look, if it is time; a head that did not answer several times is gone."""
        if not self._address or time.monotonic() < self._next:
            return
        try:
            knock(self._address)
            self._missed = 0
        except OSError as error:
            self._missed += 1
            if self._missed >= MISSED:
                raise ConfigError(
                    f"the Ray cluster is gone: its head at {self._address} does not answer"
                    f" ({error}); {GONE}"
                ) from error
        self._next = time.monotonic() + EVERY
