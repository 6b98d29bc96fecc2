"""The compiled ADMM walk equals the generic engine, and its proximal points equal those of other
solvers."""

from math import inf

import numpy as np
import pytest
from scipy.optimize import minimize

import bruit as br
from bruit.algorithms.compiled import admm
from bruit.algorithms.tokens import walk_admm
from bruit.graphs import complete, ring
from bruit.graphs import graph as named_graph
from bruit.runs.engines.replay import compare
from bruit.tasks import Logistic, Mean, Records, Ridge

pytestmark = pytest.mark.slow

FUSED = br.Bulk(fused=True)
PLAIN = br.Gaussian(clip=0.3, sigma=0.5, arithmetic="ideal")


def task_of(kind, peers, sizes, columns, **options):
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(peers), np.resize(sizes, peers))
    features = rng.normal(size=(len(owners), columns))
    targets = rng.normal(size=len(owners))
    return kind(
        Records.of(features, targets if kind is Ridge else np.sign(targets), owners), **options
    )


def both(algorithm, graph, task, steps, privacy):
    runs = [
        br.run(
            algorithm,
            graph,
            task,
            privacy=privacy,
            steps=steps,
            seed=3,
            evaluate_every=0,
            engine=engine,
        )
        for engine in (br.Bulk(fused=False), FUSED)
    ]
    assert runs[0].trace.messages == runs[1].trace.messages
    assert np.array_equal(runs[0].trace.meetings.b, runs[1].trace.meetings.b)
    return runs


@pytest.mark.parametrize(
    "algorithm",
    [
        br.WalkADMM(),
        br.WalkADMM(gamma=0.3, relaxation=0.9, l1=0.2),
        br.WalkADMM(gamma=4.0, l2=0.5, bound=0.2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [Ridge, Logistic])
@pytest.mark.parametrize(
    "privacy", [None, PLAIN, br.Gaussian(clip=100.0, sigma=0.1, arithmetic="ideal")], ids=repr
)
def test_equals_the_generic_engine(algorithm, kind, privacy):
    task = task_of(kind, 12, [1, 3, 5, 20], 4)  # fewer and more records than columns
    compare(*both(algorithm, named_graph("er:12,c=2,seed=1"), task, 120, privacy), tolerance=1e-8)


@pytest.mark.parametrize(
    ("kind", "l2", "slope"),
    [
        (Ridge, 0.1, None),
        (Ridge, 0.0, 0.4),
        (Ridge, 0.3, 1.0),
        (Logistic, 0.1, None),
        (Logistic, 0.0, 0.2),
    ],
)
@pytest.mark.parametrize("columns", [1, 9])
def test_regularized_and_clipped_losses(kind, l2, slope, columns):
    task = task_of(kind, 8, [1, 6, 12], columns, l2=l2, derivative_clip=slope)
    compare(*both(br.WalkADMM(gamma=0.7), ring(8), task, 60, PLAIN), tolerance=1e-8)


def test_on_the_lattice_of_the_noise_as_well():
    """Two solvers agree to 1e-10; rarely the lattice, 2^-20 of the noise apart, then rounds them to
    neighbors."""
    task, noise = task_of(Logistic, 12, [4], 3), br.Gaussian(clip=0.3, sigma=0.5)
    compare(*both(br.WalkADMM(), complete(12), task, 100, noise), tolerance=1e-5)
    compare(
        *both(br.WalkADMM(), complete(12), task_of(Ridge, 12, [4], 3), 100, noise), tolerance=1e-9
    )


def test_long_walk_crosses_chunks(monkeypatch):
    monkeypatch.setattr(walk_admm, "CHUNK", 200)
    generic, fused = both(br.WalkADMM(), ring(12), task_of(Ridge, 12, [4], 3), 170, PLAIN)
    compare(generic, fused)
    assert fused.epsilon() == generic.epsilon()
    assert fused.guarantee().status == generic.guarantee().status == "ideal"  # plain floats


def test_no_hops():
    fused = both(br.WalkADMM(), ring(6), task_of(Ridge, 6, [2], 2), 0, PLAIN)[1]
    assert not fused.estimates.any()


@pytest.mark.parametrize("few", [True, False])
def test_newton_finds_what_scipy_finds(few):
    # walk:ADMM-10, a sum over records
    rng = np.random.default_rng(2)
    m, p, a = (3, 7, 0.4) if few else (30, 4, 0.4)
    features, targets, center = (
        rng.normal(size=(m, p)) * 3,
        np.sign(rng.normal(size=m)),
        rng.normal(size=p) * 2,
    )
    z, work = np.empty(p), admm._workspace(m, p)
    assert admm._newton(
        kind=admm.LOGISTIC,
        bound=inf,
        features=features,
        targets=targets,
        center=center,
        a=a,
        tolerance=1e-10,
        work=work,
        z=z,
    )

    def objective(x):
        margins = targets * (features @ x)
        slope = -(targets / (1 + np.exp(margins))) @ features / m + a * (x - center)
        return np.logaddexp(0, -margins).mean() + a / 2 * ((x - center) ** 2).sum(), slope

    best = minimize(objective, center, jac=True, method="BFGS", options={"gtol": 1e-9})
    assert np.abs(z - best.x).max() < 1e-6
    assert np.linalg.norm(objective(z)[1]) < 1e-9


def test_worked_examples_of_one_record():
    # walk:ADMM-10: logistic a = (.6, .8), y = 1, gamma = .5, w = (.2, -.4); Huber b = 1, kappa =
    # .5, gamma = 2
    features, z, work = np.array([[0.6, 0.8]]), np.empty(2), admm._workspace(1, 2)
    assert admm._newton(
        kind=admm.LOGISTIC,
        bound=inf,
        features=features,
        targets=np.ones(1),
        center=np.array([0.2, -0.4]),
        a=2.0,
        tolerance=1e-10,
        work=work,
        z=z,
    )
    assert z == pytest.approx([0.346667154, -0.204443794], abs=1e-9)
    for w, expected in (((3.0, 1.0), (2.4, 0.2)), ((1.0, 1.0), (0.84, 0.786666667))):
        assert admm._newton(
            kind=admm.SQUARED,
            bound=0.5,
            features=features,
            targets=np.ones(1),
            center=np.array(w),
            a=0.5,
            tolerance=1e-10,
            work=work,
            z=z,
        )
        assert z == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("task", "privacy", "reason"),
    [
        (Mean.uniform(6, 2, 1), PLAIN, "compiled for ridge and logistic tasks"),
        (task_of(Ridge, 6, [2], 2), br.Laplace(clip=1.0, scale=1.0), "found the laplace mechanism"),
    ],
    ids=str,
)
def test_refusals_say_why(task, privacy, reason):
    with pytest.raises(br.ConfigError, match=reason):
        br.run(
            br.WalkADMM(), ring(6), task, privacy=privacy, steps=5, evaluate_every=0, engine=FUSED
        )


def test_a_point_that_is_not_found_is_named():
    features = np.full((6, 1), 1e160)
    task = Ridge(Records.of(features, np.full(6, 1e160), np.arange(6)))
    with pytest.raises(br.ConfigError, match="proximal point of peer 0 at hop 0 was not found"):
        br.run(br.WalkADMM(gamma=1e10), ring(6), task, steps=5, evaluate_every=0, engine=FUSED)
