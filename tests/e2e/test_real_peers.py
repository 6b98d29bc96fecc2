"""Real processes on loopback: killed, stopped, started again; the run goes on, the ledger is right.

Nothing here waits for a fixed time: conditions are polled, with a deadline.
"""

import os
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from bruit.network.address_book import AddressBook
from bruit.sites.demo import read_json

sys.path.insert(0, str(Path(__file__).parent))
from villages import DEADLINE, until, village_values


def check_equals_the_simulator(village, models):
    bulk = village.bulk()
    assert np.allclose(models, bulk.estimates, rtol=0, atol=1e-9)
    events = bulk.ledger.events
    columns = [bulk.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    due = sorted((p, s, c, events[e].to_json()) for p, s, c, e in zip(*columns, strict=True))
    found = [tuple(line) for peer in range(len(models)) for line in village.spends(peer)]
    assert sorted(found) == due


def test_a_quiet_run_ends_as_the_simulator_says(village):
    quiet = village("ring:3", 3, 12)
    quiet.start()
    reports, models = quiet.finish()
    check_equals_the_simulator(quiet, models)
    for peer, report in enumerate(reports):
        assert report["peer"] == peer
        assert report["done"]
        assert report["missed"] == 0
        assert report["refused"] == {}
        assert report["sent"] == 24


def test_a_stopped_and_a_killed_peer_go_on_where_they_were(village):
    """Everybody is waited for: the end is exactly that of the undisturbed rehearsal."""
    patient = village("ring:4", 4, 400)
    patient.start()
    patient.wait_for_step(1, 20)
    assert patient.signal(1, signal.SIGTERM).wait(DEADLINE) == 130  # stopped, to go on later
    stopped_at = read_json(patient.sites[1].parent / "state" / "report.json")["step"]
    assert 20 <= stopped_at < 400
    patient.kill(2)
    patient.start(1, 2)
    _, models = patient.finish()
    check_equals_the_simulator(patient, models)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_two_of_eight_killed_at_random_points_again_and_again(village, seed):
    chance = np.random.default_rng(seed)
    patient = village("torus:2x4", 8, 150)
    patient.start()
    for _ in range(3):
        victims = chance.choice(8, 2, replace=False)
        goal = min(max(patient.status(int(peer)).get("step", 0) for peer in victims) + int(chance.integers(1, 30)), 140)
        for peer in map(int, victims):
            patient.wait_for_step(peer, goal)
            if patient.processes[peer].poll() is None:
                patient.kill(peer)
                patient.start(peer)
    _, models = patient.finish()
    check_equals_the_simulator(patient, models)


def test_one_that_never_comes_stops_nobody(village):
    busy = village("ring:4", 4, 30, algorithm="averaging", timeout=8.0, lines="wait_for = 1\n")
    busy.start(0, 1, 2)
    reports, models = busy.finish(0, 1, 2)  # code 0: one of two neighbors was planned to be missing
    assert [report["missing"] for report in reports] == [["peer-3"], [], ["peer-3"]]
    began = village_values(busy)[:3]
    assert np.allclose(models.mean(axis=0), began.mean(axis=0), atol=0.01)  # dithers of 2^-10 of the noise move it
    assert np.ptp(models, axis=0).max() < 0.05
    assert [report["left_over"] for report in reports] == [30, 0, 30]  # its two neighbors, in every round
    assert [len(busy.releases(peer)) for peer in (0, 1, 2)] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "steps"), [("pair-averaging", 60), ("walk-sgd", 200)])
def test_meetings_and_walks_survive_a_kill_and_a_restart(village, algorithm, steps):
    busy = village("complete:5", 5, steps, algorithm=algorithm, timeout=4.0)
    busy.start()
    until(lambda: busy.status(2).get("meetings", 0) >= 3, "three meetings of peer 2")
    busy.kill(2)
    busy.start(2)
    reports, _ = busy.finish(codes=(0, 1))
    assert all(report["done"] for report in reports)
    if algorithm == "walk-sgd":
        clocks = sorted(line.clock for peer in range(5) for line in busy.spends(peer))
        assert set(clocks) == set(range(steps))  # every hop was made


@pytest.mark.slow
def test_a_walk_outlives_a_peer_that_never_comes_back(village):
    """Wherever the token was: whoever depended on the dead one takes a new epoch and goes on."""
    busy = village("complete:4", 4, 150, algorithm="walk-sgd", timeout=0.5)
    busy.start()
    until(lambda: busy.status(2).get("meetings", 0) >= 3, "three meetings of peer 2")
    busy.kill(2)
    reports, _ = busy.finish(0, 1, 3, codes=(0, 1))
    assert any("missed peer-2" in problem for report in reports for problem in report["problems"])
    assert all(report["done"] for report in reports)
    clocks = {line.clock for peer in range(4) for line in busy.spends(peer)}
    assert clocks == set(range(150))


def test_a_port_in_use_is_one_sentence(village):
    busy = village("ring:3", 3, 4)
    entry = AddressBook.read(busy.sites[0].parent / "book.toml").entry(0)
    with socket.socket() as other:
        other.bind((entry.host, entry.port))
        other.listen()
        busy.start(0)
        assert busy.processes[0].wait(DEADLINE) == 2
    said = busy.log(0).strip().splitlines()
    assert said[-1] == f"error: cannot listen on {entry.address}: is the port in use?"
    assert not any("Traceback" in line for line in said)


def test_a_second_process_of_the_same_peer_is_one_sentence(village):
    busy = village("ring:3", 3, 4)
    busy.start(0)
    until(lambda: busy.status(0), "the first status")
    first = busy.processes[0]
    busy.start(0)
    assert busy.processes[0].wait(DEADLINE) == 2
    assert "is in use by another process" in busy.log(0)
    first.send_signal(signal.SIGTERM)
    assert first.wait(DEADLINE) == 130
    assert os.path.exists(busy.sites[0].parent / "state" / "report.json")
