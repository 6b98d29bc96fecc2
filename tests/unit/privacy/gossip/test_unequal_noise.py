"""Noise of different sizes: the exact loss against dense algebra in rational numbers, and what must
not pass for it (silo:SILO-8)."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.experiments import audit_made
from bruit.adversary.audits.oracle import broken_claims, impulse_losses
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import graph as named
from bruit.mechanisms import Gaussian, GaussianPerPeer, mechanism_from
from bruit.mechanisms.mechanism import catalog
from bruit.privacy.exact import (
    meeting_rows,
    sequence_rows,
    unequal_joint,
    unequal_loss,
    unequal_rows_loss,
)
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.formulas.group import mu_of
from bruit.privacy.theorems.unequal import UnequalGossip
from bruit.runs.build import build
from bruit.runs.file import from_dict

SMALL = ("path:5", "star:5", "ring:6", "grid:2x3", "complete:4", "tree:7", "er:7,c=1.5,seed=3")


def rows_of(graph, observers, steps, peers=None):
    """K_V in rational numbers, by plain products; `graph` may be a function of the round."""
    at, n = (graph, peers) if callable(graph) else ((lambda _: graph), graph.n)
    power = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    rows = [power[v] for v in observers]
    for t in range(steps):
        now = at(t)
        rows += [power[w] for v in observers for w in now.neighbors(v).tolist()]
        weights = weights_of(now)
        power = [
            [sum(weights[i][k] * power[k][j] for k in range(n)) for j in range(n)] for i in range(n)
        ]
    return rows


def weights_of(graph):
    """The mixing weights in rational numbers."""
    n = graph.n
    weights = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        around = graph.weights.indices[graph.weights.indptr[i] : graph.weights.indptr[i + 1]]
        above = graph.numerators[graph.weights.indptr[i] : graph.weights.indptr[i + 1]]
        below = graph.denominators[graph.weights.indptr[i] : graph.weights.indptr[i + 1]]
        for j, a, b in zip(around.tolist(), above.tolist(), below.tolist(), strict=True):
            if i != j:
                weights[i][j] = Fraction(a, b)
        weights[i][i] = 1 - sum(weights[i])
    return weights


def solved(matrix, right):
    """The solution of a regular system, by elimination."""
    work = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(work)):
        pivot = next(i for i in range(k, len(work)) if work[i][k])
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [x / work[k][k] for x in work[k]]
        for i in range(len(work)):
            if i != k and work[i][k]:
                work[i] = [x - work[i][k] * y for x, y in zip(work[i], work[k], strict=True)]
    return [row[-1] for row in work]


def independent(rows):
    """Rows that span the same space, none too many."""
    kept, reduced = [], []
    for row in rows:
        rest = list(row)
        for lead, known in reduced:
            rest = [x - rest[lead] * y for x, y in zip(rest, known, strict=True)]
        lead = next((k for k, x in enumerate(rest) if x), None)
        if lead is not None:
            reduced.append((lead, [x / rest[lead] for x in rest]))
            kept.append(row)
    return kept


def by_definition(rows, sizes):
    """l_u = s_u^2 k_u^T (K S K^T)^-1 k_u  # (n,)."""
    rows, n = independent(rows), len(sizes)
    variances = [Fraction(float(s)) ** 2 for s in sizes]
    gram = [[sum(a[k] * b[k] * variances[k] for k in range(n)) for b in rows] for a in rows]
    found = []
    for u in range(n):
        column = [row[u] for row in rows]
        answer = solved(gram, column)
        found.append(float(variances[u] * sum(x * y for x, y in zip(column, answer, strict=True))))
    return np.array(found)


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("name", SMALL)
def test_the_loss_is_that_of_rational_algebra(name, steps):
    graph, dice = named(name), np.random.default_rng(steps)
    for observers in ([0], [graph.n - 1, 1]):
        sizes = np.exp(dice.uniform(-3, 3, graph.n))
        truth = by_definition(rows_of(graph, observers, steps), sizes)
        found = unequal_loss(graph, observers, steps, sizes)
        assert found.status == "exact"
        assert found.loss == pytest.approx(truth, abs=1e-7)
        assert np.all(found.loss >= truth - 1e-12)
        rows = sequence_rows(lambda _, one=graph: one, graph.n, steps, observers)
        assert unequal_rows_loss(rows, sizes).loss == pytest.approx(truth, abs=1e-7)


def test_links_that_fail_under_two_sizes_of_noise():
    """Random graphs on which links fail, charged from the run; K_V from the graphs that were there."""
    for seed in range(8):
        dice = np.random.default_rng(seed)
        n = int(dice.integers(3, 7))
        ends = [(i, j) for i in range(n) for j in range(i) if j == i - 1 or dice.random() < 0.4]
        sizes = dice.choice([1.0, 2.5], n)
        run = br.run(
            br.Averaging(),
            br.graphs.from_edges(n, ends),
            br.tasks.Mean.uniform(n, seed=seed),
            privacy=GaussianPerPeer(clip=0.5, sigmas=sizes.tolist()),
            steps=int(dice.integers(1, 5)),
            engine=br.Events(churn=0.3),
            seed=seed,
        )
        facts, (v, u) = run.facts(), dice.permutation(n)[:2].tolist()
        truth = by_definition(rows_of(facts.at, [v], run.steps, n), sizes)[u]
        told = run.guarantee(of=u, seen_by=v)
        assert told.spec == "silo:SILO-8"
        assert mu_of(told.profile) ** 2 * sizes[u] ** 2 == pytest.approx(truth, abs=1e-7)


def test_meetings_too():
    sizes = [1.0, 0.25, 3.0, 2.0, 0.5]
    a, b = np.array([1, 3, 0, 2, 1]), np.array([2, 4, 1, 3, 0])
    rows = meeting_rows(5, a, b, [0])
    exact = [[Fraction(float(x)) for x in row] for row in rows.values.tolist()]  # halves
    found = unequal_rows_loss(rows, sizes)
    assert found.loss == pytest.approx(by_definition(exact, sizes), abs=1e-9)


def test_the_worked_example():
    found = unequal_loss(named("star:5"), [1], 2, [1.0, 1.0, 2.0, 0.5, 1.0])
    assert found.loss == pytest.approx([1, 1, 0.76190476, 0.04761905, 0.19047619], abs=1e-8)
    assert found.rank == 3


@pytest.mark.parametrize("name", ["torus:6x6", "kout:40,k=1,seed=2", "ba:30,m=2"])
def test_one_size_is_the_old_loss_and_sums_are_ranks(name):
    graph = named(name)
    equal = unequal_loss(graph, [3], 12, np.full(graph.n, 0.7))
    assert equal.loss == pytest.approx(leverage(graph, [3], 12).loss, abs=1e-7)
    sizes = np.exp(np.random.default_rng(1).uniform(-2, 2, graph.n))
    found = unequal_loss(graph, [3], 12, sizes)
    assert found.loss.sum() == pytest.approx(found.rank, abs=1e-4)
    assert np.array_equal(found.loss == 1, leverage(graph, [3], 12).loss == 1)


def test_more_noise_anywhere_harms_nobody():
    graph, sizes = named("er:12,c=1.5,seed=1"), np.ones(12)
    mu = unequal_loss(graph, [0], 3, sizes).loss / sizes**2
    for u in range(1, 12):
        more = sizes.copy()
        more[u] = 3.0
        assert np.all(unequal_loss(graph, [0], 3, more).loss / more**2 <= mu + 1e-9)


def test_groups_are_bounded_by_what_signs_reach():
    graph, sizes = named("grid:2x3"), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    rows = sequence_rows(lambda _: graph, 6, 2, [0])
    members = [1, 2, 4]
    scaled = rows.values * sizes
    basis = np.linalg.svd(scaled)[2][: np.linalg.matrix_rank(scaled)]
    reach = sizes.max() / sizes[members]
    form = reach[:, None] * (basis.T @ basis)[np.ix_(members, members)] * reach
    signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1)
    best = max(s @ form @ s for s in signs.T)
    found = unequal_joint(rows, sizes, members)
    assert best - 1e-9 <= found <= np.abs(form).sum() + 1e-9


@pytest.mark.parametrize("bad", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.inf, 1.0], [1.0, 1.0]])
def test_a_peer_without_noise_is_refused(bad):
    with pytest.raises(PrivacyError, match="noise"):
        unequal_loss(named("path:3"), [0], 2, bad)


# --- runs ---


SIZES = (1.0, 2.0, 0.5, 1.5, 4.0, 1.0)


def ran(algorithm=None, graph="ring:6", sizes=SIZES, steps=3, **more):
    task = br.tasks.Mean(np.zeros((6, 2)))
    noise = GaussianPerPeer(clip=0.5, sigmas=sizes)
    return br.run(algorithm or br.Averaging(), graph, task, privacy=noise, steps=steps, **more)


@pytest.mark.parametrize(
    "algorithm", [br.Averaging(), br.Chebyshev(), br.PairAveraging()], ids=lambda one: one.name()
)
@pytest.mark.parametrize("graph", ["ring:6", "star:6", "butterfly:6"])
def test_a_run_is_charged_exactly_and_the_oracle_agrees(algorithm, graph):
    if graph == "butterfly:6" and algorithm.name() != "averaging":
        pytest.skip("a changing graph")
    run = ran(algorithm, graph)
    guarantee = run.guarantee(of=3, seen_by=0)
    assert (guarantee.spec, guarantee.status) == ("silo:SILO-8", "proven")
    assert broken_claims(run, [(v,) for v in range(6)]) == []
    assert float(run.epsilon(of=3, seen_by=0)) <= float(run.epsilon(of=3))


def test_links_that_fail_are_charged_as_they_failed():
    run = ran(engine=br.Events(churn=0.3), steps=5)
    assert len(run.trace.faults.round)
    assert run.guarantee(of=3, seen_by=0).spec == "silo:SILO-8"
    assert broken_claims(run, [(v,) for v in range(6)]) == []


HALVED = (*SIZES[:1], SIZES[1] / 2, *SIZES[2:])  # the planted bug


def test_impulses_catch_one_peer_whose_noise_is_half():
    run, unit = ran(), max(SIZES)
    claimed = run.accountant().charge((0,)).energy
    for sizes, caught in ((SIZES, False), (HALVED, True)):
        reached = impulse_losses(run.algorithm, run.graph, 3, [0], sizes=sizes) / unit**2
        assert np.any(reached[1:] > claimed[1:] * (1 + 1e-6)) == caught


@pytest.mark.slow
@pytest.mark.parametrize("caught", [False, True])
def test_an_audit_catches_one_peer_whose_noise_is_half(caught, monkeypatch):
    sizes = (1.0, 0.4, 0.8, 1.0)
    file = from_dict(
        {
            "graph": "ring:4",
            "steps": 2,
            "task": {"kind": "mean", "dim": 2},
            "algorithm": {"name": "averaging"},
            "privacy": {"clip": 0.5, "sigmas": list(sizes)},
        }
    )
    honest = Gaussian.release_on

    def halved(noise, *given, **more):
        one = replace(noise, sigma=0.2) if noise.sigma == 0.4 else noise
        return honest(one, *given, **more)

    if caught:
        monkeypatch.setattr(Gaussian, "release_on", halved)
    assert audit_made(build(file), 1, 0, 2000, plant={}).refuted == caught


def test_a_ledger_that_says_less_is_not_believed():
    run = ran()
    run.ledger = ran(sizes=HALVED).ledger
    found = run.guarantee(of=1, seen_by=0)
    assert found.spec == "gossip:DP-8"
    assert "peer 1 agreed on a noise multiplier of 2" in " ".join(found.notes)


def test_a_site_that_adds_more_is_covered_by_what_was_agreed():
    run = ran()
    more = GaussianPerPeer(clip=0.5, sigmas=SIZES).raised(2, 3.0)
    run.ledger = ran(sizes=more.sigmas).ledger
    found = run.guarantee(of=3, seen_by=0)
    assert found.spec == "silo:SILO-8"
    assert found.loss >= ran(sizes=more.sigmas).guarantee(of=3, seen_by=0).loss - 1e-9


def test_other_algorithms_are_charged_as_local_dp():
    run = ran(br.Renoised(tau=0.2))
    assert run.guarantee(of=3, seen_by=0).spec == "gossip:DP-8"
    assert "noise of different sizes" in " ".join(run.guarantee(of=3, seen_by=0).notes)


def test_the_theorem_says_nothing_of_equal_noise():
    facts = br.rehearse(br.Averaging(), "ring:6", br.Gaussian(0.5, 1.0), steps=2).facts()
    with pytest.raises(PrivacyError, match="all peers add the same"):
        UnequalGossip().check(facts)


def test_every_release_carries_its_own_noise():
    task = br.tasks.Mean(np.zeros((6, 4096)))
    noise = GaussianPerPeer(clip=0.5, sigmas=SIZES)
    run = br.run(br.Averaging(), "complete:6", task, privacy=noise, steps=1, watch=range(6))
    heard = {}
    for message in run.trace.received:
        heard[message.sender] = float(np.std(message.row))
    for u, size in enumerate(SIZES):
        assert heard[u] == pytest.approx(size, rel=0.08)  # 6.5 deviations of a right one


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sigmas": ()}, "found none"),
        ({"sigmas": (1.0, 0.0)}, "sigmas\\[1\\] is 0"),
        ({"sigmas": (1.0, -1.0)}, "must be a number >= 0"),
        ({"sigmas": (1.0, 1e6)}, "one grid serves ratios"),
        ({"sigmas": (1.0, 2.0), "level": "record"}, "level is 'user'"),
    ],
)
def test_noise_that_means_nothing_is_refused(more, words):
    with pytest.raises(ConfigError, match=words):
        GaussianPerPeer(**more)


def test_as_many_sizes_as_peers():
    with pytest.raises(PrivacyError, match="noise of 5 peers, and there are 6"):
        ran(sizes=SIZES[:5])


@pytest.mark.parametrize(("sigma", "fits"), [(0.5, True), (4.0, True), (0.4, False), (4.1, False)])
def test_a_site_adds_between_its_own_and_the_largest(sigma, fits):
    noise = GaussianPerPeer(sigmas=SIZES)
    if fits:
        assert noise.raised(2, sigma).fine_grid() == noise.fine_grid()
    else:
        with pytest.raises(ConfigError, match="others rely on it"):
            noise.raised(2, sigma)


def test_a_part_on_the_common_grid_is_no_mechanism_of_its_own():
    assert catalog()["gaussian"] is Gaussian
    assert mechanism_from(Gaussian(1.0, 2.0).describe()) == Gaussian(1.0, 2.0)
    noise = GaussianPerPeer(0.5, SIZES)
    assert mechanism_from(noise.describe()) == noise
