"""The accountant of realized walks in all its variants, against printed numbers and Gaussian
algebra (walk:RW-6)."""

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.theorems.walk_hypotheses import Descent
from bruit.privacy.theorems.walk_realized import Visits, realized, visits, walk_losses, walk_matrix
from bruit.privacy.toolbox.path_energy import decay

PATH = [0, 2, 1, 3, 0, 0, 2, 3, 1, 2, 0, 3, 3, 2, 1, 0, 2]
TABLE = [
    (0, 1, {}, {}, 1.75, 1.5, 0.388888889, 1.732702889),
    (2, 1, {}, {}, 2.75, 1.5, 0.611111111, 2.229872280),
    (0, 3, {}, {}, 2.666666667, 2.0, 0.592592593, 2.191752417),
    (0, 1, {"published": True}, {}, 2.25, 2.0, 0.5, 1.993091404),
    (2, 1, {}, {"cooldown": 4}, 2.5, 0.9, 0.555555556, 2.113978814),
    (0, 3, {}, {"cap": 2}, 0.666666667, 0.666666667, 0.148148148, 1.016870656),
]


@pytest.mark.parametrize(
    ("u", "v", "options", "rules", "energy", "additive", "divergence", "epsilon"), TABLE
)
def test_the_printed_walk(u, v, options, rules, energy, additive, divergence, epsilon):
    said = realized(visits(PATH, 4, **rules, **options), u, [v], 3.0)  # walk:RW-6
    assert said.loss == pytest.approx(energy, abs=1e-9)
    assert said.profile.divergence(4.0) == pytest.approx(divergence, abs=1e-9)
    assert said.epsilon(1e-5) == pytest.approx(epsilon, abs=1e-9)
    summed = realized(visits(PATH, 4, additive=True, **rules, **options), u, [v], 3.0)
    assert summed.loss == pytest.approx(additive, abs=1e-9)


def test_a_constant_step_gives_the_plain_energies():
    for published in (False, True):
        plain = walk_matrix(visits(PATH, 4, published=published))
        sized = walk_matrix(visits(PATH, 4, published=published, steps=np.full(17, 0.3)))
        assert sized == pytest.approx(plain, abs=1e-12, nan_ok=True)
        assert np.all(np.isnan(np.diag(plain)))


def test_a_silent_step_does_not_contract():
    walk = visits([0, 0, 1, 0, 2], 3, cap=2)  # walk:RW-6: the third step of w is silent
    assert walk.contributed.tolist() == [True, True, True, False, True]
    constants = np.where(walk.contributed, 0.5, 1.0)
    found = walk_losses(
        Visits(path=walk.path, contributed=walk.contributed, n=3, lipschitz=constants), [2]
    )
    assert found[1] == pytest.approx(0.5)
    assert decay(2, 0.5) == pytest.approx(0.2)


def exact_additive(path, contributed, u, observers, published, n):
    """Joint Gaussian of all tokens the observers see, their own noise known: mean shift of u,
    covariance of noise."""
    seen = [t for t, v in enumerate(path) if v in observers] + ([len(path)] if published else [])
    others = [t for t, v in enumerate(path) if v not in observers]
    noise = np.array([[1.0 if t < end else 0.0 for t in others] for end in seen]).reshape(
        len(seen), len(others)
    )
    shift = np.array(
        [sum(contributed[t] and path[t] == u for t in range(end)) for end in seen], float
    )
    return float(shift @ np.linalg.pinv(noise @ noise.T) @ shift)


@pytest.mark.parametrize("published", [False, True])
def test_additive_losses_are_the_exact_gaussian_ones(published):
    draw = np.random.default_rng(8)
    for _ in range(30):
        path = draw.integers(5, size=25)
        walk = visits(path, 5, cap=4, cooldown=2, additive=True, published=published)
        for observers in ([1], [1, 4]):
            found = walk_losses(walk, observers)
            exact = exact_additive(path.tolist(), walk.contributed, 0, observers, published, 5)
            assert found[0] == pytest.approx(exact, abs=1e-8)
            plain = walk_losses(visits(path, 5, cap=4, cooldown=2, published=published), observers)
            assert found[0] <= plain[0] + 1e-9  # sums are one kind of non-expansive updates


def test_publishing_and_colluding_never_help():
    draw = np.random.default_rng(4)
    for _ in range(20):
        path = draw.integers(6, size=40)
        alone = walk_losses(visits(path, 6), [1])
        assert np.all(
            walk_losses(visits(path, 6), [1, 2])[[0, 3, 4, 5]] >= alone[[0, 3, 4, 5]] - 1e-12
        )
        assert np.all(
            walk_losses(visits(path, 6, published=True), [1])[[0, 2, 3]] >= alone[[0, 2, 3]] - 1e-12
        )


def test_the_mean_energy_of_a_sum_cycle():
    """E[X] = 2 / n a cycle (walk:RW-1): 200 / n over 100 n steps. Standard error below 1 %,
    tolerance four of it."""
    n = 20
    path = np.random.default_rng(11).integers(n, size=100 * n * 5)
    m = walk_matrix(visits(path, n, additive=True))
    assert np.nanmean(m) == pytest.approx(5 * 200 / n, rel=0.04)


def test_it_says_what_it_assumes():
    said = realized(
        visits(PATH, 4, published=True), 0, [1, 3], 3.0, Descent(step=2.0, smoothness=0.25)
    )
    text = said.epsilon(1e-5).why()
    for words in (
        "peers 1, 3 together",
        "checked: step 2 <= 2/beta",
        "only the last token is published",
        "walk:RW-6",
    ):
        assert words in text
    sized = realized(visits(PATH, 4, steps=np.full(17, 0.3)), 0, [1], 3.0)
    assert not any("step size is constant" in h.text for h in sized.hypotheses)


def test_an_empty_walk_costs_nothing():
    assert walk_losses(visits([], 3), [1])[0] == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: visits([0, 4], 4), "visits 0..4"),
        (lambda: visits([0, 1], 2, cap=0), "at least 1"),
        (lambda: visits([0, 1], 2, cooldown=0), "at least 1"),
        (
            lambda: Visits(path=np.array([0, 5]), contributed=np.array([True, True]), n=3),
            "visits 0..5",
        ),
        (lambda: visits([0, 1], 2, steps=np.ones(3)), "steps has shape"),
        (lambda: visits([0, 1], 2, steps=np.array([1.0, 0.0])), "positive"),
        (lambda: visits([0, 1], 2, additive=True, lipschitz=np.ones(2)), "translations"),
        (lambda: visits([0, 0], 2, cap=1, lipschitz=np.full(2, 0.5)), "step 1 is silent"),
        (lambda: walk_losses(visits([0, 1], 2), []), "no observer"),
        (lambda: walk_losses(visits([0, 1], 2), [5]), "observer 5"),
        (lambda: realized(visits([0, 1], 2), 1, [1], 1.0), "does not observe"),
        (lambda: realized(visits([0, 1], 2), 0, [1], -1.0), "noise multiplier"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((PrivacyError, ConfigError), match=words):
        call()
