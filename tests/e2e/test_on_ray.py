"""Clusters of Ray on this machine: the same bits as in one process, and what happens when a node is
lost. Tests that change nothing of it share one cluster of two nodes; who adds, loses or ends nodes
has a cluster of its own, since tests come in any order, and again. Without Ray they are skipped and
say so."""

import importlib
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.on import ray_pulse
from bruit.on.place import each, in_order
from bruit.runs.many.sweep import sweep

pytest.importorskip("ray", reason="Ray is not installed: pip install 'bruit[ray]'")

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
HEALTH = {  # a lost node is given up after about a second, not after fifteen
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}


@contextmanager
def cluster_of(nodes=0, **head):
    """A head with these resources, and so many nodes of one core each; these tests can be imported
    there."""
    from bruit.on.ray_session import imported

    imported()
    from ray.cluster_utils import Cluster

    given = {"object_store_memory": 100 << 20, "include_dashboard": False, "_system_config": HEALTH}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        found = Cluster(initialize_head=True, head_node_args=given | head)
        try:
            for _ in range(nodes):
                found.add_node(**NODE)
            yield found
        finally:
            found.shutdown()


@pytest.fixture(scope="module")
def cluster():
    """Two nodes, and a head that does no work."""
    with cluster_of(2, num_cpus=0) as found:
        yield found


def place(cluster, **given):
    return br.on.Ray(address=cluster.address, runtime_env={}, **given)


def secret(number):
    from bruit.randomness import Secure

    return Secure().uniform("noise", np.array([number]), 0)


class EndsOnce:
    """The worker that is asked for 2 ends, the first time."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, number):
        if number == 2 and not self.mark.exists():
            self.mark.touch()
            os._exit(1)
        return number * number


@pytest.mark.slow
def test_many_things(cluster, tmp_path, monkeypatch):
    """A sweep is that of one process to the last bit; real noise is refused; a thing whose actor
    is lost is done by another."""
    monkeypatch.chdir(tmp_path)
    asked = ("ten-clinics", ["privacy.epsilon=4,8"], 2)
    with br.on.chosen(place(cluster)) as pool:
        assert f"Ray at {cluster.address}" in pool.words
        assert "3 nodes, 2 CPUs and 0 GPUs; 2 actors with 1 CPU and 0 GPUs each" in pool.words
        told = []
        found = sweep(*asked, progress=lambda done, all: told.append((done, all)))
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
        with pytest.raises(br.PrivacyError, match="real noise was to be drawn on a cluster"):
            in_order(secret, [1])
        answers = dict(each(EndsOnce(tmp_path / "ended"), range(4)))
        assert answers == {0: 0, 1: 1, 2: 4, 3: 9}
        with pytest.raises(
            br.ConfigError, match=r"a worker was lost: .* it crashed, or was killed"
        ):
            in_order(os._exit, [1])  # always
        with pytest.raises(br.ConfigError, match="connected to Ray already"):
            place(cluster).open()
    assert found == sweep(*asked)
    with pytest.raises(br.ConfigError, match="3 actors with 1 CPU and 0 GPUs each do not fit"):
        place(cluster, actors=3).open()


@pytest.mark.slow
def test_what_workers_cannot_load_is_said(cluster, tmp_path, monkeypatch):
    """They once went on with what they had been given before, and its answers were taken."""
    with br.on.chosen(place(cluster, actors=1)):
        assert in_order(abs, [-2]) == [2]
        (tmp_path / "only_here.py").write_text("def doubled(number):\n    return 2 * number\n")
        monkeypatch.syspath_prepend(tmp_path)
        doubled = importlib.import_module("only_here").doubled
        with pytest.raises(br.ConfigError, match=r"cannot load what it is to do .*only_here"):
            in_order(doubled, [-2])
        assert in_order(abs, [-3]) == [3]


def crew(node):
    """The processes of actors with blocks on this node."""
    parent = node.all_processes["raylet"][0].process.pid
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            facts = (entry / "stat").read_text().rpartition(")")[2].split()
            said = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(facts[1]) == parent and b"ray::Crew" in said:
            found.append(int(entry.name))
    return found


def fails(cluster, nodes):
    """A machine that fails, and the actors on it with it: one of those that have some."""
    (node, actors), *_ = [(one, crew(one)) for one in nodes if crew(one)]
    cluster.remove_node(node, allow_graceful=False)
    for pid in actors:
        os.kill(pid, signal.SIGKILL)
    nodes.remove(node)


@pytest.mark.slow
def test_a_run_in_blocks():
    """1, 2 and 7 blocks are one process to the last bit, though a node fails in mid-run: with no
    room left, the other actor takes over; with a spare node, a new one."""
    with cluster_of(2, num_cpus=0) as cluster:
        runs_in_blocks(cluster)


def runs_in_blocks(cluster):
    graph, task = br.graphs.graph("er:60,c=2"), br.tasks.Mean.uniform(60, 3, 1)
    noise = br.Gaussian(clip=1.0, sigma=1.0)
    options = {"privacy": noise, "steps": 15, "seed": 3, "evaluate_every": 5}
    alone = br.run(br.Averaging(), graph, task, engine=br.Bulk(fused=False), **options)
    nodes = [node for node in cluster.list_all_nodes() if not node.head]

    def play(actors, blocks, fail):
        told = []

        def progress(done, *_):
            if done == 6 and fail:
                fails(cluster, nodes)

        there = place(cluster, actors=actors, checkpoint=4)
        engine = br.Blocks(there, blocks, tell=told.append)
        found = br.run(br.Averaging(), graph, task, engine=engine, progress=progress, **options)
        assert np.array_equal(found.estimates, alone.estimates)
        assert np.array_equal(found.state.message, alone.state.message)
        assert found.ledger.digest() == alone.ledger.digest()
        assert found.metrics.rows == alone.metrics.rows
        assert (found.engine["blocks"], found.engine["lost"] > 0) == (blocks, fail)
        return told[0]

    assert "1 actor with 1 CPU" in play(1, 1, False)
    assert "2 actors with 1 CPU" in play(2, 7, True)
    nodes += [cluster.add_node(**NODE), cluster.add_node(**NODE)]
    cluster.wait_for_nodes()
    assert "4 nodes, 3 CPUs" in play(2, 2, True)


class Raises(br.Averaging):
    """An algorithm of somebody, which fails at peer 7."""

    in_blocks = True

    def absorb(self, state, inbox, home):
        if 7 in home.ids and home.step[0] == 2:
            raise ValueError("seven")
        return super().absorb(state, inbox, home)


@pytest.mark.slow
def test_what_goes_wrong_in_a_block_is_said(cluster):
    """Where it hands something over as well."""
    task, there = br.tasks.Mean.uniform(9, 1, 1), place(cluster, actors=1)
    words = "at peer 7, step 2; after 1 of 5 rounds"
    with pytest.raises(br.AlgorithmError, match=words):
        br.run(Raises(), "ring:9", task, steps=5, engine=br.Blocks(there, 3))


@pytest.mark.slow
def test_every_actor_has_its_own_gpu():
    """Claimed ones, as there are none here: where actors land, not what they compute."""
    with cluster_of(num_cpus=3, num_gpus=2) as cluster:
        with br.on.chosen(place(cluster, gpus=1)) as pool:
            assert "2 actors with 1 CPU and 1 GPU each" in pool.words
            assert {*in_order(own_gpu, range(4))} <= {"0", "1"}
            assert len(pool.workers()) == 2
        with pytest.raises(br.ConfigError, match="3 actors with 1 CPU and 1 GPU each do not fit"):
            place(cluster, actors=3, gpus=1).open()


def own_gpu(number):
    """What the actor may see."""
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.slow
def test_a_cluster_that_is_gone(monkeypatch):
    """Ray would end this process after a minute, without a word of ours; and who asks for it again
    would wait for ten."""
    monkeypatch.setattr(ray_pulse, "EVERY", 0.2)
    with cluster_of(num_cpus=1) as cluster:
        head = cluster.head_node.all_processes["gcs_server"][0].process

        def answers():
            for number, _ in each(waited, range(200)):
                if number == 1:
                    head.kill()

        with (
            pytest.raises(br.ConfigError, match="the Ray cluster is gone: its head at"),
            br.on.chosen(place(cluster, actors=1)),
        ):
            answers()
        with pytest.raises(br.ConfigError, match=f"no Ray cluster answers at {cluster.address}"):
            place(cluster).open()


def waited(number):
    time.sleep(0.1)
    return number
