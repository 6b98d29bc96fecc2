"""The largest quadratic form of scalars that move together (gossip:LG-1, MUF-12): above all signs,
below sum |Q|."""

from itertools import product

import numpy as np
import pytest

from bruit.graphs import grid
from bruit.privacy.exact.largest_forms import LARGEST, largest_form
from bruit.privacy.exact.rows import sequence_rows
from bruit.privacy.theorems.descent import GossipDescent, nonadaptive, view
from bruit.privacy.theorems.group import group_losses


def projectors(count):
    """Parts of random projectors, and forms with a large common part."""
    rng = np.random.default_rng(11)
    for trial in range(count):
        size = int(rng.integers(3, 9))
        if trial % 2:
            basis = np.linalg.qr(rng.normal(size=(3 * size, int(rng.integers(1, size + 1)))))[0][
                :size
            ]
        else:
            basis = 0.5 * rng.normal(size=(size, size)) + 0.3
        yield basis @ basis.T


def best_signs(form):
    signs = np.array(list(product((1.0, -1.0), repeat=len(form))))
    return float(np.einsum("ij,jk,ik->i", signs, form, signs).max())


def best_vectors(form, length, sweeps=400):
    """Coordinate ascent over unit vectors from random starts: a lower bound that is attained."""
    rng, best = np.random.default_rng(2), 0.0
    for _ in range(4):
        vectors = rng.normal(size=(len(form), length))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for _ in range(sweeps):
            for s in range(len(form)):
                pull = form[s] @ vectors - form[s, s] * vectors[s]
                vectors[s] = pull / np.linalg.norm(pull)
        best = max(best, float(np.sum((form @ vectors) * vectors)))
    return best


def test_above_every_choice_of_signs_and_below_the_sum():
    ratios = []
    for form in projectors(200):
        found, truth = largest_form(form), best_signs(form)
        assert truth * (1 - 1e-12) <= found <= np.abs(form).sum() * (1 + 1e-12)
        ratios.append(found / truth)
    assert (
        max(ratios) < np.pi / 2
    )  # what a semidefinite relaxation of a positive form may lose (Nesterov)
    assert np.mean(ratios) < 1.02


def test_above_vectors_of_length_at_most_one():
    rng = np.random.default_rng(5)
    for form in projectors(60):
        found = largest_form(form)
        for length in (1, 2, 5):
            vectors = rng.normal(size=(200, len(form), length))
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            vectors *= rng.choice([1.0, 0.5], size=(200, len(form), 1))
            assert np.einsum("kil,ij,kjl->k", vectors, form, vectors).max() <= found * (1 + 1e-12)


def test_it_is_the_maximum_over_vectors():
    """Strong duality: for vectors of enough numbers nothing is lost."""
    for form in projectors(12):
        assert largest_form(form) == pytest.approx(best_vectors(form, len(form)), rel=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        np.ones((4, 4)),
        np.eye(5),
        np.diag([1.0, 0.0, 2.0]),
        np.array([[1.0, -0.5], [-0.5, 1.0]]),
        np.zeros((3, 3)),
        np.outer([1.0, -2.0, 0.5, -1.0], [1.0, -2.0, 0.5, -1.0]),
    ],
    ids=["alike", "apart", "diagonal", "two", "nothing", "opposite"],
)
def test_equal_to_the_sum_where_signs_can_agree(form):
    assert largest_form(form) == pytest.approx(np.abs(form).sum(), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-14, 1e-6, 1.0, 1e8])
def test_it_scales(scale):
    for form in projectors(20):
        assert best_signs(scale * form) * (1 - 1e-12) <= largest_form(scale * form)
        assert largest_form(scale * form) == pytest.approx(scale * largest_form(form), rel=1e-9)


def test_beyond_its_size_the_sum():
    wide = np.eye(LARGEST + 1)
    wide[0, 1] = wide[1, 0] = -0.5
    assert largest_form(wide) == np.abs(wide).sum()
    assert largest_form(np.full((3, 3), np.inf)) == np.inf


def test_groups_and_rounds_use_it():
    """Never below the worst signs, and below sum |Q| where entries differ in sign."""
    graph = grid(3, 4)
    rows = sequence_rows(lambda t: graph, graph.n, 3, [0]).values
    pi = np.linalg.pinv(rows) @ rows
    sharper = 0
    for group in ([1, 4, 5], [2, 5, 8, 6], [1, 2, 4, 5, 6, 8, 9]):
        part = pi[np.ix_(group, group)]
        found, plain = (
            group_losses(graph, 3, group, 0),
            min(float(np.abs(part).sum()), float(len(group))),
        )
        assert best_signs(part) - 1e-9 <= found <= plain + 1e-7
        sharper += found < plain - 1e-3
    assert sharper
    descent = GossipDescent(graph, 4, 1)
    basis = view(descent, 0).projector.columns
    for u, found in enumerate(nonadaptive(descent, 0)[1:], start=1):
        chosen = u + graph.n * np.arange(4)
        assert best_signs(basis[chosen] @ basis[chosen].T) - 1e-9 <= found <= 4.0
