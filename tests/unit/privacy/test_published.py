"""The printed formulas, reproduced to the digit, with the places where they are not bounds."""

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.graphs import (
    Graph,
    chebyshev_gamma,
    erdos_renyi,
    from_edges,
    grid,
    hypercube,
    path,
    ring,
    spectral_gap,
    star,
)
from bruit.privacy.exact.rows import meeting_rows
from bruit.privacy.theorems.published import (
    published_losses,
    published_pairwise,
    published_rows,
    published_walk,
)


def printed(graph: Graph, observer: int, steps: int) -> list[float]:
    return published_losses(lambda t: graph, graph.n, steps, [observer]).tolist()


@pytest.mark.parametrize(
    ("graph", "observer", "steps", "expected"),
    [
        (path(3), 0, 2, [0.33333333, 1.3333333, 0.33333333]),
        (
            ring(8),
            0,
            4,
            [
                1.5983576,
                2.2709966,
                0.806271,
                0.11646137,
                0.014184397,
                0.11646137,
                0.806271,
                2.2709966,
            ],
        ),
        (star(6), 1, 3, [1.3333333] + [0.33333333] * 5),
        (path(5), 0, 3, [0.72463768, 1.7246377, 0.50724638, 0.043478261, 0]),
        (
            grid(3, 3),
            0,
            3,
            [
                0.94055144,
                1.77814,
                0.47027572,
                1.77814,
                0.42631433,
                0.068151432,
                0.47027572,
                0.068151432,
                0,
            ],
        ),
    ],
)
def test_worked_examples(graph: Graph, observer: int, steps: int, expected: list[float]) -> None:
    """gossip:MUF-1, and the printed values quoted in MUF-2."""
    np.testing.assert_allclose(printed(graph, observer, steps), expected, rtol=1e-6)
    column = published_pairwise(graph, steps)[:, observer]
    assert np.isnan(column[observer])
    np.testing.assert_allclose(
        np.delete(column, observer), np.delete(expected, observer), rtol=1e-6
    )


def test_sequences_use_the_corrected_index() -> None:
    """gossip:MUF-1: index (w, u), where the print has (u, w)."""
    rows = meeting_rows(4, np.array([0, 1, 0, 2, 1, 0]), np.array([1, 2, 1, 3, 2, 1]), [0])
    np.testing.assert_allclose(
        published_rows(rows.messages), [0.41666667, 1.4166667, 0.91666667, 0.25], rtol=1e-6
    )


def test_colluders() -> None:
    """gossip:MUF-10, (C.6)."""
    expected = [0.33333333, 1.6666667, 1.6666667, 0.66666667, 1.3333333, 0.33333333]
    np.testing.assert_allclose(
        published_losses(lambda t: path(6), 6, 2, [0, 3]), expected, rtol=1e-6
    )
    cube = published_losses(lambda t: hypercube(4), 16, 4, [0, 3])
    np.testing.assert_allclose(
        cube[[5, 6, 12, 15]], [1.2949888, 1.2949888, 0.92307692, 0.92307692], rtol=1e-6
    )


def test_groups_miss_the_cross_terms() -> None:
    """gossip:MUF-12: the printed group loss is a plain sum."""
    assert sum(printed(star(6), 1, 3)[2:4]) == pytest.approx(0.666666667)
    assert sum(printed(star(6), 1, 3)[2:6]) == pytest.approx(1.33333333)
    cube = printed(hypercube(4), 0, 4)
    assert cube[3] + cube[12] == pytest.approx(1.72665177, rel=1e-6)


def test_hypercube_by_distance() -> None:
    """gossip:MUF-13."""
    found = published_pairwise(hypercube(4), 4)[[1, 3, 7, 15], 0]
    np.testing.assert_allclose(found, [1.9991063, 0.86332589, 0.27424194, 0.11950207], rtol=1e-6)


def test_accelerated_rows() -> None:
    """gossip:MUF-2, grid(3, 4): the printed sum changes under acceleration, the truth does not."""
    graph = grid(3, 4)
    gamma = chebyshev_gamma(spectral_gap(graph))
    w = graph.weights.toarray()
    polynomials = [np.eye(12), w]
    while len(polynomials) < 5:
        polynomials.append(gamma * w @ polynomials[-1] + (1 - gamma) * polynomials[-2])
    rows = np.concatenate([p[graph.neighbors(0)] for p in polynomials])
    np.testing.assert_allclose(
        published_rows(rows)[[1, 2, 11]], [2.0754331, 0.66617203, 0.032922736], rtol=1e-6
    )
    np.testing.assert_allclose(
        published_pairwise(graph, 5)[[1, 2, 11], 0],
        [2.4784022, 0.69339142, 0.0029856477],
        rtol=1e-6,
    )


def test_total_is_the_number_of_messages() -> None:
    """Each message spreads one unit over all peers, the observer included (gossip:MUF-1)."""
    graph = erdos_renyi(150, c=1.5, seed=1)
    found = published_pairwise(graph, 6)
    own = np.array([printed(graph, v, 6)[v] for v in range(0, 150, 30)])
    totals = np.nansum(found, axis=0)[::30] + own
    np.testing.assert_allclose(totals, 6 * graph.degrees[::30])


def test_walk_form() -> None:
    """gossip:MUF-5: examples, and above MUF-1."""
    expected = [
        24.801097,
        17.920439,
        2.8751715,
        0.27434842,
        0.043895748,
        0.27434842,
        2.8751715,
        17.920439,
    ]
    np.testing.assert_allclose(published_walk(ring(8), 0, 4), expected, rtol=1e-6)
    np.testing.assert_allclose(
        published_walk(path(5), 0, 3), [44.320988, 15, 1.5432099, 0.061728395, 0], rtol=1e-6
    )
    graph = grid(3, 4)
    assert (published_walk(graph, 5, 4) >= np.array(printed(graph, 5, 4)) - 1e-12).all()
    np.testing.assert_array_equal(published_walk(from_edges(3, [(1, 2)]), 0, 4), 0.0)


def test_corner_cases() -> None:
    assert np.isnan(published_pairwise(from_edges(1, []), 3)).all()
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(published_pairwise(path(4), 0)[off], 0.0)
    np.testing.assert_array_equal(
        published_pairwise(ring(4), 1)[off], ring(4).weights.toarray()[off] > 0
    )


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="one row per message"):
        published_rows(np.ones(3))
    with pytest.raises(ConfigError, match="message 1 is all zero"):
        published_rows(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ConfigError, match="0 or more"):
        published_pairwise(path(3), -1)
