"""Real processes on loopback: killed, stopped, started again; the run goes on, the ledger is right.

Nothing here waits for a fixed time: conditions are polled, with a deadline. Who is killed or stopped
in the middle of a run is held there before.
"""

import signal
import socket
import time

import numpy as np
import pytest

from bruit.peers.founding.demo import read_json
from bruit.peers.wire.address_book import AddressBook
from tests.e2e.villages import DEADLINE, village_values

pytestmark = pytest.mark.slow


def check_equals_the_simulator(village, models):
    bulk = village.bulk()
    assert np.allclose(models, bulk.estimates, rtol=0, atol=1e-9)
    events = bulk.ledger.events
    columns = [bulk.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    due = sorted((p, s, c, events[e].to_json()) for p, s, c, e in zip(*columns, strict=True))
    found = [tuple(line) for peer in range(len(models)) for line in village.spends(peer)]
    assert sorted(found) == due


def test_a_quiet_run_ends_as_the_simulator_says(village):
    quiet = village("ring:3", 3, 12, forked=False)
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
    patient = village("ring:4", 4, 40)
    patient.hold(20)
    patient.start()
    patient.wait_for_step(20, 1, 2)
    assert patient.signal(1, signal.SIGTERM).wait(DEADLINE) == 130  # stopped, to go on later
    assert 20 <= read_json(patient.home(1) / "state" / "report.json")["step"] < 40
    patient.kill(2)
    patient.let_go()
    patient.start(1, 2)
    _, models = patient.finish()
    check_equals_the_simulator(patient, models)


def test_a_peer_is_upgraded_in_the_middle_of_a_run(village):
    """Stopped, and started again as a process of the next release; the others are of this one."""
    patient = village("ring:3", 3, 24)
    patient.hold(12)
    patient.start()
    patient.wait_for_step(12, 1)
    assert patient.signal(1, signal.SIGTERM).wait(DEADLINE) == 130
    patient.let_go()
    patient.changed = (*patient.changed, "tests.e2e.next_release")
    patient.start(1)
    reports, models = patient.finish()
    check_equals_the_simulator(patient, models)
    assert [report["missed"] for report in reports] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(2))
def test_two_of_eight_killed_at_random_points_again_and_again(village, seed):
    """Killed wherever they are in their work, then held on to somewhere before the end."""
    chance = np.random.default_rng(seed)
    patient = village("torus:2x4", 8, 60)
    patient.hold(10)
    patient.start()
    for goal in (20, 30, 40):
        victims = [int(peer) for peer in chance.choice(8, 2, replace=False)]
        patient.wait_for_step(goal - 10, *victims)
        patient.hold(goal)
        for peer in victims:
            time.sleep(float(chance.uniform(0.0, 0.1)))  # some rounds, or none
            patient.kill(peer)
            patient.start(peer)
    patient.let_go()
    _, models = patient.finish()
    check_equals_the_simulator(patient, models)


def test_one_that_never_comes_stops_nobody(village):
    busy = village("ring:4", 4, 30, algorithm="averaging", timeout=6.0, lines="wait_for = 1\n")
    busy.hold(0)  # who has begun waits until the others have: none of the three is late
    busy.start(0, 1, 2)
    for peer in (0, 1, 2):
        busy.wait_for(peer, lambda now: now["releases"], "the first release")
    busy.let_go()
    reports, models = busy.finish(0, 1, 2)  # code 0: one of two neighbors was planned to be missing
    assert [report["missing"] for report in reports] == [["peer-3"], [], ["peer-3"]]
    assert [report["missed_elsewhere"] for report in reports] == [False, True, False]
    began = village_values(busy)[:3]
    assert np.allclose(
        models.mean(axis=0), began.mean(axis=0), atol=0.01
    )  # dithers of 2^-10 of the noise move it
    assert np.ptp(models, axis=0).max() < 0.05
    assert [report["left_over"] for report in reports] == [
        30,
        0,
        30,
    ]  # its two neighbors, in every round
    assert [len(busy.releases(peer)) for peer in (0, 1, 2)] == [1, 1, 1]


@pytest.mark.parametrize(("algorithm", "steps"), [("pair-averaging", 40), ("walk-sgd", 80)])
def test_meetings_and_walks_survive_a_kill_and_a_restart(village, algorithm, steps):
    busy = village("complete:5", 5, steps, algorithm=algorithm, timeout=4.0)
    busy.hold(3, 2)
    busy.start()
    busy.wait_for_step(3, 2)
    busy.kill(2)
    busy.let_go()
    busy.start(2)
    reports, _ = busy.finish(codes=(0, 1))
    assert all(report["done"] for report in reports)
    if algorithm == "walk-sgd":
        clocks = sorted(line.clock for peer in range(5) for line in busy.spends(peer))
        assert set(clocks) == set(range(steps))  # every hop was made


def test_a_walk_outlives_a_peer_that_never_comes_back(village):
    """Wherever the token was: whoever depended on the dead one takes a new epoch and goes on."""
    busy = village("complete:4", 4, 60, algorithm="walk-sgd", timeout=0.5)
    busy.hold(3, 2)
    busy.start()
    busy.wait_for_step(3, 2)
    busy.kill(2)
    reports, _ = busy.finish(0, 1, 3, codes=(0, 1))
    assert any("missed peer-2" in problem for report in reports for problem in report["problems"])
    assert all(report["done"] for report in reports)
    clocks = {line.clock for peer in range(4) for line in busy.spends(peer)}
    assert clocks == set(range(60))


def test_a_port_in_use_is_one_sentence(village):
    busy = village("ring:3", 3, 4)
    entry = AddressBook.read(busy.sites[0].parent / "book.toml").entry(0)
    with socket.socket() as other:
        other.bind((entry.host, entry.port))
        other.listen()
        busy.start(0)
        assert busy.code(0) == 2
    said = busy.log(0).strip().splitlines()
    assert said[-1] == f"error: cannot listen on {entry.address}: is the port in use?"
    assert not any("Traceback" in line for line in said)


def test_a_second_process_of_the_same_peer_is_one_sentence(village):
    busy = village("ring:3", 3, 4)
    busy.start(0)
    busy.wait_for(0, lambda now: True, "the first status")
    first = busy.processes[0]
    try:
        busy.start(0)
        assert busy.code(0) == 2
        assert "is in use by another process" in busy.log(0)
    finally:
        first.send_signal(signal.SIGTERM)
        code = first.wait(DEADLINE)
    assert code == 130
    assert (busy.home(0) / "state" / "report.json").exists()
