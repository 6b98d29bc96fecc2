"""Path energies against printed numbers and quadratic programs (walk:F-2, gossip:DP-7)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from bruit.errors import PrivacyError
from bruit.privacy.ahead.iteration import last_iterate
from bruit.privacy.theorems.walk_hypotheses import Descent
from bruit.privacy.toolbox.path_energy import (
    decay,
    iteration_divergence,
    optimal_shifts,
    path_energy,
)


def optimum(shifts, noise, lipschitz):
    """The least energy as a bounded least-squares problem in the gaps r_t >= 0, r_M = 0, solved by
    an active set."""
    m = len(shifts)
    moves = np.zeros((m, m))  # a_t = s_t + c_t r_{t-1} - r_t
    for t in range(m):
        moves[t, t] = -1.0
        if t:
            moves[t, t - 1] = lipschitz[t]
    free = moves[:, : m - 1] / noise[:, None]
    if m == 1:
        return float((shifts[0] / noise[0]) ** 2)
    found = lsq_linear(free, -shifts / noise, bounds=(0, np.inf), method="bvls", tol=1e-15)
    return float(np.sum((free @ found.x + shifts / noise) ** 2))


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ([0, 1, 0, 0], 1 / 3),
        ([1, 1, 0, 0], 1.0),
        ([1, 0, 0, 1], 4 / 3),
        ([1, 0, 1, 0, 0, 0], 2 / 3),
        ([0, 0, 1, 1, 0, 1, 0, 0, 0, 0], 1.125),
    ],
)
def test_the_printed_energies(shifts, expected):
    assert path_energy(shifts) == pytest.approx(expected, rel=1e-12)  # walk:F-2


@pytest.mark.parametrize(
    ("shifts", "unsound"),
    [
        ([1, 0, 1, 0, 0, 0], 0.416667),
        ([0, 0, 1, 1, 0, 1, 0, 0, 0, 0], 0.467857),
    ],
)
def test_adding_up_single_contributions_would_be_unsound(shifts, unsound):
    alone = sum(1 / (len(shifts) - t) for t, s in enumerate(shifts) if s)  # walk:F-2
    assert alone == pytest.approx(unsound, abs=1e-6)
    assert path_energy(shifts) > alone


@pytest.mark.parametrize(
    ("shifts", "expected"), [([1, 0, 0, 0], 0.177292321), ([1, 1, 0, 0], 0.790154663)]
)
def test_the_printed_energies_of_contractions(shifts, expected):
    assert path_energy(shifts, lipschitz=0.9) == pytest.approx(expected, abs=1e-9)  # walk:F-2


@pytest.mark.parametrize(
    ("c", "m", "expected"),
    [
        (0.9, 5, 0.125573564),
        (0.9, 20, 0.003519137),
        (1.01, 5, 0.208038402),
        (1.01, 200, 0.020079092),
    ],
)
def test_the_printed_decays(c, m, expected):
    assert decay(m, c) == pytest.approx(expected, abs=1e-9)  # walk:F-2
    assert path_energy([1] + [0] * (m - 1), lipschitz=c) == pytest.approx(decay(m, c), rel=1e-12)


def test_the_printed_divergences_of_one_contribution():
    assert 8 / (2 * 4.0**2) * decay(20) == pytest.approx(0.0125, rel=1e-12)  # walk:F-2
    assert decay(10, 1.01) == pytest.approx(0.109190063, abs=1e-9)
    assert decay(10, 0.9) == pytest.approx(0.032464962, abs=1e-9)


@pytest.mark.parametrize(
    ("shifts", "best", "bound"),
    [
        ([1, 0, 0, 0], [0.25] * 4, 0.25),
        ([1, 0, 1, 0], [0.5] * 4, 1.0),
        ([0, 0, 0, 1], [0, 0, 0, 1.0], 1.0),
    ],
)
def test_the_printed_optimal_shifts(shifts, best, bound):
    assert optimal_shifts(shifts) == pytest.approx(best)  # gossip:DP-7
    assert iteration_divergence(shifts, 2.0) == pytest.approx(bound, rel=1e-12)


def test_a_decreasing_step_costs_more_than_a_constant_one():
    eta = 1 / np.sqrt(np.arange(1, 51))  # walk:RW-3
    shifts = np.where(np.arange(50) == 0, eta, 0.0)
    assert path_energy(shifts, eta) == pytest.approx(0.2223, abs=5e-5)
    assert path_energy([1] + [0] * 49) == pytest.approx(0.02)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=12), st.integers(0, 2**32))
def test_the_energy_is_the_optimum_of_a_quadratic_program(shifts, seed):
    draw = np.random.default_rng(seed)
    s, ones = np.array(shifts, float), np.ones(len(shifts))
    assert path_energy(s) == pytest.approx(optimum(s, ones, ones), abs=1e-11)  # walk:F-2
    noise, c = draw.uniform(0.5, 2, len(s)), draw.uniform(0.6, 1.4, len(s))
    assert path_energy(s, noise, c) == pytest.approx(optimum(s, noise, c), rel=1e-9, abs=1e-11)
    a, gap = optimal_shifts(s, noise, c), 0.0
    for t in range(len(s)):
        gap = c[t] * gap + s[t] - a[t]
        assert gap >= -1e-9
    assert gap == pytest.approx(0.0, abs=1e-9)
    assert np.sum((a / noise) ** 2) == pytest.approx(path_energy(s, noise, c), rel=1e-9, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=40), st.floats(0.1, 5))
def test_laws_of_the_energy(shifts, factor):
    energy, k = path_energy(shifts), sum(shifts)  # walk:F-2
    assert path_energy(np.array(shifts) * factor) == pytest.approx(factor**2 * energy, abs=1e-12)
    assert path_energy([*shifts, 0]) <= energy + 1e-12
    assert path_energy([0, 0, *shifts]) == pytest.approx(energy, abs=1e-12)
    assert path_energy(sorted(shifts)) == pytest.approx(k, abs=1e-12)
    last = len(shifts) - max((t for t, s in enumerate(shifts) if s), default=0)
    assert k**2 / len(shifts) - 1e-12 <= energy <= min(k, k**2 / last) + 1e-12


def test_corners():
    assert path_energy([]) == 0.0
    assert path_energy([1, 0], noise=[1.0, 0.0]) == 1.0
    assert path_energy([1, 0, 0], noise=[0.0, 1.0, 1.0]) == pytest.approx(0.5)
    assert path_energy([0, 1], noise=[1.0, 0.0]) == math.inf
    assert path_energy([1] + [0] * 20_000, lipschitz=0.5) == pytest.approx(0.0, abs=1e-300)
    assert path_energy([1] + [0] * 20_000, lipschitz=2.0) == pytest.approx(0.75)


def test_the_guarantee_names_its_hypotheses():
    said = last_iterate([0, 1, 0, 0], 2.0, descent=Descent(step=1.0, smoothness=0.25))
    assert said.loss == pytest.approx(1 / 3)
    assert said.profile.divergence(4.0) == pytest.approx(4 / 2 / 3 / 4)
    assert any(h.checked and "2/beta" in h.text for h in said.hypotheses)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: path_energy([-1.0]), "finite numbers >= 0"),
        (lambda: path_energy([1.0, 0.0], noise=[1.0]), "as many noise"),
        (lambda: path_energy([1.0, 0.0], lipschitz=[1.0]), "one Lipschitz constant"),
        (lambda: path_energy([1.0], lipschitz=0.0), "finite and positive"),
        (lambda: decay(0), "1 step later"),
        (lambda: decay(3, -1.0), "positive number"),
        (lambda: iteration_divergence([1.0], 1.0), "above 1"),
        (lambda: optimal_shifts([0, 1], noise=[1.0, 0.0]), "no noise follows"),
        (lambda: last_iterate([1.0], 0.0), "noise multiplier > 0"),
        (lambda: Descent(step=9.0, smoothness=0.25), "2/beta = 8"),
        (lambda: Descent(contraction=0.9), "silent"),
        (lambda: Descent(step=0.0), "step > 0"),
        (lambda: Descent(step=math.inf, smoothness=0.0), "step > 0"),
        (lambda: Descent(smoothness=-1.0), "smoothness >= 0"),
        (lambda: Descent(contraction=0.0), "contraction > 0"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
