"""Hostile neighbors: whatever they send is refused, counted and logged; the others finish with the
right model."""

import asyncio
from dataclasses import replace

import grpc
import numpy as np
import pytest

from bruit.peers.site.running import write_report
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.identity import Identity
from bruit.runs.build import build
from bruit.runs.file import parse
from tests.e2e.hostile import hello, raw, say, speak_old_tls, words
from tests.e2e.villages import DEADLINE
from tests.unit.peers.small_network import MEAN, found_small

pytestmark = pytest.mark.slow

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
    """Live with the three while the attacks take place in threads; what each attacker was told.
    Nobody leaves before the last of them, however slow the machine is."""
    run, told = chosen[0].host.run_id, []

    async def assault():
        while not all(one.host.lines for one in chosen):
            await asyncio.sleep(0.01)
        for one in chosen:
            one.host.settings = replace(one.host.settings, timeout=DEADLINE)
        for one in attacks:
            told.append(await asyncio.to_thread(one, run, chosen[2].host.book.entry(2), evil))
        while not all(one.host.done for one in chosen):
            await asyncio.sleep(0.01)
        for one in chosen:
            one.host.stop()

    async def everybody():
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(assault(), *(one.host.run() for one in chosen))

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
    assert [
        int(one.host.ledger.counts()[:, one.host.ledger.is_data()].sum()) for one in chosen
    ] == [1, 1, 1]


BAD = {
    "garbage": lambda run: [b"\xff\x00garbage" * 9],
    "an empty frame": lambda run: [b""],
    "another run": lambda run: [hello("ab" * 32, "averaging", 3)],
    "another algorithm": lambda run: [hello(run, "walk-sgd", 3)],
    "another's name": lambda run: [hello(run, "averaging", 1)],
    "a gap": lambda run: [hello(run, "averaging", 3), words(run, "averaging", 3, 5, ROW)],
    "a receipt of what was never sent": lambda run: [
        hello(run, "averaging", 3, acknowledged=10**6)
    ],
    "the same with a made up stamp": lambda run: [
        hello(run, "averaging", 3, acknowledged=10**6, echo=b"x" * 32)
    ],
    "a stamp of the wrong size": lambda run: [raw(run, "averaging", 3, 1, ROW) + b"\x4a\x02xx"],
    "not a number": lambda run: [raw(run, "averaging", 3, 1, np.array([[np.nan, 0.0]]))],
    "infinity": lambda run: [raw(run, "averaging", 3, 1, np.array([[np.inf, 0.0]]))],
}


def test_what_is_no_frame_of_this_run_ends_the_call_and_changes_nothing(network, tmp_path):
    chosen, evil = network
    attacks = [
        lambda run, entry, who, make=make: say(who, entry, make(run)) for make in BAD.values()
    ]
    told = attack(chosen, evil, *attacks)
    assert [code for code, _ in told] == [REFUSED] * len(BAD)
    assert not any(str(tmp_path) in words or ".db" in words for _, words in told)
    assert not any(one.host.broken for one in chosen)  # no neighbor can stop a peer by a lie
    assert chosen[2].host.refused["frame"] == len(BAD)
    check_right_model(chosen)
    assert write_report(chosen[2])["refused"]["frame"] == len(BAD)


NONSENSE = [
    ("token", 0, ROW),
    ("round", 0, np.ones((1, 5))),
    ("round", 0, None),
    ("round", 99, ROW),
    ("round", 0, np.full((1, 2), 1e300)),
    ("round", 2**62, ROW),
]


def test_well_formed_nonsense_is_refused_and_ends_the_line(network, caplog):
    """Wrong kind, wrong shape, wrong step, numbers no honest peer says: those that only the machine
    can refuse are counted as messages. The neighbor is told why, the operator once."""
    chosen, evil = network
    for one in chosen:  # time enough for all of it
        one.host.machine.seat = replace(one.host.machine.seat, timeout=8.0)

    def nonsense(kind, number, row):
        def attack(run, entry, who):
            sequence = chosen[2].host.ears._heard(3) + 1
            chosen[2].host.ears._shut.clear()
            return say(
                who,
                entry,
                [
                    hello(run, "averaging", 3),
                    words(run, "averaging", 3, sequence, row, number, kind),
                    *[words(run, "averaging", 3, 1, row)] * 3,
                ],
                open_end=True,
            )

        return attack

    told = attack(chosen, evil, *(nonsense(*one) for one in NONSENSE))
    assert [code for code, _ in told] == [REFUSED] * len(NONSENSE)
    assert "which nobody expects" in told[0][1]
    assert all(str(chosen[2].site.folder) not in why for _, why in told)
    assert chosen[2].host.refused["message"] == 3
    assert caplog.text.count("refused what peer 3 sent") == 1
    check_right_model(chosen)


def test_a_peer_that_is_no_neighbor_cannot_even_call(network):
    """Peer 3 speaks to peer 0, with whom it shares no link: it is in the book, and refused by TLS
    all the same."""
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
    told = attack(
        chosen, unlisted, lambda run, entry, who: say(who, entry, [hello(run, "averaging", 3)])
    )
    assert told[0][0] == grpc.StatusCode.UNAVAILABLE
    check_right_model(chosen)


def test_old_tls_is_refused_with_a_sentence(network, tmp_path):
    chosen, evil = network
    told = attack(
        chosen,
        evil,
        lambda run, entry, who: speak_old_tls(who, entry, tmp_path, hello(run, "averaging", 3)),
    )
    version, answer = told[0]
    assert version == "TLSv1.2"
    assert b"here it is TLS 1.3 only" in answer
    assert chosen[2].host.refused["caller"] == 1
    check_right_model(chosen)


def test_a_swapped_server_certificate_is_told_to_the_operator(tmp_path, caplog):
    """Peer 1 listens with an identity of its own making: peer 0 says so, goes on, and ends."""
    sites = found_small(
        tmp_path, TEXT.replace("path:4", "path:2"), peers=2, timeout=1.0, lines="wait_for = 0\n"
    )
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
