"""T1 steps and then T2 more are one run of T1 + T2 steps: every algorithm of the catalog, by
discovery."""

import warnings

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.runs.engines.replay import flat
from bruit.testing import small_task, suited

CASES = [kind() for kind in catalog().values()] + [
    br.GossipSGD(mixing=2, gamma=1.3),
    br.Chebyshev(gamma=1.4),
    br.Renoised(flat=2),
    br.PairAveraging(br.Pairs(activations=9)),
    br.ModelPropagation(schedule=br.Wakes(activations=7)),
    br.WalkSGD(cap=3, rest=2),
    br.WalkSGD(schedule=Walk("uniform")),
    br.FedAvg(participants=3, local_steps=2),
]
GRAPH = "er:6,q=0.5,seed=1"
NOISE = br.Gaussian(clip=2.0, sigma=0.5)


def lines(run):
    """How often each peer released data, in all phases."""
    return run.ledger.counts()[:, run.ledger.is_data()].sum(axis=1)


def run(algorithm, steps, graph=GRAPH, **options):
    graph = suited(algorithm, br.graphs.graph(graph))
    return br.run(algorithm, graph, small_task(6), steps=steps, seed=3, evaluate_every=0, **options)


def on(before, steps, **options):
    return br.chain(before, small_task(6), steps=steps, evaluate_every=0, **options)


@pytest.mark.parametrize("phases", [(4, 2, 6), (0, 4), (4, 0), (2, 0, 4)], ids=str)
@pytest.mark.parametrize("algorithm", CASES, ids=repr)
def test_a_chain_is_the_one_run(algorithm, phases):
    """Without noise to the last number; with noise as many releases of everybody."""
    activations = getattr(algorithm.schedule, "activations", None)
    whole = algorithm
    if activations is not None:
        whole = type(algorithm)(
            schedule=type(algorithm.schedule)(activations=activations * len(phases))
        )
    for noise in (None, NOISE):
        one, last = run(whole, sum(phases), privacy=noise), run(algorithm, phases[0], privacy=noise)
        for steps in phases[1:]:
            last = on(last, steps)
        assert np.array_equal(lines(one), lines(last))
        if noise is None:
            assert np.allclose(one.estimates, last.estimates, rtol=1e-12, atol=1e-12)
            assert flat(one.state).shape == flat(last.state).shape


@pytest.mark.parametrize(
    "algorithm", [one for one in CASES if not isinstance(one.schedule, Walk)], ids=repr
)
def test_engines_agree_on_how_a_run_goes_on(algorithm):
    bulk, events = (
        on(run(algorithm, 4, engine=engine), 4, engine=engine)
        for engine in (br.Bulk(), br.Events())
    )
    assert np.allclose(bulk.estimates, events.estimates, rtol=1e-9, atol=1e-9)
    assert np.array_equal(lines(bulk), lines(events))


def test_the_gradient_between_two_phases_is_read():
    """GossipSGD read none at `home.last`, and none when it went on."""
    first = run(br.GossipSGD(), 3, privacy=NOISE)
    assert lines(on(first, 2)).tolist() == [5] * 6
    assert lines(first).tolist() == [3] * 6


def test_the_recursion_of_chebyshev_goes_on():
    parts = on(on(run(br.Chebyshev(), 1), 1), 8)
    assert np.allclose(parts.estimates, run(br.Chebyshev(), 10).estimates, atol=1e-12)
    again = br.run(
        br.Chebyshev(), GRAPH, small_task(6), steps=8, after=run(br.Chebyshev(), 2), carry="nothing"
    )
    assert not np.allclose(parts.estimates, again.estimates)


def test_a_token_walks_on_from_where_it_is():
    first = run(br.WalkSGD(), 5)
    second = on(first, 4)
    whole = run(br.WalkSGD(), 9)
    path = np.concatenate((first.trace.meetings.b, second.trace.meetings.b))
    assert np.array_equal(path, whole.trace.meetings.b)
    assert second.trace.meetings.a[0] == first.trace.meetings.b[-1]
    elsewhere = on(first, 4, seed=17)  # other draws, the same holder
    assert elsewhere.trace.meetings.a[0] == first.trace.meetings.b[-1]
    near = br.graphs.fixed_graph(GRAPH)
    for a, b in zip(elsewhere.trace.meetings.a, elsewhere.trace.meetings.b, strict=True):
        assert a == b or near.has_edge(int(a), int(b))


def test_clocks_ring_on():
    first, whole = run(br.PairAveraging(), 3), run(br.PairAveraging(), 7)
    second = on(first, 4)
    time = np.concatenate((first.trace.meetings.time, second.trace.meetings.time + 3))
    assert np.allclose(time, whole.trace.meetings.time)


def test_what_cannot_go_on_says_so():
    with pytest.raises(
        br.ConfigError,
        match="in the middle of the 3 exchanges of a gradient; stop after a multiple",
    ):
        on(run(br.GossipSGD(mixing=3), 4), 3)
    with pytest.raises(
        br.ConfigError, match="stopped after 3 rounds, between the server's word and the answers"
    ):
        on(run(br.FedAvg(), 3, "star:6"), 2)
    with pytest.raises(br.ConfigError, match="tokens enter at their first peer"):
        on(run(br.WalkSGD(), 4), 3, engine=br.Events())


def test_a_sequence_of_graphs_that_starts_again_is_said():
    first = run(br.Averaging(), 3, "er:6,q=0.5,fresh=1")
    with pytest.warns(
        UserWarning, match="every phase starts with the first graph of er:6,q=0.5,fresh=1"
    ):
        on(first, 2)
    half = run(br.Averaging(), 1, "butterfly:6")
    with pytest.warns(UserWarning, match="repeats after 2 rounds: after 1 round"):
        on(half, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on(run(br.GossipSGD(mixing=2), 4, "butterfly:6,relabel=true"), 2)


@pytest.mark.parametrize("graph", ["ring:6", "complete:6", "butterfly:6"])
def test_a_chain_never_costs_less_than_the_one_run(graph):
    """Phases are charged apart, the earlier as seen where it did not end in public: not below the
    one account."""
    algorithm = br.GossipSGD(mixing=2)
    one, two = (
        run(algorithm, 8, graph, privacy=NOISE),
        on(run(algorithm, 4, graph, privacy=NOISE), 4),
    )
    assert two.epsilon() == pytest.approx(
        one.epsilon(), rel=1e-6
    )  # against everybody: as many releases
    m, n = one.losses(), two.losses()
    assert (np.nan_to_num(n) >= np.nan_to_num(m) - 1e-9).all()
