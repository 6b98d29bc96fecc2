"""Levels of adjacency: gossip:DP-11, perso:DP-1, DP-7."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.formulas.randomized_response import answer
from bruit.privacy.formulas.subsampled import dp_sgd
from bruit.privacy.guarantee import Guarantee, gaussian, together
from bruit.privacy.profile import GaussianProfile, MixtureProfile, StatementProfile
from bruit.privacy.toolbox.gaussian import delta_of
from bruit.privacy.toolbox.mixtures import geometric_profile
from papers.printed.classical import classical
from papers.theorems.adjacency import gradient_sensitivity, sensitivity, widened


def at(level, profile):
    return Guarantee(
        theorem="a theorem",
        spec="gossip:DP-11",
        status="proven",
        level=level,
        of="u",
        against="v",
        hypotheses=(),
        profile=profile,
    )


def test_worked_levels():
    """gossip:DP-11: five records of 0.2, noise of std 2, alpha = 8."""
    record, user = (gaussian(1.0, 2 / sensitivity(level, 0.2, 5)) for level in ("record", "user"))
    assert record.divergence(8.0) == pytest.approx(0.04)
    assert user.divergence(8.0) == pytest.approx(1.0)
    lifted = widened(at("record", record), "user", 5)
    assert lifted.level == "user"
    assert lifted.profile.divergence(8.0) == pytest.approx(1.0)


def test_different_levels_do_not_compose():
    """gossip:DP-11, by `together`."""
    record, user = (at(level, GaussianProfile(0.1)) for level in ("record", "user"))
    with pytest.raises(PrivacyError, match="record level and at user level do not compose"):
        together([record, user])
    assert together([widened(record, "user", 3), user]).profile.mu == pytest.approx(
        math.hypot(0.3, 0.1)
    )


def test_a_group_of_randomized_answers():
    """k pure statements: k epsilon; with delta the geometric sum, checked against the hockey-stick
    recursion."""
    assert widened(answer(2, 0.5), "group", 4).epsilon(1e-9) == pytest.approx(2.0)
    epsilon, delta, k = 0.3, 1e-6, 5
    grown = 0.0
    for _ in range(k):
        grown = math.exp(epsilon) * grown + delta
    found = widened(at("user", StatementProfile(epsilon, delta)), "group", k).profile
    assert (found.bound, found.failure) == pytest.approx((k * epsilon, grown))
    assert widened(
        at("user", StatementProfile(0.0, 0.1)), "group", 3
    ).profile.failure == pytest.approx(0.3)
    assert widened(at("user", StatementProfile(300.0, 0.1)), "group", 3).profile.failure == 1.0


def test_a_gaussian_statement_widened_is_above_the_truth():
    """The statement route is looser than k mu, never tighter."""
    mu, epsilon, k = 0.2, 0.5, 3
    statement = StatementProfile(epsilon, delta_of(epsilon, mu))
    loose = widened(at("user", statement), "group", k).profile
    assert delta_of(k * epsilon, k * mu) <= loose.failure


def test_mixtures_widen_atom_by_atom():
    mixed = geometric_profile(0.1, 2.0)
    wide = widened(at("user", mixed), "group", 2).profile
    assert isinstance(wide, MixtureProfile)
    np.testing.assert_allclose(wide.energies, 4 * mixed.energies)


def test_gradients():
    """perso:DP-7: replacing one of m records moves the mean of gradients of norm L by at most 2 L /
    m."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 4))
    for norm, order in (("l1", 1), ("l2", 2)):
        clipped = rows / np.maximum(1, np.linalg.norm(rows, order, axis=1))[:, None]
        moved = clipped.copy()
        moved[3] = -moved[3] / np.linalg.norm(moved[3], order)
        gap = np.linalg.norm(clipped.mean(0) - moved.mean(0), order)
        assert gap <= gradient_sensitivity(1.0, 20, norm) * (1 + 1e-12)
    assert gradient_sensitivity(3.0, 10) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: sensitivity("house", 1.0),
            "levels of adjacency are record, user, group, found 'house'",
        ),
        (lambda: sensitivity("user", -1.0), "movement per record >= 0"),
        (lambda: sensitivity("user", 1.0, 0), "at least one record and user"),
        (lambda: widened(classical(0.5, 1e-5), "record", 2), "says nothing more at record level"),
        (
            lambda: widened(classical(0.5, 1e-5), "group", 0),
            "at least one user is replaced, found 0",
        ),
        (lambda: widened(dp_sgd(10, 1, 1.0, 1), "user", 2), "RenyiProfile cannot be widened"),
        (lambda: gradient_sensitivity(1.0, 0), "at least one record"),
        (lambda: gradient_sensitivity(1.0, 5, "l3"), "found 'l3'"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
