"""Waiting for neighbors: nothing is released before they are there, and what nobody heard is not
called sent."""

import asyncio
import json
import logging
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Envelope, Send
from bruit.errors import ConfigError
from bruit.peers.founding.demo import watch
from bruit.peers.gathering import ANSWER, HOPS, Gathering
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.journal.receipts import Receipts
from bruit.peers.site.running import _run, last_line, metrics_text, run_participants, status
from bruit.peers.site.site import participant, read_site
from bruit.privacy.events import GaussianEvent
from bruit.show.live.operator import operator_view
from tests.unit.peers.small_network import MEAN, found_small, live_together

SEED = 5


def reported(one):
    return json.loads((one.site.state / "report.json").read_text())


def spends(one):
    return recorded_spend(one.site.state / "journal.db")


def test_a_peer_without_neighbors_says_whom_it_waits_for_and_gives_up(tmp_path, caplog):
    (site, *_) = found_small(tmp_path, timeout=0.1, lines="start_timeout = 1.3\n")
    one = participant(read_site(site))
    with caplog.at_level(logging.WARNING, "bruit.peers"):
        assert run_participants([one]) == 1
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "waiting for peer-1, peer-2 (0 of 2 connected)"
    assert said.count(said[0]) == 1  # not every time it looks
    assert "gave up after 1.3 s" in last_line(one)
    assert "nothing was released and nothing was spent" in last_line(one)
    assert spends(one) == []
    report = reported(one)
    assert (report["done"], report["step"], report["sent"], report["epsilon"]) == (False, 0, 0, 0)
    assert report["problems"] == [one.host.gave_up]
    assert not (one.site.state / "model.npz").exists()


def test_whom_a_peer_waits_for_is_in_status_metrics_and_page(tmp_path):
    (site, *_) = found_small(tmp_path)
    one = participant(read_site(site))

    async def look():
        life, end = asyncio.create_task(_run(one, None)), time.monotonic() + 60
        while not (
            one.host.gathering.waiting
            and (one.site.state / "status.json").exists()
            and json.loads((one.site.state / "status.json").read_text())["waiting"]
        ):
            assert time.monotonic() < end, "it never said for whom it waits"
            await asyncio.sleep(0.01)
        seen = status(one), metrics_text(one), operator_view(site)
        one.host.stop()
        await life
        return seen

    now, metrics, page = asyncio.run(look())
    one.host.journal.close()
    assert now["waiting_for"] == ["peer-1", "peer-2"]
    assert 'bruit_waiting_for{peer="0"} 2' in metrics
    assert (page["state"], page["waiting_for"]) == ("gathering", ["peer-1", "peer-2"])
    assert status(one)["waiting_for"] == []


def test_alone_by_choice_it_met_nobody_and_sent_nothing(tmp_path):
    (site, *_) = found_small(tmp_path, timeout=0.1, lines="wait_for = 0\n")
    one = participant(read_site(site))
    assert run_participants([one]) == 1
    now = status(one)
    assert (now["step"], now["met"], now["sent"], now["unconfirmed"]) == (6, 0, 0, 12)
    assert now["epsilon"] > 0  # it stays spent
    assert now["epsilon_received"] == 0
    said = last_line(one)
    assert "0 messages sent" in said
    assert "met nobody: not a word came from peer-1, peer-2" in said
    assert "12 messages never received by peer-1, peer-2" in said
    assert "of which nobody received anything (it stays spent)" in said


@pytest.mark.slow
def test_a_number_of_neighbors_is_enough_and_the_others_are_planned_to_be_missing(tmp_path):
    sites = found_small(tmp_path, timeout=2.0, lines="wait_for = 1\n")
    people = [participant(read_site(site), SEED) for site in sites[:2]]
    assert run_participants(people) == 0
    for one in people:
        now = status(one)
        assert (now["met"], now["missed"], now["missing"]) == (1, 6, ["peer-2"])
        assert (now["sent"], now["unconfirmed"]) == (6, 6)
        assert now["epsilon_received"] == now["epsilon"]
        assert reported(one)["problems"] == []
        assert "6 messages never received by peer-2" in last_line(one)


@pytest.mark.slow
def test_more_missed_than_planned_is_exit_code_1(tmp_path):
    """Everybody was there at the beginning; then one leaves for good."""
    sites = found_small(tmp_path, timeout=2.0)

    def leave(one):
        if one.host.me == 2:
            stop_at(one.host, 2)

    people, reports = live_together(sites, SEED, leave)
    (problem,) = reports[0]["problems"]
    assert re.fullmatch(r"missed peer-2 in [1-4] exchanges", problem)
    assert problem in last_line(people[0])
    assert reports[2]["problems"] == []  # it was stopped
    assert not people[2].host.ended


def stop_at(host, step):
    """Stop that host when it has come so far."""
    work = host._work

    def watched(first, commit=False):
        work(first, commit)
        if host.machine.count >= step:
            host.stop()

    host._work = watched


@pytest.mark.slow
def test_who_starts_again_when_all_have_left_spends_no_more(tmp_path):
    sites = found_small(tmp_path, timeout=0.3, lines="start_timeout = 30.0\n")
    (_, _, gone), _ = live_together(
        sites, SEED, lambda one: stop_at(one.host, 2) if one.host.me == 2 else None
    )
    before = spends(gone)
    sites[2].write_text(sites[2].read_text().replace("start_timeout = 30.0", "start_timeout = 0.2"))
    again = participant(read_site(sites[2]), SEED)
    assert run_participants([again]) == 1
    assert "one at least is needed to go on; nothing more was released" in again.host.gave_up
    assert spends(again) == before


@pytest.mark.slow
def test_nobody_speaks_to_one_who_waits_for_a_third(tmp_path):
    """Peer 0 has its only neighbor; that one waits for a peer that never comes. All give up, and
    none has spent."""
    sites = found_small(tmp_path, MEAN.replace("ring:3", "path:4"), 4, timeout=0.2)
    for site, patience in zip(sites, (2.0, 4.0, 3.0, 2.0), strict=True):  # peer 1 leaves last
        site.write_text(site.read_text() + f"start_timeout = {patience}\n")
    people = [participant(read_site(site)) for site in sites[:3]]
    assert run_participants(people) == 1
    assert [spends(one) for one in people] == [[], [], []]
    assert "peer-1, who wait for others (1 of 1 connected)" in people[0].host.gave_up
    assert "peer-3 (1 of 2 connected)" in people[2].host.gave_up


def test_what_wait_for_may_be(tmp_path):
    (site, other, *_) = found_small(tmp_path)
    site.write_text(site.read_text() + "wait_for = 3\n")
    with pytest.raises(
        ConfigError, match=r"wait_for = 3, but peer 0 has 2 neighbors in ring:3; ask for that many"
    ):
        participant(read_site(site))
    assert not (site.parent / "state").exists()
    for wrong in ('"some"', "-1", "1.5", "true"):
        other.write_text(f"peer = 1\nwait_for = {wrong}\n")
        with pytest.raises(
            ConfigError, match=r"wait_for: .*\"all\", or how many neighbors must be connected"
        ):
            read_site(other)


def test_levels_rise_with_the_lowest_neighbor():
    lines = {
        1: SimpleNamespace(connected=True, level=0),
        2: SimpleNamespace(connected=False, level=0),
    }
    announced = []
    one = Gathering(lines=lines, names=str, wait_for=None, announce=announced.append)
    assert not one._ready(99.0, 1.0, False)
    assert announced == []
    lines[2].connected = True
    assert not one._ready(99.0, 1.0, False)
    for level in range(HOPS):
        lines[1].level, lines[2].level = level, HOPS
        ready = one._ready(99.0, 1.0, False)
    assert ready
    assert announced == list(range(1, HOPS + 1))


def test_who_starts_again_asks_everybody_who_can_be_reached_before_it_goes_on():
    """What a neighbor holds may prove that the journal is an old copy; one that is away is not
    waited for."""
    lines = {peer: SimpleNamespace(connected=False, tried=False, level=0) for peer in (1, 2)}
    one = Gathering(lines=lines, names=str, wait_for=None, announce=lambda level: None)
    assert not one._ready(0.1, 30.0, True)
    lines[1].connected = True
    assert not one._ready(0.1, 30.0, True)  # peer 2 may yet answer
    lines[2].tried = True
    assert one._ready(0.1, 30.0, True)
    lines[2].tried = False
    assert one._ready(ANSWER, 30.0, True)  # it has had its time
    lines[1].connected = False
    assert not one._ready(99.0, 30.0, True)  # one at least


def test_who_starts_again_is_not_too_impatient_to_hear_that_its_journal_is_old():
    lines = {peer: SimpleNamespace(connected=peer == 1, tried=False, level=0) for peer in (1, 2)}
    one, looked = Gathering(lines=lines, names=str, wait_for=None, announce=lambda level: None), []

    def answered():
        looked.append(time.monotonic())
        lines[2].tried = looked[-1] > looked[0] + 0.1  # long after this peer's own patience
        return False

    assert asyncio.run(one.wait(0.01, 30.0, answered, begun=True)) == ""
    assert lines[2].tried


# receipts


class Confirmed:
    """A journal of which only the receipts matter."""

    def __init__(self, **by_peer):
        self.by_peer = {int(name[1:]): count for name, count in by_peer.items()}

    def confirmed(self, to):
        return self.by_peer.get(to, 0)


def test_a_release_is_seen_when_any_later_message_arrived():
    receipts = Receipts()
    for lines in (1, 1, 2, 3):
        receipts.posted(7, lines)
    receipts.posted(8, 3)
    assert receipts.seen_lines(Confirmed()) == 0
    assert receipts.seen_lines(Confirmed(p7=2)) == 1
    assert receipts.seen_lines(Confirmed(p7=3)) == 2
    assert receipts.confirmed(Confirmed(p7=3)) == 3
    assert receipts.unconfirmed(Confirmed(p7=3)) == {7: 1, 8: 1}
    assert receipts.seen_lines(Confirmed(p7=3, p8=1)) == 3
    receipts.posted(7, 3)
    assert receipts.seen_lines(Confirmed(p7=3)) == 3  # what was seen stays seen


def test_words_without_a_value_show_nothing():
    """An offer that arrived has carried nothing of what was released before it."""
    receipts = Receipts()
    for lines in (0, 0, 2):
        receipts.posted(7, lines)
    assert [receipts.seen_lines(Confirmed(p7=count)) for count in range(4)] == [0, 0, 0, 2]
    assert receipts.confirmed(Confirmed(p7=2)) == 2


def test_offers_that_nobody_answered_carried_nothing(tmp_path):
    """A neighbor that confirms offers and never answers has seen no value."""
    text = MEAN.replace('"gossip-sgd"', '"pair-averaging"')
    peer = participant(read_site(found_small(tmp_path, text)[0]), SEED)
    host = peer.host
    host._spawn = lambda work: work.close()  # no line is laid
    host.ledger.record(*(np.array([0]),) * 3, GaussianEvent(1.0))
    with host.journal.step() as step:
        host._post(Send(1, Envelope("offer", 0)), step)
    host.journal.acknowledge(1, 1)
    assert (
        host.speech.receipts.confirmed(host.journal),
        host.speech.receipts.seen_lines(host.journal),
    ) == (1, 0)
    host.journal.close()


def test_enough_neighbors_are_enough_when_the_start_ends_before_patience():
    """`start_timeout` below `timeout`: who has as many as `wait_for` asks for begins, instead of
    giving up."""
    lines = {
        1: SimpleNamespace(connected=True, level=0),
        2: SimpleNamespace(connected=False, level=0),
    }
    gathering = Gathering(lines=lines, names=str, wait_for=1, announce=lambda level: None)
    assert asyncio.run(gathering.wait(30.0, 0.1, lambda: False, begun=False)) == ""
    lines[1].connected = False
    assert "gave up after 0.1 s" in asyncio.run(
        gathering.wait(30.0, 0.1, lambda: False, begun=False)
    )


@pytest.mark.slow
def test_epsilon_of_the_last_rounds_that_nobody_heard(tmp_path):
    """Two of three leave after two rounds; what the third then releases, nobody confirms."""
    sites = found_small(tmp_path, timeout=0.3, lines="quorum = 0\n")
    people, reports = live_together(
        sites, SEED, lambda one: stop_at(one.host, 2) if one.host.me else None
    )
    now = reports[0]
    assert 0 < now["epsilon_received"] < now["epsilon"]
    assert "was received and the rest by nobody (it stays spent)" in last_line(people[0])
    assert now["sent"] + now["unconfirmed"] == 12


# who starts others


class Ended:
    """A process that is over."""

    def __init__(self, code):
        self.returncode = code

    def poll(self):
        return self.returncode


def test_a_demonstration_shows_who_missed_somebody_and_fails_for_who_gave_up(tmp_path):
    site = tmp_path / "peer-0" / "site.toml"
    state = site.parent / "state"
    state.mkdir(parents=True)
    (site.parent / "log.txt").write_text("gave up after 1 s")
    (state / "report.json").write_text(json.dumps({"done": True, "missed": 3}))
    assert watch([site], [Ended(1)], None) == [{"done": True, "missed": 3}]
    (state / "report.json").write_text(json.dumps({"done": False}))
    with pytest.raises(ConfigError, match="peer 0 ended with code 1: gave up after 1 s"):
        watch([site], [Ended(1)], None)
