"""Sites: what is wrong in a participant's folder is said in one sentence before anything is
sent."""

import asyncio
import shutil
import signal
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bruit.errors import BrokenStateError, BruitError, ConfigError, LocalProtocolError, PrivacyError
from bruit.peers.founding.demo import read_json
from bruit.peers.recalling import recall
from bruit.peers.site.running import (
    _serve_metrics,
    metrics_text,
    run_participants,
    status,
    write_report,
)
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.privacy.events import GaussianEvent
from bruit.randomness import Replay, Secure
from tests.unit.peers.small_network import MEAN, found_small, live_together


@pytest.fixture
def sites(tmp_path):
    return found_small(tmp_path)


def start(site, rehearse=None):
    """Build the peer and let go of its journal again."""
    one = participant(read_site(site), rehearse)
    one.host.journal.close()
    return one


def append(site, text):
    site.write_text(site.read_text() + text)


def test_a_whole_site_is_read(sites):
    one = start(sites[1])
    assert one.host.me == 1
    assert one.host.machine.seat.steps == 6
    assert one.host.settings.timeout == 20.0


def test_missing_unreadable_and_misspelt_site_files(tmp_path, sites):
    with pytest.raises(
        ConfigError, match=r"there is no site file .*nowhere.toml; `bruit network init`"
    ):
        read_site(tmp_path / "nowhere.toml")
    for text, said in (
        ("peer = ", "is not valid TOML"),
        ("peer = 0\ncolor = 'red'\n", "color: extra inputs"),
        ("timeout = 3\n", "peer: field required"),
        ("peer = -1\n", "peer: input should be greater"),
        ("peer = 0\ntimeout = 0\n", "timeout: input should be greater"),
        ("peer = 0\n[budget]\nepsilon = -1\n", "budget.epsilon: input should be greater"),
        ("peer = 0\nseed = 3\n", "seed: extra inputs"),
    ):
        sites[0].write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_site(sites[0])
    sites[0].write_bytes(b"peer = \xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_site(sites[0])


def test_a_peer_that_the_book_does_not_list(sites):
    sites[0].write_text("peer = 7\n")
    with pytest.raises(
        ConfigError, match=r"this site is peer 7, but the address book lists 0\.\.2"
    ):
        start(sites[0])


def test_a_swapped_certificate(sites):
    """Peer 0 with the seat of peer 1; and a key beside another's certificate."""
    sites[0].write_text("peer = 1\n")
    with pytest.raises(
        ConfigError, match="lists another certificate for peer 1; compare fingerprints"
    ):
        start(sites[0])
    shutil.copy(sites[1].parent / "certificate.pem", sites[2].parent / "certificate.pem")
    with pytest.raises(ConfigError, match="does not match the certificate"):
        start(sites[2])


def replaced(sites, peer, **options):
    """Everybody's book with a new identity of one peer, made with these options."""
    book = AddressBook.read(sites[0].parent / "book.toml")
    fresh = Identity.create(f"peer-{peer}", **options)
    old = book.entry(peer)
    entries = [
        *book.entries[:peer],
        Entry(
            peer=peer, name=old.name, host=old.host, port=old.port, certificate=fresh.certificate
        ),
        *book.entries[peer + 1 :],
    ]
    for site in sites:
        AddressBook(tuple(entries)).write(site.parent / "book.toml")
    home = sites[peer].parent
    for name in ("key.pem", "signing.pem", "certificate.pem"):
        (home / name).unlink()
    fresh.save(home)


def test_expired_certificates(sites):
    replaced(sites, 1, days=3, now=datetime.now(UTC) - timedelta(days=30))
    for site in sites:
        with pytest.raises(ConfigError, match=r"expired on .*this machine's clock says"):
            start(site)


def test_a_clock_that_is_behind(sites):
    replaced(sites, 1, now=datetime.now(UTC) + timedelta(days=30))
    with pytest.raises(ConfigError, match=r"is not valid before .*set the clock right"):
        start(sites[0])


def test_another_number_of_peers_than_the_graph_has(sites):
    path = sites[0].parent / "experiment.toml"
    path.write_text(MEAN.replace("ring:3", "ring:4"))
    with pytest.raises(ConfigError, match="the graph ring:4 has 4 peers, the address book 3"):
        start(sites[0])
    path.unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*experiment.toml"):
        start(sites[0])


def test_real_peers_throw_cryptographic_dice_and_no_two_the_same(sites):
    first, second = start(sites[0]), start(sites[1])
    assert all(isinstance(one.host.machine.seat.dice, Secure) for one in (first, second))
    with pytest.raises(LocalProtocolError, match="before this start had a key of its own"):
        first.host.machine.seat.dice.normal("noise", np.array([0]), 0, 0, 4)
    draws = []
    for site in (sites[0], sites[1], sites[0]):  # every start has its own, too
        one = participant(read_site(site))
        recall(one.host)
        draws.append(one.host.machine.seat.dice.normal("noise", np.array([0]), 0, 0, 4))
        one.host.journal.close()
    assert min(np.abs(draws[a] - draws[b]).min() for a, b in ((0, 1), (0, 2), (1, 2))) > 0


def test_a_seed_is_for_rehearsals_and_a_run_stays_what_it_began_as(sites):
    assert isinstance(start(sites[0], rehearse=4).host.machine.seat.dice, Replay)
    with pytest.raises(PrivacyError, match="the dice changed since this run began"):
        start(sites[0])
    start(sites[1])
    with pytest.raises(PrivacyError, match="the dice changed since this run began"):
        start(sites[1], rehearse=4)


def test_rehearsed_noise_is_agreed_on_and_real_noise_is_nobodys(sites):
    """Peers that know only their own records rehearse with noise that follows from the seed and the
    agreement."""
    real = start(sites[0])
    assert real.host.machine.seat.door.dice is real.host.machine.seat.dice
    assert not real.rehearsed
    played = [start(site, rehearse=4) for site in sites[1:]]
    draws = [
        one.host.machine.seat.door.dice.normal("noise", np.array([0]), 0, 0, 4) for one in played
    ]
    assert np.array_equal(*draws)
    assert np.abs(draws[0] - Replay(4).normal("noise", np.array([0]), 0, 0, 4)).min() > 0
    assert all(status(one)["rehearsal"] for one in played)


def test_changed_records_and_budgets_are_refused_with_the_reason(sites):
    start(sites[0])
    np.savez(sites[0].parent / "records.npz", kind=np.str_("mean"), values=np.ones((1, 2)))
    with pytest.raises(
        PrivacyError,
        match=r"the records changed .*the same noise would protect two different values",
    ):
        start(sites[0])
    start(sites[1])
    append(sites[1], "[budget]\nepsilon = 30.0\n")
    with pytest.raises(PrivacyError, match="the budget changed"):
        start(sites[1])


def test_another_experiment_or_book_is_another_run(sites):
    start(sites[0])
    (sites[0].parent / "experiment.toml").write_text(MEAN.replace("sigma = 1.5", "sigma = 1.6"))
    with pytest.raises(ConfigError, match="belongs to run"):
        start(sites[0])


def test_a_corrupt_journal(sites):
    start(sites[0])
    path = sites[0].parent / "state" / "journal.db"
    path.write_bytes(b"no journal at all" * 300)
    with pytest.raises(ConfigError, match=r"is damaged .*keep the file, and begin a new run"):
        start(sites[0])


def test_a_journal_whose_inputs_lead_elsewhere(sites):
    """A ledger line more than the inputs account for: whoever goes on from it no longer knows what
    it has said."""
    chosen, _ = live_together(sites, rehearse=1)
    again = participant(read_site(sites[0]), 1)
    again.host.ledger.record(*(np.array([0]),) * 3, GaussianEvent(1.0))
    with pytest.raises(PrivacyError, match="executed again, spend otherwise than its ledger says"):
        run_participants([again])
    path = chosen[0].site.state / "journal.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM spends WHERE line = (SELECT MAX(line) FROM spends)")
    with pytest.raises(BrokenStateError, match=r"is another one than journal\.db-head says"):
        participant(read_site(sites[0]), 1)


def test_two_processes_of_one_peer(sites):
    one = participant(read_site(sites[0]))
    with pytest.raises(ConfigError, match="in use by another process"):
        participant(read_site(sites[0]))
    one.host.journal.close()


def test_a_port_in_use(sites):
    one = participant(read_site(sites[0]))
    entry = one.host.book.entry(0)
    with socket.socket() as other:
        other.bind((entry.host, entry.port))
        other.listen()
        with pytest.raises(
            ConfigError, match=f"cannot listen on {entry.address}: is the port in use?"
        ):
            run_participants([one])


def test_a_port_of_another_peer(tmp_path, sites):
    """gRPC would let two servers share a port."""
    live = participant(read_site(sites[0]))
    shutil.copytree(sites[0].parent, tmp_path / "twin", ignore=shutil.ignore_patterns("state"))
    twin = participant(read_site(tmp_path / "twin" / "site.toml"))

    async def both():
        server = await live.host.ears.serve()
        try:
            with pytest.raises((RuntimeError, BruitError)):
                await twin.host.ears.serve()
        finally:
            await server.stop(None)

    asyncio.run(both())
    for one in (live, twin):
        one.host.journal.close()


def test_a_metrics_port_in_use(sites):
    one = participant(read_site(sites[0]))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ConfigError, match=r"the metrics port [0-9]+ cannot be used"):
            run_participants([one], other.getsockname()[1])


def test_the_metrics_page(sites):
    one = participant(read_site(sites[0]))

    async def ask():
        server = await _serve_metrics(one, 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        server.close()
        return page.decode()

    page = asyncio.run(ask())
    one.host.journal.close()
    assert page.startswith("HTTP/1.0 200 OK")
    assert 'bruit_epsilon{peer="0"} 0.0' in page


def test_patience_nobody_tried_leaves_no_trace_in_the_journal(sites):
    """Rounds that end in time: the journal holds their messages, and no alarm."""
    chosen, _ = live_together(sites, rehearse=1)
    again = participant(read_site(sites[0]), rehearse=1)
    assert [line.kind for line in again.host.journal.inputs()].count("message") == 12
    assert len(list(again.host.journal.inputs())) == 13  # and the beginning
    assert read_json(chosen[0].site.state / "status.json")["done"]
    again.host.journal.close()


def test_a_status_that_cannot_be_written_to_the_end_costs_neither_models_nor_neighbors(
    sites, caplog
):
    (sites[0].parent / "state" / "status.json").mkdir(parents=True)
    chosen, reports = live_together(sites, rehearse=1)
    assert [report["problems"] for report in reports] == [[]] * len(sites)
    assert all((one.site.state / "model.npz").exists() for one in chosen)
    assert "its status is not up to date" in caplog.text


def test_a_full_disk_says_what_to_do_and_then_goes_on(tmp_path):
    """The first messages do not fit: nothing of that step is kept, and after making room the peer
    goes on."""
    sites = found_small(
        tmp_path, MEAN.replace("dim = 2", "dim = 2000"), timeout=0.1, lines="wait_for = 0\n"
    )
    one = participant(read_site(sites[0]), rehearse=1)
    connection = one.host.journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(
        ConfigError,
        match="nothing of this step was kept or sent: make room on the disk, then start",
    ):
        run_participants([one])
    again = participant(read_site(sites[0]), rehearse=1)
    assert again.host.journal.spent() == []
    assert run_participants([again]) == 1  # it ends, and has met nobody


def test_status_before_anything_began(sites):
    one = participant(read_site(sites[0]))
    now = status(one)
    assert now["step"] == 0
    assert now["sent"] == 0
    assert float(now["epsilon"]) == 0.0
    assert 'bruit_step{peer="0"} 0.0' in metrics_text(one)
    one.host.journal.close()
    assert write_report(one)["metrics"] == {}
    assert not (one.site.state / "model.npz").exists()


def test_stopped_while_it_waits_for_the_others(sites):
    """Nobody else is there: a stop leaves a journal in which nothing has begun, and nothing
    spent."""
    one = participant(read_site(sites[0]))
    assert run_participants([one], ready=lambda: signal.raise_signal(signal.SIGTERM)) == 130
    again = participant(read_site(sites[0]))
    assert again.host.journal.spent() == []
    again.host.journal.close()


def test_stopped_between_its_end_and_its_report(sites, monkeypatch):
    """A SIGTERM there killed the process at once: no line said what had happened."""
    one = participant(read_site(sites[0]))
    close = one.host.journal.close
    monkeypatch.setattr(one.host.journal, "close", lambda: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        run_participants([one], ready=lambda: signal.raise_signal(signal.SIGTERM))
    close()


def test_alone_it_still_ends_after_its_patience(tmp_path):
    sites = found_small(tmp_path, timeout=0.2, lines="wait_for = 0\n")
    one = participant(read_site(sites[0]), rehearse=3)
    assert run_participants([one]) == 1  # nobody was met
    assert one.host.done
    assert status(one)["missed"] == 12  # two neighbors, six rounds


@pytest.mark.parametrize("algorithm", ["ring-sum", "walk-sum", "walk-admm", "token-histogram"])
def test_a_published_token_is_everybodys_model(tmp_path, algorithm):
    """Each peer writes the last token's result, from its own folder alone."""
    text = MEAN.replace('"gossip-sgd"', f'"{algorithm}"\npublished = true').replace(
        "steps = 6", "steps = 7"
    )
    if algorithm == "token-histogram":
        text = text.replace('kind = "mean"\ndim = 2', 'kind = "histogram"\ndim = 3')
        text = text.replace("sigma = 1.5", 'mechanism = "randomized-response"\nepsilon = 2.0')
    sites = found_small(tmp_path, text)
    people, reports = live_together(sites, 3)
    models = [np.load(one.site.state / "model.npz")["model"] for one in people]
    assert np.array_equal(models[0], models[1])
    assert np.array_equal(models[0], models[2])
    assert all(report["done"] and not report["problems"] for report in reports)
