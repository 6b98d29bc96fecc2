"""A small network whose peers are reached at a relay that lives in this process."""

import asyncio

from bruit.peers.engine import free_ports
from bruit.peers.relay.relay import Relay
from bruit.peers.site.running import run_together, write_report
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.relay_entry import RelayEntry
from tests.unit.peers.small_network import found_small


def relayed_network(folder, at_relay, host="127.0.0.1", **settings):
    """Site files of a network in which some peers are reached at a relay, and the relay's
    folder."""
    sites = found_small(folder, **settings)
    identity = Identity.create("relay")
    identity.save(folder / "relay")
    relay = RelayEntry(host, free_ports(1)[0], identity.certificate)
    for site in sites:
        path = site.parent / "book.toml"
        book = AddressBook.of(AddressBook.read(path).entries, relays=[relay])
        for peer in at_relay:
            book = book.reached_at(peer, relay.address)
        book.write(path)
    return sites, folder / "relay"


def relay_of(sites, folder, **settings):
    """The relay of such a network, not yet open."""
    book = AddressBook.read(sites[0].parent / "book.toml")
    return Relay(folder, [book], **settings), book.relays[0]


def live_through_relay(sites, folder, meddle=None):
    """All to their end; the participants, their reports, and the relay."""
    chosen = [participant(read_site(site)) for site in sites]
    relay, entry = relay_of(sites, folder)

    async def live():
        relay.open(entry.host, entry.port)
        try:
            lives = asyncio.create_task(run_together(chosen, [None] * len(chosen)))
            if meddle is not None:
                await meddle(relay, chosen)
            await lives
        finally:
            await relay.close()

    try:
        asyncio.run(live())
    finally:
        for one in chosen:
            one.host.journal.close()
    return chosen, [write_report(one) for one in chosen], relay
