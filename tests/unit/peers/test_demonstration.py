"""A demonstration waits as long as anything moves, ends all it has started, and reads once what all
peers share."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bruit.errors import ConfigError
from bruit.files import to_json, write_whole
from bruit.peers.founding import demo
from bruit.peers.founding.demo import STILL, end, orders, watch
from bruit.peers.founding.founding import plan_network, settle
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire import address_book
from bruit.peers.wire.address_book import AddressBook
from bruit.show.demonstration import patience
from tests.unit.peers.small_network import MEAN, found_small


class Clock:
    """Time passes only when somebody sleeps."""

    def __init__(self, monkeypatch):
        self.now, self.at = 0.0, {}
        monkeypatch.setattr(demo.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds
        for when in sorted(self.at):
            if when <= self.now:
                self.at.pop(when)()

    def __call__(self):
        return self.now


class Going:
    """A process that runs until it is told to end; a deaf one has to be killed."""

    def __init__(self, code=None, deaf=False):
        self.returncode, self.deaf, self.told = code, deaf, []

    def poll(self):
        return self.returncode

    def terminate(self):
        self.told.append("terminate")
        if not self.deaf:
            self.returncode = 130

    def kill(self):
        self.told.append("kill")
        self.returncode = -9

    def wait(self, timeout=None):
        if self.returncode is None:
            raise subprocess.TimeoutExpired("peer", timeout)
        return self.returncode


def show(site, **status):
    (site.parent / "state").mkdir(parents=True, exist_ok=True)
    write_whole(
        site.parent / "state" / "status.json", lambda file: file.write(to_json(status).encode())
    )


@pytest.fixture
def site(tmp_path):
    place = tmp_path / "peer-0" / "site.toml"
    place.parent.mkdir()
    (place.parent / "log.txt").write_text("what it said")
    return place


def test_patience_lasts_as_long_as_anything_moves(site, monkeypatch):
    """One step a minute for half an hour is slow, and no reason to give up; then nothing moves,
    which is."""
    clock, process = Clock(monkeypatch), Going()
    for minute in range(1, 31):
        clock.at[60.0 * minute] = lambda minute=minute: show(site, step=minute)
    with pytest.raises(
        ConfigError, match=f"nothing has moved for {STILL:g} s.*of 1 peers 0 had started"
    ):
        watch([site], [process], None, clock)
    assert 1800 + STILL <= clock.now < 1800 + STILL + 60
    assert process.told == ["terminate"]


def test_a_peer_that_cannot_start_ends_the_demonstration_at_once(site, monkeypatch):
    clock, deaf = Clock(monkeypatch), Going(deaf=True)
    monkeypatch.setattr(demo, "GRACE", 0.0)
    (site.parent / "log.txt").write_text("error: the port is in use")
    with pytest.raises(ConfigError, match="peer 1 ended with code 2: error: the port is in use"):
        watch(
            [site, site], [deaf, Going(2)], None, clock
        )  # that the other one had to be killed is not the reason
    assert clock.now < 1
    assert deaf.told == ["terminate", "kill"]


def test_whoever_does_not_listen_is_killed_and_all_are_asked_before_anybody_is_waited_for(
    monkeypatch,
):
    monkeypatch.setattr(demo, "GRACE", 0.0)
    deaf, polite, gone = Going(deaf=True), Going(), Going(0)
    end([deaf, polite, gone])
    assert (deaf.told, polite.told, gone.told) == (["terminate", "kill"], ["terminate"], [])


def test_who_is_hosted_together():
    sites = [Path(f"peer-{peer}/site.toml") for peer in range(5)]
    assert [len(order.sites) for order in orders(sites, 2)] == [2, 2, 1]
    assert [order.log for order in orders(sites, 2)] == [
        "peer-0/log.txt",
        "peer-2/log.txt",
        "peer-4/log.txt",
    ]


def test_patience_with_a_peer_follows_the_number_of_peers_that_share_the_machine(tmp_path):
    assert patience(8) == 20
    assert patience(200) == 200
    (tmp_path / "x.toml").write_text(MEAN)
    agreed = plan_network(str(tmp_path / "x.toml"), 3)
    (first, *_) = settle(agreed, tmp_path / "network", timeout=40.0, start_timeout=1000.0)
    assert (read_site(first).file.timeout, read_site(first).file.start_timeout) == (40.0, 1000.0)


def test_peers_of_one_process_check_the_same_book_and_the_same_agreement_once(
    tmp_path, monkeypatch
):
    text = MEAN.replace("sigma = 1.5", "epsilon = 4.0\nclip = 1.0")
    sites, count = found_small(tmp_path, text), {"parsed": 0}
    first = participant(read_site(sites[0]))
    parse = AddressBook.parse.__func__

    def counted(cls, *words):
        count["parsed"] += 1
        return parse(cls, *words)

    monkeypatch.setattr(AddressBook, "parse", classmethod(counted))
    second = participant(read_site(sites[1]))
    assert count["parsed"] == 0
    assert second.host.book is first.host.book
    assert second.privacy is first.privacy
    for one in (first, second):
        one.host.journal.close()


def test_a_book_whose_certificates_ran_out_meanwhile_is_not_taken_from_memory(
    tmp_path, monkeypatch
):
    (site, *_) = found_small(tmp_path)
    book = site.parent / "book.toml"
    AddressBook.read(book)

    class Later(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(days=5000)

    monkeypatch.setattr(address_book, "datetime", Later)
    assert not address_book._read_before(book.read_text()).in_date()
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=rf"the address book {book}.* expired on"):
        AddressBook.read(book, now=datetime.now(UTC) + timedelta(days=5000))


def test_another_edge_list_under_the_same_name_is_another_graph(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "x.toml").write_text(MEAN.replace("ring:3", "file:edges.txt"))
    first = plan_network(str(tmp_path / "x.toml"), 3)
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    second = plan_network(str(tmp_path / "x.toml"), 3)
    assert len(first.graph.neighbors(0)) == 2
    assert len(second.graph.neighbors(0)) == 1
