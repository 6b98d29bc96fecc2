"""Real processes on loopback: killed, stopped, frozen, started again, attacked; the run goes on, the ledger is right.

Nothing here waits for a fixed time: conditions are polled, with a deadline.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.build import build
from bruit.config import parse
from bruit.network.address_book import AddressBook, run_id
from bruit.network.identity import Identity
from bruit.network.journal import recorded_spend
from bruit.sites.demo import read_json, start
from bruit.sites.founding import found

sys.path.insert(0, str(Path(__file__).parent))
from hostile import hello, raw, say

SEED, DEADLINE = 5, 120.0
LEARN = """\
graph = "{graph}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "{algorithm}"

[privacy]
sigma = 0.5
"""


def until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {DEADLINE:g} s: {what}"
        time.sleep(0.02)
    return answer


class Village:
    """Sites and the processes that run them."""

    def __init__(self, folder, graph, peers, steps, algorithm="gossip-sgd", timeout=60.0):
        self.text = LEARN.format(graph=graph, steps=steps, algorithm=algorithm)
        (folder / "x.toml").write_text(self.text)
        self.sites = found(str(folder / "x.toml"), peers, None, folder / "network", timeout=timeout, pace=0.05)
        self.processes = {}

    def start(self, *peers):
        for peer in peers or range(len(self.sites)):
            (self.processes[peer],) = start([self.sites[peer]], rehearse=SEED)

    def status(self, peer):
        return read_json(self.sites[peer].parent / "state" / "status.json")

    def wait_for_step(self, peer, step):
        until(lambda: self.status(peer).get("step", 0) >= step, f"step {step} of peer {peer}: {self.log(peer)}")

    def log(self, peer):
        return (self.sites[peer].parent / "log.txt").read_text(errors="replace")[-2000:]

    def signal(self, peer, number):
        self.processes[peer].send_signal(number)
        return self.processes[peer]

    def kill(self, peer):
        assert self.signal(peer, signal.SIGKILL).wait(DEADLINE) == -9

    def finish(self, *peers):
        """Wait for these; their reports and models."""
        chosen = peers or range(len(self.sites))
        for peer in chosen:
            until(lambda peer=peer: self.processes[peer].poll() is not None, f"the end of peer {peer}")
            assert self.processes[peer].returncode == 0, self.log(peer)
        reports = [read_json(self.sites[peer].parent / "state" / "report.json") for peer in chosen]
        models = [np.load(self.sites[peer].parent / "state" / "model.npz")["model"] for peer in chosen]
        return reports, np.concatenate(models)

    def spends(self, peer):
        return recorded_spend(self.sites[peer].parent / "state" / "journal.db")

    def bulk(self):
        """The same rehearsal in the simulator."""
        built = build(parse(self.text))
        return br.run(built.algorithm, built.graph, built.task, privacy=built.privacy, steps=built.steps, seed=SEED,
                      evaluate_every=0)  # fmt: skip


@pytest.fixture
def village(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # from any folder, installed or not
    made = []

    def make(*words, **options):
        made.append(Village(tmp_path, *words, **options))
        return made[-1]

    yield make
    for one in made:
        for process in one.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


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
    assert patient.signal(1, signal.SIGTERM).wait(DEADLINE) == 3  # stopped, to go on later
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


@pytest.mark.slow
def test_eight_peers_two_killed_two_frozen_one_started_again_one_hostile(village):
    """Short patience: the others finish. Peer 0 only sends nonsense, 1 and 2 are killed, 2 comes back, 4 and 7 freeze.

    The one that dies has mixed with the others before, so everybody else still ends near the mean of all seven.
    """
    steps = 600
    busy = village("torus:2x4", 8, steps, algorithm="averaging", timeout=2.0)
    busy.start(*range(1, 8))
    evil, entry, run = attacker(busy, 0, of=3)
    busy.wait_for_step(3, 40)
    busy.kill(1)
    busy.kill(2)
    nonsense = [[b"\xffgarbage"], [hello("cd" * 32, "averaging", 0)],
                [raw(run, "averaging", 0, 1, np.array([[np.nan, 1.0]]))],
                [hello(run, "averaging", 0, acknowledged=10**9)]]  # fmt: skip
    refused = [say(evil, entry, frames)[0].name for frames in nonsense]
    for peer in (4, 7):
        busy.signal(peer, signal.SIGSTOP)
    goal = busy.status(3)["step"] + 30
    busy.wait_for_step(3, min(goal, steps))
    for peer in (4, 7):
        busy.signal(peer, signal.SIGCONT)
    busy.start(2)
    present = (2, 3, 4, 5, 6, 7)
    reports, models = busy.finish(*present)
    assert refused == ["INVALID_ARGUMENT"] * 4
    assert reports[1]["refused"]["frame"] == 4
    assert all(report["done"] and report["step"] == steps for report in reports)
    began = village_values(busy)
    assert np.ptp(models, axis=0).max() < 1e-6  # they agree
    assert np.abs(models - began[1:].mean(axis=0)).max() < 0.25 * np.ptp(began[1:], axis=0).max()
    for peer in present:
        assert [line.step for line in busy.spends(peer)] == [0]  # one release at the start, whatever happened


def attacker(busy, peer, of):
    """A listed peer's identity, whom it attacks, and the run's name."""
    home = busy.sites[peer].parent
    book = AddressBook.read(home / "book.toml")
    return Identity.load(home), book.entry(of), run_id(book, (home / "experiment.toml").read_text())


def village_values(busy):
    """What everybody released at the start."""
    built = build(parse(busy.text))
    return br.run(built.algorithm, built.graph, built.task, privacy=built.privacy, steps=0, seed=SEED).estimates


def test_one_that_never_comes_stops_nobody(village):
    busy = village("ring:4", 4, 30, algorithm="averaging", timeout=1.5)
    busy.start(0, 1, 2)
    reports, models = busy.finish(0, 1, 2)
    began = village_values(busy)[:3]
    assert np.allclose(models.mean(axis=0), began.mean(axis=0), atol=1e-9)
    assert np.ptp(models, axis=0).max() < 0.05
    assert [report["left_over"] for report in reports] == [30, 0, 30]  # its two neighbors, in every round
    assert [len(busy.spends(peer)) for peer in (0, 1, 2)] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "steps"), [("pair-averaging", 60), ("walk-sgd", 200)])
def test_meetings_and_walks_survive_a_kill_and_a_restart(village, algorithm, steps):
    busy = village("complete:5", 5, steps, algorithm=algorithm, timeout=4.0)
    busy.start()
    until(lambda: busy.status(2).get("meetings", 0) >= 3, "three meetings of peer 2")
    busy.kill(2)
    busy.start(2)
    reports, _ = busy.finish()
    assert all(report["done"] for report in reports)
    if algorithm == "walk-sgd":
        clocks = sorted(line.clock for peer in range(5) for line in busy.spends(peer))
        assert set(clocks) == set(range(steps))  # every hop was made


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
    assert first.wait(DEADLINE) == 3
    assert os.path.exists(busy.sites[0].parent / "state" / "report.json")
