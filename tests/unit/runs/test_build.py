"""From a file to things that run: what cannot mean anything is refused with one sentence and its
line."""

import tomllib

import numpy as np
import pytest

import bruit as br
from bruit.commands.listing import listing
from bruit.graphs import butterfly, complete, grid, path, ring, star
from bruit.runs.build import build, build_privacy, build_task
from bruit.runs.entrance import check_schedule
from bruit.runs.file import bundled, from_dict, parse, read
from bruit.runs.run import rehearse
from bruit.tasks.kinds.section import TaskSection

TOKEN = """
graph = "ring:12"
steps = 12
[task]
kind = "histogram"
dim = 4
[algorithm]
name = "token-histogram"
[privacy]
mechanism = "randomized-response"
epsilon = 1.0
"""
WALK = """
graph = "ring:9"
steps = 900
[task]
kind = "logistic"
data = "breast_cancer"
l2 = 0.1
[algorithm]
name = "walk-sgd"
rate = "utility"
bound = 5.0
[privacy]
sigma = 1.0
clip = 1.5
"""


def built(text):
    return build(parse(text), text)


@pytest.mark.parametrize(
    ("graph", "pair"), [(path(6), "5 and 0"), (star(6), "1 and 2"), (grid(2, 3), "2 and 3")]
)
def test_a_ring_order_needs_the_ring(graph, pair):
    # gossip:RING-1
    with pytest.raises(
        br.ConfigError, match=f"no link between peers {pair}; use a graph with the ring in it"
    ):
        check_schedule(br.RingSum(), graph, 6)


def test_rings_that_are_there():
    for graph in (
        ring(6),
        complete(6),
        ring(6, plus=0),
    ):  # a fixed order does not swing on a bipartite ring
        check_schedule(br.RingSum(), graph, 6)
    with pytest.raises(br.ConfigError, match="swings for ever"):
        check_schedule(br.WalkSum(), ring(6, plus=0), 6)


@pytest.mark.parametrize(
    ("algorithm", "graph", "words"),
    [
        (
            br.WalkSGD(schedule=br.Walk(first=9)),
            ring(6),
            "the token starts at peer 9, but the peers are 0..5",
        ),
        (br.WalkSum(), butterfly(8), "walk-sum needs one fixed graph for its walk"),
        (br.FederatedADMM(), ring(6), "3 of 6 peers are no neighbors of the server 0 in ring:6"),
        (br.WalkSum(), ring(6), "steps = 0"),
    ],
    ids=str,
)
def test_schedules_that_mean_nothing(algorithm, graph, words):
    with pytest.raises(br.ConfigError, match=words):
        check_schedule(algorithm, graph, 0 if "steps" in words else 8)


def test_randomized_response_from_a_file():
    found = built(TOKEN)
    assert found.privacy == br.RandomizedResponse.of(4, 1.0)  # one report each in one round
    assert found.run().guarantee().status == "proven"
    twice = built(TOKEN.replace("steps = 12", "steps = 24"))
    assert twice.privacy == br.RandomizedResponse.of(4, 0.5)
    assert twice.run().epsilon() <= 1.0 + 1e-9
    assert built(TOKEN.replace("epsilon = 1.0", "gamma = 0.25")).privacy.gamma == 0.25
    assert "randomized-response" in listing("mechanisms")
    assert "histogram" in listing("tasks")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'mechanism = "randomized-response"',
            "",
            r"experiment:\d+: token-histogram counts answers given by randomized",
        ),
        ('kind = "histogram"', 'kind = "mean"', "token-histogram counts values, found a mean task"),
        (
            "epsilon = 1.0",
            "sigma = 1.0",
            "by privacy.gamma or privacy.epsilon; found privacy.sigma",
        ),
        ("epsilon = 1.0", "gamma = 1.0", "privacy.gamma = 1.0: input should be less than 1"),
        ("dim = 4", "dim = 1", "a histogram counts 2 values or more, found 1"),
        ("ring:12", "star:12", "no link between peers 1 and 2"),
    ],
)
def test_histograms_that_mean_nothing(old, new, words):
    with pytest.raises(br.ConfigError, match=words):
        built(TOKEN.replace(old, new))


def test_randomized_response_is_for_values():
    with pytest.raises(
        br.ConfigError, match="tells one of several values and nothing else, found a mean task"
    ):
        built(
            TOKEN.replace('kind = "histogram"', 'kind = "mean"').replace(
                "token-histogram", "walk-sum"
            )
        )


def test_a_histogram_of_labels():
    section = TaskSection(kind="histogram", data="iris")
    task = build_task(section, 90, 3)
    assert task.dim == 3
    assert np.array_equal(task.values.sum(axis=1), np.ones(90))
    assert np.array_equal(task.values, build_task(section, 90, 3).values)
    with pytest.raises(br.ConfigError, match="has 150 records for 200 peers"):
        build_task(section, 200, 3)


def test_the_rate_of_the_utility_statement():
    # walk:RW-7: declared L = 1/4 + l2, mu = l2, G = 1: Lambda = log(T / (156 L tau))
    found = built(WALK)
    tau, smooth = br.graphs.mixing_time(ring(9)), 0.35
    gain = np.log(900 * 0.01 * 25.0 / (39 * smooth * tau * 4))  # D = bound^2 = 25 < (G / mu)^2
    assert found.algorithm.rate == pytest.approx(
        min(1 / smooth, gain / (900 * 0.1)) if gain > 0 else 1 / smooth
    )
    longer = built(WALK.replace("steps = 900", "steps = 90000"))
    assert longer.algorithm.rate < found.algorithm.rate


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "l2 = 0.1",
            "",
            r"experiment:10: the step of the utility statement needs a strongly convex objective",
        ),
        ("l2 = 0.1", 'l2 = 0.1\nrows = "none"', "comes from declared constants only"),
        ("bound = 5.0", "decay = 0.5", "leave decay out"),
        ('"walk-sgd"', '"gossip-sgd"', "rate = 'utility' is not valid"),
    ],
)
def test_rates_that_cannot_be_chosen(old, new, words):
    with pytest.raises(br.ConfigError, match=words):
        built(WALK.replace(old, new))


def test_a_fused_engine_from_a_file():
    content = {**tomllib.loads(WALK), "engine": {"fused": True}, "references": False, "steps": 60}
    run = build(from_dict(content)).run()
    assert run.engine == {"name": "bulk", "fused": True}
    general = build(from_dict({**content, "engine": {"fused": False}})).run()
    assert (
        run.metrics.steps == general.metrics.steps == list(range(3, 61, 3))
    )  # a walk is scored on the way
    with pytest.raises(br.ConfigError, match="fused paths have no latency"):
        build(from_dict({**content, "engine": {"name": "events", "fused": True}}))


# A target epsilon is one for what is sent.


@pytest.mark.parametrize("name", bundled())
def test_the_epsilon_of_a_bundled_file_is_the_epsilon_of_its_report(name):
    file, text = read(name)
    made = build(file, text)
    run = rehearse(made.algorithm, made.graph, made.privacy, made.steps, file.seed, made.task.width)
    said = run.summary(file.privacy.delta)
    assert said.status == "proven"
    assert said.epsilons[0] <= file.privacy.epsilon
    if (
        file.privacy.level == "user"
    ):  # else spare attempts are promised too, which no rehearsal makes
        assert file.privacy.epsilon - 1e-6 <= said.local_epsilon <= file.privacy.epsilon


CALIBRATED = {
    'name = "averaging"': "torus:3x3",
    'name = "chebyshev"': "ring:9",
    'name = "renoised"': "ring:9",
    'name = "gossip-sgd"\nrate = 0.3\nmixing = 2': "torus:3x3",
    'name = "gossip-sgd"\nmixing = 3': "butterfly:8",
    'name = "walk-sgd"\ncap = 2': "complete:9",
    'name = "gopa"': "complete:9",
    'name = "fed-avg"': "star:9",
    'name = "pair-averaging"': "ring:9",
    'name = "walk-sum"': "complete:9",
    'name = "federated-admm"': "star:9",
}


@pytest.mark.parametrize(("epsilon", "dim"), [(0.05, 1), (8.0, 300), (75.0, 20)])
@pytest.mark.parametrize("algorithm", CALIBRATED)
def test_noise_for_an_epsilon_covers_everybody_and_every_pair(algorithm, epsilon, dim):
    """The summary's worst pair too: its theorem counts the rounding of all messages, local DP that
    of releases."""
    text = f"""graph = "{CALIBRATED[algorithm]}"\nsteps = 6\n[task]\nkind = "mean"\ndim = {dim}\n
[algorithm]\n{algorithm}\n[privacy]\nclip = 0.7\nepsilon = {epsilon}"""
    made = build(parse(text), text)
    run = rehearse(made.algorithm, made.graph, made.privacy, made.steps, made.file.seed, dim)
    said = run.summary()
    assert said.status == "proven"
    assert 0.99 * epsilon <= said.local_epsilon <= epsilon
    assert said.epsilons[0] <= epsilon


def test_the_width_of_a_value_is_counted():
    """Noise was calibrated for 1024 numbers whatever the task: of 100 000 each release spends
    more."""
    noise = br.Gaussian(clip=1.0).calibrate(1.0)
    run = rehearse(br.Averaging(), complete(2), noise, 1, dim=100_000)
    assert float(run.epsilon()) > 1.0
    text = """graph = "complete:2"\nsteps = 1\n[task]\nkind = "mean"\ndim = 100000\n[algorithm]\nname = "averaging"\n
[privacy]\nepsilon = 1.0"""
    made = build(parse(text), text)
    assert (
        float(rehearse(made.algorithm, made.graph, made.privacy, 1, dim=100_000).epsilon()) <= 1.0
    )


def test_ideal_arithmetic_is_asked_for_by_its_name():
    text = """graph = "ring:6"\nsteps = 3\n[task]\nkind = "mean"\n[algorithm]\nname = "averaging"\n
[privacy]\narithmetic = "ideal"\nepsilon = 1.0"""
    made = build(parse(text), text)
    assert made.privacy.arithmetic == "ideal"
    said = made.run().summary()
    assert (said.status, said.local_epsilon) == ("ideal", pytest.approx(1.0, abs=1e-9))
    with pytest.raises(
        br.ConfigError, match="arithmetic is a choice of gaussian noise, found laplace"
    ):
        built(text.replace("[privacy]", '[privacy]\nmechanism = "laplace"'))


@pytest.mark.parametrize(
    ("kind", "noise"),
    [
        ("histogram", 'mechanism = "randomized-response"\ngamma = 0.5'),
        (
            "ridge",
            'mechanism = "noise-by-size"\nlevel = "record"\nlipschitz = 1.0\n'
            "ridge = 1.0\nnoise_multiplier = 2.0",
        ),
    ],
)
def test_a_clip_that_nothing_reads_is_refused(kind, noise):
    """It was left out in silence, and noise that was thought to be of half the size was not."""
    text = f"""graph = "ring:6"\nsteps = 3\n[task]\nkind = "{kind}"\n[algorithm]\nname = "averaging"
[privacy]\n{noise}\nclip = 0.5"""
    with pytest.raises(br.ConfigError, match=r"clips nothing to privacy.clip = 0.5.*leave"):
        build_privacy(parse(text).privacy, br.Averaging(), ring(6), 3, 0)
