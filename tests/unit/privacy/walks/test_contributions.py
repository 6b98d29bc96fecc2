"""How often a peer contributes: printed numbers, enumeration, and the range of the Chernoff bound
(walk:F-4)."""

import itertools

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.toolbox.contributions import (
    averaging_time,
    binomial_quantile,
    binomial_tail,
    budget,
    chernoff,
    most_visits,
    visits_tail,
)

RING = (
    np.array([[1.0 if (i - j) % 5 in (0, 1, 4) else 0.0 for j in range(5)] for i in range(5)]) / 3
)


def test_the_printed_chernoff_bound():
    assert chernoff(10_000, 100, 1e-7) == pytest.approx(169.537247, abs=1e-6)  # walk:F-4


def test_chernoff_outside_its_range_is_refused():
    with pytest.raises(PrivacyError, match="exact quantile"):
        chernoff(20_000, 2000, 1e-6)  # walk:F-4: 10 visits on average, 41.4 needed


@pytest.mark.parametrize(
    ("steps", "n", "failure", "count", "tail"),
    [
        (10_000, 100, 1e-7, 156, 7.192218e-8),
        (20_000, 2000, 1e-6, 28, 7.577898e-7),
    ],
)
def test_the_printed_quantiles(steps, n, failure, count, tail):
    assert binomial_quantile(steps, 1 / n, failure) == count  # walk:F-4
    assert binomial_tail(steps, 1 / n, count) == pytest.approx(tail, rel=1e-6)
    assert binomial_tail(steps, 1 / n, count - 1) > failure


def test_the_printed_tail_of_a_chain():
    assert visits_tail(RING, 0, 2, 20, 6) == pytest.approx(9.977378352e-2, rel=1e-9)  # walk:F-4


def test_chain_tails_equal_enumeration():
    law = np.array([0.5, 0.5, 0.0, 0.0, 0.0])
    for u, steps, count in ((0, 6, 1), (3, 7, 2)):
        more = 0.0
        for path in itertools.product(range(5), repeat=steps):
            if sum(v == u for v in path) > count:
                more += law[path[0]] * np.prod([RING[a, b] for a, b in itertools.pairwise(path)])
        assert visits_tail(RING, law, u, steps, count) == pytest.approx(more, rel=1e-12)


def test_the_complete_graph_is_binomial():
    whole = np.full((7, 7), 1 / 7)
    assert visits_tail(whole, np.full(7, 1 / 7), 3, 30, 8) == pytest.approx(
        binomial_tail(30, 1 / 7, 8), rel=1e-9
    )


def test_corners():
    assert budget(20_000, 2000) == 12
    assert budget(1, 1000) == 1
    assert binomial_tail(5, 0.5, 5) == 0.0
    assert binomial_tail(5, 0.5, -1) == 1.0
    assert binomial_quantile(5, 0.0, 0.1) == 0
    assert averaging_time(1.0, 0.1, 0.05, 0.5) == 16_000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: chernoff(0, 10, 0.1), "at least one step"),
        (lambda: chernoff(10, 1, 0.1), "two peers"),
        (lambda: chernoff(10, 5, 1.0), "strictly between"),
        (lambda: binomial_quantile(5, 0.5, 0.0), "strictly between"),
        (lambda: binomial_tail(5, 1.5, 2), r"in \[0, 1\]"),
        (lambda: visits_tail(np.eye(3) * 0.5, 0, 1, 5, 2), "sum to one"),
        (lambda: visits_tail(RING, 0, 7, 5, 2), "peers are 0..4"),
        (lambda: visits_tail(RING, np.ones(5), 1, 5, 2), "law of the start"),
        (lambda: budget(10, 5, 0.0), "positive multiple"),
        (lambda: averaging_time(1.0, 0.0, 0.1, 0.5), "accuracy"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((PrivacyError, ConfigError), match=words):
        call()


@pytest.mark.parametrize("first", ["uniform", 0])
def test_visits_of_the_complete_graph_by_recursion(first):
    """Peer 3 of seven, drawn first or known to be first: the least count that is exceeded seldom
    enough."""
    whole, start = np.full((7, 7), 1 / 7), np.full(7, 1 / 7) if first == "uniform" else 3
    most = most_visits(30, 7, 1e-3, first)
    assert (
        visits_tail(whole, start, 3, 30, most) <= 1e-3 < visits_tail(whole, start, 3, 30, most - 1)
    )


def test_a_known_first_holder_is_visited_more_often():
    """binomial_quantile alone says 6 of 4 peers and 8 hops, and the first holder is there more
    often than it may be."""
    drawn, known = (most_visits(8, 4, 0.01, first) for first in ("uniform", 0))
    assert binomial_quantile(8, 1 / 4, 0.01) == drawn < known
    assert visits_tail(np.full((4, 4), 1 / 4), 0, 0, 8, drawn) > 0.01
