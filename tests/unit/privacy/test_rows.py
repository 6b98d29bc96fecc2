"""Losses of general known rows: sequences of graphs, meetings, butterflies, Gaussian views with
message noise."""

import numpy as np
import pytest

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, erdos_renyi, from_edges, grid, hypercube, path, ring, star, torus
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.rows import (
    linear_gaussian,
    meeting_loss,
    meeting_rows,
    noisy_rows_loss,
    sequence_loss,
    sequence_rows,
    stacked_loss,
    user_loss,
)

FIRST, SECOND = np.array([0, 1, 0, 2, 1, 0]), np.array([1, 2, 1, 3, 2, 1])


def butterfly(m: int, t: int) -> Graph:
    """The pairs v, v xor 2^t of n = 2^m peers; default weights average each pair."""
    return from_edges(2**m, [(v, v ^ (1 << t)) for v in range(2**m) if not v >> t & 1])


def renoised_rows(graph: Graph, observer: int, steps: int) -> Array:
    """gossip:MUF-X1: rows (W_TT^t)_{w,.}, T all peers but the observer, w its neighbors."""
    w = graph.weights.toarray()
    w[observer], w[:, observer] = 0.0, 0.0
    rows, power = [], np.eye(graph.n)
    power[observer, observer] = 0.0
    for _ in range(steps):
        rows.append(power[graph.neighbors(observer)])
        power = power @ w
    return np.concatenate(rows)


def test_random_meetings() -> None:
    """gossip:MUF-1 sequence: everything is exposed to peer 0 after six meetings, of which it saw
    three."""
    rows = meeting_rows(4, FIRST, SECOND, [0])
    assert rows.messages.shape == (3, 4)
    np.testing.assert_allclose(rows.values[:3], [[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 0.5, 0]])
    found = meeting_loss(4, FIRST, SECOND, [0])
    np.testing.assert_allclose(found.loss, 1.0)
    assert (found.status, found.rank) == ("exact", 4)


def test_meetings_as_a_sequence_of_graphs() -> None:
    """One meeting is one graph with a single edge of weight 1/2 (gossip:MUF-7)."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 12, 60)
    b = (a + rng.integers(1, 12, 60)) % 12
    graphs = [from_edges(12, [(int(x), int(y))]) for x, y in zip(a, b, strict=True)]
    for observers in ([0], [2, 5]):
        met = meeting_rows(12, a, b, observers)
        seen = sequence_rows(graphs.__getitem__, 12, 60, observers)
        np.testing.assert_allclose(met.values, seen.values, atol=1e-15)
        np.testing.assert_array_equal(met.modulo(16777213), seen.modulo(16777213))
        np.testing.assert_allclose(
            meeting_loss(12, a, b, observers).loss,
            sequence_loss(graphs.__getitem__, 12, 60, observers).loss,
        )


SMALL = [grid(3, 3), star(6), hypercube(3), erdos_renyi(20, c=1.5, seed=2)]


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
def test_constant_sequences_are_gossip(graph: Graph) -> None:
    """The same loss by stacked rows and by block Lanczos, while few steps keep the rows well
    conditioned."""
    for steps in (0, 1, 2, 4):
        for observers in ([0], [1, 2]):
            found = sequence_loss(lambda t: graph, graph.n, steps, observers)
            expected = leverage(graph, observers, steps)
            assert found.rank == expected.rank
            assert found.status == "exact"
            np.testing.assert_allclose(found.loss, expected.loss, atol=1e-8)


def test_butterfly() -> None:
    """gossip:MUF-X2: m = 2^-b, b the highest differing bit; colluders by atoms of the sub-cubes."""
    found = sequence_loss(lambda t: butterfly(3, t), 8, 3, [0])
    np.testing.assert_allclose(found.loss, [1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25], atol=1e-12)
    both = sequence_loss(lambda t: butterfly(3, t), 8, 3, [0, 5])
    np.testing.assert_allclose(both.loss, [1, 1, 0.5, 0.5, 1, 1, 0.5, 0.5], atol=1e-12)
    assert both.rank == 6


def test_rows_without_certificate_are_charged() -> None:
    """Dependent rows and no residues: nobody can tell the rank, so reached peers are charged 1 and
    it is said."""
    rows = np.array([[1.0, 1, 1, 0], [1, 1, 2, 0], [2, 2, 3, 0]])
    found = stacked_loss(rows)
    assert found.status == "upper bound"
    np.testing.assert_array_equal(found.loss, [1, 1, 1, 0])
    assert "no certified rank" in found.certificate.note
    sure = stacked_loss(rows, lambda prime: rows.astype(np.int64) % prime)
    assert (sure.status, sure.rank) == ("exact", 2)
    np.testing.assert_allclose(sure.loss, [0.5, 0.5, 1, 0], atol=1e-12)


def test_a_numerical_rank_below_the_exact_one_is_charged() -> None:
    """Stacked powers on a torus: the exact rank is 121, double precision finds less, so every
    reached peer costs 1."""
    graph = torus(16, 16)
    rows = sequence_rows(lambda t: graph, 256, 30, [0])
    found = stacked_loss(rows.values, rows.modulo)
    assert found.status == "upper bound"
    assert found.certificate.modular == (121, 121)
    np.testing.assert_array_equal(found.loss, 1.0)


def test_thirty_digits_decide_what_double_precision_cannot() -> None:
    """The same rows in about 30 digits give the loss of block Lanczos, by another way
    altogether."""
    graph = torus(16, 16)
    found = sequence_loss(lambda t: graph, 256, 30, [0])
    assert found.status == "exact"
    np.testing.assert_allclose(found.loss, leverage(graph, [0], 30).loss, atol=1e-6)


def test_changing_random_graphs_are_decided() -> None:
    """A fresh Erdos-Renyi graph at each of ten steps, loss between 0 and 1, sum = exact rank."""
    graphs = [erdos_renyi(200, c=1.5, seed=seed) for seed in range(10)]
    found = sequence_loss(graphs.__getitem__, 200, 10, [3])
    assert found.status == "exact"
    assert found.rank == 1 + sum(graph.neighbors(3).size for graph in graphs)
    assert found.loss.sum() == pytest.approx(found.rank, abs=1e-5)


def test_underflow_is_not_zero() -> None:
    """A coefficient below every float (3^-740, say) vanishes in floats, but not modulo a prime: its
    peer is exposed."""
    rows = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]])

    def modulo(prime: int) -> Ints:
        return np.array([[1, 0, 0], [pow(2, -1, prime), pow(3, -740, prime), 0]])

    np.testing.assert_array_equal(stacked_loss(rows).loss, [1, 0, 0])
    np.testing.assert_array_equal(stacked_loss(rows, modulo).loss, [1, 1, 0])


def test_linear_gaussian() -> None:
    """gossip:LG-1 example 1, the same-noise case, and a column outside the range of the noise."""
    a = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]])
    noise = np.concatenate([a, np.diag(np.sqrt([0, 0.1, 0]))], axis=1)
    np.testing.assert_allclose(linear_gaussian(a, noise), [1, 0.71929825, 0.98245614], rtol=1e-7)
    rows = sequence_rows(lambda t: grid(3, 3), 9, 3, [0]).values
    np.testing.assert_allclose(
        linear_gaussian(rows, rows), leverage(grid(3, 3), [0], 3).loss, atol=1e-9
    )
    np.testing.assert_array_equal(linear_gaussian(np.eye(2), np.array([[1.0], [0.0]])), [1, np.inf])
    # Scales apart by 1e12 are no rank deficiency.
    np.testing.assert_allclose(
        linear_gaussian(np.eye(2), np.diag([1.0, 1e-12])), [1, 1e24], rtol=1e-9
    )


def test_users_with_several_scalars() -> None:
    """gossip:LG-1: sum |Q|; two scalars behind one noise add up before they are squared."""
    assert user_loss(np.eye(2), np.eye(2), [0]) == pytest.approx(1.0)
    assert user_loss(np.array([[1.0, 1.0]]), np.array([[1.0]]), [0, 1]) == pytest.approx(4.0)
    assert user_loss(np.array([[1.0, -1.0]]), np.array([[1.0]]), [0, 1]) == pytest.approx(4.0)
    assert user_loss(np.eye(2), np.array([[1.0], [0.0]]), [0, 1]) == np.inf


def test_message_noise() -> None:
    """gossip:MUF-X1 with constant tau: path(3), ring(8), hypercube(11)."""
    np.testing.assert_allclose(
        noisy_rows_loss(renoised_rows(path(3), 0, 2), 0.5), [0, 0.8115942, 0.28985507], rtol=1e-6
    )
    expected = [
        0,
        0.99019538,
        0.92295447,
        0.58545107,
        0.14789031,
        0.58545107,
        0.92295447,
        0.99019538,
    ]
    np.testing.assert_allclose(
        noisy_rows_loss(renoised_rows(ring(8), 0, 4), 0.1), expected, rtol=1e-6
    )


def test_tapered_message_noise() -> None:
    """gossip:MUF-X1: hypercube(4), tau = 0.2 four times, then 0.2 * 0.6^j."""
    tau = np.repeat([0.2] * 4 + [0.2 * 0.6**j for j in range(1, 5)], 4)
    found = noisy_rows_loss(renoised_rows(hypercube(4), 0, 8), tau)
    np.testing.assert_allclose(
        found[[1, 3, 7, 15]], [0.96226381, 0.50604378, 0.39425749, 0.40170694], rtol=1e-6
    )


def test_both_noisy_forms_agree() -> None:
    """1 - [(I + K^T R^-1 K)^-1]_uu, the information form, with fewer and with more rows than
    peers."""
    rng = np.random.default_rng(3)
    for k in (4, 30):
        rows, tau = rng.standard_normal((k, 9)), rng.uniform(0.1, 2.0, k)
        information = 1 - np.diagonal(
            np.linalg.inv(np.eye(9) + rows.T @ (rows / tau[:, None] ** 2))
        )
        np.testing.assert_allclose(noisy_rows_loss(rows, tau), information, atol=1e-12)


def test_small_losses_keep_their_digits() -> None:
    """A reached peer is never at 0 or below, where the information form has no digit left."""
    rows = np.array([[1.0, 1e-9, 1e-200, 0.0]])
    found = noisy_rows_loss(rows, 1.0)
    np.testing.assert_allclose(found[:2], [0.5, 0.5e-18], rtol=1e-9)
    assert found[2] > 0.0
    assert found[3] == 0.0


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="one column per peer"):
        stacked_loss(np.ones(3))
    with pytest.raises(ConfigError, match="nan or infinite"):
        stacked_loss(np.array([[np.nan, 1.0]]))
    with pytest.raises(ConfigError, match="modulo a prime have shape"):
        stacked_loss(np.ones((2, 2)), lambda prime: np.ones((1, 2), dtype=np.int64))
    with pytest.raises(ConfigError, match="one row per observation"):
        linear_gaussian(np.eye(2), np.eye(3))
    with pytest.raises(PrivacyError, match="tau must be positive"):
        noisy_rows_loss(np.eye(2), np.array([1.0, 0.0]))
    with pytest.raises(ConfigError, match="meeting 1 is of a peer with itself"):
        meeting_rows(3, np.array([0, 1]), np.array([1, 1]), [0])
    with pytest.raises(ConfigError, match=r"outside 0\.\.2"):
        meeting_rows(3, np.array([0]), np.array([3]), [0])
    with pytest.raises(ConfigError, match="same length"):
        meeting_rows(3, np.array([0]), np.array([1, 2]), [0])
    with pytest.raises(ConfigError, match="step 1 has 4 peers, not 3"):
        sequence_rows([path(3), path(4)].__getitem__, 3, 2, [0])
