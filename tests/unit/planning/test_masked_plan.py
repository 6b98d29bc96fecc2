"""Plans of masked consensus and of DECOR: how far peers are apart, the error they predict, what they
refuse."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import from_edges, graph
from bruit.planning.plan import plan
from bruit.planning.question import Question
from bruit.planning.utility import correlated_spread, masked_spread


@pytest.mark.parametrize("name", ["ring:6", "star:5", "er:8,c=1.5,seed=1", "hypercube:3"])
def test_the_spread_is_that_of_the_recursion(name):
    """The covariance of masked models, exchange by exchange, until it stays; and the worst gradients."""
    found, (mixing, tau, omega) = graph(name), (3, 0.4, 0.7)
    weights, n = found.weights.toarray(), found.n
    shares = (weights**2).sum(axis=1) - np.diag(weights) ** 2
    off = np.eye(n) - 1 / n
    covariance = np.zeros((n, n))
    for _ in range(400):
        covariance = off @ covariance @ off + np.eye(n)
        for _ in range(mixing):
            covariance = weights @ covariance @ weights + tau**2 * np.diag(shares)
        covariance += omega**2 * np.eye(n)
    spread = masked_spread(found, mixing, tau, omega)
    assert np.trace(off @ covariance @ off) / n == pytest.approx(spread.noise, rel=1e-9)
    values, vectors = np.linalg.eigh(weights)
    slow = vectors[:, int(np.argmax(np.abs(values) * (values < 1 - 1e-9)))]
    moved = sum(np.linalg.matrix_power(weights, mixing * t) @ slow for t in range(1, 400))
    assert np.linalg.norm(moved) <= spread.drift * (1 + 1e-9)


@pytest.mark.parametrize("name", ["ring:6", "star:5", "er:8,c=1.5,seed=1", "hypercube:3"])
def test_the_spread_of_canceling_noise_is_that_of_the_recursion(name):
    found, (mixing, ratio) = graph(name), (2, 3.0)
    weights, n = found.weights.toarray(), found.n
    links = (weights - np.diag(np.diag(weights)) > 0).astype(float)
    each = np.eye(n) + ratio**2 * (np.diag(links.sum(axis=1)) - links)
    off, power = np.eye(n) - 1 / n, np.linalg.matrix_power(weights, mixing)
    covariance = np.zeros((n, n))
    for _ in range(400):
        covariance = power @ (off @ covariance @ off + each) @ power
    spread = correlated_spread(found, mixing, ratio)
    assert np.trace(off @ covariance @ off) / n == pytest.approx(spread.noise, rel=1e-9)
    assert spread.drift == masked_spread(found, mixing, 0.0, 0.0).drift


def test_peers_that_never_agree_are_refused():
    with pytest.raises(ConfigError, match="never agree"):
        masked_spread(from_edges(4, [(0, 1), (2, 3)]), 2, 0.1, 0.1)
    with pytest.raises(ConfigError, match="never agree"):
        correlated_spread(from_edges(4, [(0, 1), (2, 3)]), 2, 1.0)


def question(peers=16, **more):
    given = {"job": "learning", "contributions": 20, "graph": graph("torus:4x4"), "protect": "mean"}
    return Question(peers, 4.0, **{**given, **more})


CENTERS = np.random.default_rng(0).uniform(-2, 2, 16)


def excess_of(means):
    """Of losses log cosh((x - c_v) / 2): gradients up to the clip, 1/2, and beta = 1/4."""

    def loss(x):
        return float(np.log(np.cosh((x - CENTERS) / 2)).mean())

    return np.mean([loss(mean) for mean in means]) - min(map(loss, np.linspace(-2, 2, 2001)))


def test_its_predicted_error_is_above_what_runs_do():
    asked = question()
    option = plan(asked, "masked-consensus").chosen
    assert (option.status, option.spec, option.at_most) == ("proven", "gossip:MUF-X3", True)
    learner = br.MaskedConsensus(**{k: v for k, v in option.algorithm.items() if k != "name"})
    rng = np.random.default_rng(0)
    weights, n, rate = asked.graph.weights.toarray(), 16, learner.rate
    shares = np.sqrt((weights**2).sum(axis=1) - np.diag(weights) ** 2)
    sigma, excess = option.noise_multiplier, []
    for _ in range(200):
        x, means = np.zeros(n), []
        for _ in range(asked.contributions):
            means.append(x.mean())
            x = x - rate * (0.5 * np.tanh((x - CENTERS) / 2) + sigma * rng.normal(size=n))
            for _ in range(learner.mixing):
                x = weights @ x + rate * learner.tau * sigma * shares * rng.normal(size=n)
            x += rate * learner.omega * sigma * rng.normal(size=n)
        excess.append(excess_of(means))
    assert 0 < np.mean(excess) <= option.error


def test_the_predicted_error_of_canceling_noise_is_above_what_runs_do():
    asked = question(protect="worst")
    option = plan(asked, "decor").chosen
    assert (option.status, option.spec, option.at_most) == ("proven", "gossip:COR-1", True)
    learner = br.Decor(**{k: v for k, v in option.algorithm.items() if k != "name"})
    rng, ends = np.random.default_rng(0), asked.graph.edges()
    mixed = np.linalg.matrix_power(asked.graph.weights.toarray(), learner.mixing)
    sigma, excess = option.noise_multiplier, []
    for _ in range(200):
        x, means = np.zeros(16), []
        for _ in range(asked.contributions):
            means.append(x.mean())
            noise, shared = rng.normal(size=16), learner.ratio * rng.normal(size=len(ends))
            np.add.at(noise, ends[:, 0], shared)
            np.add.at(noise, ends[:, 1], -shared)
            gradient = 0.5 * np.tanh((x - CENTERS) / 2)
            x = mixed @ (x - learner.rate * (gradient + sigma * noise))
        excess.append(excess_of(means))
    assert 0 < np.mean(excess) <= option.error


def test_canceling_noise_needs_less_of_its_own_than_local_dp():
    """Against any one peer on a torus, and with an error that is not above."""
    asked = question(protect="worst")
    decor, local = plan(asked, "decor").chosen, plan(asked, "local-dp").chosen
    assert decor.noise_multiplier < local.noise_multiplier
    assert decor.error < local.error


def test_what_no_real_peers_run_is_chosen_by_name_only():
    found = plan(question(protect="worst"))
    assert found.chosen.protocol != "decor"
    assert "decor" in {one.protocol for one in found.alternatives}


def test_strangers_lose_less_than_a_round_each():
    option = plan(question(graph=graph("moore:7"), peers=50), "masked-consensus").chosen
    assert float(option.notes[0].split()[4]) < 0.15
    plain = plan(question(graph=graph("moore:7"), peers=50), "gossip").chosen
    assert option.noise_multiplier < plain.noise_multiplier / 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job": "mean", "contributions": 1}, "learns a model"),
        ({"colluders": 2, "protect": "worst"}, "colluders"),
        ({"steps": 9}, "leave --steps out"),
    ],
)
@pytest.mark.parametrize("protocol", ["masked-consensus", "decor"])
def test_what_it_does_not_plan(change, words, protocol):
    with pytest.raises(PrivacyError, match=words):
        plan(question(**change), protocol)
