"""The complete graph says in closed form what its matrix would say, and is not made of n^2
numbers."""

import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest

import bruit as br
from bruit.graphs import (
    Complete,
    complete,
    diameter,
    everybody,
    from_edges,
    mixing_time,
    spectral_gap,
)
from bruit.graphs.facts import graph_facts
from bruit.graphs.spectrum import second_eigenvalue
from bruit.privacy.theorems.consensus import is_uniform
from bruit.tasks import Logistic, Mean, Records

NOISE = br.Gaussian(clip=1.0, sigma=1.0)


def listed(n, kind="max", plus=1):
    """The same graph from its list of edges."""
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    return from_edges(n, edges, kind=kind, plus=plus, name=f"complete:{n}", group=(n,))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31])
@pytest.mark.parametrize("kind", ["max", "sum", "laplacian"])
@pytest.mark.parametrize("plus", [0, 1])
def test_all_facts_are_those_of_the_matrix(n, kind, plus):
    made, known = complete(n, kind=kind, plus=plus), listed(n, kind, plus)
    assert isinstance(made, Complete)
    assert (made.n, made.name, made.edge_count, made.entries, made.group) == (
        n,
        known.name,
        known.edge_count,
        known.entries,
        known.group,
    )
    assert made.fingerprint() == known.fingerprint()
    assert "_matrix" not in vars(made)
    assert made.validity() == known.validity()
    assert made.is_connected()
    assert made.degrees.tolist() == known.degrees.tolist()
    assert np.array_equal(made.self_weights(), known.self_weights())
    assert np.array_equal(made.components(), known.components())
    assert is_uniform(made) == is_uniform(known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [diameter(made), spectral_gap(made), mixing_time(made), second_eigenvalue(made)] == [
            diameter(known),
            spectral_gap(known),
            mixing_time(known),
            second_eigenvalue(known),
        ]
    for v in range(n):
        assert made.neighbors(v).tolist() == known.neighbors(v).tolist()
        assert made.distances(v).tolist() == known.distances(v).tolist()
        assert all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(made.row(v), known.row(v), strict=True)
        )
        assert [made.fraction(v, w) for w in range(n)] == [known.fraction(v, w) for w in range(n)]
        assert [made.has_edge(v, w) for w in range(n)] == [known.has_edge(v, w) for w in range(n)]
    assert np.array_equal(made.weights.toarray(), known.weights.toarray())
    assert made.numerators.tolist() == known.numerators.tolist()
    assert made.denominators.tolist() == known.denominators.tolist()
    assert made.edges().tolist() == known.edges().tolist()


@pytest.fixture
def large(monkeypatch):
    """As if a hundred peers were more than a matrix can be made for."""
    monkeypatch.setattr(everybody, "MOST", 100)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("kind", "plus"), [("max", 1), ("max", 0), ("sum", 1)])
def test_mixing_by_a_rule_is_mixing_by_the_matrix(kind, plus):
    rows = np.random.default_rng(0).normal(size=(300, 4))
    made, known = complete(300, kind=kind, plus=plus), listed(300, kind, plus)
    assert np.allclose(made.mix(rows), known.weights @ rows, atol=1e-15)


def runs(algorithm, task, monkeypatch, **options):
    """One on the matrix, one without it."""
    found = []
    for most in (10_000, 100):
        monkeypatch.setattr(everybody, "MOST", most)
        found.append(
            br.run(algorithm, complete(300), task, privacy=NOISE, seed=2, rehearsal=True, **options)
        )
    return found


@pytest.mark.parametrize(
    ("algorithm", "steps"),
    [
        (br.Averaging(), 4),
        (br.Chebyshev(), 4),
        (br.PairAveraging(), 3),
        (br.PairAveraging(br.Pairs("clocks")), 3),
        (br.GossipSGD(), 4),
        (br.WalkSGD(), 200),
        (br.RingSum(), 600),
    ],
    ids=str,
)
def test_protocols_run_without_the_matrix(algorithm, steps, monkeypatch):
    """The same meetings, and the same law; the noise has another address, as the graph has another
    fingerprint."""
    known, made = runs(algorithm, Mean.uniform(300, 2, 0), monkeypatch, steps=steps)
    assert len(known.ledger) == len(made.ledger)
    assert made.trace.messages == known.trace.messages
    assert np.array_equal(known.trace.meetings.a, made.trace.meetings.a)
    assert np.array_equal(known.trace.meetings.b, made.trace.meetings.b)
    assert "_matrix" not in vars(made.graph)
    assert made.epsilon(of=1, seen_by=2) == known.epsilon(of=1, seen_by=2)


def test_noiseless_averages_agree(monkeypatch):
    task, found = Mean.uniform(300, 2, 0), []
    for most in (10_000, 100):
        monkeypatch.setattr(everybody, "MOST", most)
        found.append(br.run(br.Averaging(), complete(300, plus=0), task, steps=3))
    assert np.allclose(found[0].estimates, found[1].estimates, atol=1e-14)


@pytest.mark.usefixtures("large")
def test_what_needs_the_matrix_says_so():
    graph = complete(300)
    for ask in (
        lambda: graph.weights,
        graph.edges,
        lambda: graph.residues(101),
        lambda: br.run(br.Gopa(), graph, Mean.uniform(300, 1, 0), privacy=NOISE, steps=1),
    ):
        with pytest.raises(
            br.ConfigError, match=r"needs the 90,000 weights of complete:300 .* up to 100 peers"
        ):
            ask()


@pytest.mark.usefixtures("large")
def test_a_folder_knows_the_graph_by_its_name(tmp_path):
    run = br.run(br.Averaging(), complete(300), Mean.uniform(300, 1, 0), privacy=NOISE, steps=2)
    again = br.load(run.save(tmp_path / "a.run"))
    assert again.graph.fingerprint() == run.graph.fingerprint()
    assert again.epsilon(of=0, seen_by=1) == run.epsilon(of=0, seen_by=1)


@pytest.mark.usefixtures("large")
def test_memory_is_that_of_the_peers():
    """4000 peers: one byte a pair would be 16 MB."""
    n, rng = 4000, np.random.default_rng(0)
    task = Logistic(Records.of(rng.normal(size=(n, 2)), np.sign(rng.normal(size=n)), np.arange(n)))
    br.run(
        br.WalkSGD(), complete(200), logistic(200), privacy=NOISE, steps=2000, evaluate_every=0
    )  # compiles
    tracemalloc.start()
    walk = br.run(br.WalkSGD(), complete(n), task, privacy=NOISE, steps=5000, evaluate_every=0)
    walk.epsilon(of=1, seen_by=2)
    gossip = br.run(br.Averaging(), complete(n), Mean.uniform(n, 1, 0), privacy=NOISE, steps=3)
    gossip.epsilon(of=1, seen_by=2)
    graph_facts(f"complete:{n}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6


def logistic(n):
    rng = np.random.default_rng(0)
    return Logistic(Records.of(rng.normal(size=(n, 2)), np.sign(rng.normal(size=n)), np.arange(n)))


def test_all_pairs_of_too_many_peers_are_refused(monkeypatch):
    from bruit.privacy import account

    monkeypatch.setattr(account, "MOST_PEERS", 20)
    run = br.run(br.Averaging(), complete(21), Mean.uniform(21, 1, 0), privacy=NOISE, steps=2)
    assert run.epsilon(of=0, seen_by=1) > 0
    with pytest.raises(
        br.PrivacyError, match=r"all pairs of 21 peers are 441 numbers.*one observer"
    ):
        run.losses()


LARGEST = """
from pathlib import Path
from bruit.commands.cli import main
try:
    main()
finally:  # of this program alone: the maximum that getrusage knows is also that of who forked it
    known = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    print("kilobytes", known["VmHWM"].split()[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("graph", "complete:20000"),
        (
            "epsilon",
            "--graph",
            "complete:20000",
            "--algorithm",
            "averaging",
            "--sigma",
            "5",
            "--steps",
            "4",
            "--of",
            "1",
            "--seen-by",
            "2",
        ),
        (
            "epsilon",
            "--graph",
            "complete:20000",
            "--algorithm",
            "walk-sgd",
            "--sigma",
            "5",
            "--steps",
            "3000",
            "--of",
            "1",
            "--seen-by",
            "2",
        ),
        (
            "plan",
            "--graph",
            "complete:20000",
            "--algorithm",
            "walk",
            "--contributions",
            "12",
            "--epsilon",
            "1",
        ),
    ],
    ids=lambda asked: " ".join(asked[:5]),
)
def test_the_largest_complete_graph_takes_less_than_a_gigabyte(asked):
    done = subprocess.run(
        [sys.executable, "-c", LARGEST, *asked], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.rsplit("kilobytes", 1)[1]) < 1_000_000
