"""Attacks on runs whose messages carry dithers or are sums (fp:FP-1, FP-2): values with honest
standard errors."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks import own_dithers, reconstruct, run_knowledge, starting_values
from bruit.adversary.attacks.descent import KnownDescent, covariance
from bruit.adversary.attacks.dithers import DitherWeights, Grid, Sent, grid_of
from bruit.adversary.attacks.gradients import from_run
from bruit.graphs import erdos_renyi, path, ring

WIDE = 400  # coordinates: as many draws of every error
NOISE = br.Gaussian(clip=2.0, sigma=0.5)


def attacked(algorithm, graph, observers=(0,), own=True, noise=NOISE, **options):
    task = br.tasks.Mean.uniform(graph.n, WIDE, seed=2)
    options = {"steps": 4, "seed": 9, "watch": observers} | options
    run = br.run(algorithm, graph, task, privacy=noise, evaluate_every=0, **options)
    released, dithers = (
        starting_values(run, task),
        own_dithers(run, task, observers) if own else None,
    )
    found = reconstruct(
        run.view(set(observers)), run_knowledge(run, observers), released[list(observers)], dithers
    )
    return run, released, found


CASES = [
    (br.Averaging(), ring(7), {}),
    (br.Averaging(), erdos_renyi(10, q=0.35, seed=1), {"observers": (0, 3)}),
    (br.Averaging(), ring(8), {"steps": 8, "engine": br.Events(churn=0.15)}),
    (br.Averaging(), ring(7), {"own": False}),
    (br.Chebyshev(), ring(7), {}),
    (br.PairAveraging(), ring(6), {"observers": (1,), "steps": 3}),
    (br.PairAveraging(), ring(6), {"observers": (1, 4), "steps": 3, "own": False}),
]


@pytest.mark.parametrize(("algorithm", "graph", "options"), CASES)
def test_standard_errors_are_true(algorithm, graph, options):
    """Errors divided by their standard errors are standard normal: of 400 independent ones the mean
    square is outside 0.6 .. 1.5 with chance 2e-9 and one is above 6.5 with 4e-8; errors off by a
    factor 1.5 are seen with 99.999 %."""
    _, released, found = attacked(algorithm, graph, **options)
    peers = np.setdiff1d(found.prediction.peers, found.prediction.observers)
    assert peers.size > 0
    blur = 2.0**-10 * NOISE.sigma
    assert found.error[peers].min() >= blur * (1 - 1e-9)  # at best the dither of one message
    away = (found.values - released)[peers] / found.error[peers, None]
    assert np.all(((away**2).mean(axis=1) > 0.6) & ((away**2).mean(axis=1) < 1.5))
    assert np.abs(away).max() < 6.5
    score = found.score_noisy(released)
    assert score.recovered.tolist() == [u for u in peers.tolist() if found.reliable[u]]
    assert np.all(score.errors[score.recovered] <= found.tolerance[score.recovered])
    assert found.reliable[peers].any()
    assert found.score(released).recovered.size == 0  # nobody to 1e-6


def test_own_dithers_are_worth_knowing():
    _, _, alone = attacked(br.Averaging(), ring(7))
    _, _, blind = attacked(br.Averaging(), ring(7), own=False)
    assert np.all(alone.error[2:6] < blind.error[2:6])
    assert np.isclose(alone.error[1], 2.0**-10 * NOISE.sigma, rtol=0.01)


def test_dithers_hide_what_needs_much_amplification():
    """On a path every peer is exposed, yet far ones only behind an error larger than their own
    noise."""
    _, released, found = attacked(br.Averaging(), path(12), steps=11)
    assert found.prediction.peers.tolist() == list(range(12))
    assert found.reliable[:4].all()
    assert not found.reliable[9:].any()
    assert np.all(np.diff(found.error[1:]) > 0)
    assert (
        found.score_noisy(released).recovered.tolist()
        == np.flatnonzero(found.reliable)[1:].tolist()
    )


@pytest.mark.parametrize("radices", [(2, 2, 2), (3, 3), (2, 3)])
def test_sums_of_a_butterfly_are_divided(radices):
    """What was sent are sums of groups: no dithers, so values and relations come out to the
    grid."""
    graph = br.graphs.butterfly(int(np.prod(radices)), radices=radices)
    run, released, found = attacked(br.Averaging(), graph, steps=len(radices))
    first = range(radices[0])
    assert found.prediction.peers.tolist() == list(first)
    assert np.abs(found.values - released)[first].max() < 1e-9
    assert found.score_noisy(released).recovered.tolist() == list(first)[1:]
    for relation, value in found.relation_values():
        assert np.allclose(value, released[list(relation.peers)].sum(axis=0), rtol=0, atol=1e-9)
    assert grid_of(run).terms(len(radices)) == 1
    assert grid_of(run).terms(1) == radices[0]


def test_real_numbers_have_neither():
    ideal = br.Gaussian(clip=2.0, sigma=0.5, arithmetic="ideal")
    for noise in (None, ideal):
        run, released, found = attacked(br.Averaging(), ring(7), noise=noise)
        assert grid_of(run) is None
        assert found.prediction.known.sent is None
        assert found.score_noisy(released).fraction == found.score(released).fraction == 1.0
        assert np.nanmax(found.error) < 1e-12


def test_what_is_known_is_taken_out_and_the_rest_is_spread():
    """Two messages of two dithers, by hand."""
    column = DitherWeights(np.array([0, 0]), np.array([4, 5]), np.array([[1.0, 0.0], [0.5, 2.0]]))
    sent = Sent(
        Grid(1.0, 0.1, 0.0, ()), lambda: iter([column, column._replace(steps=np.array([1, 1]))])
    )
    drawn = {(0, 4): np.array([3.0]), (1, 9): np.array([7.0])}
    assert sent.known(drawn, 2, 1).tolist() == [[3.0], [1.5]]
    assert np.allclose(
        sent.spread(np.array([[1.0, 2.0]]), drawn), 0.1 * np.sqrt(4.0**2 + 2.0**2 + 4.0**2)
    )


def descended(graph, mixing, method, steps, noise, gamma=1.0):
    """Gradients estimated from a run whose models hardly move, with the true ones."""
    task = br.tasks.Mean.uniform(graph.n, WIDE, seed=2)
    algorithm = br.GossipSGD(rate=1e-9, mixing=mixing, gamma=gamma)
    run = br.run(
        algorithm, graph, task, privacy=noise, steps=steps, seed=3, watch=[0], evaluate_every=0
    )
    return from_run(run, task, 0, method=method), task.gradient(
        np.arange(graph.n), np.zeros((graph.n, WIDE))
    )


@pytest.mark.parametrize(
    ("graph", "mixing", "method", "gamma"),
    [
        (ring(6), 1, "ols", 1.0),
        (ring(6), 2, "gls", 1.2),
        (path(9), 8, "ols", 1.0),
        (path(9), 8, "gls", 1.0),
    ],
)
def test_gradients_are_as_good_as_their_variance_says(graph, mixing, method, gamma):
    """As for values, with rates of the same kind: the mean square of 400 numbers is within 0.6 ..
    1.5. On a path, with one gradient in all messages, telling far peers apart amplifies dithers
    beyond the noise."""
    noise = br.Gaussian(clip=30.0, sigma=0.01)
    found, true = descended(graph, mixing, method, 8, noise, gamma)
    assert found.estimable.all()
    assert found.variance.max() > 2
    away = (found.values - true[found.peers]) / (noise.sigma * np.sqrt(found.variance))[:, None]
    assert np.all(((away**2).mean(axis=1) > 0.6) & ((away**2).mean(axis=1) < 1.5))
    assert np.abs(away).max() < 6.5


def test_gradients_out_of_the_sums_of_a_butterfly():
    """One round on nine peers: the cell of the observer is seen with its noise, and all messages
    fit the model."""
    noise = br.Gaussian(clip=30.0, sigma=0.01)
    found, true = descended(br.graphs.butterfly(9), 2, "ols", 2, noise)
    assert found.peers[found.estimable].tolist() == [1, 2]
    assert found.residual < 1e-9
    away = (found.values[:2] - true[1:3]) / noise.sigma
    sums = found.values[2:].reshape(2, 3, WIDE).sum(axis=1) - true[3:].reshape(2, 3, WIDE).sum(
        axis=1
    )
    away = np.concatenate((away, sums / (noise.sigma * np.sqrt(3))))
    assert np.all(((away**2).mean(axis=1) > 0.6) & ((away**2).mean(axis=1) < 1.5))


def test_dithers_in_a_covariance():
    """Of one exchange a round they are the noise of the rounds, smaller; of more they are finer in
    time."""
    plain, fine = (
        KnownDescent.on(ring(6), 0, 4),
        KnownDescent(graphs=(ring(6),) * 4, attackers=np.array([0]), dither=0.5),
    )
    assert np.allclose(covariance(fine), 1.25 * covariance(plain))
    graph = ring(6)
    slow = KnownDescent(graphs=(graph,) * 4, attackers=np.array([0]), mixing=4, dither=1.0)
    assert np.allclose(
        covariance(slow),
        covariance(KnownDescent(graphs=(graph,) * 4, attackers=np.array([0]), mixing=4))
        + covariance(KnownDescent.on(graph, 0, 4)),
    )
