"""Networks of torch on every engine, at user and record level: states agree to 1e-9, and no theorem
is applied that needs convexity."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.audit import audit_run
from bruit.algorithms.algorithm import algorithm_from
from bruit.peers.engine import Network
from bruit.runs.build import build
from bruit.runs.engines.replay import compare
from bruit.runs.file import parse

NOISES = {
    "none": None,
    "user": br.Gaussian(clip=1.0, sigma=1.0),
    "record": br.RecordSums(clip=1.0, sigma=2.0, divisor=200.0),
    "sampled": br.RecordSums(clip=1.0, sigma=2.0, sample_rate=0.5, divisor=100.0),
    "added": br.RecordSums(clip=1.0, sigma=2.0, adjacency="add-remove", divisor=200.0),
}
ALGORITHMS = {
    "gossip-sgd": ({}, "ring:4"),
    "walk-sgd": ({}, "complete:4"),
    "fed-avg": ({}, "star:4"),
    "masked-sgd": ({}, "complete:4"),
    "personalized": ({"smoothness": 5.0}, "complete:4"),
}


@pytest.fixture(scope="module")
def task():
    return br.tasks.Torch.load("digits", "mlp:6", peers=4)


def run_of(name, task, noise, **options):
    parameters, graph = ALGORITHMS[name]
    algorithm = algorithm_from({"name": name, **parameters})
    return br.run(
        algorithm, graph, task, privacy=noise, steps=4, seed=3, evaluate_every=0, **options
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_engines_agree_at_all_levels(name, task):
    for noise in NOISES.values():
        bulk = run_of(name, task, noise)
        events = run_of(name, task, noise, engine=br.Events())
        compare(bulk, events)
        assert np.isfinite(bulk.estimates).all()
        assert not np.array_equal(bulk.estimates[0], task.start())


@pytest.mark.parametrize(
    "name",
    ["gossip-sgd", *(pytest.param(n, marks=pytest.mark.slow) for n in ("walk-sgd", "masked-sgd"))],
)
def test_real_peers_do_what_the_simulator_does(name, task):
    for noise in (NOISES["user"], NOISES["sampled"]):
        compare(run_of(name, task, noise), run_of(name, task, noise, engine=Network(timeout=60.0)))


def test_the_walk_theorem_refuses_what_is_not_convex(task):
    run = run_of("walk-sgd", task, NOISES["user"])
    found = run.epsilon(of=0, seen_by=2).guarantee
    assert found.theorem.startswith("local DP")
    assert any("is about convex and smooth losses" in note for note in found.notes)


EXPERIMENT = """
graph = "complete:4"
steps = 8
references = false
[task]
kind = "torch"
data = "digits"
module = "mlp:8"
local = ["2"]
dtype = "float32"
l2 = 0.001
[algorithm]
name = "gossip-sgd"
rate = 0.5
[privacy]
mechanism = "gaussian"
clip = 1.0
sigma = 0.5
"""


def test_an_experiment_file_and_its_parts_at_home():
    """The last layer is fitted at home after the run; what is sent does not depend on it."""
    made = build(parse(EXPERIMENT), EXPERIMENT, "file.toml")
    run = made.run()
    without = EXPERIMENT.replace('local = ["2"]\n', "")
    other = build(parse(without), without, "file.toml").run()
    assert np.array_equal(run.estimates, other.estimates)
    shared = ~made.task.parts_at_home()
    assert np.array_equal(run.own_models[:, shared], run.estimates[:, shared])
    assert not np.array_equal(run.own_models, run.estimates)
    assert run.model.local == ("2",)


@pytest.mark.slow
def test_audits_try_to_refute_runs_of_networks(task):
    """Paired runs on neighboring records of the network itself: the claim stands, and the same run
    without clipping is caught. False alarm: at most 1e-6, the audit's own; its power is asserted."""
    noises = {
        "gossip-sgd": br.Gaussian(clip=0.1, sigma=0.4),
        "masked-sgd": br.RecordSums(clip=0.1, sigma=0.4, divisor=200.0),
    }
    for name, noise in noises.items():
        found = audit_run(run_of(name, task, noise), task, 0, 1, trials=200)
        assert not found.refuted
        (bug,) = [one for one in found.planted if one.world == "records"]
        assert (bug.bug, bug.refuted) == ("no clipping", True)
        assert bug.power > 0.5
