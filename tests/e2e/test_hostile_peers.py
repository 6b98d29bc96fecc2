"""Hostile neighbors: whatever they send is refused, counted and logged; the others finish with the right model."""

import asyncio
import sys
from pathlib import Path

import grpc
import numpy as np
import pytest

from bruit.build import build
from bruit.config import parse
from bruit.network.identity import Identity
from bruit.sites.running import write_report
from bruit.sites.site import participant, read_site

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "network"))
from hostile import hello, raw, say, speak_old_tls, words
from small_network import MEAN, found_small

ROW = np.full((1, 2), 7.0)
SEED = 11
TEXT = MEAN.replace("ring:3", "path:4").replace('"gossip-sgd"', '"averaging"')
REFUSED = grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture
def network(tmp_path):
    """A path of four peers; peer 3, at its end, is hostile and says nothing right."""
    sites = found_small(tmp_path, TEXT, peers=4, timeout=0.8, lines="wait_for = 1\n")
    chosen = [participant(read_site(site), SEED) for site in sites[:3]]
    evil = Identity.load(sites[3].parent)
    yield chosen, evil
    for one in chosen:
        one.host.journal.close()


def attack(chosen, evil, *attacks):
    """Live with the three while the attacks take place in threads; what each attacker was told."""
    run, told = chosen[0].host.run_id, []

    async def assault():
        while not chosen[2].host.lines:
            await asyncio.sleep(0.01)
        for one in attacks:
            told.append(await asyncio.to_thread(one, run, chosen[2].host.book.entry(2), evil))

    async def everybody():
        assailant = asyncio.create_task(assault())
        await asyncio.gather(*(one.host.run() for one in chosen))
        await asyncio.wait_for(assailant, 20)

    asyncio.run(everybody())
    return told


def check_right_model(chosen):
    """Three peers that never heard the fourth average among themselves."""
    assert all(one.host.done for one in chosen)
    task = build(parse(TEXT)).task
    door, three = chosen[0].host.machine.seat.door, np.arange(3)
    began = door.mechanism.release(task.value(three), door.dice, three, 0, 0)
    ended = np.concatenate([one.host.machine.state.value for one in chosen])
    assert np.allclose(ended.mean(axis=0), began.mean(axis=0), atol=0.01)  # dithers move it
    assert np.ptp(ended, axis=0).max() < 0.5 * np.ptp(began, axis=0).max()
    assert [int(one.host.ledger.counts()[:, one.host.ledger.is_data()].sum()) for one in chosen] == [1, 1, 1]


BAD = {
    "garbage": lambda run: [b"\xff\x00garbage" * 9],
    "an empty frame": lambda run: [b""],
    "another run": lambda run: [hello("ab" * 32, "averaging", 3)],
    "another algorithm": lambda run: [hello(run, "walk-sgd", 3)],
    "another's name": lambda run: [hello(run, "averaging", 1)],
    "a gap": lambda run: [hello(run, "averaging", 3), words(run, "averaging", 3, 5, ROW)],
    "a receipt of what was never sent": lambda run: [hello(run, "averaging", 3, acknowledged=10**6)],
    "not a number": lambda run: [raw(run, "averaging", 3, 1, np.array([[np.nan, 0.0]]))],
    "infinity": lambda run: [raw(run, "averaging", 3, 1, np.array([[np.inf, 0.0]]))],
}


def test_what_is_no_frame_of_this_run_ends_the_call_and_changes_nothing(network):
    chosen, evil = network
    attacks = [lambda run, entry, who, make=make: say(who, entry, make(run)) for make in BAD.values()]
    told = attack(chosen, evil, *attacks)
    assert [code for code, _ in told] == [REFUSED] * len(BAD)
    assert chosen[2].host.refused["frame"] == len(BAD)
    check_right_model(chosen)
    assert write_report(chosen[2])["refused"]["frame"] == len(BAD)


def test_well_formed_nonsense_is_refused_by_the_machine(network):
    """Wrong kind, wrong step, wrong shape, numbers no honest peer says; then all of it once more."""
    chosen, evil = network

    def nonsense(run, entry, who):
        frames = [words(run, "averaging", 3, 1, ROW, kind="token"), words(run, "averaging", 3, 2, ROW, number=99),
                  words(run, "averaging", 3, 3, np.ones((1, 5))), words(run, "averaging", 3, 4, np.full((1, 2), 1e300)),
                  words(run, "averaging", 3, 5, ROW, number=2**62), words(run, "averaging", 3, 6, None)]  # fmt: skip
        return say(who, entry, [hello(run, "averaging", 3), *frames, *frames])

    told = attack(chosen, evil, nonsense)
    assert told[0][0] == grpc.StatusCode.OK
    assert chosen[2].host.refused["message"] == 6
    assert chosen[2].host.refused["repeated"] == 6
    check_right_model(chosen)


def test_a_peer_that_is_no_neighbor_cannot_even_call(network):
    """Peer 3 speaks to peer 0, with whom it shares no link: it is in the book, and refused by TLS all the same."""
    chosen, evil = network

    def stranger(run, entry, who):
        return say(who, chosen[0].host.book.entry(0), [words(run, "averaging", 3, 1, ROW)])

    told = attack(chosen, evil, stranger)
    assert told[0][0] == grpc.StatusCode.UNAVAILABLE
    assert chosen[0].host.refused == {}
    check_right_model(chosen)


def test_who_is_not_in_the_book_cannot_even_call(network):
    chosen, _ = network
    unlisted = Identity.create("peer-3")
    told = attack(chosen, unlisted, lambda run, entry, who: say(who, entry, [hello(run, "averaging", 3)]))
    assert told[0][0] == grpc.StatusCode.UNAVAILABLE
    check_right_model(chosen)


def test_old_tls_is_refused_with_a_sentence(network, tmp_path):
    chosen, evil = network
    told = attack(chosen, evil, lambda run, entry, who: speak_old_tls(who, entry, tmp_path, hello(run, "averaging", 3)))
    version, answer = told[0]
    assert version == "TLSv1.2"
    assert b"here it is TLS 1.3 only" in answer
    assert chosen[2].host.refused["caller"] == 1
    check_right_model(chosen)


def test_a_swapped_server_certificate_is_told_to_the_operator(tmp_path, caplog):
    """Peer 1 listens with an identity of its own making: peer 0 says so, goes on, and ends."""
    sites = found_small(tmp_path, TEXT.replace("path:4", "path:2"), peers=2, timeout=1.0, lines="wait_for = 0\n")
    chosen = [participant(read_site(site), SEED) for site in sites]
    chosen[1].host.ears.identity = Identity.create("peer-1")

    async def both():
        server = await chosen[1].host.ears.serve()
        try:
            await chosen[0].host.run()
        finally:
            await server.stop(None)

    asyncio.run(both())
    for one in chosen:
        one.host.journal.close()
    assert chosen[0].host.done
    assert "does not show the certificate that the address book lists" in caplog.text
    assert chosen[1].host.refused == {}
