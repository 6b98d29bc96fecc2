"""Realized-walk accounting against the source's path energies and an independent quadratic
program."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import bruit as br
from bruit.errors import PrivacyError
from bruit.graphs import complete, ring
from bruit.privacy.exact.compiled.paths import energies


def watch(n, observers):
    mask = np.zeros(n, bool)
    mask[list(observers)] = True
    return mask


def contributions(path, cap=None, rest=1):
    """Which visits contribute under a cap and a cool-down, by the rule of walk:F-4."""
    spent, latest, flags = {}, {}, []
    for t, v in enumerate(path):
        may = t - latest.get(v, -(10**9)) >= rest and (cap is None or spent.get(v, 0) < cap)
        flags.append(may)
        if may:
            spent[v], latest[v] = spent.get(v, 0) + 1, t
    return np.array(flags)


@pytest.mark.parametrize(
    ("shifts", "energy"),
    [
        ([0, 1, 0, 0], 1 / 3),
        ([1, 1, 0, 0], 1.0),
        ([1, 0, 0, 1], 4 / 3),
        ([1, 0, 1, 0, 0, 0], 2 / 3),
        ([0, 0, 1, 1, 0, 1, 0, 0, 0, 0], 1.125),
    ],
)
def test_path_energy_of_the_source(shifts, energy):
    """walk:F-2 worked examples; peer 0 contributes where the shift is 1, peer 1 elsewhere, peer 2
    watches last."""
    path = np.array([0 if s else 1 for s in shifts] + [2])
    assert energies(path, np.ones(len(path), bool), watch(3, [2]))[0] == pytest.approx(
        energy, rel=1e-12
    )


@given(st.lists(st.booleans(), min_size=1, max_size=8).filter(any))
@settings(max_examples=30, deadline=None)
def test_path_energy_is_the_optimum_of_its_quadratic_program(shifts):
    """min sum a^2 with partial sums of a below those of s, and equal totals (walk:F-2)."""
    s = np.array(shifts, float)
    path = np.array([0 if x else 1 for x in shifts] + [2])
    found = energies(path, np.ones(len(path), bool), watch(3, [2]))[0]
    constraints = [{"type": "eq", "fun": lambda a: a.sum() - s.sum()}]
    constraints += [
        {"type": "ineq", "fun": lambda a, k=k: s[:k].sum() - a[:k].sum()} for k in range(1, len(s))
    ]
    start = np.zeros(len(s))
    start[-1] = s.sum()
    best = minimize(
        lambda a: (a**2).sum(),
        start,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 400},
    )
    assert found == pytest.approx(best.fun, abs=1e-5)


def logistic_walk(**options):
    task = br.tasks.Logistic.load("breast_cancer", peers=12)
    noise = br.Gaussian(clip=1.0, sigma=4.0)
    algorithm = br.WalkSGD(**{"rate": 0.5, "cap": 3, **options})
    return br.run(algorithm, complete(12), task, privacy=noise, steps=60, seed=3, evaluate_every=0)


def test_walk_run_accounts_its_own_walk():
    """The run's matrix equals the energies of its trace; one pair equals its entry; silent visits
    are masked."""
    run = logistic_walk()
    m = run.losses()
    flags = contributions(run.trace.meetings.b.tolist(), cap=3)
    for v in (0, 5):
        plain = np.delete(energies(run.trace.meetings.b, flags, watch(12, [v])), v)
        found = np.delete(m[:, v], v)
        assert np.all(found >= plain)
        assert np.allclose(found, plain, atol=1e-3)
    assert run.epsilon(of=2, seen_by=5).guarantee.loss == pytest.approx(m[2, 5])
    assert run.epsilon(of=2, seen_by=5) <= run.epsilon(of=2)
    assert "RW-6" in run.epsilon(of=2, seen_by=5).why()


def test_rounding_to_the_lattice_is_charged():
    """Shifts grown by eta on every step: E + 2 eta k + eta^2 length, by the hull of the shifted
    partial sums."""
    s, eta = np.array([0.0, 1, 0, 1, 0, 0]), 0.05
    points = np.concatenate(([0], np.cumsum(s)))
    grown = np.concatenate(([0], np.cumsum(s + eta)))

    def energy(sums):
        hull = [0]
        for j in range(1, len(sums)):
            while len(hull) > 1 and (sums[hull[-1]] - sums[hull[-2]]) * (j - hull[-2]) >= (
                sums[j] - sums[hull[-2]]
            ) * (hull[-1] - hull[-2]):
                hull.pop()
            hull.append(j)
        return sum((sums[b] - sums[a]) ** 2 / (b - a) for a, b in pairwise(hull))

    assert energy(grown) == pytest.approx(energy(points) + 2 * eta * s.sum() + eta**2 * len(s))


def test_walk_falls_back_to_local_when_a_hypothesis_fails():
    """Step above 2/beta = 8, or a clip that may cut gradients: the answer is local DP, and says
    why."""
    steep = logistic_walk(rate=9.0).epsilon(of=2, seen_by=5)
    assert "2/beta" in steep.why()
    assert float(steep) == pytest.approx(float(logistic_walk(rate=9.0).epsilon(of=2)))
    task = br.tasks.Logistic.load("breast_cancer", peers=12)
    cut = br.run(
        br.WalkSGD(rate=0.5),
        ring(12),
        task,
        privacy=br.Gaussian(clip=0.2, sigma=1.0),
        steps=30,
        seed=3,
    )
    assert "non-expansive" in cut.epsilon(of=2, seen_by=5).why()


def test_nobody_has_secrets_from_oneself():
    with pytest.raises(PrivacyError, match="among the observers"):
        logistic_walk().epsilon(of=2, seen_by={2, 3})
