"""The private sum of a uniform walk against enumeration, Monte Carlo and printed numbers
(walk:RW-1)."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.ahead.walk_sum import cycle_divergence, sum_divergence, summation
from bruit.privacy.theorems.walk_realized import visits, walk_losses
from bruit.privacy.toolbox.gaussian import delta_of, deltas
from bruit.privacy.toolbox.renewal import UniformWalk, cycles_law, moments, walk_law

pytestmark = pytest.mark.slow


def all_energies(n, steps, published, observers=1, first="uniform"):
    """X_0 in the view of the last peers, of every walk, or of those that begin at a peer."""
    seen = list(range(n - observers, n))
    found = []
    starts = range(n) if first == "uniform" else (first,)
    for path in itertools.product(starts, *[range(n)] * (steps - 1)):
        total, length, mine = 0.0, 0, 0
        for v in (*path, *([seen[0]] if published else [])):
            if v in seen:
                total += mine * mine / length if length else 0.0
                length = mine = 0
            else:
                length, mine = length + 1, mine + (v == 0)
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize(
    ("n", "steps", "order", "z", "published", "hidden"),
    [
        (20, 200, 2, 3.0, 0.118219621, 0.106971731),
        (100, 1000, 4, 5.0, 0.016946335, 0.015335333),
        (3, 6, 2, 1.5, 0.774356546, 0.460932039),
    ],
)
def test_the_printed_divergences(n, steps, order, z, published, hidden):
    assert sum_divergence(n, steps, order, z, first="uniform") == pytest.approx(
        published, abs=1e-9
    )  # EX RW-1.5
    assert sum_divergence(n, steps, order, z, published=False, first="uniform") == pytest.approx(
        hidden, abs=1e-9
    )


@pytest.mark.parametrize(("n", "steps", "observers"), [(3, 6, 1), (4, 5, 2), (2, 5, 1), (5, 4, 1)])
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("first", ["uniform", 0])
def test_all_walks(n, steps, observers, published, first):
    """Of a drawn first holder, or of the one with whom the walk always begins: peer 0, whom it is
    about."""
    energies = all_energies(n, steps, published, observers, first)
    exact = math.log(np.mean(np.exp(2 / (2 * 1.5**2) * energies)))
    assert sum_divergence(n, steps, 2.0, 1.5, published, observers, first) == pytest.approx(
        exact, rel=1e-12
    )
    said = partial(summation, n, steps, 1.5, published=published, observers=observers, first=first)
    exactly, coarse = said(grid=1 / 60), said(grid=0.03)  # all energies are multiples of the first
    for epsilon in (0.3, 1.0, 2.0):
        true = float(np.mean(deltas(epsilon, np.sqrt(energies) / 1.5)))
        assert exactly.delta(epsilon) == pytest.approx(true, rel=1e-8)
        assert true <= coarse.delta(epsilon) <= 1.2 * true


def test_a_known_first_holder_is_charged():
    """n = 4, T = 6, z = 1.5, epsilon 0.5: 0.0440 was claimed of every peer, and is 0.0940 of the
    one who begins."""
    true = {
        first: float(np.mean(deltas(0.5, np.sqrt(all_energies(4, 6, False, 1, first)) / 1.5)))
        for first in ("uniform", 0, 1, 3)
    }
    assert true["uniform"] == pytest.approx(0.0440, abs=5e-5)
    assert true[0] == pytest.approx(0.0940, abs=5e-5)
    assert (
        max(true[1], true[3]) < true["uniform"]
    )  # others gain where the walk does not begin at them
    for route in ("exact", "renyi"):
        known = summation(4, 6, 1.5, published=False, route=route)
        drawn = summation(4, 6, 1.5, published=False, route=route, first="uniform")
        assert true[0] <= known.delta(0.5)
        assert true["uniform"] <= drawn.delta(0.5) < known.delta(0.5)
    assert summation(4, 6, 1.5, published=False).delta(0.5) == pytest.approx(true[0], rel=0.01)
    with pytest.raises(PrivacyError, match="first holder of a walk is drawn like all others"):
        summation(4, 6, 1.5, published=False, route="cycles")


@pytest.mark.parametrize(("n", "steps", "observers"), [(3, 5, 1), (4, 4, 2), (4, 4, 1)])
@pytest.mark.parametrize("published", [True, False])
def test_nobody_is_worse_off_than_who_begins(n, steps, observers, published):
    """Walk by walk: with u in the place of the first holder the energy of u is never less (see
    `renewal`)."""
    begins = all_energies(n, steps, published, observers, 0)
    for first in range(1, n):
        assert np.all(begins >= all_energies(n, steps, published, observers, first) - 1e-12)


def test_the_first_holder_is_a_hypothesis():
    text = summation(10, 20, 2.0, first="uniform").epsilon(1e-5).why()
    assert "assumed: the first holder is drawn uniformly" in text
    assert "checked: the walk may begin at any peer" in summation(10, 20, 2.0).epsilon(1e-5).why()
    with pytest.raises(ConfigError, match="a peer's number or 'uniform', found 'anybody'"):
        summation(10, 20, 2.0, first="anybody")


@pytest.mark.parametrize(("published", "expected"), [(True, 0.0718518970), (False, 0.0362721382)])
def test_the_printed_deltas(published, expected):
    said = summation(3, 6, 1.5, first="uniform", published=published, grid=1 / 60)
    assert said.delta(1.0) == pytest.approx(expected, abs=1e-10)  # EX RW-1.7


@pytest.mark.parametrize(
    ("grid", "expected"), [(0.01, 0.8821), pytest.param(0.002, 0.8740, marks=pytest.mark.slow)]
)
def test_the_printed_epsilon_of_a_long_walk(grid, expected):
    said = summation(20, 2000, 14.0, first="uniform", grid=grid)
    assert said.epsilon(1e-5) == pytest.approx(expected, abs=5e-5)  # EX RW-1.7


def test_random_walks_agree():
    """20 000 walks as in EX RW-1.5; two-sided at 4.5 standard errors, a false alarm has a chance
    below 1e-5."""
    paths = np.random.default_rng(2).integers(20, size=(20_000, 200))
    grown = [
        math.exp(2 / 18 * walk_losses(visits(path, 20, additive=True, published=True), [1])[0])
        for path in paths[:5000]
    ]
    error = np.std(grown) / math.sqrt(len(grown)) / np.mean(grown)
    expected = sum_divergence(20, 200, 2.0, 3.0, first="uniform")
    assert math.log(np.mean(grown)) == pytest.approx(expected, abs=4.5 * error)


@pytest.mark.parametrize(
    ("n", "order", "z", "expected"),
    [
        (100, 8, 10.0, 8.087666015e-4),
        (20, 2, 3.0, 1.131739713e-2),
    ],
)
def test_the_printed_cycles(n, order, z, expected):
    assert cycle_divergence(n, order, z) == pytest.approx(expected, rel=1e-9)  # EX RW-1.4


def test_a_cycle_has_energy_two_over_n():
    for n in (3, 20, 100):
        slope = cycle_divergence(n, 1.0001, 10.0) * 2 * 100 / 1.0001
        assert slope == pytest.approx(2 / n, rel=1e-4)
        assert cycles_law(UniformWalk(n), 1).mean() == pytest.approx(2 / n, rel=1e-9)


def test_a_cycle_has_no_large_moments():
    assert cycle_divergence(20, 20.0, 3.0) == math.inf
    assert cycle_divergence(2, 2.0, 1.0) == math.inf


def test_binomial_moments_by_direct_sums():
    from scipy.stats import binom

    for scale, chance in ((0.05, 0.1), (1.5, 0.2), (6.0, 0.02)):
        found = moments(scale, chance, 60)
        for j in (0, 1, 7, 60):
            k = np.arange(j + 1)
            direct = float(binom.pmf(k, j, chance) @ np.exp(scale * k * k / max(j, 1)))
            assert found[j] == pytest.approx(direct, rel=1e-12)


def test_two_peers_hide_nothing_from_each_other():
    assert sum_divergence(2, 1, 2.0, 1.0, first="uniform") == pytest.approx(
        math.log((1 + math.e) / 2)
    )


@pytest.mark.parametrize(
    ("n", "steps", "z", "cycles", "expected"),
    [
        (20, 2000, 14.0, 155, 1.0926),
        pytest.param(100, 10_000, 10.0, 157, 0.6607, marks=pytest.mark.slow),
    ],
)
def test_the_printed_approximation_by_cycles(n, steps, z, cycles, expected):
    from bruit.privacy.toolbox.contributions import binomial_quantile

    assert binomial_quantile(steps, 1 / n, 1e-7) + 1 == cycles  # EX RW-1.6
    said = summation(n, steps, z, first="uniform", route="cycles", tail=1e-7, approximate=True)
    assert said.epsilon(1e-5) == pytest.approx(expected, abs=5e-4)
    assert said.status == "heuristic"


def test_one_more_cycle_is_no_bound():
    """The printed counter-example: a walk of one step, its sum published (walk:RW-1)."""
    exact = summation(1000, 1, 0.5, first="uniform")
    assert exact.delta(3.0) == pytest.approx(delta_of(3.0, 2.0) / 1000, rel=1e-6)
    assert exact.delta(3.0) == pytest.approx(1.838e-4, rel=1e-3)
    rough = summation(1000, 1, 0.5, first="uniform", route="cycles", approximate=True, tail=1e-3)
    assert rough.delta(3.0) == pytest.approx(5.8e-7, rel=0.01)
    assert rough.status == "heuristic"
    with pytest.raises(PrivacyError, match="last cycle is cut"):
        summation(1000, 1, 0.5, first="uniform", route="cycles")


def test_whole_cycles_bound_a_hidden_end():
    for n, steps in ((3, 6), (4, 6)):
        energies = all_energies(n, steps, published=False)
        said = summation(n, steps, 1.5, first="uniform", published=False, route="cycles", tail=1e-3)
        for epsilon in (0.3, 1.0):
            assert float(np.mean(deltas(epsilon, np.sqrt(energies) / 1.5))) <= said.delta(epsilon)


def test_routes_are_ordered():
    exact, renyi, cycles = (
        summation(10, 60, 6.0, first="uniform", published=False, route=route).epsilon(1e-5)
        for route in ("exact", "renyi", "cycles")
    )
    assert exact < min(renyi, cycles)
    assert summation(10, 60, 6.0, first="uniform").epsilon(1e-5) > exact


def test_the_law_has_mass_one():
    law = walk_law(UniformWalk(12, 2), 90, published=True)
    assert law.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.failure < 1e-11


def test_it_says_what_it_assumes():
    text = summation(10, 20, 2.0, observers=3).epsilon(1e-5).why()
    for words in (
        "3 colluding peers",
        "draws the next holder",
        "only the last sum is published",
        "updates are sums",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: summation(1, 5, 1.0), "two peers"),
        (lambda: summation(5, 5, 1.0, observers=5), "1 to 4"),
        (lambda: summation(5, 0, 1.0), "at least one step"),
        (lambda: summation(5, 5, 0.0), "noise multiplier"),
        (lambda: summation(5, 5, 1.0, route="magic"), "'exact', 'renyi' or 'cycles'"),
        (lambda: sum_divergence(5, 5, 1.0, 1.0), "above 1"),
        (lambda: cycle_divergence(5, 0.5, 1.0), "above 1"),
        (lambda: summation(1000, 50_000, 5.0, route="exact"), "coarser grid"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((PrivacyError, ConfigError), match=words):
        call()
