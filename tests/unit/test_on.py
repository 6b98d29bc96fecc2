"""Places: many things are done there, by whoever is free, and the answers are those of this
process."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextvars import copy_context

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.trials import paired_views
from bruit.adversary.audits.worlds import Neighbors
from bruit.on import cores as cores_of
from bruit.on import named_place, place_for, ray_pulse, ray_session
from bruit.on.place import GONE, Pool, each, in_chunks, in_order, stream
from bruit.on.ray_worker import Crew
from bruit.on.team import Handed
from bruit.on.worker import done
from bruit.privacy.exact import all_pairs
from bruit.randomness import Secure, shared_machine
from bruit.tasks import Mean


def squared(number):
    return number * number


def ended(number):
    """The process ends, as one that is out of memory does."""
    if number == 3:
        os._exit(9)
    return number


def picky(number):
    if number == 2:
        raise br.PrivacyError("two is private")
    return number


@pytest.fixture(scope="module")
def two():
    with br.on.chosen(br.on.Processes(2)) as pool:
        yield pool


def test_names():
    assert named_place("processes") == br.on.Processes()
    assert named_place("ray") == br.on.Ray()
    ray = named_place("ray:10.0.0.1:6379,actors=8,cpus=2,gpus=0.25,checkpoint=0")
    assert (ray.address, ray.actors, ray.cpus, ray.gpus) == ("10.0.0.1:6379", 8, 2, 0.25)
    assert named_place("ray:ray://head:10001").address == "ray://head:10001"
    assert place_for(1, None) is None
    assert place_for(3, None) == br.on.Processes(3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cluster", "names no place"),
        ("processes:many", "whole number"),
        ("processes:0", "at least one process"),
        ("ray:auto,color=2", "no setting of Ray"),
        ("ray,cpus=many", "cpus is a number"),
        ("ray,cpus=0", "CPUs > 0"),
        ("ray,actors=0", "at least one actor"),
    ],
)
def test_what_names_no_place(text, words):
    with pytest.raises(br.ConfigError, match=words):
        named_place(text)


def test_jobs_or_a_place():
    with pytest.raises(br.ConfigError, match="give one of them"):
        place_for(2, "processes:2")


def test_answers_come_in_order_wherever_they_are_made(two):
    told = []
    assert in_order(squared, [3, 1, 3], lambda done, all: told.append((done, all))) == [9, 1, 9]
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert list(stream(squared, range(5))) == [0, 1, 4, 9, 16]
    assert in_chunks(squared, range(50)) == [k * k for k in range(50)]
    with br.on.chosen(None) as same:
        assert same is two


def test_what_goes_wrong_there_goes_wrong_here(two):
    with pytest.raises(br.PrivacyError, match="two is private"):
        in_order(picky, range(4))
    for _, answer in each(squared, range(4)):
        assert answer in (0, 1, 4, 9)
        break  # what nobody waits for is not taken for an answer of the next round
    assert in_order(squared, [7, 8, 9]) == [49, 64, 81]


def test_a_lost_process_loses_its_thing_only(two):
    answers = dict(each(ended, range(6), lambda number: GONE))
    assert answers == {0: 0, 1: 1, 2: 2, 3: GONE, 4: 4, 5: 5}
    with pytest.raises(br.ConfigError, match="enough memory"):
        in_order(ended, [3])
    assert in_order(squared, [2, 3]) == [4, 9]


def said(number):
    print("a worker said", number)
    return number


def test_a_worker_hears_no_ctrl_c_not_even_as_it_begins_and_what_it_says_is_not_lost(capfd):
    """Ctrl-C reaches the whole group of processes: whoever still imports would end with a story."""
    before, answers = set(multiprocessing.active_children()), []
    with br.on.chosen(br.on.Processes(1)):
        asking = threading.Thread(target=copy_context().run, args=(ask, said, answers))
        asking.start()
        while asking.is_alive():
            for child in set(multiprocessing.active_children()) - before:
                os.kill(child.pid, signal.SIGINT)
            asking.join(0.02)
    assert answers == [7]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert "a worker said 7" in capfd.readouterr().out


def ask(do, answers):
    answers += in_order(do, [7])


class Refused(Exception):
    """An error that takes more than words."""

    def __init__(self, words, number):
        super().__init__(words)
        self.number = number


def awkward(what):
    if what == "answer":
        return lambda: 1
    raise {"exit": SystemExit(3), "memory": MemoryError(), "words": Refused("odd", 2)}[what]


@pytest.mark.parametrize(
    ("things", "words"),
    [
        ([lambda: 1], "what a worker is given cannot be sent"),
        (["answer"], "what a worker answers cannot be sent"),
        (["exit"], r"ended its process \(SystemExit\(3\)\)"),
        (["memory"], "a worker ran out of memory"),
        (["words"], "odd"),
    ],
)
def test_what_cannot_travel_is_said_and_nobody_waits_for_it(two, things, words):
    with pytest.raises(br.ConfigError, match=words):
        in_order(awkward, things * 3)
    assert in_order(squared, range(5)) == [0, 1, 4, 9, 16]


class AtOnce(Pool):
    """Two workers whose answers come together."""

    words = "here"

    def __init__(self):
        super().__init__()
        self.given = {}

    def workers(self):
        return [0, 1]

    def hold(self, do):
        self.do = do

    def send(self, worker, thing):
        assert worker not in self.given
        self.given[worker] = thing

    def wait(self):
        assert self.given, "nobody is doing anything, and somebody waits"
        given, self.given = self.given, {}
        return [(worker, done(self.do, thing)) for worker, thing in given.items()]

    def stop(self, now):
        self.given = {}


def test_answers_that_come_together_leave_nobody_busy():
    """Whether the first of them is an error, or all that is looked at."""
    pool = AtOnce()
    with pytest.raises(br.PrivacyError):
        list(pool.each(picky, [2, 2, 3], None))
    assert pool.busy == {}
    first = pool.each(squared, range(4), None)
    next(first)
    first.close()
    assert pool.busy == {}
    assert [answer for _, answer in pool.each(squared, range(3), None)] == [0, 1, 4]


def test_two_streams_of_the_same_workers_are_not_mixed(two):
    first = each(squared, range(9))
    next(first)
    assert in_order(doubled, [1, 2]) == [2, 4]
    with pytest.raises(br.ConfigError, match="something else to do on the way"):
        list(first)


def doubled(number):
    return 2 * number


def test_pairs_trials_and_repeats_are_those_of_one_process(two):
    graph, noise = br.graphs.graph("er:70,c=2"), br.Gaussian(clip=1.0, sigma=1.0)
    told = []
    there = all_pairs.pairwise(graph, 3, progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (70, 70)
    task = Mean(np.arange(8.0).reshape(8, 1) / 8)
    sides = Neighbors.opposite(8, 2, 1.0)
    views = [
        view
        for chunk in paired_views(br.Averaging(), br.graphs.ring(8), noise, sides, (1,), 2, 40)
        for view in (chunk.left, chunk.right)
    ]
    options = {"seeds": [4, 5], "steps": 3, "privacy": noise, "engine": br.Bulk()}
    runs = br.repeat(br.Averaging(), "ring:8", task, **options, on=br.on.Processes(1))
    with pytest.raises(br.ConfigError, match="threads of this process"):
        br.repeat(br.Averaging(), "ring:8", task, **options, workers=2, on="processes:1")
    for seed, found in zip([4, 5], runs, strict=True):
        alone = br.run(
            br.Averaging(), "ring:8", task, privacy=noise, steps=3, seed=seed, evaluate_every=3
        )
        assert np.array_equal(found.estimates, alone.estimates)
        assert found.ledger.digest() == alone.ledger.digest()
    chosen = br.on.place._CHOSEN.set(None)  # here
    try:
        alone = all_pairs.pairwise(graph, 3)
        assert np.array_equal(there.m, alone.m, equal_nan=True)
        assert np.array_equal(there.rank, alone.rank)
        (chunk,) = paired_views(br.Averaging(), br.graphs.ring(8), noise, sides, (1,), 2, 40)
        assert np.array_equal(np.concatenate(views[0::2]), chunk.left)
        assert np.array_equal(np.concatenate(views[1::2]), chunk.right)
    finally:
        br.on.place._CHOSEN.reset(chosen)


def test_cores_are_those_that_were_granted(monkeypatch, tmp_path):
    every = cores_of.cores()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert cores_of.cores() == 1
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "10000")
    assert cores_of.cores() == every
    quota = tmp_path / "cpu.max"
    for text, limits in (("150000 100000", [2]), ("max 100000", []), ("", [])):
        quota.write_text(text)
        assert cores_of._quota(quota) == limits
    assert cores_of._quota(tmp_path / "none") == []


def test_ray_is_neither_imported_nor_looked_for_before_it_is_opened(monkeypatch):
    code = (
        "import sys, bruit as br; br.on.Ray(address='auto'); br.on.named_place('ray'); "
        "print('ray' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
    monkeypatch.setattr(ray_session, "find_spec", lambda name: None)
    with pytest.raises(br.ConfigError, match="Ray is not installed"), br.on.chosen(br.on.Ray()):
        pass


def test_real_noise_is_refused_on_a_shared_machine_also_in_what_a_worker_begins(monkeypatch):
    """With a key that was kept before as well: a peer begun there draws nothing either."""
    dice = Secure(bytes(16))
    monkeypatch.setenv(shared_machine.DECLARED, "nowhere")  # and as it was, afterwards
    Crew()
    for draw in (Secure, lambda: Secure(bytes(16)), lambda: dice.rekey(bytes(16))):
        with pytest.raises(br.PrivacyError, match="real noise was to be drawn on a cluster"):
            draw()
    code = "from bruit.randomness import Secure; Secure()"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "PrivacyError: real noise was to be drawn on a cluster" in said.stderr


def test_a_head_that_does_not_answer_is_gone_after_several_looks(monkeypatch):
    monkeypatch.setattr(ray_pulse, "EVERY", 1e-4)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        pulse = ray_pulse.Pulse(f"127.0.0.1:{port}")
        time.sleep(0.001)
        pulse.check()

    def looks():
        for _ in range(3):
            time.sleep(0.001)
            pulse.check()

    with pytest.raises(br.ConfigError, match=f"is gone: its head at 127.0.0.1:{port}"):
        looks()
    ray_pulse.Pulse("").check()


@pytest.mark.parametrize("form", ["{0}", "ray://{0}", "auto"])
def test_where_nobody_listens_is_said_at_once(monkeypatch, form):
    """Ray would ask for ten minutes, without a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", free)
    monkeypatch.setattr(ray_session, "imported", lambda: FakeRay)
    place = br.on.Ray(address=form.format(free))
    with pytest.raises(
        br.ConfigError, match=f"no Ray cluster answers at {place.address}.* refused"
    ):
        place.open()
    for odd in ("head", "http://head:6379"):
        with pytest.raises(br.ConfigError, match=f"HOST:PORT or ray://HOST:PORT, found '{odd}'"):
            br.on.Ray(address=odd).open()


def test_a_client_whose_cluster_is_gone_says_so():
    """It raises an error of Python's, which no sentence was made of."""
    ray = ray_session.Session(FakeRay, "", 1, ray_pulse.Pulse(""))
    for ask in (ray.get, ray.put, lambda reference: ray.first([reference])):
        with pytest.raises(br.ConfigError, match=r"the Ray cluster is gone \(Client is shutting"):
            ask(None)


class FakeRay:
    """Connected to nothing."""

    class exceptions:
        RayActorError = ObjectLostError = OutOfMemoryError = RayTaskError = KeyError
        RaySystemError = ObjectStoreFullError = LookupError

    @staticmethod
    def is_initialized():
        return False

    @staticmethod
    def get(*_, **__):
        raise ConnectionError("Client is shutting down.")

    put = wait = get


class Fails:
    """A part that hands over two rows, or fails."""

    def __init__(self, share):
        pass

    def hand(self, fails):
        return Handed(1, ["a", "b"]) if not fails else 1 / 0


def test_an_actor_hands_over_as_much_as_was_asked_also_if_it_fails(monkeypatch):
    """Ray takes any tuple of that length for the answers; an error is one of three fields."""
    monkeypatch.setenv(shared_machine.DECLARED, "nowhere")  # and as it was, afterwards
    crew = Crew()
    crew.make(0, Fails, None)
    told, *parcels = crew.call(0, "hand", 2, (False,))
    assert (told.told, parcels) == (1, ["a", "b"])
    told, *parcels = crew.call(0, "hand", 2, (True,))
    assert (told.kind, parcels) == (ZeroDivisionError, [None, None])
    assert crew.call(0, "hand", 0, (True,)).kind is ZeroDivisionError


def test_what_goes_wrong_with_ray_is_said():
    place = br.on.Ray(address="head:6379")
    said = ray_session._refused(place, "Version mismatch: 2.1 and 2.2")
    assert "has other versions" in said
    assert "RAY_AUTH_MODE=token" in ray_session._refused(place, "Failed to connect")
    assert "did not start on this machine" in ray_session._refused(br.on.Ray(), "x")
    for raw, words in (
        ("killed due to the node running low on memory", "ran out of memory"),
        ("SYSTEM_ERROR: causes include the OOM killer due to high memory usage", "crashed, or was"),
        ("node died", "is gone: node died"),
    ):
        assert words in ray_session.lost_because(RuntimeError(raw))
        assert words in ray_session._unbegun(RuntimeError(raw))
    unknown = RuntimeError("an error raised in its creation task\n^^\nNo module named 'bruit'")
    assert "could not load bruit: No module named 'bruit'; leave" in ray_session._unbegun(unknown)
