"""Running a relay: its folder, the books it serves, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bruit.errors import BruitError
from bruit.peers.relay.relay import RATE, Relay
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.place import written
from bruit.peers.wire.revisions.chain import standing_book
from bruit.peers.wire.said_once import SaidOnce

log = logging.getLogger("bruit.peers")
LOOK = 1.0  # seconds between two looks at the books
SEES = (
    "it sees which members call each other, from which addresses, when, and how many bytes; "
    "not what they say"
)


@dataclass(frozen=True, kw_only=True)
class RelaySettings:
    """What the operator of a relay decides."""

    folder: Path  # with the relay's identity
    books: Sequence[Path]
    host: str = "::"
    port: int = 443
    rate: float = RATE

    def read(self) -> list[AddressBook]:
        return [standing_book(book) for book in self.books]


def serve(settings: RelaySettings, ready: Callable[[str], None]) -> Relay:
    """Serve until SIGTERM or Ctrl-C; what was seen is in the relay that is returned."""
    relay = Relay(settings.folder, settings.read(), settings.rate)
    asyncio.run(_serve(settings, relay, ready))
    return relay


async def _serve(settings: RelaySettings, relay: Relay, ready: Callable[[str], None]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    port = relay.open(settings.host, settings.port)
    members = len(relay.names)
    ready(f"relay for {members} peers listens at {written(settings.host, port)}; {SEES}")
    watcher = asyncio.create_task(_watch(settings, relay))
    await stop.wait()
    watcher.cancel()
    await relay.close()


async def _watch(settings: RelaySettings, relay: Relay) -> None:
    """Books that change are served as they are from then on; one that cannot be read changes
    nothing."""
    told = SaidOnce(log)
    while True:
        await asyncio.sleep(LOOK)
        try:
            books = settings.read()
            if books != relay.books:
                relay.renew(books)
                log.warning("the books have changed: %d peers are served now", len(relay.names))
            relay.look()
        except BruitError as error:
            told.warn((str(error),), "the books before are served on: %s", error)
