"""Reconstruction from gossip: closed forms and examples of gossip:REC-2, the account's losses,
values of real runs."""

from fractions import Fraction
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bruit as br
from bruit.adversary.attacks import (
    Relation,
    all_attackers,
    decide,
    knowledge,
    meeting_knowledge,
    reconstruct,
    reconstructible,
    run_knowledge,
    starting_values,
)
from bruit.adversary.attacks.reconstruct import defence
from bruit.errors import ConfigError
from bruit.graphs import (
    complete,
    erdos_renyi,
    from_edges,
    from_networkx,
    geometric,
    grid,
    hypercube,
    path,
    ring,
    star,
    torus,
)
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.rational import reduced_form, unit_columns
from bruit.privacy.exact.rows import meeting_loss, sequence_loss
from bruit.trace import Received, View


def exposed(graph, observers, steps, aggregation="messages"):
    return reconstructible(graph, observers, steps, aggregation).peers.tolist()


def by_fractions(known):
    """The oracle: Gauss-Jordan over the rationals (gossip:REC-2, backend a)."""
    reduced = reduced_form(known.rational())
    return unit_columns(reduced), reduced


@pytest.mark.parametrize(
    ("graph", "observer", "steps", "expected"),
    [
        (path(4), 0, 2, [0, 1, 2]),
        (path(4), 0, 3, [0, 1, 2, 3]),
        (hypercube(4), 0, 4, [0, 1, 2, 4, 7, 8, 11, 13, 14, 15]),
        (from_networkx(nx.petersen_graph()), 0, 10, [0, 1, 4, 5]),
        (grid(3, 3), 0, 4, [0, 1, 3]),
        (grid(3, 3), 0, 9, list(range(9))),
        *((grid(3, 3), 4, steps, [1, 3, 4, 5, 7]) for steps in (1, 2, 5, 9, 30)),
    ],
)
def test_examples_of_rec_2(graph, observer, steps, expected):
    assert exposed(graph, [observer], steps) == expected


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9, 40])
def test_closed_forms_of_rec_2(steps):
    assert exposed(path(9), [0], steps) == list(range(min(steps, 8) + 1))
    assert exposed(ring(9), [0], steps) == sorted(u for u in range(9) if min(u, 9 - u) <= steps)
    assert exposed(star(6), [2], steps) == ([0, 2] if steps else [2])
    everybody = list(range(6))
    assert exposed(complete(6), [0], steps) == (everybody if steps else [0])
    assert exposed(star(6), [0], steps) == (everybody if steps else [0])


@pytest.mark.parametrize("dimension", [4, 5, 6, 7])
def test_hypercubes_expose_four_distances(dimension):
    """gossip:REC-2: exactly 2m + 2 peers, at distances 0, 1, m - 1, m, for T >= m."""
    found = exposed(hypercube(dimension), [0], dimension)
    assert len(found) == 2 * dimension + 2
    assert {bin(u).count("1") for u in found} == {0, 1, dimension - 1, dimension}
    assert exposed(hypercube(dimension), [0], 3 * dimension) == found


def test_corner_cases():
    """gossip:REC-2, the corners: disconnected graphs, isolated observers, no steps, attackers
    only."""
    parts = from_edges(6, [(0, 1), (1, 2), (3, 4)])
    assert exposed(parts, [0], 5) == [0, 1, 2]
    assert exposed(parts, [5], 5) == [5]
    assert exposed(parts, [0, 3], 5) == [0, 1, 2, 3, 4]
    alone = reconstructible(parts, [0], 0)
    assert (alone.peers.tolist(), alone.rank, alone.hidden.size, alone.relations()) == (
        [0],
        1,
        0,
        (),
    )
    assert exposed(complete(3), [0, 1, 2], 4) == [0, 1, 2]
    assert exposed(from_edges(1, []), [0], 3) == [0]


def test_the_relation_that_figure_4_1_leaves():
    edges = [
        (0, 2),
        (1, 2),
        (2, 3),
        (2, 4),
        (1, 5),
        (1, 7),
        (1, 8),
        (5, 9),
        (9, 10),
        (9, 11),
        (11, 6),
        (7, 8),
        (7, 9),
        (7, 11),
    ]
    found = reconstructible(from_edges(12, edges), [0, 1], 3)
    assert (found.rank, found.relation_count, found.hidden.tolist()) == (11, 1, [3, 4])
    assert found.relations() == (Relation((3, 4), (Fraction(1), Fraction(1))),)
    assert str(found.relations()[0]) == "x3 + x4"
    assert (
        str(Relation((1, 5, 8), (Fraction(1), Fraction(-1), Fraction(-2, 3)))) == "x1 - x5 - 2/3 x8"
    )


SMALL = [
    path(5),
    grid(2, 4),
    hypercube(3),
    hypercube(4),
    star(6),
    torus(4, 3),
    erdos_renyi(8, q=0.35, seed=1),
    geometric(9, 0.45, seed=3),
    from_edges(7, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (5, 6)]),
    grid(2, 4, plus=0),
    erdos_renyi(8, q=0.4, seed=5, kind="laplacian"),
]


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("aggregation", ["messages", "sums"])
def test_rational_elimination_agrees(graph, aggregation):
    """Sets, ranks and relations against Gauss-Jordan over the fractions."""
    for observers in ([0], [1, 4]):
        for steps in (1, 2, 4, 7):
            known = knowledge(graph, observers, steps, aggregation)
            expected, reduced = by_fractions(known)
            found = decide(known)
            assert (found.peers.tolist(), found.rank) == (expected, len(reduced))
            check_relations(found, reduced)


def check_relations(found, reduced):
    others = [row for row in reduced if sum(map(bool, row)) > 1]
    assert found.relation_count == len(others)
    for relation, row in zip(found.relations(), others, strict=True):
        assert relation.peers == tuple(v for v, x in enumerate(row) if x)
        weights = tuple(x for x in row if x)
        small = all(max(abs(x.numerator), x.denominator) <= 2**20 for x in weights)
        assert relation.weights == (weights if small else None)


@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(0, 14))
@settings(max_examples=40, deadline=None)
def test_meetings_against_fractions(seed, n, count):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n, count)
    b = (a + rng.integers(1, n, count)) % n
    known = meeting_knowledge(n, a, b, [0])
    expected, reduced = by_fractions(known)
    found = decide(known)
    assert (found.peers.tolist(), found.rank) == (expected, len(reduced))
    check_relations(found, reduced)
    assert expected == np.flatnonzero(meeting_loss(n, a, b, [0]).loss > 1 - 1e-9).tolist()


def test_changing_graphs_against_fractions_and_the_account():
    for seed in range(6):
        graphs = [erdos_renyi(8, q=0.4, seed=10 * seed + k, connected=False) for k in range(3)]
        sequence = br.graphs.given(graphs)
        known = knowledge(sequence, [0, 3], 5)
        expected, reduced = by_fractions(known)
        found = decide(known)
        assert (found.peers.tolist(), found.rank) == (expected, len(reduced))
        loss = sequence_loss(sequence.at, 8, 5, [0, 3]).loss
        assert expected == np.flatnonzero(loss > 1 - 1e-9).tolist()


@st.composite
def situations(draw):
    n = draw(st.integers(2, 14))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3 * n))
    plus = draw(st.integers(0, 1))
    observers = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=2))
    return (
        from_edges(n, edges, plus=plus),
        observers,
        draw(st.integers(0, n + 2)),
        draw(st.booleans()),
    )


@given(situations())
@settings(max_examples=200, deadline=None)
def test_loss_one_exactly_when_reconstructible(situation):
    """The tie to the accountant (gossip:REC-2, MUF-2): m(u -> V) = 1 iff u is reconstructible."""
    graph, observers, steps, sums = situation
    account = leverage(graph, observers, steps, secure_aggregation=sums)
    found = reconstructible(graph, observers, steps, "sums" if sums else "messages")
    assert account.status == "exact"
    assert account.rank == found.rank
    assert np.flatnonzero(account.loss >= 1 - 1e-9).tolist() == found.peers.tolist()
    assert not np.any((account.loss > 1 - 1e-7) & (account.loss < 1 - 1e-9))


@given(situations(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_more_steps_and_more_observers_never_expose_fewer(situation, more):
    graph, observers, steps, _ = situation
    few = set(exposed(graph, observers, steps))
    assert few <= set(exposed(graph, observers, steps + more))
    assert few <= set(exposed(graph, [*observers, more % graph.n], steps))
    assert exposed(graph, observers, graph.n) == exposed(graph, observers, 3 * graph.n)


@pytest.mark.parametrize(
    "graph",
    [torus(4, 5), erdos_renyi(30, c=1.3, seed=2), geometric(25, 0.3, seed=1)],
    ids=lambda graph: graph.name,
)
def test_all_attackers_are_all_single_ones(graph):
    """With the symmetry of a translation group and without."""
    done = []
    found = all_attackers(graph, 4, progress=lambda *counts: done.append(counts))
    for v in range(graph.n):
        one = reconstructible(graph, [v], 4)
        assert np.flatnonzero(found.exposed[:, v]).tolist() == one.peers.tolist()
        assert (found.rank[v], found.counts[v]) == (one.rank, one.peers.size)
    assert done in ([], [(v + 1, graph.n) for v in range(graph.n)])


def test_sizes_that_need_several_blocks():
    """More rows than one block of the elimination, and a rank between: against leverage on 120
    peers."""
    graph = erdos_renyi(120, c=1.2, seed=4)
    for steps in (3, 12, 30):
        account, found = leverage(graph, [5], steps), reconstructible(graph, [5], steps)
        assert account.rank == found.rank
        assert np.flatnonzero(account.loss >= 1 - 1e-9).tolist() == found.peers.tolist()


# Values


def attack(run, observers, own):
    return reconstruct(run.view(set(observers)), run_knowledge(run, observers), own)


@pytest.mark.parametrize("algorithm", [br.Averaging(), br.Chebyshev()])
@pytest.mark.parametrize("observers", [(0,), (0, 7)])
def test_values_of_a_run_are_recovered(algorithm, observers):
    task = br.tasks.Mean.uniform(12, 3, seed=1)
    run = br.run(algorithm, erdos_renyi(12, q=0.3, seed=2), task, steps=5, watch=observers)
    found = attack(run, observers, task.values[list(observers)])
    assert found.prediction.peers.size > len(observers) + 3
    peers = found.prediction.peers
    assert np.allclose(found.values[peers], task.values[peers], atol=1e-9)
    hidden = np.setdiff1d(np.arange(12), peers)
    assert np.isnan(found.values[hidden]).all()
    assert np.isnan(found.error[hidden]).all()
    assert found.reliable[peers].all()
    assert not found.reliable[hidden].any()
    assert found.residual < 1e-14
    score = found.score(task)
    assert score.recovered.tolist() == np.setdiff1d(peers, observers).tolist()
    assert score.fraction == 1.0
    assert np.array_equal(score.errors, found.score(task.values).errors, equal_nan=True)


def test_relations_of_a_run_have_the_right_values():
    edges = [(0, 1), (1, 2), (1, 3), (1, 4)]
    task = br.tasks.Mean.normal(5, 2, seed=3)
    run = br.run(br.Averaging(), from_edges(5, edges), task, steps=6, watch=[0])
    found = attack(run, [0], task.values[:1])
    ((relation, value),) = found.relation_values()
    assert str(relation) == "x2 + x3 + x4"
    assert np.allclose(value, task.values[2:].sum(axis=0))


def test_dropouts_and_sequences():
    task = br.tasks.Mean.uniform(10, 1, seed=2)
    faulty = br.run(
        br.Averaging(), ring(10), task, steps=8, watch=[3], engine=br.Events(churn=0.15), seed=5
    )
    assert len(faulty.trace.faults.round)
    found = attack(faulty, [3], task.values[[3]])
    assert found.score(task).fraction == 1.0
    assert found.prediction.peers.tolist() == decide(run_knowledge(faulty, 3)).peers.tolist()
    moving = br.run(br.Averaging(), "butterfly:8", br.tasks.Mean.uniform(8), steps=3, watch=[0])
    assert decide(run_knowledge(moving, 0)).peers.tolist() == [0, 1]


@pytest.mark.parametrize("engine", [br.Bulk(), br.Events(latency=0.05)], ids=["bulk", "events"])
def test_meetings_of_a_run(engine):
    task = br.tasks.Mean.uniform(6, 2, seed=2)
    run = br.run(br.PairAveraging(), ring(6), task, steps=3, watch=[1, 4], seed=1, engine=engine)
    for observers in ([1], [1, 4]):
        found = attack(run, observers, task.values[observers])
        assert found.prediction.peers.size > len(observers)
        assert found.score(task).fraction == 1.0


def test_noise_is_what_is_reconstructed():
    task, noise = br.tasks.Mean.uniform(8, 2, seed=2), br.Gaussian(clip=2.0, sigma=0.5)
    run = br.run(br.Averaging(), ring(8), task, steps=6, watch=[0], privacy=noise, seed=9)
    released = starting_values(run, task)
    assert np.abs(released - task.values).max() > 0.1
    found = attack(run, [0], released[:1])
    assert found.score_noisy(released).fraction == 1.0
    assert found.score(task).fraction == 0.0
    paired = br.run(br.PairAveraging(), ring(8), task, steps=2, watch=[0], privacy=noise, seed=9)
    assert (
        np.abs(starting_values(paired, task) - released).min() > 0
    )  # another protocol, other noise
    assert np.array_equal(starting_values(run, task), released)
    with pytest.raises(ConfigError, match="not the records of this run"):
        starting_values(run, br.tasks.Mean(task.values + 0.1))


def test_ill_conditioned_values_are_flagged():
    """gossip:REC-2: the set is exact, the values are not: on a long path far peers drown in
    rounding."""
    task = br.tasks.Mean.uniform(40, 1, seed=1)
    run = br.run(br.Averaging(), path(40), task, steps=39, watch=[0])
    found = attack(run, [0], task.values[:1])
    assert found.prediction.peers.size == 40
    score = found.score(task, tolerance=1e-5)
    assert found.reliable[:8].all()
    assert not found.reliable[35:].any()
    assert np.all(score.errors[found.reliable][1:] <= 1e-5)
    assert np.nanmax(score.errors) > 1e-2


def test_nobody_to_score():
    task = br.tasks.Mean.uniform(4, 1)
    run = br.run(br.Averaging(), ring(4), task, steps=0, watch=[0])
    found = attack(run, [0], task.values[:1])
    assert found.values[0] == task.values[0]
    assert np.isnan(found.score(task).fraction)


def test_the_defence_is_a_sentence_with_numbers():
    """mu(1, 1e-6) of the Gaussian mechanism: multiplier 4.22 (gossip:DP-4)."""
    found, sums = (
        reconstructible(hypercube(4), [0], 4),
        reconstructible(hypercube(4), [0], 4, "sums"),
    )
    text = defence(found, sums)
    assert "noise of 4.22 times the sensitivity" in text
    assert "expose 2 instead of 10 peers" in text
    assert "Nothing was learned" in defence(reconstructible(ring(4), [0], 0))
    assert found.taxonomy["view"] == "single peer"
    assert reconstructible(ring(4), [0, 1], 1).taxonomy["view"] == "coalition of 2 peers"


class Pair(NamedTuple):
    index: np.ndarray
    sign: np.ndarray


def bad_views():
    task = br.tasks.Mean.uniform(5, 1)
    run = br.run(br.Averaging(), ring(5), task, steps=3, watch=[0])
    view, known, own = run.view(0), run_knowledge(run, 0), task.values[:1]
    short = View(view.observers, view.messages[1:], view.foreign[1:])
    record = Received(0, 1, 0, Pair(np.array([0]), np.array([1.0])))
    records = View(view.observers, [record], [record])
    more = br.run(br.Averaging(), ring(5), task, steps=4, watch=[0]).view(0)
    return [
        (lambda: run.view(1), "peer 1 was not watched"),
        (
            lambda: reconstruct(short, known, own),
            r"holds 5 messages.* where 6 were said.*what peer 1 said at 0.*watch",
        ),
        (lambda: reconstruct(more, known, own), "holds 8 messages from others where 6 were said"),
        (
            lambda: reconstruct(records, known, own),
            r"messages of this run are records \(index, sign\)",
        ),
        (
            lambda: reconstruct(view, known, task.values[:2]),
            r"own values have shape \(2, 1\); give one row for each",
        ),
        (
            lambda: reconstruct(view, run_knowledge(run, 2), own),
            r"view is that of peers \[0\].*that of \[2\]",
        ),
        (
            lambda: reconstruct(view, knowledge(ring(5), [0], 3, "sums"), own),
            "knowledge is of sums",
        ),
        (
            lambda: reconstruct(view, known, own).score(np.zeros((4, 1))),
            r"shape \(4, 1\), the recovered ones \(5, 1\)",
        ),
        (
            lambda: run_knowledge(run, 7),
            r"observer 7 is not a peer of this graph, whose peers are 0\.\.4",
        ),
    ]


@pytest.mark.parametrize("case", range(9))
def test_bad_views(case):
    call, message = bad_views()[case]
    with pytest.raises(ConfigError, match=message):
        call()


def test_runs_that_are_not_linear_averaging():
    task, noise = br.tasks.Mean.uniform(6, 1), br.Gaussian(clip=1.0, sigma=1.0)
    sgd = br.run(br.GossipSGD(), ring(6), task, steps=3, watch=[0])
    with pytest.raises(
        ConfigError, match=r"needs linear averaging.*but this is a run of gossip-sgd"
    ):
        run_knowledge(sgd, 0)
    first = br.run(br.Averaging(), ring(6), task, steps=2, privacy=noise)
    with pytest.raises(ConfigError, match="goes on from an earlier one"):
        run_knowledge(br.chain(first, task, steps=2, watch=[0]), 0)
    first.trace.missed = 2
    with pytest.raises(ConfigError, match="went on without 2 exchanges"):
        run_knowledge(first, 0)
    broken = br.run(br.Chebyshev(), ring(6), task, steps=6, engine=br.Events(churn=0.3), seed=1)
    with pytest.raises(
        ConfigError, match=r"one fixed graph without dropouts only; this run had dead links in \d"
    ):
        run_knowledge(broken, 0)


def test_threads_must_be_positive():
    with pytest.raises(ConfigError, match="threads is 0"):
        all_attackers(path(3), 2, threads=0)
