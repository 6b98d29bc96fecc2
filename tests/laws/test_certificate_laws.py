"""Laws of the exact loss on sparse graphs with twins, where rounding once passed for knowledge
(gossip:MUF-2, REC-2).

An attack that exposes a peer makes its loss 1; the losses sum to the exact rank; what is called
exact is the truth of long arithmetic, from above; what is not certified is a bound that says so.
"""

from dataclasses import replace
from math import isqrt

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks.knowledge import meeting_knowledge, sequence_knowledge
from bruit.adversary.attacks.reconstruct import Reconstruction, decide, reconstructible
from bruit.graphs import Graph
from bruit.graphs.names import graph as named
from bruit.graphs.sequence import given
from bruit.privacy.exact.all_pairs import pairwise
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.krylov import (
    TOLERANCE,
    Leverage,
    certified,
    group_loss,
    leverage,
    row_space,
)
from bruit.privacy.exact.modular import krylov_ranks
from bruit.privacy.exact.rows import meeting_loss, sequence_loss
from bruit.privacy.exact.span import krylov_span
from bruit.privacy.exact.twins import cells_of, graph_residues, singletons


def graph_of(text: str) -> Graph:
    found = named(text)
    assert isinstance(found, Graph)
    return found


def check(found: Leverage, attack: Reconstruction) -> bool:
    """Both laws; whether the losses are called exact."""
    assert np.isfinite(found.loss).all()
    assert ((found.loss >= 0.0) & (found.loss <= 1.0)).all()
    assert (found.loss[attack.peers] >= 1.0 - 1e-9).all()
    if found.status == "upper bound":
        assert "charged" in found.certificate.note
        assert found.loss.sum() >= attack.rank
        return False
    assert found.rank == attack.rank
    assert found.certificate.error <= TOLERANCE
    assert found.loss.sum() == pytest.approx(
        attack.rank, abs=1e-9 + found.loss.size * found.certificate.error
    )
    return True


GHOSTS = [
    ("kout:80,k=1,seed=580", 80, 47),  # loss 0.672 of peer 11, "proven, exact", where it is 1
    ("kout:150,k=1,seed=254", 150, 3),  # 12 273 of 20 006 exposed pairs were below 1, down to 0.459
    ("kout:150,k=1,seed=254", 75, 11),
    ("geometric:120,radius=0.13,seed=230", 94, 17),  # "array must not contain infs or NaNs"
    ("geometric:120,radius=0.13,seed=230", 15, 0),
    ("ba:150,m=1,seed=3", 60, 10),
]


@pytest.mark.parametrize(("text", "steps", "observer"), GHOSTS)
def test_ghosts_do_not_pass_for_directions(text: str, steps: int, observer: int) -> None:
    graph = graph_of(text)
    assert check(leverage(graph, [observer], steps), reconstructible(graph, [observer], steps))


def test_the_pair_that_was_wrong() -> None:
    """`bruit epsilon --graph kout:80,k=1,seed=580 --steps 80 --of 11 --seen-by 47` said 0.672;
    fractions say 1."""
    assert leverage(graph_of("kout:80,k=1,seed=580"), [47], 80).loss[11] == 1.0


def test_no_exception_instead_of_a_bound() -> None:
    """A sequence of one graph takes the path of stacked rows; it ended in infs or NaNs."""
    graph = graph_of("geometric:120,radius=0.13,seed=230")
    run = br.rehearse(br.Averaging(), given([graph]), br.Gaussian(clip=0.5, sigma=1.0), steps=94)
    loss = run.guarantee(of=13, seen_by=17).loss
    assert loss is not None
    assert leverage(graph, [17], 94).loss[13] - 1e-9 <= loss <= 1.0


def long_losses(graph: Graph, observer: int, steps: int, bits: int = 1500) -> np.ndarray:
    """Squared projections by Gram-Schmidt on the powers, in fixed point with so many bits; peers in
    order."""
    n, one = graph.n, 1 << bits
    weights = [
        [(int(j), graph.fraction(i, int(j))) for j in (*graph.neighbors(i), i)] for i in range(n)
    ]
    starts = [int(w) for w in graph.neighbors(observer)]
    basis: list[np.ndarray] = []
    rows = [np.array([one if i == w else 0 for i in range(n)], dtype=object) for w in starts]
    for _ in range(steps):
        kept = []
        for row in rows:
            for _ in range(2):
                for known in basis:
                    row = row - ((row @ known >> bits) * known >> bits)
            length = row @ row
            if length >> bits > 1 << bits // 2:
                kept.append(row * one // isqrt(length))
                basis.append(kept[-1])
        rows = []
        for row in kept:
            mixed = [
                sum((int(row[j]) * w.numerator // w.denominator for j, w in weights[i]), 0)
                for i in range(n)
            ]
            mixed[observer] = 0
            rows.append(np.array(mixed, dtype=object))
    total = sum((q * q for q in basis), np.zeros(n, dtype=object))
    return np.array([float(x >> 2 * bits - 80) * 2.0**-80 for x in total])


@pytest.mark.parametrize(
    ("text", "steps", "observer"),
    [
        ("kout:80,k=1,seed=580", 30, 47),
        ("ba:80,m=1,seed=4", 25, 9),
        ("geometric:80,radius=0.17,seed=2", 8, 3),
    ],
)
def test_long_arithmetic_agrees(text: str, steps: int, observer: int) -> None:
    """Hidden peers too: never below the truth, and above it by no more than what was said to be
    added."""
    graph = graph_of(text)
    found, truth = leverage(graph, [observer], steps), long_losses(graph, observer, steps)
    assert found.status == "exact"
    assert truth.sum() == pytest.approx(found.rank - 1, abs=1e-12)
    off = np.delete(found.loss - truth, observer)
    assert off.min() >= -1e-14
    assert off.max() <= 2 * found.certificate.error + 1e-14


def test_all_pairs_keep_both_laws() -> None:
    graph = graph_of("kout:80,k=1,seed=580")
    found = pairwise(graph, 80)
    assert found.exact.all()
    for v in range(graph.n):
        attack = reconstructible(graph, [v], 80)
        exposed = attack.peers[attack.peers != v]
        assert (found.m[exposed, v] >= 1.0 - 1e-9).all()
        assert np.nansum(found.m[:, v]) == pytest.approx(attack.rank - 1, abs=1e-6)


def test_groups_and_the_space_itself_see_no_ghost() -> None:
    """What is known of two exposed peers at once, and the basis that plans are made with."""
    graph = graph_of("kout:80,k=1,seed=580")
    attack = reconstructible(graph, [47], 80)
    exposed = attack.peers[attack.peers != 47]
    assert group_loss(graph, [47], 80, exposed[:3]) == pytest.approx(3.0, abs=1e-9)
    lengths = (row_space(graph, [47], 80) ** 2).sum(axis=1)
    np.testing.assert_allclose(lengths[attack.peers], 1.0, atol=1e-12)
    assert lengths.sum() == pytest.approx(attack.rank, abs=1e-9)


def test_meetings_and_changing_graphs_keep_both_laws() -> None:
    """Trees met edge by edge, and trees that change, with leaves nobody can tell apart."""
    tree = graph_of("ba:60,m=1,seed=2")
    edges = np.array([(u, int(v)) for u in range(60) for v in tree.neighbors(u) if u < v])
    words = np.random.default_rng(5).integers(0, len(edges), 900)
    a, b = edges[words].T
    trees = [graph_of(f"ba:60,m=1,seed={seed % 3}") for seed in range(12)]
    for observer in (0, 7, 31):
        check(meeting_loss(60, a, b, [observer]), decide(meeting_knowledge(60, a, b, [observer])))
        known = sequence_knowledge(trees.__getitem__, 60, 12, [observer])
        check(sequence_loss(trees.__getitem__, 60, 12, [observer]), decide(known))


FAMILIES = (
    "kout:{n},k=1",
    "kout:{n},k=2",
    "ba:{n},m=1",
    "geometric:{n},radius={radius:.3f},connected=false",
    "er:{n},c=0.5,connected=false",
)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_both_laws_on_sparse_graphs(family: str) -> None:
    """Sixty seeds a family, 80 to 240 peers and two of 400, T from 3 to n; all but one in fifty are
    exact (a floor set after seeing them all pass)."""
    drawn = np.random.default_rng(15)
    exact = []
    for seed in range(60):
        n = 400 if seed % 30 == 29 else int(drawn.integers(80, 241))
        graph = graph_of(f"{family.format(n=n, radius=1.2 / n**0.5)},seed={seed}")
        observer = int(drawn.integers(n))
        for steps in {int(drawn.integers(3, n + 1)), n}:
            exact.append(
                check(leverage(graph, [observer], steps), reconstructible(graph, [observer], steps))
            )
    assert np.mean(exact) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES[:3])
def test_both_laws_on_changing_sparse_graphs(family: str) -> None:
    """Two graphs in turn: the path of stacked rows, in 30 digits where need be."""
    exact = []
    for seed in range(8):
        graphs = [graph_of(f"{family.format(n=80)},seed={seed + 100 * k}") for k in range(2)]
        for steps in (6, 20):
            known = sequence_knowledge(lambda t, graphs=graphs: graphs[t % 2], 80, steps, [seed])
            exact.append(
                check(
                    sequence_loss(lambda t, graphs=graphs: graphs[t % 2], 80, steps, [seed]),
                    decide(known),
                )
            )
    assert np.mean(exact) > 0.5


def alone(graph: Graph, observer: int, steps: int) -> tuple[Leverage, Leverage] | None:
    """The losses, and those of the recurrence in doubles without help: no twins, no exposure, no 30
    digits."""
    span = krylov_span(graph, np.array([observer]), steps)
    if span is None:
        return None
    ranks, known = krylov_ranks(graph, span), np.array([observer])
    helped = certified(graph, span, ranks, cells_of(span, graph_residues(graph)), known)
    with one_blas_thread():
        return helped, certified(
            graph, span, replace(ranks, exposed=None), singletons(span), known, refine=False
        )


def is_honest(helped: Leverage, found: Leverage) -> bool:
    """Whether losses that call themselves exact are nowhere below the truth."""
    return (helped.loss - found.loss).max() <= 2 * helped.certificate.error + 1e-12


@pytest.mark.parametrize(("text", "steps", "observer"), GHOSTS)
def test_the_drift_alone_refuses_ghosts(text: str, steps: int, observer: int) -> None:
    both = alone(graph_of(text), observer, steps)
    assert both is not None
    assert is_honest(*both)


@pytest.mark.slow
def test_the_drift_alone_refuses_ghosts_of_many_graphs() -> None:
    """Some of 160 are refused (how many was seen before the limits were set); none that is not
    refused is wrong."""
    drawn = np.random.default_rng(8)
    exact = []
    for seed in range(160):
        n = int(drawn.integers(60, 160))
        graph = graph_of(f"{FAMILIES[seed % 3].format(n=n)},seed={seed}")
        both = alone(graph, int(drawn.integers(n)), int(drawn.integers(n // 2, n + 1)))
        if both is not None:
            assert is_honest(*both)
            exact.append(both[1].status == "exact")
    assert 0.3 < np.mean(exact) < 0.98
