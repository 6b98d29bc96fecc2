"""Edge lists with a third column: mixing weights or similarities, written and read back."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError

TREE = np.array([[0, 3, 1, 0], [3, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0.0]])


@pytest.mark.parametrize(
    "graph",
    [
        br.graphs.similarity(TREE),
        br.graphs.similarity(np.arange(36.0).reshape(6, 6) + np.arange(36.0).reshape(6, 6).T),
        br.graphs.ring(5),
        br.graphs.similarity(np.zeros((3, 3))),
    ],
    ids=["isolated peer", "dense", "ring", "nobody talks"],
)
@pytest.mark.parametrize("name", ["edges.txt", "edges.txt.gz"])
def test_a_written_graph_is_read_back_exactly(tmp_path, graph, name):
    path = br.graphs.to_edge_list(graph, tmp_path / name)
    again = br.graphs.graph(f"file:{path}")
    gap = np.abs(again.weights.toarray() - graph.weights.toarray())
    assert gap.max() < 1e-15
    assert (gap[~np.eye(graph.n, dtype=bool)] == 0).all()
    assert (
        graph.exponents is None or again.fingerprint() == graph.fingerprint()
    )  # given as floats, not as fractions
    assert again.labels == tuple(str(v) for v in range(graph.n))


def test_weights_that_add_up_to_more_than_one_are_similarities(tmp_path):
    """perso:PERSO-1: only the ratios of similarities matter, so they are divided by the largest
    sum."""
    (tmp_path / "edges.txt").write_text("a b 3\nb a 3\na c 1\nd d 1\n")
    graph = br.graphs.from_edge_list(tmp_path / "edges.txt")
    assert graph.weights.toarray() == pytest.approx(br.graphs.similarity(TREE).weights.toarray())
    assert graph.labels == ("a", "b", "c", "d")


def test_small_weights_are_mixing_weights(tmp_path):
    (tmp_path / "edges.txt").write_text("0,1,0.25\n1,2,0.5\n")
    assert br.graphs.from_edge_list(tmp_path / "edges.txt").self_weights() == pytest.approx(
        (0.75, 0.25, 0.5)
    )


def test_what_does_not_go_together_is_refused(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1 0.25\n")
    with pytest.raises(ConfigError, match="leave kind= and plus= out"):
        br.graphs.graph(f"file:{tmp_path / 'edges.txt'},plus=0")
    (tmp_path / "words.txt").write_text("ann bob\n")
    odd = br.graphs.from_edges(2, [(0, 1)], labels=("ann lee", "bob"))
    with pytest.raises(ConfigError, match="'ann lee' cannot stand in an edge list"):
        br.graphs.to_edge_list(odd, tmp_path / "out.txt")
    with pytest.raises(ConfigError, match="there is no folder"):
        br.graphs.to_edge_list(br.graphs.ring(3), tmp_path / "nowhere" / "out.txt")
