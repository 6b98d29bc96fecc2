"""What was asked for is an upper bound: no epsilon printed for calibrated noise is above it, not by
one float."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bruit.errors import BruitError
from bruit.graphs import graph as named
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, RecordNoise
from bruit.personal.private import NoisePlan
from bruit.personal.sensitivity import bounded_records
from bruit.planning.plan import plan
from bruit.planning.question import Question
from bruit.planning.trust import plan_trust
from bruit.privacy.profile import EventsProfile
from bruit.privacy.theorems.gopa import gopa_guarantee
from bruit.privacy.toolbox.gaussian import epsilon_of, epsilons, mu_of
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.build import build
from bruit.runs.file import from_dict
from bruit.statistics.average.canceling.calibration import noises
from bruit.statistics.local import GaussianMean, LaplaceMean
from bruit.tasks import Logistic
from bruit.tasks.personal import Personal

RNG = np.random.default_rng(15)
TARGETS = [
    (float(10 ** RNG.uniform(-3, 2)), float(10 ** RNG.uniform(-12, -1)), int(RNG.integers(1, 200)))
    for _ in range(25)
]


def printed(mechanism, releases, delta):
    """The same releases by every way to add them up: one line, line by line, and the profile of a
    guarantee."""
    event = mechanism.event()
    return (
        compose_epsilon([(event, releases)], delta),
        compose_epsilon([(event, 1)] * releases, delta),
        EventsProfile(((event, releases),)).epsilon(delta),
    )


@pytest.mark.parametrize(("epsilon", "delta", "releases"), TARGETS)
def test_calibrated_mechanisms(epsilon, delta, releases):
    clip = float(RNG.uniform(0.1, 3))
    for mechanism in (
        Gaussian(clip=clip).calibrate(epsilon, delta, releases, dim=1),
        RecordNoise((0.1, 0.3), 2).calibrate(epsilon, delta, releases),
    ):
        assert max(printed(mechanism, releases, delta)) <= epsilon
        assert max(printed(mechanism, releases, delta)) > epsilon * (
            1 - 1e-7
        )  # a grid has one of two widths
    pure = (
        Laplace(clip=clip).calibrate(epsilon, releases),
        RecordNoise((0.1, 0.3), 2, law="laplace").calibrate(epsilon, 0.0, releases),
    )
    for mechanism in pure:
        assert releases / mechanism.noise_multiplier <= epsilon
        assert math.fsum([1 / mechanism.noise_multiplier] * releases) <= epsilon
        assert sum([1 / mechanism.noise_multiplier] * releases) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta", "releases"), TARGETS[:6])
def test_calibrated_discrete_noise(epsilon, delta, releases):
    mechanism = DiscreteGaussian(clip=1.0, grid=2.0**-8).calibrate(epsilon, delta, releases)
    assert max(printed(mechanism, releases, delta)) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [target[:2] for target in TARGETS])
def test_the_inverse_of_the_curve(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert epsilon_of(mu, delta) <= epsilon
    assert epsilons(np.full(20_000, mu), delta).max() <= epsilon
    assert epsilon_of(math.sqrt(7) * (mu / math.sqrt(7)), delta) <= epsilon


@pytest.mark.parametrize(
    "asked",
    [
        Question(9, 3.7, delta=1e-6, graph=named("torus:3x3")),
        Question(12, 1.0, colluders=3),
        *(
            pytest.param(asked, marks=pytest.mark.slow)
            for asked in (
                Question(16, 1.0),
                Question(64, 0.3, delta=1e-5),
                Question(16, 2.1, protect="mean"),
                Question(300, 1.0),
                Question(16, 0.9, job="learning", contributions=3, dim=4),
            )
        ),
    ],
    ids=lambda asked: f"{asked.job}-{asked.peers}-{asked.epsilon:g}",
)
def test_every_option_of_the_planner(asked):
    """The mu of an option is sqrt(loss) / z: what `bruit epsilon` would print of it at that
    loss."""
    try:
        found = plan(asked)
    except BruitError:
        pytest.skip("no protocol does this")
    shares = {"kout": asked.delta / 3}
    for option in (found.chosen, *found.alternatives):
        if (
            not math.isnan(option.loss)
            and option.noise_multiplier > 0
            and option.protocol not in ("walk", "shuffling")
        ):
            delta = shares.get(option.graph.split(":")[0], asked.delta)
            mu = math.sqrt(option.loss) / option.noise_multiplier
            mu = mu_of(asked.epsilon, delta) if option.graph.startswith("kout") else mu
            assert epsilon_of(mu, delta) <= asked.epsilon, option.protocol


def test_caps_of_a_trust_plan_hold():
    caps = np.where(np.add.outer(range(6), range(6)) % 3 == 0, 4.0, 1.0)
    found = plan_trust(caps, 1e-6)
    assert np.nanmax(found.epsilon / caps) <= 1.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 7.7])
def test_an_experiment_that_names_its_epsilon(epsilon):
    experiment = build(
        from_dict(
            {
                "graph": "ring:6",
                "steps": 4,
                "task": {"kind": "mean"},
                "algorithm": {"name": "averaging"},
                "privacy": {"clip": 0.5, "epsilon": epsilon},
            }
        )
    )
    assert float(experiment.run().epsilon(delta=1e-6)) <= epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 7.7])
def test_noises_of_gopa(epsilon):
    graph = named("complete:9")
    chosen = noises(graph, epsilon, 1e-6, colluders=[0])
    for u in range(1, 9):
        said = gopa_guarantee(graph, chosen.own_sigma, chosen.pair_sigma, u, [0])
        assert float(said.epsilon(1e-6)) <= epsilon


def test_reports_of_numbers():
    for epsilon in (0.1, 0.7, 3.3):
        assert 1 / LaplaceMean(0.0, 7.0, epsilon).event().noise_multiplier <= epsilon
        assert compose_epsilon([(GaussianMean(0.0, 7.0, epsilon).event(), 1)], 1e-6) <= epsilon


def test_shares_of_a_growing_budget_add_up_to_no_more():
    rng = np.random.default_rng(0)
    rows = bounded_records(
        rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], 12), np.repeat(np.arange(4), 3), 1
    )
    task = Personal(Logistic(rows), np.full(4, 0.1))
    for epsilon in (0.7, 1.0, 3.3):
        for factor in (None, 0.5):
            updates = NoisePlan.of(task, epsilon, 7, factor=factor).updates
            assert sum(1 / noise.noise_multiplier for noise in updates) <= epsilon
            assert replace(updates[0], noise_multiplier=0.0) == replace(
                updates[-1], noise_multiplier=0.0
            )
