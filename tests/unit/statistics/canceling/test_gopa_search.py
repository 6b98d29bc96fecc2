"""The search for few neighbors by either rule: against trying every k, and refusals."""

import pytest

from bruit.errors import PrivacyError
from papers.figures.gopa_search import draw, smallest_k


@pytest.mark.parametrize("rule", ["exact", "corollary"])
def test_the_first_k_that_is_enough_by_trying_all(rule):
    """perso:GOPA-6: the most that two drawn graphs of 80 peers need, for k = 1, 2, ..."""

    def needed(k):
        seen = [draw(80, k, 0.8, seed) for seed in (0, 1)]
        own = found.own_sigma
        return max(
            one.exact_pair(own, 0.5, 1e-5)
            if rule == "exact"
            else one.corollary_pair(0.5, 1e-6, 1e-5)
            for one in seen
        )

    found = smallest_k(80, 0.8, 0.5, 1e-6, 1e-5, 12.0, draws=2, rule=rule)
    first = next(k for k in range(1, 40) if needed(k) <= 12.0)
    assert found.k == first
    assert found.pair_sigma == needed(first)


def test_the_source_rule_never_needs_fewer():
    exact, corollary = (
        smallest_k(80, 1.0, 0.5, 1e-6, 1e-5, 12.0, draws=1, rule=rule).k
        for rule in ("exact", "corollary")
    )
    assert exact < corollary


@pytest.mark.parametrize(("draws", "most"), [(0, 5.0), (1, 0.0)])
def test_a_search_for_nothing_is_refused(draws, most):
    with pytest.raises(PrivacyError, match="graphs to draw and noise to allow"):
        smallest_k(80, 1.0, 0.5, 1e-6, 1e-5, most, draws=draws)
