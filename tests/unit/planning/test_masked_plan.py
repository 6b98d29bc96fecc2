"""Plans of masked consensus: how far peers are apart, the error they predict, what they refuse."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import from_edges, graph
from bruit.planning.plan import plan
from bruit.planning.question import Question
from bruit.planning.utility import masked_spread


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


def test_peers_that_never_agree_are_refused():
    with pytest.raises(ConfigError, match="never agree"):
        masked_spread(from_edges(4, [(0, 1), (2, 3)]), 2, 0.1, 0.1)


def question(peers=16, **more):
    given = {"job": "learning", "contributions": 20, "graph": graph("torus:4x4"), "protect": "mean"}
    return Question(peers, 4.0, **{**given, **more})


def test_its_predicted_error_is_above_what_runs_do():
    """Losses log cosh((x - c_v) / 2): gradients up to the clip, 1/2, and beta = 1/4."""
    asked = question()
    option = plan(asked, "masked-consensus").chosen
    assert (option.status, option.spec, option.at_most) == ("proven", "gossip:MUF-X3", True)
    learner = br.MaskedConsensus(**{k: v for k, v in option.algorithm.items() if k != "name"})
    rng = np.random.default_rng(0)
    weights, n, rate = asked.graph.weights.toarray(), 16, learner.rate
    shares = np.sqrt((weights**2).sum(axis=1) - np.diag(weights) ** 2)
    centers, sigma = rng.uniform(-2, 2, n), option.noise_multiplier

    def loss(x):
        return float(np.log(np.cosh((x - centers) / 2)).mean())

    least = min(map(loss, np.linspace(-2, 2, 2001)))
    excess = []
    for _ in range(200):
        x, means = np.zeros(n), []
        for _ in range(asked.contributions):
            means.append(x.mean())
            x = x - rate * (0.5 * np.tanh((x - centers) / 2) + sigma * rng.normal(size=n))
            for _ in range(learner.mixing):
                x = weights @ x + rate * learner.tau * sigma * shares * rng.normal(size=n)
            x += rate * learner.omega * sigma * rng.normal(size=n)
        excess.append(np.mean([loss(mean) for mean in means]) - least)
    assert 0 < np.mean(excess) <= option.error


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
def test_what_it_does_not_plan(change, words):
    with pytest.raises(PrivacyError, match=words):
        plan(question(**change), "masked-consensus")
