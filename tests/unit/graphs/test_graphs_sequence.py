"""Sequences of graphs, the butterfly above all (gossip:MUF-X2)."""

import numpy as np
import pytest

import bruit.graphs as graphs
from bruit.errors import ConfigError


def product(sequence: graphs.GraphSequence, start: int, steps: int) -> np.ndarray:
    total = np.eye(sequence.n)
    for t in range(start, start + steps):
        total = sequence.at(t).weights.toarray() @ total
    return total


def test_butterfly_steps_are_pairs_of_one_bit() -> None:
    """gossip:MUF-X2: W_t = (I + P_{2^t}) / 2."""
    sequence = graphs.butterfly(8)
    assert (sequence.radices, sequence.period) == ((2, 2, 2), 3)
    for t in range(6):
        swap = np.eye(8)[np.arange(8) ^ (1 << t % 3)]
        np.testing.assert_array_equal(sequence.at(t).weights.toarray(), (np.eye(8) + swap) / 2)
        assert sequence.at(t).validity().ok_in_sequence
        assert sequence.at(t) is sequence.at(t + 3)


@pytest.mark.parametrize(
    ("n", "radices"), [(8, (2, 2, 2)), (6, (2, 3)), (30, (2, 3, 5)), (7, (7,)), (1, ())]
)
@pytest.mark.parametrize("relabel", [None, 5])
def test_butterfly_averages_exactly(n: int, radices: tuple[int, ...], relabel: int | None) -> None:
    sequence = graphs.butterfly(n, relabel)
    assert sequence.radices == radices
    steps = max(1, len(radices))
    for block in range(3):
        np.testing.assert_allclose(
            product(sequence, block * steps, steps), np.full((n, n), 1 / n), atol=1e-15
        )


def losses(sequence: graphs.Butterfly, v: int) -> list[float]:
    """m(u -> v) of one pass: the squared weights of u in what v hears, over their norms (rows are
    orthogonal)."""
    loss = np.zeros(sequence.n)
    for t in range(len(sequence.radices)):
        M = product(sequence, 0, t)
        for w in sequence.at(t).neighbors(v):
            loss += M[w] ** 2 / (M[w] ** 2).sum()
    return [float(x) for u, x in enumerate(loss) if u != v]


def test_butterfly_losses_of_the_worked_examples() -> None:
    """gossip:MUF-X2 examples for v = 0: three bits, and radix (2, 3)."""
    np.testing.assert_allclose(
        losses(graphs.butterfly(8), 0), [1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    )
    np.testing.assert_allclose(losses(graphs.butterfly(6), 0), [1, 0.5, 0.5, 0.5, 0.5])


def test_relabelled_butterfly_moves_peers_in_every_block() -> None:
    sequence = graphs.butterfly(16, relabel=3)
    assert sequence.period is None
    first, second = sequence.labels(0), sequence.labels(4)
    assert sorted(first) == list(range(16))
    assert (sequence.labels(3) == first).all()
    assert (second != first).any()
    for t in (1, 6):
        place = sequence.labels(t)
        for u in range(16):
            assert place[sequence.at(t).neighbors(u)].tolist() == [place[u] ^ (1 << t % 4)]
    assert sequence.at(0).fingerprint() == graphs.butterfly(16, relabel=3).at(0).fingerprint()
    assert (graphs.butterfly(16).labels(9) == np.arange(16)).all()


def test_butterfly_steps_know_their_group() -> None:
    sequence = graphs.butterfly(12, radices=(3, 4))
    for t in range(2):
        W = sequence.at(t).weights.toarray()
        for v in (1, 5, 11):
            p = sequence.at(t).translate(v)
            np.testing.assert_array_equal(W[np.ix_(p, p)], W)
    assert sequence.at(0).neighbors(0).tolist() == [1, 2]
    assert sequence.at(1).neighbors(0).tolist() == [3, 6, 9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "at least one peer"),
        ({"n": 8, "radices": (2, 3)}, r"product is n = 8, found \(2, 3\)"),
        ({"n": 8, "radices": (8, 1)}, "radices >= 2"),
        ({"n": 8, "relabel": -1}, "seed >= 0"),
    ],
)
def test_bad_butterflies(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graphs.butterfly(**arguments)


def test_fresh_draws_every_few_rounds() -> None:
    sequence = graphs.fresh(lambda seed: graphs.regular(20, 3, seed), every=2, seed=1)
    names = [sequence.at(t).fingerprint() for t in range(6)]
    assert names[0] == names[1] != names[2] == names[3] != names[4] == names[5]
    assert sequence.at(1).fingerprint() == names[0]  # going back draws the same graph again
    other = graphs.fresh(lambda seed: graphs.regular(20, 3, seed), every=2, seed=2)
    assert other.at(0).fingerprint() != names[0]
    assert (sequence.n, sequence.period, sequence.name) == (
        20,
        None,
        "regular:20,degree=3,seed=1,fresh=2",
    )
    with pytest.raises(ConfigError, match="K >= 1 rounds, found K = 0"):
        graphs.fresh(graphs.ring, every=0)


def test_fresh_families_must_keep_their_peers() -> None:
    growing = iter(range(3, 10))
    sequence = graphs.fresh(lambda seed: graphs.ring(next(growing)))
    with pytest.raises(ConfigError, match="draw 1 has 4 peers, the first had 3"):
        sequence.at(1)


def test_static_and_given_sequences() -> None:
    ring, path = graphs.ring(5), graphs.path(5)
    still = graphs.static(ring)
    assert (still.at(7), still.n, still.period, still.name) == (ring, 5, 1, "ring:5")
    turns = graphs.given([ring, path])
    assert [turns.at(t) for t in range(3)] == [ring, path, ring]
    assert turns.period == 2
    with pytest.raises(ConfigError, match=r"sizes \[5, 4\]"):
        graphs.given([ring, graphs.path(4)])
    with pytest.raises(ConfigError, match="at least one graph"):
        graphs.given([])
    with pytest.raises(ConfigError, match="counted from 0, found -1"):
        still.at(-1)
