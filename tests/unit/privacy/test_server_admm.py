"""Federated ADMM seen by others than its server: worked numbers of walk:ADMM-5, what is checked and
what refused."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.graphs import star
from bruit.graphs.mixing import from_edges
from bruit.privacy.ahead.admm import consensus_multiplier, models_loss
from bruit.privacy.events import Exact, GaussianEvent, Mask
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorem import REAL
from bruit.privacy.theorems.server_admm import ModelsTold, NoisyModels, mean_noise
from bruit.runs.build import build
from bruit.runs.file import from_dict
from bruit.runs.run import rehearse
from bruit.tasks import Mean


def with_outsider(n):
    """A star of n members, and one more peer that only knows a leaf: it takes no part."""
    return from_edges(n + 1, np.array([[0, leaf] for leaf in range(1, n)] + [[n - 1, n]]))


def facts_of(algorithm, graph, sigma, steps):
    return rehearse(
        algorithm, graph, br.Gaussian(clip=1.0, sigma=sigma, arithmetic="ideal"), steps
    ).facts()


@pytest.mark.parametrize(
    ("n", "rounds", "times", "alpha", "gamma", "sigma", "relaxation", "v3", "v4"),
    [
        (100, 50, 1, 2.0, 0.5, 1.0, 0.5, 8.080808081, 0.005),
        (1000, 5, 20, 8.0, 1.0, 2.0, 0.25, 6.406406406, 0.0004),
    ],
)
def test_the_table(n, rounds, times, alpha, gamma, sigma, relaxation, v3, v4):
    """walk:ADMM-5, L = 1: a dual has noise sigma = 2 gamma s, a mean sigma_z = gamma s / n for the
    mechanism's s.

    100 rounds of the second row are 20 times 5 rounds."""
    alpha *= times
    facts = facts_of(
        br.FederatedADMM(gamma=gamma, relaxation=relaxation),
        with_outsider(n),
        sigma / (2 * gamma),
        2 * rounds,
    )
    theorem = ModelsTold(0, relaxation)
    theorem.check(facts)
    energy = theorem.losses(facts, (n,))[1] / theorem.unit(facts) ** 2
    assert alpha * energy / 2 == pytest.approx(v3, rel=1e-9)
    noisy = facts_of(
        br.FederatedADMM(gamma=gamma, relaxation=relaxation, noise="server"),
        star(n),
        n * sigma / gamma,
        2 * rounds,
    )
    told = NoisyModels(0, gamma, relaxation)
    told.check(noisy)
    assert alpha * told.losses(noisy, (2, 3))[1] / told.unit(noisy) ** 2 / 2 == pytest.approx(
        v4, rel=1e-9
    )
    assert Mask(sigma) in noisy.ledger.events


def test_colluders_know_their_own_noise():
    """walk:ADMM-5: n = 20, c = 17, K = 3, gamma = L = sigma = 1: the truth for linear losses is 16
    (and not 10.1)."""
    facts, theorem = facts_of(br.FederatedADMM(), star(20), 0.5, 6), ModelsTold(0)
    assert theorem.losses(facts, tuple(range(2, 19)))[1] / theorem.unit(facts) ** 2 >= 16
    for c in (1, 3, 8, 17):
        assert theorem.losses(facts, tuple(range(2, 2 + c)))[1] == pytest.approx(
            models_loss(20, 3, 0.5, c)
        )
    assert theorem.losses(facts, (0, 5))[1] == 3  # the server hears every dual
    assert theorem.losses(facts, tuple(range(1, 20)))[0] == 3


@pytest.mark.parametrize("relaxation", [0.1, 0.5, 0.6, 0.9])
def test_both_grow_above_one_half_as_the_formulas_say(relaxation):
    facts = facts_of(br.FederatedADMM(relaxation=relaxation), star(400), 1.0, 4)
    assert ModelsTold(0, relaxation).losses(facts, (3,))[1] == pytest.approx(
        models_loss(400, 2, relaxation, 1)
    )
    sigma_z = mean_noise(400, 0.3, 5.0, relaxation)
    assert consensus_multiplier(400, 2.0, 0.3, sigma_z, relaxation) == pytest.approx(5.0 / 4.0)
    assert ModelsTold(0, 1.0).losses(facts, (3,))[1] == 2


def test_what_is_sent_is_not_what_the_theorem_is_about():
    """fp:FP-4: means of float duals are proven for real numbers only; with noise on the grid only
    local DP is."""
    ideal = facts_of(br.FederatedADMM(), star(10), 1.0, 4)
    assert ModelsTold(0).losses(ideal, (3,))[1] == pytest.approx(
        1.0
    )  # 8 others hide: 2 * 8 * (2 / 8)^2
    assert REAL in ModelsTold(0).check(ideal)
    sent = rehearse(br.FederatedADMM(), star(10), br.Gaussian(clip=1.0, sigma=1.0), 4)
    with pytest.raises(br.PrivacyError, match="not for the arithmetic of this protocol"):
        ModelsTold(0).check(sent.facts())
    about = sent.guarantee(of=1, seen_by=3)
    assert about.theorem.startswith("local DP")
    assert (about.loss, about.status) == (2.0, "proven")


NOISE = br.Gaussian(clip=1.0, sigma=4.0)


def told(algorithm, engine=None, privacy=NOISE):
    return br.run(
        algorithm,
        star(12),
        Mean.normal(12, 2),
        privacy=privacy,
        steps=9,
        evaluate_every=0,
        engine=engine or br.Bulk(),
    )


@pytest.mark.parametrize(
    ("algorithm", "engine", "word"),
    [
        (
            br.FederatedADMM(participants=4),
            None,
            "only if all 12 take part once in every iteration; in round 1 4 did",
        ),
        (
            br.FederatedADMM(),
            br.Events(latency=0.1, loss=0.1, churn=0.2),
            "may be missing, and its noise with it",
        ),
    ],
)
def test_what_models_do_not_hide_is_local_dp(algorithm, engine, word):
    run = told(algorithm, engine)
    about = run.guarantee(of=3, seen_by=5)
    assert about.theorem.startswith("local DP")
    assert word in about.notes[0]
    assert about.loss == run.facts().releases()[3]


def test_other_noise_is_local_dp():
    about = told(br.FederatedADMM(), privacy=br.Laplace(clip=1.0, scale=2.0)).guarantee(
        of=3, seen_by=5
    )
    assert about.theorem.startswith("local DP")
    assert "one Gaussian mechanism" in about.notes[0]


def test_a_trusted_server_is_the_only_one_to_be_trusted():
    run = told(br.FederatedADMM(noise="server"))
    assert [type(event) for event in run.ledger.events] == [Exact, Mask]
    mask = run.ledger.events[1]
    assert mask.sigma == 4.0 / 12
    assert 0 < mask.rounding < 1e-20  # proven for what the server tells
    assert (
        run.epsilon()
        == run.epsilon(of=3, seen_by=0)
        == run.epsilon(of=3, seen_by={0, 5})
        == float("inf")
    )
    others = {
        float(run.epsilon(of=u, seen_by=seen))
        for u, seen in ((3, 5), (0, 5), (3, set(range(4, 12))))
    }
    assert len(others) == 1
    about = run.guarantee(of=3, seen_by=5)
    assert (about.loss, about.noise_multiplier, about.status) == (4.0, 2.0, "proven")
    assert "trusted" in run.epsilon(of=3, seen_by=5).why()
    assert "nothing is claimed against it" in run.epsilon(of=3, seen_by=0).why()
    table = run.summary()
    assert table.epsilons[1] == pytest.approx(others.pop())
    assert table.epsilons[0] == table.local_epsilon == float("inf")


def test_lost_messages_and_absent_peers_change_nothing_under_a_trusted_server():
    for algorithm, engine in (
        (br.FederatedADMM(noise="server"), br.Events(latency=0.1, loss=0.1, churn=0.2)),
        (br.FederatedADMM(noise="server", participants=3), br.Bulk()),
    ):
        assert told(algorithm, engine).guarantee(of=3, seen_by=5).loss == 4.0


def test_a_model_without_noise_is_refused():
    facts = told(br.FederatedADMM(noise="server")).facts()
    theorem = NoisyModels(0, 1.0)
    assert any(hypothesis.checked for hypothesis in theorem.check(facts))
    with pytest.raises(br.PrivacyError, match="without noise; give the mechanism a sigma"):
        theorem.check(replace(facts, sigma=0.0))
    with pytest.raises(br.PrivacyError, match="no noise of the server for its model of round 2"):
        theorem.check(
            replace(facts, sigma=5.0)
        )  # the noise of the ledger is too small for what is claimed
    short = Ledger(peers=12)
    short.record(np.arange(12), np.ones(12, np.int64), np.ones(12, np.int64), Exact())
    short.record(np.array([0]), np.array([2]), np.array([2]), Mask(4.0 / 12))
    with pytest.raises(br.PrivacyError, match="model of round 4"):
        theorem.check(replace(facts, ledger=short))
    with pytest.raises(br.PrivacyError, match="duals are exact in this protocol"):
        theorem.check(told(br.FederatedADMM()).facts())


def test_a_peer_that_speaks_twice_is_refused():
    facts = told(br.FederatedADMM()).facts()
    twice, one = Ledger(peers=12), np.ones(12, np.int64)
    twice.record(np.array([*range(11), 10]), one, one, GaussianEvent(2.0))
    with pytest.raises(br.PrivacyError, match="released twice in a round"):
        ModelsTold(0).check(replace(facts, ledger=twice))


@pytest.mark.parametrize("more", [{}, {"participants": 3}, {"relaxation": 0.8}])
def test_a_target_epsilon_is_met_against_everybody_but_the_server(more):
    content = {
        "graph": "star:8",
        "steps": 11,
        "task": {"kind": "mean", "dim": 2},
        "seed": 1,
        "algorithm": {"name": "federated-admm", "noise": "server", **more},
        "privacy": {"mechanism": "gaussian", "clip": 1.0, "epsilon": 2.0, "delta": 1e-6},
    }
    run = build(from_dict(content)).run()
    assert max(float(run.epsilon(of=3, seen_by=v)) for v in (1, 7)) == pytest.approx(2.0, rel=1e-6)
