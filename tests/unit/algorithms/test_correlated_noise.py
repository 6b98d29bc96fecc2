"""DECOR and MAFALDA-SGD as they run: their account against brute force and impulses, and what voids
it (gossip:COR-1)."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.oracle import broken_claims
from bruit.errors import ConfigError
from bruit.privacy.exact import CorrelatedNoise, correlated_losses
from bruit.privacy.theorems.gopa import thetas
from bruit.runs.build import build
from bruit.runs.file import from_dict
from tests.laws.guarantee_truths import correlated_energy

TAPS = (1.0, -0.5, -0.125)
DECOR = br.Decor(rate=0.2, ratio=3.0)
BOTH = br.Mafalda(rate=0.2, own=2.0, pair=1.5, back=(0.5, 0.125))
UNEVEN = br.Decor(rate=0.2, ratio=5.0, by_degree=True)
UNEVEN_BOTH = br.Mafalda(rate=0.2, own=2.0, pair=4.0, back=(0.5, 0.125), by_degree=True)
PLACES = ["ring:6", "star:6", "path:4", "er:8,c=1.5,seed=1", "complete:4"]


def ran(algorithm, graph="ring:6", steps=4, **more):
    n = br.graphs.graph(graph).n
    task = br.tasks.Mean(np.linspace(-0.4, 0.4, 2 * n).reshape(n, 2))
    return br.run(algorithm, graph, task, privacy=br.Gaussian(0.5, 1.0), steps=steps, **more)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("observers", [(0,), (0, 2)])
@pytest.mark.parametrize(
    "noise",
    [
        CorrelatedNoise(pair=3.0),
        CorrelatedNoise(own=2.0),
        CorrelatedNoise(own=2.0, taps=TAPS),
        CorrelatedNoise(2.0, 1.5, TAPS, cycle=2),
        CorrelatedNoise(0.5, 4.0, (1.0, -1.0), cycle=4),
        CorrelatedNoise(pair=3.0, by_degree=True),
        CorrelatedNoise(0.5, 4.0, (1.0, -1.0), cycle=4, by_degree=True),
    ],
)
def test_the_closed_form_is_the_whole_covariance(place, observers, noise):
    graph = br.graphs.graph(place)
    told = correlated_losses(graph, noise, 5, observers)
    truth = np.array(
        [
            5.0 if u in observers else correlated_energy(graph, noise, 5, observers, u)
            for u in range(graph.n)
        ]
    )
    assert np.all(told >= truth * (1 - 1e-9))
    assert told == pytest.approx(truth, rel=0.25)  # signs of vectors are bounded by sizes
    if noise.cycle > 2 or noise.fresh:
        assert told == pytest.approx(truth, rel=1e-6)


def test_the_whole_matrix_is_that_of_its_columns():
    for place in ("ring:6", "star:5"):
        for learner in (BOTH, br.Mafalda(own=2.0), DECOR):
            run = ran(learner, place)
            columns = [run.accountant().charge(v).loss for v in range(run.n)]
            m = run.losses()
            for v, column in enumerate(columns):
                others = np.arange(run.n) != v
                assert m[others, v] == pytest.approx(column[others])


def test_without_correlation_it_is_what_was_known():
    graph, hidden = br.graphs.graph("grid:2x3"), [1, 2, 3, 4, 5]
    alone = correlated_losses(graph, CorrelatedNoise(), 7, (0,))
    assert alone == pytest.approx(np.full(6, 7.0))
    pairs = correlated_losses(graph, CorrelatedNoise(pair=3.0), 7, (0,))
    assert pairs[1:] == pytest.approx(7 * thetas(graph, 1.0, 3.0, hidden)[1:])
    more = correlated_losses(graph, CorrelatedNoise(own=3.0), 7, (0,))
    assert more[1:] == pytest.approx(np.full(5, 7 / 10))
    turns = correlated_losses(graph, CorrelatedNoise(cycle=3), 7, (0,))
    assert turns[1:] == pytest.approx(np.full(5, 3.0))


@pytest.mark.parametrize("own", [1e6, 1e7, 3e7, 1e9])
def test_noise_that_comes_back_entirely_is_not_told_from_rounding(own):
    """Whoever adds up 40 messages with the weights x_t = x_(t+1) + x_(t+2) + x_(t+3) is rid of all
    draws but one: a lower bound in whole numbers, whatever a matrix says of them."""
    x = [1]
    while len(x) < 40:
        x.append(sum(x[-3:]))
    attained = sum(x) ** 2 / (sum(k * k for k in x) + int(own) ** 2)
    noise = CorrelatedNoise(own=own, taps=(1.0, -1.0, -1.0, -1.0))
    assert 3.3 < attained <= correlated_losses(br.graphs.ring(4), noise, 40, (0,))[1] < 3.5


@pytest.mark.parametrize("pair", [1e6, 1e7, 1e9])
def test_sums_over_everybody_hold_no_canceling_noise_whatever_rounding_says(pair):
    graph = br.graphs.graph("er:200,c=2,seed=12")
    fresh, back = (
        correlated_losses(graph, CorrelatedNoise(pair=pair, taps=taps), 1, (0,))
        for taps in ((1.0,), (1.0, -0.5))
    )
    assert back[1:] == pytest.approx(fresh[1:], rel=1e-4)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("learner", [DECOR, BOTH, UNEVEN, UNEVEN_BOTH])
def test_no_impulse_passes_the_claim(place, learner):
    run = ran(learner, place)
    told = run.guarantee(of=3, seen_by=0)
    assert (told.spec, told.status) == ("gossip:COR-1", "proven")
    assert broken_claims(run, [(v,) for v in range(run.n)] + [(0, 2)]) == []


@pytest.mark.parametrize("learner", [DECOR, BOTH, UNEVEN, UNEVEN_BOTH])
def test_the_run_is_charged_by_the_closed_form(learner):
    run = ran(learner, "grid:2x3", steps=6)
    noise = learner.guarantees()[0].noise
    for watching in ((0,), (0, 4)):
        expected = np.minimum(correlated_losses(run.graph, noise, 6, watching), 6)
        hidden = np.setdiff1d(np.arange(6), watching)
        assert run.accountant().charge(watching).loss[hidden] == pytest.approx(expected[hidden])


def test_noise_between_neighbors_cancels():
    """Where everybody mixes at once, nothing of it is left: 20 times the noise, and no more error.
    Each deviation is of 60 numbers, within 40 % of the truth but for a chance below 1e-4."""
    quiet, loud = (
        np.std(
            [
                ran(br.Decor(rate=0.5, ratio=r), "complete:5", 2, seed=s).estimates[0]
                for s in range(30)
            ]
        )
        for r in (0.0, 20.0)
    )
    assert 0.4 < loud / quiet < 2.5


@pytest.mark.parametrize("learner", [br.Decor(rate=0.5), br.Mafalda(rate=0.5)])
def test_it_learns_the_mean(learner):
    n = 6
    task = br.tasks.Mean(np.linspace(-0.4, 0.4, 2 * n).reshape(n, 2))
    run = br.run(learner, "complete:6", task, privacy=br.Gaussian(0.5, 0.0), steps=40)
    assert run.metrics.last("mse") < 1e-6


def test_what_a_draw_put_in_is_taken_back():
    """back = (1,): what is left in the mean after T rounds of summing is the last draw, not T."""
    scale = {}
    for back in ((), (1.0,)):
        learner = br.Mafalda(rate=0.01, own=50.0, back=back)
        scale[back] = np.std([ran(learner, "complete:4", 40, seed=s).estimates for s in range(20)])
    assert scale[(1.0,)] < 0.4 * scale[()]


@pytest.mark.parametrize(
    ("learner", "change", "words"),
    [
        (DECOR, {"engine": br.Events(churn=0.4)}, "links failed"),
        (BOTH, {"engine": br.Events(churn=0.4)}, "links failed"),
    ],
)
def test_what_voids_the_account(learner, change, words):
    told = ran(learner, steps=6, **change).guarantee(of=3, seen_by=0)
    assert told.spec == "gossip:DP-8"
    assert words in " ".join(told.notes)


@pytest.mark.parametrize("learner", [br.Decor(by_degree=True), br.Mafalda(by_degree=True)])
def test_parts_by_degree_need_one_graph(learner):
    with pytest.raises(ConfigError, match="by_degree = true needs one graph"):
        ran(learner, "er:5,c=2,fresh=1")


def test_parts_by_degree_are_whole_on_regular_graphs():
    one, other = (ran(br.Decor(ratio=3.0, by_degree=flag), "torus:3x3") for flag in (False, True))
    assert np.array_equal(one.accountant().charge(0).loss, other.accountant().charge(0).loss)


def test_bad_parts_and_turns_are_refused():
    with pytest.raises(ConfigError, match=r"found back\[1\]"):
        br.Mafalda(back=(0.5, -1.0))
    with pytest.raises(ConfigError, match="at record level only"):
        ran(br.Mafalda(cycle=2))
    file = {
        "graph": "ring:4",
        "steps": 3,
        "task": {"kind": "mean"},
        "algorithm": {"name": "decor", "mixing": 2},
        "privacy": {"sigma": 1.0},
    }
    with pytest.raises(ConfigError, match="in the middle of the 2 exchanges"):
        build(from_dict(file))
    with pytest.raises(ConfigError, match="too small beside"):
        ran(br.Mafalda(own=1e12))


def records(adjacency="replace", cycle=3, steps=7, graph="ring:5", **more):
    """Five peers of six records each, whose gradients are clipped one by one."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(30, 2)), rng.integers(0, 2, 30) * 2.0 - 1.0
    task = br.tasks.Logistic(br.tasks.Records.of(features, labels, np.repeat(np.arange(5), 6)))
    noise = br.RecordSums(clip=1.0, sigma=2.0, divisor=6.0, capacity=6, adjacency=adjacency)
    learner = br.Mafalda(**({"rate": 0.1, "own": 2.0, "back": (0.75,), "cycle": cycle} | more))
    return br.run(learner, graph, task, privacy=noise, steps=steps, evaluate_every=0)


def test_records_that_take_turns_are_charged_for_their_rounds():
    run = records()
    told = run.guarantee(of=3, seen_by=0)
    assert (told.spec, told.status, told.level) == ("gossip:COR-1", "proven", "record")
    expected = correlated_losses(run.graph, CorrelatedNoise(2.0, 0.0, (1.0, -0.75), 3), 7, (0,))
    assert told.loss == pytest.approx(expected[3])
    assert told.loss < 3 < run.guarantee(of=3, seen_by="everybody").loss
    assert "take turns" in " ".join(one.text for one in told.hypotheses)


def test_runs_that_end_before_every_record_had_its_turn_have_a_loss():
    """On graphs that change rounds are added up turn by turn; there are no more turns than rounds."""
    for cycle in (3, 8):
        run = records(cycle=cycle, steps=3, graph="er:5,c=2,fresh=1", pair=1.0, back=())
        told = run.guarantee(of=3, seen_by=0)
        assert (told.spec, 0 < told.loss <= 1) == ("gossip:COR-1", True)


def test_a_record_is_read_in_its_turn_only():
    """Another record in place 1 changes what is said in rounds 1, 4, .. and not before."""
    owners = np.repeat([0, 1], 4)
    tasks = [
        br.tasks.Logistic(
            br.tasks.Records.of(np.array([[1.0], [x], [1], [1]] * 2), np.ones(8), owners)
        )
        for x in (1, -1)
    ]
    noise = br.RecordSums(clip=1.0, sigma=0.0, divisor=4.0, capacity=4)
    learner = br.Mafalda(rate=0.1, cycle=4, own=1.0)
    ends = [
        [
            br.run(learner, "path:2", task, privacy=noise, steps=steps, seed=1).estimates
            for task in tasks
        ]
        for steps in (1, 2)
    ]
    assert np.array_equal(ends[0][0], ends[0][1])
    assert not np.array_equal(ends[1][0], ends[1][1])


def test_turns_are_for_records_that_are_replaced():
    """A record that goes moves the turns of all after it: no release is made for one record then."""
    with pytest.raises(ConfigError, match="would move the turns of all others"):
        records(adjacency="add-remove")
    assert records(adjacency="add-remove", cycle=1).guarantee(of=3, seen_by=0).loss > 0
