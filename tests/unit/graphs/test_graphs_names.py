"""Graph strings: family:size[,key=value]* (conventions, "Graph strings")."""

from pathlib import Path

import pytest

import bruit.graphs as graphs
from bruit.errors import ConfigError
from bruit.graphs.names import families


@pytest.mark.parametrize(
    ("text", "n", "edges"),
    [
        ("path:9", 9, 8),
        ("torus:16x16", 256, 512),
        ("grid:4x5", 20, 31),
        ("hypercube:7", 128, 448),
        ("star:12", 12, 11),
        ("complete:20", 20, 190),
        ("regular:100,degree=6", 100, 300),
        ("ws:100,k=4,p=0.1", 100, 200),
        ("ba:200,m=4", 200, 784),
        ("florentine", 15, 20),
        ("karate", 34, 78),
        ("women", 32, 89),
        ("ring:16,plus=0", 16, 16),
        ("florentine,kind=laplacian,plus=0", 15, 20),
        (" ring:5 , plus=0", 5, 5),
        ("exponential:64", 64, 352),
    ],
)
def test_strings_of_known_size(text: str, n: int, edges: int) -> None:
    graph = graphs.graph(text)
    assert isinstance(graph, graphs.Graph)
    assert (graph.n, graph.edge_count) == (n, edges)


@pytest.mark.parametrize(
    "name", sorted(set(families()) - {"ego", "file", "butterfly", "circles", "meetings"})
)
def test_every_example_builds_and_its_name_builds_it_again(name: str) -> None:
    example = families()[name].rsplit(" as ", 1)[1]
    graph = graphs.graph(example.replace("10000", "1000").replace("2000", "200"))
    assert isinstance(graph, graphs.Graph)
    again = graphs.graph(graph.name)
    assert isinstance(again, graphs.Graph)
    assert (again.name, again.fingerprint()) == (graph.name, graph.fingerprint())


@pytest.mark.parametrize(
    "text",
    [
        "er:40,c=1.7,seed=5,kind=sum,plus=0",
        "er:40,q=0.123456789012345",
        "sbm:10+20,p_in=0.5,p_out=0.1,connected=false",
        "torus:3x4x5,kind=sum",
    ],
)
def test_names_are_canonical(text: str) -> None:
    graph = graphs.graph(text)
    assert sorted(graph.name.split(",")) == sorted(text.split(","))


def test_seed_run_takes_the_run_seed() -> None:
    drawn = graphs.graph("er:50,c=2,seed=run", run_seed=9)
    assert drawn.name == "er:50,c=2,seed=9"
    assert isinstance(drawn, graphs.Graph)
    assert drawn.fingerprint() == graphs.erdos_renyi(50, c=2, seed=9).fingerprint()


def test_fresh_and_butterfly_strings_are_sequences() -> None:
    fresh = graphs.graph("er:30,c=2,seed=4,plus=0,fresh=3")
    assert isinstance(fresh, graphs.GraphSequence)
    assert fresh.name == "er:30,c=2,plus=0,seed=4,fresh=3"
    assert fresh.at(0) is fresh.at(2)
    assert fresh.at(0).fingerprint() != fresh.at(3).fingerprint()
    again = graphs.graph(fresh.name)
    assert isinstance(again, graphs.GraphSequence)
    assert again.at(3).fingerprint() == fresh.at(3).fingerprint()
    plain, moved = graphs.graph("butterfly:64"), graphs.graph("butterfly:64,relabel=true,seed=7")
    assert isinstance(plain, graphs.Butterfly)
    assert isinstance(moved, graphs.Butterfly)
    assert (plain.relabel, moved.relabel, plain.period) == (None, 7, 6)
    mixed = graphs.graph("butterfly:12,radices=3x4")
    assert isinstance(mixed, graphs.Butterfly)
    assert mixed.radices == (3, 4)


def test_files_may_hold_commas(tmp_path: Path) -> None:
    path = tmp_path / "a,b.txt"
    path.write_text("0 1\n1 2\n")
    graph = graphs.graph(f"file:{path},plus=0")
    assert isinstance(graph, graphs.Graph)
    assert (graph.n, graph.name) == (3, f"file:{path},plus=0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tors:4x4", "unknown graph family 'tors' in 'tors:4x4'; did you mean 'torus'"),
        ("erdos-renyi:10", "did you mean 'er'"),
        ("cycle:5", "did you mean 'ring'"),
        ("", "unknown graph family ''"),
        ("ring", "graph 'ring': a size is missing; expected something like 'ring:16'"),
        ("ring:", "a size is missing"),
        ("karate:34", "no size is expected"),
        ("ring:-4", "size must be a whole number >= 0, found '-4'"),
        ("ring:4.5", "found '4.5'"),
        ("ring:0", "graph 'ring:0': ring needs at least one peer"),
        ("torus:4x", "size must be a whole number >= 0, found ''"),
        ("ring:4,p=3", "unknown key 'p'; ring knows kind, plus"),
        ("ring:4,plus", "found '4,plus'"),
        ("ring:4,plus=0,plus=1", "plus= is given twice"),
        ("ring:4,plus=3", "plus must be 0 or 1, found 3"),
        ("ring:4,kind=min", "'max', 'sum' or 'laplacian', found 'min'"),
        ("ring:4,fresh=2", "unknown key 'fresh'"),
        ("regular:10", "degree= is missing; expected something like 'regular:1000,degree=6'"),
        ("regular:5,degree=3", r"n \* degree even"),
        ("geometric:10,radius=0", "radius > 0"),
        ("geometric:10,radius=far", "radius must be a number, found 'far'"),
        ("er:10,q=1.5", "q between 0 and 1, found 1.5"),
        ("er:10,q=nan", "q between 0 and 1, found nan"),
        ("er:10", "exactly one of q"),
        ("er:10,c=2,seed=x", "seed must be a whole number >= 0 or 'run', found 'x'"),
        ("er:10,c=2,connected=maybe", "connected must be true or false"),
        ("er:10,c=2,fresh=0", "K >= 1 rounds, found K = 0"),
        ("butterfly:8,radices=2x3", "product is n = 8"),
        ("file:nowhere.txt", "no edge list at nowhere.txt"),
    ],
)
def test_bad_strings_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graphs.graph(text)
