"""Consensus ADMM, its traces and its variants: walk:ADMM-5, ADMM-6, ADMM-7."""

import numpy as np
import pytest

from bruit.algorithms.admm.consensus_admm import Consensus, ConsensusNoise, task_prox
from bruit.algorithms.admm.draws import AddressedDraws, WrittenDraws
from bruit.algorithms.admm.iteration import Iteration
from bruit.algorithms.admm.regularizers import L1
from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.tasks import Logistic, Mean, Records, Ridge

A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
TRACED = Ridge(Records.of(A, np.array([1.0, -1.0, 0.5]), np.arange(3)))
NORMALS = np.array([[[0.1, -0.2], [0.3, 0.0], [-0.4, 0.5]], [[0.0, 0.6], [-0.1, 0.2], [0.2, -0.3]]])
CONSENSUS = Consensus(task_prox(TRACED), 0.7, L1(0.1))


def test_trace_of_the_centralized_algorithm():
    # walk:ADMM-5
    first, second = Iteration(CONSENSUS.operator, 0.5, 0.5).iterates(
        np.zeros((3, 2)), 2, WrittenDraws(NORMALS)
    )
    assert CONSENSUS.model(first) == pytest.approx([0.115866013, 0.0], abs=1e-9)
    wanted = [[0.612055940, 0.15], [0.090866013, -0.531314879], [0.336471950, 0.095605937]]
    np.testing.assert_allclose(second, wanted, atol=1e-9)
    assert CONSENSUS.model(second) == pytest.approx([0.276464634, -0.025236314], abs=1e-9)


def test_trace_of_the_consensus_noise_variant():
    # walk:ADMM-5, V4: sigma_z .1, xi (.5, -.5), (1, 0), (-.3, .2)
    xi = WrittenDraws(np.array([[0.5, -0.5], [1.0, 0.0], [-0.3, 0.2]]))
    found = list(ConsensusNoise(CONSENSUS, 0.5, 0.1).models(np.zeros((3, 2)), 3, xi))
    wanted = [[0.0, 0.0], [0.215866013, -0.018643791], [0.288999130, -0.078678687]]
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(
        ConsensusNoise(CONSENSUS, 0.5, 0.1).run(np.zeros((3, 2)), 3, xi), wanted[2], atol=1e-9
    )


@pytest.mark.parametrize(
    ("sets", "normals", "mean", "model"),
    [
        # walk:ADMM-6: rounds {0, 1}, {1, 2}
        ([[1, 1, 0], [0, 1, 1]], NORMALS, [0.266350763, -0.206311675], [0.196350763, -0.136311675]),
        # walk:ADMM-7: path 2, 0; normals (-.4, .5) then (0, .6)
        ([[0, 0, 1], [1, 0, 0]], NORMALS, [0.152532680, 0.147037037], [0.082532680, 0.077037037]),
    ],
)
def test_traces_of_federated_and_walk(sets, normals, mean, model):
    u = Iteration(CONSENSUS.operator, 0.5, 0.5).run(
        np.zeros((3, 2)), 2, WrittenDraws(normals, np.array(sets, bool))
    )
    assert u.mean(axis=0) == pytest.approx(mean, abs=1e-9)
    assert CONSENSUS.model(u) == pytest.approx(model, abs=1e-9)


def test_the_identity_of_the_dual_step():
    # walk:ADMM-5: u+ = (1 - 2 l) u + 2 l (z - gamma g) + l eta with g the gradient of f_i at x_i
    u, z = np.random.default_rng(0).normal(size=(3, 2)), np.array([0.3, -0.7])
    x = TRACED.prox(np.arange(3), 2 * z - u, 0.7)
    found = u + 0.4 * CONSENSUS.change(u, z)
    slope = TRACED.gradient(np.arange(3), x)
    np.testing.assert_allclose(found, (1 - 2 * 0.4) * u + 2 * 0.4 * (z - 0.7 * slope), atol=1e-12)


def test_the_operator_is_non_expansive():
    rng = np.random.default_rng(1)
    task = Logistic(Records.of(rng.normal(size=(5, 3)), rng.choice([-1.0, 1.0], 5), np.arange(5)))
    consensus = Consensus(task_prox(task), 2.0, L1(0.2))
    u, v = 3 * rng.normal(size=(2, 40, 5, 3))
    moved, before = consensus.operator(u) - consensus.operator(v), u - v
    assert ((moved**2).sum(axis=(1, 2)) <= (before**2).sum(axis=(1, 2)) * (1 + 1e-9)).all()


def test_several_runs_share_one_call():
    starts = np.random.default_rng(2).normal(size=(4, 3, 2))
    together = Iteration(CONSENSUS.operator, 0.5).run(starts, 3, AddressedDraws(Replay(0)))
    for run in range(4):
        alone = Iteration(CONSENSUS.operator, 0.5).run(starts[run], 3, AddressedDraws(Replay(0)))
        np.testing.assert_allclose(together[run], alone, atol=1e-14)


def test_every_release_of_the_variant_moves_little():
    # walk:ADMM-5, V4: given the earlier releases, replacing one peer moves the mean by at most 2
    # gamma L / n, l <= 1/2
    rng = np.random.default_rng(3)
    n, gamma, features = 6, 1.5, rng.normal(size=(6, 2))
    labels = rng.choice([-1.0, 1.0], n)
    other = labels.copy()
    other[0] *= -1
    proxes = [
        task_prox(Logistic(Records.of(features, y, np.arange(n), rows="unit")))
        for y in (labels, other)
    ]
    u = [np.zeros((n, 2)), np.zeros((n, 2))]
    worst = 0.0
    for share in (0.5, 0.2, 0.4) * 20:
        z = rng.normal(size=2) * 3  # any releases at all
        u = [
            dual + share * Consensus(prox, gamma).change(dual, z)
            for dual, prox in zip(u, proxes, strict=True)
        ]
        worst = max(worst, float(np.linalg.norm(u[0].mean(axis=0) - u[1].mean(axis=0))))
    assert 0.3 * 2 * gamma / n < worst <= 2 * gamma / n + 1e-12


def test_the_objective():
    def losses(x):
        return 0.5 * (x[..., None, :] @ A.T - np.array([1.0, -1.0, 0.5]))[..., 0, :] ** 2

    x = np.array([[0.0, 0.0], [1.0, -1.0]])
    assert CONSENSUS.objective(x, losses) == pytest.approx(
        [(0.5 + 0.5 + 0.125) / 3, 0.125 / 3 + 0.2]
    )


@pytest.mark.parametrize(
    ("act", "word"),
    [
        (lambda: Consensus(lambda v, g: v, 0.0), "positive, finite gamma, found 0.0"),
        (lambda: ConsensusNoise(CONSENSUS, 0.5, -1.0), "sigma must be a number >= 0, found -1.0"),
        (lambda: ConsensusNoise(CONSENSUS, 2.0, 1.0), r"in \(0, 1\], found 2.0"),
        (
            lambda: ConsensusNoise(CONSENSUS, 0.5, 0.0).run(
                np.zeros((3, 2)), 0, WrittenDraws(np.zeros((1, 2)))
            ),
            "steps = 0",
        ),
        (
            lambda: task_prox(Mean(np.zeros((3, 2))))(np.zeros((4, 2)), 1.0),
            r"\(3, 2\); found \(4, 2\)",
        ),
    ],
)
def test_impossible_consensus(act, word):
    with pytest.raises(ConfigError, match=word):
        act()
