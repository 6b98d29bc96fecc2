"""Graphs by design: what symmetry protects, against exact ranks (gossip:MUF-X5)."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from bruit.errors import ConfigError
from bruit.graphs import graph as named
from bruit.graphs.mixing import from_matrix
from bruit.planning.topologies.design import (
    compared,
    design,
    multiplicities,
    names_near,
    rank_bound,
)
from bruit.privacy.exact.krylov import leverage

KNOWN = {  # peers, degree, multiplicities
    "moore:7": (50, 7, [1, 28, 21]),
    "moore:3": (10, 3, [1, 5, 4]),
    "moore:2": (5, 2, [1, 2, 2]),
    "kneser:5x2": (10, 3, [1, 5, 4]),
    "kneser:7x2": (21, 10, [1, 14, 6]),
    "rook:4x4": (16, 6, [1, 6, 9]),
    "paley:13": (13, 6, [1, 6, 6]),
    "hamming:3x3": (27, 6, [1, 6, 12, 8]),
}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_families_are_what_they_are_called(name):
    peers, degree, many = KNOWN[name]
    found = named(name)
    assert (found.n, set(found.degrees.tolist())) == (peers, {degree})
    assert multiplicities(found) == many
    assert found.is_connected()


@pytest.mark.parametrize("name", ["rook:3x5", "paley:17", "hamming:2x4"])
def test_translations_are_automorphisms(name):
    found = named(name)
    whole = found.weights.toarray()
    for v in (1, found.n - 1):
        p = found.translate(v)
        assert np.array_equal(whole, whole[np.ix_(p, p)])


@pytest.mark.parametrize(
    "name",
    [
        *sorted(KNOWN),
        "star:6",
        "path:7",
        "ring:8,plus=0",
        "complete:6",
        "er:14,c=1.5,seed=2",
        "tree:9",
        "grid:3x3",
        "hypercube:4",
        "ba:15,m=1",
    ],
)
def test_the_rank_never_passes_the_bound(name):
    found = named(name)
    bound, m = rank_bound(found), len(multiplicities(found))
    for v in range(0, found.n, max(1, found.n // 5)):
        seen = leverage(found, [v], 4 * found.n)
        assert seen.rank <= bound[v] <= 1 + found.degrees[v] * (m - 1)
        assert seen.loss.sum() - 1 <= found.degrees[v] * (m - 1) + 1e-6


def test_symmetry_protects_and_randomness_exposes():
    tame, wild = design("moore:7"), design("regular:50,degree=6")
    assert (tame.exposed, tame.peers - 1, tame.worst) == (7, 49, pytest.approx(1 / 6))
    assert (wild.exposed, wild.peers - 1) == (49, 49)
    assert design("paley:53").exposed == 52  # three eigenvalues, and too many neighbors


def test_unequal_weights_expose_more():
    equal = named("moore:3")
    dice, whole = np.random.default_rng(0), np.zeros((10, 10))
    for u, v in equal.edges().tolist():
        whole[u, v] = whole[v, u] = dice.uniform(0.1, 0.3)
    np.fill_diagonal(whole, 1 - whole.sum(axis=1))
    odd = from_matrix(csr_array(whole), name="odd")
    assert design(odd).exposed == 9 > design(equal).exposed == 3


def test_the_list_has_about_as_many_peers():
    for peers in (10, 50, 64):
        sizes = [named(name).n for name in names_near(peers)]
        assert len(sizes) > 8
        assert all(abs(n - peers) <= 0.15 * peers for n in sizes)
    ranked = compared(10, 20)
    assert [one.exposed / one.peers for one in ranked] == sorted(
        one.exposed / one.peers for one in ranked
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("moore:4", "no such graph has degree 4"),
        ("paley:9", "prime number of peers"),
        ("kneser:4x2", "more than twice as many points"),
        ("rook:1x5", "two letters or more"),
        ("hamming:3", "two numbers"),
    ],
)
def test_graphs_that_do_not_exist_are_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        named(text)


def test_a_design_has_a_size():
    with pytest.raises(ConfigError, match="4 to 512 peers"):
        names_near(3)
    with pytest.raises(ConfigError, match="one fixed graph"):
        design("butterfly:8")


def test_the_command(capsys, monkeypatch):
    from typer.testing import CliRunner

    from bruit.commands.cli import app

    said = CliRunner().invoke(app, ["plan", "--design", "--peers", "10", "--json"])
    assert said.exit_code == 0, said.output
    about = json.loads(said.output)
    assert about["steps"] == 30
    assert {"moore:3", "ring:10"} <= {one["name"] for one in about["designs"]}
    wrong = CliRunner().invoke(app, ["plan", "--design", "--peers", "10", "--dim", "3"])
    assert isinstance(wrong.exception, ConfigError)
