"""The printed walk theorems: their numbers, their conditions, and what refutes them (walk:RW-1, 3,
4, 5, 15)."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.ahead.walk_ahead import (
    complete_law,
    contribution_divergence,
    segment_law,
    walk_ahead,
)
from bruit.privacy.toolbox.contributions import chernoff
from papers.printed.walk_complete import (
    excess_loss,
    largest_order,
    least_printed_noise,
    printed_closed_form,
    printed_collusion,
    printed_divergence,
    printed_epsilon,
    printed_spotted,
    published_walk,
)
from papers.printed.walk_sum import (
    advanced,
    classical_noise,
    cycle_delta,
    cycle_epsilon,
    printed_sum,
    published_sum,
)

# --- the private sum


@pytest.mark.parametrize(
    ("setting", "numbers"),
    [
        (
            (100, 10**4, 0.1, 1e-7),
            (
                269.537246820,
                0.03,
                3.042679654,
                0.006351269,
                0.602934684,
                9.677237e-6,
                2.608576e-3,
                9.175761645,
            ),
        ),
        (
            (1000, 10**5, 0.4, 1e-7),
            (
                269.537246820,
                0.037947332,
                3.932815501,
                0.008016669,
                0.764657972,
                1.256087e-5,
                3.385822e-3,
                62.923933483,
            ),
        ),
    ],
)
def test_the_printed_sums(setting, numbers):
    closed, numeric = printed_sum(*setting), printed_sum(*setting, numeric=True)  # EX RW-1.1
    found = (
        closed.cycles,
        closed.cycle_epsilon,
        closed.epsilon,
        numeric.cycle_epsilon,
        numeric.epsilon,
        closed.cycle_delta,
        closed.delta,
        closed.local_epsilon,
    )
    assert found == pytest.approx(numbers, rel=1e-6)


def test_the_printed_cycles():
    assert cycle_epsilon(10, 100, 0.1) == pytest.approx(0.003067312188, rel=1e-9)  # EX RW-1.2
    assert cycle_epsilon(100, 100, 0.1) == pytest.approx(0.006351268820, rel=1e-9)
    assert max(cycle_epsilon(m, 100, 0.1) for m in range(1, 101)) == cycle_epsilon(100, 100, 0.1)
    assert cycle_delta(10, 100, 0.1, 1e-7) == pytest.approx(5.126159966e-8, rel=1e-8)  # EX RW-1.3


def test_the_claim_about_the_failure_of_a_cycle_is_refuted():
    found = cycle_delta(2000, 2000, 1.0, 1e-6)
    assert found == pytest.approx(3.196472107e-5, rel=1e-8)  # EX RW-1.3
    assert found > 1e-6
    said = published_sum(2000, 200_000, 1.0, 1e-6)
    assert said.status == "published"
    assert "refuted" in said.notes[0]


# --- SGD


@pytest.mark.parametrize(
    ("z", "epsilon", "order"),
    [
        (10.0, 1.018734907, 14.650971698),
        (2.5, 4.528823074, 4.070714214),
    ],
)
def test_the_printed_procedure(z, epsilon, order):
    found = printed_epsilon(z, 2000, 12, 1e-6)  # walk:RW-3, sigma = 2 z
    assert (found.epsilon, found.order) == (
        pytest.approx(epsilon, rel=1e-9),
        pytest.approx(order, rel=1e-9),
    )
    assert found.order == largest_order(z)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "z"), [(1.0, 20.36190665, 10.1810), (10.0, 2.57862023, 1.2893)]
)
def test_the_printed_noise(epsilon, sigma, z):
    found = least_printed_noise(epsilon, 1e-6, 2000, 12)  # walk:RW-3
    assert 2 * found == pytest.approx(sigma, rel=1e-8)
    assert found == pytest.approx(z, abs=1e-4)
    assert printed_epsilon(found, 2000, 12, 1e-6).epsilon <= epsilon


def test_the_printed_closed_form():
    count = 10 + math.sqrt(
        30 * math.log(1e6)
    )  # walk:RW-3: outside the range of the bound it is taken from
    found = printed_closed_form(2000, 0.5, 1e-6, contributions=count)
    numbers = (found.contributions, found.q, found.sigma, found.order, found.epsilon)
    assert numbers == pytest.approx(
        (30.358421, 27.631021116, 21.195210107, 14.987277, 3.687263736), rel=1e-6
    )
    with pytest.raises(PrivacyError, match="Chernoff"):
        printed_closed_form(2000, 0.5, 1e-6, steps=20_000)
    found = printed_closed_form(1000, 0.1, 1e-5, steps=10**6)
    numbers = (found.contributions, found.q, found.epsilon)
    assert numbers == pytest.approx((1185.846109, 23.025850930, 0.672131673), rel=1e-6)


def test_the_printed_utility():
    sigma = math.sqrt(8 * math.log(1.25e6))  # epsilon = 1, L = 1
    assert math.sqrt(1 + 10 * sigma**2) == pytest.approx(33.527486168, rel=1e-9)  # walk:RW-3
    assert excess_loss(2.0, 1.0, 10, sigma, 10**6) == pytest.approx(2.121017246, rel=1e-9)


def test_the_proven_value_is_below_the_printed_one_for_small_lambda():
    for n in (5, 50, 2000):  # equal at n = 4 in the limit
        printed = printed_divergence(2.0, 20.0, n, 12)
        assert 12 * contribution_divergence(complete_law(n), 2.0, 20.0) <= printed  # walk:RW-V2


# --- collusion and spotted contributions


@pytest.mark.parametrize(("colluders", "expected"), [(1, 1.216144394e-3), (5, 4.793171638e-3)])
def test_the_printed_collusion(colluders, expected):
    assert printed_collusion(8.0, 5.0, 2000, colluders) == pytest.approx(
        expected, rel=1e-9
    )  # walk:RW-4


def test_the_printed_spotted_contributions():
    found = printed_spotted(100, 5000, 0.1, 1e-6, 1e-6)  # walk:RW-5
    numbers = (found.count, found.simple, found.advanced, found.as_printed)
    assert numbers == pytest.approx(
        (164.378980789, 16.437898079, 8.468194659, 6.494268393), rel=1e-9
    )
    assert printed_spotted(100, 5000, 0.1, 1e-6, 1e-6, exact=True).count == 150
    assert printed_spotted(100, 100, 0.1, 1e-6, 1e-6, exact=True).count == 11
    with pytest.raises(PrivacyError, match="exact quantile"):
        printed_spotted(100, 100, 0.1, 1e-6, 1e-6)


# --- the counter-example (walk:RW-15)


def pendant(m):
    """A clique of m peers and one more, u = m, attached to peer 0; Hamilton weights."""
    edges = np.zeros((m + 1, m + 1), bool)
    edges[:m, :m] = ~np.eye(m, dtype=bool)
    edges[0, m] = edges[m, 0] = True
    degrees = edges.sum(axis=1)
    weights = np.where(edges, 1 / np.maximum(degrees[:, None], degrees), 0.0)
    return weights + np.diag(np.maximum(1 - weights.sum(axis=1), 0.0))


def exact_divergence(weights, u, v, cap, steps, order, z):
    """Of (arrival time, token) at the first visit of v, walk hidden, additive updates: recursion
    and quadrature."""
    law = np.zeros(
        (len(weights), cap + 1)
    )  # (position, contributions of u so far), the holder not yet counted
    law[u, 0] = 1.0
    moment, left = 0.0, 1.0
    for length in range(1, steps + 1):
        law[u] = np.append(0.0, law[u, :-1]) + np.append(np.zeros(cap), law[u, -1])
        law = weights.T @ law
        counts = law[v].copy()
        law[v] = 0.0
        left -= counts.sum()
        width = z * math.sqrt(length)
        x = np.linspace(-12 * width, cap + 12 * width, 6001)
        away = (x - np.arange(cap + 1)[:, None]) / width
        densities = np.exp(-(away**2) / 2) / (width * math.sqrt(2 * math.pi))
        mixed, plain = counts @ densities, counts.sum() * densities[0]
        if counts.sum() > 0:
            moment += np.trapezoid(np.exp(order * np.log(mixed) + (1 - order) * np.log(plain)), x)
    return math.log(left + moment) / (order - 1)


@pytest.mark.parametrize(
    ("m", "cap", "steps", "exact", "published", "verified", "cooled", "local"),
    [
        (21, 15, 120, 1.076539, 0.742359, 3.610592, 0.200825, 3.75),
        (41, 30, 300, 2.705206, 0.885001, 7.349905, 0.211904, 7.5),
    ],
)
def test_composition_by_contributions_is_refuted(
    m, cap, steps, exact, published, verified, cooled, local
):
    weights, order, z = pendant(m), 2.0, 2.0
    true = exact_divergence(weights, m, 5, cap, steps, order, z)
    assert true == pytest.approx(exact, abs=1e-6)
    power, total = np.eye(m + 1)[m], 0.0
    for t in range(1, steps + 1):
        power = power @ weights
        total += power[5] / t
    printed = cap * order / z**2 * total
    assert printed == pytest.approx(published, abs=1e-6)
    plain = walk_ahead(segment_law(weights, m, [5]), cap, z, route="renyi").profile.curve(order)
    assert plain == pytest.approx(verified, abs=1e-6)
    rested = cap * contribution_divergence(segment_law(weights, m, [5], cooldown=m), order, z)
    assert rested == pytest.approx(cooled, abs=1e-6)
    assert cap * order / (2 * z**2) == local
    assert (
        printed < true <= plain <= local
    )  # a proven bound below the truth would be a release blocker
    if m == 41:
        assert true / printed == pytest.approx(3.06, abs=0.01)


def test_published_guarantees_say_so():
    said = published_walk(2000, 12, 10.0, 1e-6)
    assert said.status == "published"
    assert said.epsilon(1e-6) == pytest.approx(1.018734907, rel=1e-6)
    assert "RW-15" in said.notes[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: printed_divergence(8.0, 2.0, 100, 5), r"z\^2 >= alpha"),
        (lambda: printed_divergence(1.0, 2.0, 100, 5), "above 1"),
        (lambda: printed_divergence(2.0, 2.0, 1, 5), "two peers"),
        (lambda: printed_divergence(2.0, 2.0, 10, 0), "contributions"),
        (lambda: printed_epsilon(0.0, 10, 1, 1e-6), "noise multiplier"),
        (lambda: printed_epsilon(1.0, 10, 1, 1.0), "delta"),
        (lambda: printed_collusion(2.0, 1.0, 10, 10), "1 to 9"),
        (lambda: printed_closed_form(1000, 1.5, 1e-5, contributions=5), "epsilon < 1"),
        (lambda: printed_closed_form(1000, 0.5, 1e-5), "either"),
        (lambda: printed_closed_form(10, 0.9, 0.3, contributions=1e4), "below the 2"),
        (lambda: printed_spotted(100, 5000, 0.0, 1e-6, 1e-6), "positive"),
        (lambda: cycle_epsilon(11, 10, 0.1), "1 to n steps"),
        (lambda: cycle_epsilon(5, 10, 2.0), "epsilon <= 1"),
        (lambda: classical_noise(2.0, 1e-6), "epsilon <= 1"),
        (lambda: printed_sum(2000, 20_000, 0.5, 1e-6), "Chernoff"),
        (lambda: advanced(5, 0.1, 0.0), "delta"),
        (lambda: excess_loss(0.0, 1.0, 1, 1.0, 10), "above 0"),
        (lambda: chernoff(100, 10, 0.0), "strictly"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
