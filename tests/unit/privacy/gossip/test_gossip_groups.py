"""Group privacy of gossip (gossip:MUF-12): worked numbers, brute force, the printed formula
refuted."""

from itertools import product

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import butterfly, erdos_renyi, given, grid, hypercube, path, ring, star, static
from bruit.privacy.exact.rows import sequence_rows
from bruit.privacy.theorems.group import group_guarantee, group_losses, projector
from bruit.privacy.theorems.published import published_group
from bruit.runs.run import rehearse

EXAMPLES = [
    (star(6), 1, 3, [2, 3], 1.0, 0.666666667),
    (star(6), 1, 3, [2, 3, 4, 5], 4.0, 1.33333333),
    (hypercube(4), 0, 4, [3, 12], 2.0, 1.72665177),
]


@pytest.mark.parametrize(("graph", "observer", "steps", "group", "exact", "printed"), EXAMPLES)
def test_worked_examples(graph, observer, steps, group, exact, printed):
    assert group_losses(graph, steps, group, observer) == pytest.approx(exact, rel=1e-6)
    assert group_losses(static(graph), steps, group, observer) == pytest.approx(exact, rel=1e-6)
    assert published_group(lambda t: graph, graph.n, steps, [observer], group) == pytest.approx(
        printed, rel=1e-6
    )
    assert printed < exact, "the printed group loss is no bound"


SMALL = [path(5), ring(7), star(6), grid(3, 3), erdos_renyi(9, c=1.5, seed=1)]


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
def test_above_every_direction_of_the_joint_gaussian(graph):
    """max over |d_u| = 1 of d^T Pi_UU d <= sum |Pi_UU| <= |U|, with Pi by pinv of few, well-conditioned rows."""
    rows = sequence_rows(lambda t: graph, graph.n, 3, [0]).values
    pi = np.linalg.pinv(rows) @ rows
    for group in ([1, 2], [2, 3, 4], [1, graph.n - 1]):
        part = pi[np.ix_(group, group)]
        worst = max(
            np.array(d) @ part @ np.array(d) for d in product((1.0, -1.0), repeat=len(group))
        )
        found = group_losses(graph, 3, group, 0)
        assert worst - 1e-9 <= found <= len(group) + 1e-12
        assert found == pytest.approx(min(np.abs(part).sum(), len(group)), abs=1e-7)


def test_changing_graphs_and_coalitions():
    """On a butterfly the sub-cubes are the atoms: members of one atom of size 4 share 4 * 1/4
    (gossip:MUF-X2)."""
    assert group_losses(butterfly(8), 3, [4, 5, 6, 7], 0) == pytest.approx(4.0)
    assert group_losses(butterfly(8), 3, [4, 5], 0) == pytest.approx(1.0)
    assert group_losses(given([ring(6), star(6)]), 2, [3, 4], [0, 1]) <= 2.0


def test_joint_losses_of_columns():
    graph = star(6)
    rows = sequence_rows(lambda t: graph, 6, 3, [1])
    pi = projector(rows.values, rows.modulo)
    both = pi.joint([2, 3])
    assert (both.free, both.common, both.status) == (
        pytest.approx(1.0),
        pytest.approx(1.0),
        "exact",
    )
    with pytest.raises(ConfigError, match=r"within 0\.\.5"):
        pi.joint([6])


def test_without_a_certificate_cauchy_and_schwarz_hold():
    rows = np.array([[1.0, 1, 1, 0], [1, 1, 2, 0], [2, 2, 3, 0]])
    unsure = projector(rows, None)  # dependent rows and no ranks modulo primes
    assert unsure.joint([0, 1, 3]).free == 2.0
    assert unsure.joint([0, 1]).status == "upper bound"


def test_as_a_guarantee():
    about = group_guarantee(star(6), 3, [2, 3], 1, noise_multiplier=4.0)
    assert (about.of, about.against, about.status) == ("peers 2, 3 together", "peer 1", "ideal")
    assert about.profile.mu == pytest.approx(0.25)
    for graph in (star(6), given([star(6)])):
        ideal = rehearse(
            br.Averaging(), graph, br.Gaussian(clip=1.0, sigma=8.0, arithmetic="ideal"), 3
        )
        assert ideal.guarantee(of={2, 3}, seen_by=1).loss == pytest.approx(1.0, abs=1e-6)
        assert float(ideal.epsilon({2, 3}, 1)) == pytest.approx(float(about.epsilon(1e-6)))
        sent = rehearse(br.Averaging(), graph, br.Gaussian(clip=1.0, sigma=8.0), 3).epsilon(
            {2, 3}, 1
        )
        assert 0 < float(sent) - float(about.epsilon(1e-6)) < 1e-5
        assert sent.guarantee.status == "proven"


@pytest.mark.parametrize(
    ("of", "seen_by", "word"),
    [
        ([1, 2], 1, "peer 1 is among the observers"),
        ([], 1, "names no peer"),
        ([9], 1, r"peers are 0\.\.5"),
        (2, [], "`seen_by` names no peer"),
    ],
)
def test_refusals(of, seen_by, word):
    with pytest.raises(PrivacyError, match=word):
        group_guarantee(star(6), 3, of, seen_by, 1.0)
