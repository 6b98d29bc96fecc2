"""What the tables of networks stand on: features of one picture alone, loops that do the same
arithmetic, and runs that keep what they were asked to keep."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bruit as br  # noqa: E402
from benchmarks.networks import clipping, decor, front, peers  # noqa: E402
from benchmarks.networks.choosing import Setting, descended  # noqa: E402
from benchmarks.networks.learning import Way, alone, learned  # noqa: E402
from benchmarks.networks.pictures import dealt  # noqa: E402
from bruit.graphs import regular  # noqa: E402
from bruit.tasks import Torch  # noqa: E402


@pytest.fixture
def pictures():
    return np.random.default_rng(0).integers(0, 256, (6, 28, 28)).astype(np.uint8)


@pytest.mark.parametrize(("prepared", "length"), [(front.features, 1.0), (decor.contrasts, 5.0)])
def test_features_of_a_picture_are_its_own(pictures, prepared, length):
    rows = prepared(pictures)
    assert np.allclose(np.linalg.norm(rows, axis=1), length, atol=1e-5)
    assert np.allclose(prepared(pictures[2:3])[0], rows[2], atol=1e-6)
    blank = prepared(np.zeros((1, 28, 28), np.uint8))
    assert np.isfinite(blank).all()


def test_waves_have_mean_zero():
    waves = front.morlets()
    assert waves.shape == (2 * front.TURNS, 1, 7, 7)
    assert torch.allclose(waves.sum((1, 2, 3)), torch.zeros(len(waves)), atol=1e-6)


def _task(peers, module="mlp:32"):
    draws = np.random.default_rng(1)
    rows = draws.normal(size=(8 * peers, 4))
    labels = (rows[:, 0] > 0).astype(float) + 2 * (rows[:, 1] > 0)
    return Torch(module, records=dealt(rows, labels, rows, labels, peers))


def test_the_bare_loop_does_the_arithmetic_of_the_library():
    task, graph = _task(6), regular(6, 4, seed=1)
    run = br.run(br.GossipSGD(peers.RATE), graph, task, steps=3, evaluate_every=0)
    assert np.abs(run.estimates - peers.bare_loop(graph, task, 3)).max() < 1e-12


def test_clipped_sums_are_what_is_timed():
    task = clipping.task_of("mlp:8", 5, "float64")
    (block,) = task.records.blocks
    total = np.zeros(task.dim)
    for k in range(5):
        batch = task.network.batch(block.features[:, k : k + 1], block.targets[:, k : k + 1])
        row = task.network.gradients(task.start()[None], batch, np.ones((1, 1)))[0]
        total += row * min(1.0, clipping.CLIP / np.linalg.norm(row))
    assert np.allclose(clipping.ours(task), total, rtol=1e-4, atol=1e-7)


def test_a_run_keeps_its_epsilon_and_learns():
    task = _task(4)
    setting = Setting(steps=3, clip=1.0, rate=0.5, sample_rate=1.0)
    found = learned(task, setting, 1.0, Way(colluders=1), (1,))
    assert 0.9 < found.epsilon <= 1.0
    quiet = learned(task, Setting(steps=40, clip=1.0, rate=0.5), math.inf, Way(), (1,))
    assert quiet.accuracies[0] > 0.6
    own = alone(task)
    assert own.peers == 2
    assert own.sizes.sum() == task.sizes[0]


def test_the_plain_descent_learns_without_noise():
    rows = torch.nn.functional.one_hot(torch.arange(60) % 3, 5).float()
    setting = Setting(steps=20, clip=1.0, rate=5.0, sample_rate=0.5)
    for head in descended(rows, torch.arange(60) % 3, setting, 0.0, seed=1):
        assert ((rows @ head.T).argmax(1) == torch.arange(60) % 3).all()
