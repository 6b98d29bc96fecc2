"""Thesis, chapter 4 and appendix A: whose values gossip averaging gives away (gossip:EXP-1 to
EXP-7)."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.stats import kendalltau, spearmanr

from bruit.adversary.attacks import Relation, all_attackers, reconstructible
from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.graphs import Graph, erdos_renyi, florentine, from_edges, from_ego, geometric
from papers.figures.sections import Cell
from papers.figures.walk_maps import EGOS, louvain
from papers.reproduce.drawing import Lines, bars, curves, on_graphs, side_by_side
from papers.reproduce.figure import Check, Figure, Finding

FIG41 = [
    *((0, 2), (1, 2), (2, 3), (2, 4), (1, 5), (1, 7), (1, 8)),
    *((5, 9), (9, 10), (9, 11), (11, 6), (7, 8), (7, 9), (7, 11)),
]
SIZES, DEGREES = (20, 40, 60, 80, 100), (3, 4, 5, 6)
# (attackers, n): mean fractions at np = 3, 4, 5, 6, computed apart from this package
REFERENCE = {
    (1, 20): (0.23, 0.38, 0.88, 0.84),
    (1, 60): (0.08, 0.39, 0.81, 0.91),
    (1, 100): (0.05, 0.38, 0.86, 0.90),
    (3, 100): (0.14, 0.25, 0.87, 1.00),
}
CRITERION_GRAPHS = {  # edges, and whose values peer 0 computes
    "a star with a tail": (4, [(0, 1), (1, 2), (1, 3)], [0, 1]),
    "a cycle": (4, [(0, 1), (0, 2), (1, 3), (2, 3)], [0, 1, 2, 3]),
    "one more peer exposes all": (5, [(0, 1), (1, 2), (1, 3), (3, 4)], [0, 1, 2, 3, 4]),
    "one more peer exposes none": (5, [(0, 1), (1, 2), (1, 3), (1, 4)], [0, 1]),
    "two tails": (6, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5)], [0, 1]),
}
# Table A.1: of the correlations with distance and with communicability
DEVIATIONS = {"Erdos-Renyi": (0.09, 0.05), "ego:414": (0.13, 0.35)}
FLORENTINE = {
    3: [2, 15, 9, 9, 9, 3, 5, 5, 4, 3, 3, 7, 5, 2, 2],
    7: [2, 15, 15, 15, 15, 15, 15, 15, 15, 3, 3, 15, 15, 2, 2],
    15: [15] * 15,
}


def connected(n: int, degree: float, count: int, first: int = 0) -> list[Graph]:
    """Connected Erdos-Renyi graphs of that mean degree; sparse ones need many draws, so some seeds
    give none."""
    found: list[Graph] = []
    seed = first
    while len(found) < count:
        with contextlib.suppress(ConfigError):
            found.append(erdos_renyi(n, q=degree / n, seed=seed))
        seed += 1
    return found


def fractions(n: int, degree: int, attackers: int, steps: int, count: int = 20) -> Array:
    """The share of peers that the first `attackers` compute together, graph by graph."""
    graphs = connected(n, degree, count)
    return np.array([reconstructible(graph, range(attackers), steps).fraction for graph in graphs])


def horizon(n: int, degree: int, attackers: int) -> int:
    """The source's rule for T."""
    return int(min(n * degree / 20 / attackers, n / 2))


def centralities(graph: Graph) -> Array:
    """Degree, eigenvector and betweenness centrality of every peer, by networkx  # (n, 3)."""
    g = graph.to_networkx()
    eigenvector = nx.eigenvector_centrality_numpy(g, weight=None)
    between = nx.betweenness_centrality(g)
    return np.array([[graph.degrees[v], eigenvector[v], between[v]] for v in range(graph.n)])


def communicability_of(graph: Graph) -> Array:
    """(e^A)_uv  # (n, n)."""
    adjacency = np.zeros((graph.n, graph.n))
    a, b = graph.edges().T
    adjacency[a, b] = adjacency[b, a] = 1.0
    return np.asarray(expm(adjacency))


def relations_of_pairs(
    graph: Graph, attacker: int, exposed: Bools, communicability: Array
) -> tuple[float, float]:
    """Kendall correlation of being reconstructed with distance and with communicability."""
    near = kendalltau(graph.distances(attacker), exposed).statistic
    return float(near), float(kendalltau(communicability[attacker], exposed).statistic)


def two_attackers(quick: bool) -> Finding:
    """Figure 4.1."""
    rows, good = [], True
    for plus in (0, 1):
        found = reconstructible(from_edges(12, FIG41, plus=plus), [0, 1], 3)
        seen = found.peers.tolist()
        sums = found.relations() == (Relation((3, 4), (Fraction(1), Fraction(1))),)
        good &= seen == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11] and sums
        rows.append((f"plus = {plus}", "all but 3, 4", str(seen), "x3 + x4" if sums else "other"))
    graph = from_edges(12, FIG41)
    shown = np.isin(np.arange(12), reconstructible(graph, [0, 1], 3).peers).astype(float)
    return Finding(
        header=("weights", "source: exposed", "exposed", "and the sum"),
        rows=rows,
        checks=(
            Check("peers 3 and 4 alone stay hidden after three steps; their sum does not", good),
        ),
        draw=on_graphs({"0 and 1 attack, 3 steps": (graph, shown)}, "exposed", "hidden"),
        settings={"attackers": "0, 1", "steps": 3},
    )


def erdos_renyi_shares(quick: bool) -> Finding:
    """Figure 4.2."""
    count = 5 if quick else 20
    sizes = (20, 60) if quick else SIZES
    rows: list[tuple[Cell, ...]] = []
    panels: dict[str, Lines] = {}
    complete, gains = [], []
    for attackers in (1,) if quick else (1, 2, 3):
        lines: dict[str, tuple[ArrayLike, ArrayLike]] = {}
        for degree in DEGREES:
            means = []
            for n in sizes:
                steps = horizon(n, degree, attackers)
                mean = float(fractions(n, degree, attackers, steps, count).mean())
                whole = float(fractions(n, degree, attackers, n, count).mean())
                complete.append(whole)
                known = REFERENCE.get((attackers, n))
                reference = known[DEGREES.index(degree)] if known else ""
                rows.append((attackers, n, degree, steps, reference, mean, whole))
                means.append(mean)
            lines[f"np = {degree}"] = (sizes, means)
        panels[f"{attackers} attacker{'s' if attackers > 1 else ''}"] = lines
        first, last = (np.array(lines[f"np = {d}"][1]) for d in (3, 6))
        gains += (last - first).tolist()
    return Finding(
        header=("attackers", "n", "np", "T", "reference", "share, rule for T", "share, T = n"),
        rows=rows,
        checks=(
            Check("with T = n at least 90 % are exposed in every cell", min(complete) >= 0.9),
            Check(
                "with the rule for T, np = 6 exposes at least 0.25 more than np = 3",
                min(gains) >= 0.25,
            ),
        ),
        draw=side_by_side(panels, "peers", "share of peers exposed"),
        settings={"graphs a cell": count, "seeds": "from 0"},
        words="the source prints no numbers; the reference is a computation apart from this package",
    )


def ego_maps(quick: bool) -> Finding:
    """Figure 4.3."""
    graph = from_ego(414)
    expected = {4: (40.1, 2, 88), 10: (77.2, 2, 125)}
    rows, maps, good = [], {}, True
    for steps, (mean, least, most) in expected.items():
        found = all_attackers(graph, steps)
        counts = found.counts
        good &= abs(counts.mean() - mean) < 0.1 and (counts.min(), counts.max()) == (least, most)
        rows.append((steps, mean, float(counts.mean()), int(counts.min()), int(counts.max())))
        maps[f"T = {steps}"] = (graph, counts.astype(np.float64))
    near = all_attackers(graph, 4).exposed
    far = np.stack([graph.distances(v) > 2 for v in range(graph.n)], axis=1)
    return Finding(
        header=("T", "reference: mean", "mean exposed", "least", "most"),
        rows=rows,
        checks=(
            Check("the six numbers of the reference", good),
            Check(
                "some peers more than two links away are exposed within four steps",
                bool((near & far).any()),
            ),
        ),
        draw=on_graphs(maps, "peers whose value this one computes"),
        settings={"graph": "ego:414", "peers": graph.n},
    )


def other_egos(quick: bool) -> Finding:
    """Figure A.3: two attackers a graph, drawn at random, one after the other."""
    times, names = (10, 50), (698, 3980) if quick else EGOS
    rows: list[tuple[Cell, ...]] = []
    maps: dict[str, tuple[Graph, Array]] = {}
    for name in names:
        graph = from_ego(name)
        community = louvain(graph)
        for v in np.random.default_rng(0).choice(graph.n, 2, replace=False).tolist():
            near, others = community == community[v], np.arange(graph.n) != v
            shares: list[float] = []
            for steps in times:
                hit = np.isin(np.arange(graph.n), reconstructible(graph, [v], steps).peers)
                shares += [float(hit[who & others].mean()) for who in (near, ~near)]
            rows.append((f"ego:{name}", graph.n, v, int(near.sum() - 1), *shares))
            if graph.n < 250:
                maps.setdefault(f"ego:{name}", (graph, hit.astype(float)))
    early, across, late = (np.array([float(str(row[k])) for row in rows]) for k in (4, 5, 6))
    first, most = (int((shares > 0.9).sum()) for shares in (early, late))
    return Finding(
        header=(
            *("graph", "peers", "attacker", "of its community"),
            *(f"exposed of {who}, T = {t}" for t in times for who in ("these", "others")),
        ),
        rows=rows,
        checks=(
            Check(
                "an attacker exposes more of its own community than of others, in the mean at T = 10"
                f" ({early.mean():.2f} and {across.mean():.2f})",
                early.mean() > across.mean(),
            ),
            Check(
                "in most cases nine tenths of the attacker's community are exposed at T = 50"
                f" ({most} of {len(rows)}; {first} at T = 10)",
                most > len(rows) / 2,
            ),
        ),
        draw=on_graphs(maps, "exposed at T = 50", "hidden"),
        settings={"attackers": "2 a graph, drawn", "communities": "Louvain"},
        words="drawn are the graphs below 250 peers, for their first attacker; the source names neither T"
        " nor its attackers",
    )


def centrality(quick: bool) -> Finding:
    """Table 4.1."""
    graphs = connected(50, 4, 40 if quick else 300)
    printed = {"Erdos-Renyi": (0.94, 0.81, 0.84), "ego:414": (0.94, 0.64, 0.66)}
    rows, first = [], []
    scores = np.array([centralities(graph)[0] for graph in graphs])
    er_degree = 0.0
    for steps in (4, 10):
        counts = [reconstructible(graph, [0], steps).peers.size for graph in graphs]
        found = [float(spearmanr(scores[:, k], counts).statistic) for k in range(3)]
        er_degree = found[0]
        first.append(found[0] == max(found))
        rows.append(("Erdos-Renyi", steps, *printed["Erdos-Renyi"], *found))
    with contextlib.suppress(ConfigError):
        ego = from_ego(414)
        own = centralities(ego)
        for steps in (4, 10):
            exposed = all_attackers(ego, steps).counts
            found = [float(spearmanr(own[:, k], exposed).statistic) for k in range(3)]
            first.append(found[0] == max(found))
            rows.append(("ego:414", steps, *printed["ego:414"], *found))
    names = ("degree", "eigenvector", "betweenness")
    apart = max(
        abs(float(str(row[5 + k])) - float(str(row[2 + k])))
        for row in rows
        for k in range(3)
        if row[1] == 4
    )
    return Finding(
        header=("graph", "T", *(f"{name}, source" for name in names), *names),
        rows=rows,
        checks=(
            Check("degree is the strongest predictor everywhere", all(first)),
            Check(
                "its correlation on Erdos-Renyi graphs is 0.90 to 0.98", 0.9 <= er_degree <= 0.98
            ),
            Check(
                f"at T = 4 every number is within 0.05 of the source's (at most {apart:.3f} off); its text"
                " names no T",
                apart <= 0.05,
                too_small=quick,
            ),
        ),
        draw=bars(
            [f"{row[0]}, T = {row[1]}" for row in rows],
            {name: [row[5 + k] for row in rows] for k, name in enumerate(names)},
            "Spearman with the number exposed",
        ),
        settings={"Erdos-Renyi graphs": len(graphs), "n": 50, "np": 4},
    )


def pairs(quick: bool) -> Finding:
    """Table A.1."""
    rows = []
    found = []
    for graph in connected(50, 4, 40 if quick else 300):
        peers = reconstructible(graph, [0], 10).peers
        if peers.size < graph.n:  # undefined where everybody is reconstructed
            exposed = np.isin(np.arange(graph.n), peers)
            found.append(relations_of_pairs(graph, 0, exposed, communicability_of(graph)))
    means = np.mean(found, axis=0)
    rows.append(("Erdos-Renyi", 10, -0.44, float(means[0]), 0.35, float(means[1])))
    with contextlib.suppress(ConfigError):
        ego = from_ego(414)
        near = communicability_of(ego)
        for steps in (4, 10):
            exposed = all_attackers(ego, steps).exposed
            own = [relations_of_pairs(ego, v, exposed[:, v], near) for v in range(ego.n)]
            both = np.mean(own, axis=0)
            rows.append(("ego:414", steps, -0.51, float(both[0]), 0.08, float(both[1])))
    return Finding(
        header=(
            *("graph", "T", "distance, source", "distance"),
            *("communicability, source", "communicability"),
        ),
        rows=rows,
        checks=(
            Check(
                "on Erdos-Renyi graphs within 0.05 of the reference, -0.435 and 0.352",
                bool(np.abs(means - (-0.435, 0.352)).max() < 0.05),
            ),
            Check(
                "every number is within the deviation that the source prints beside its own (0.09, 0.05;"
                " 0.13, 0.35)",
                all(
                    abs(float(str(row[2 + 2 * k])) - float(str(row[3 + 2 * k]))) <= spread
                    for row in rows
                    for k, spread in enumerate(DEVIATIONS[str(row[0])])
                ),
                too_small=quick,
            ),
        ),
        draw=bars(
            [f"{row[0]}, T = {row[1]}" for row in rows],
            {"distance": [row[3] for row in rows], "communicability": [row[5] for row in rows]},
            "Kendall with being exposed",
        ),
        settings={"Erdos-Renyi graphs": len(found), "n": 50, "np": 4},
    )


def no_criterion(quick: bool) -> Finding:
    """Figure A.1."""
    rows, maps, good = [], {}, True
    for name, (n, edges, expected) in CRITERION_GRAPHS.items():
        graph = from_edges(n, edges)
        found = [reconstructible(graph, [0], steps).peers.tolist() for steps in (n, 2 * n)]
        good &= found == [expected, expected]
        rows.append((name, n, str(expected), str(found[0]), str(found[1])))
        maps[name] = (graph, np.isin(np.arange(n), found[0]).astype(float))
    return Finding(
        header=("graph", "peers", "expected", "T = n", "T = 2 n"),
        rows=rows,
        checks=(Check("one more peer may expose all or none, and symmetry protects nobody", good),),
        draw=on_graphs(maps, "exposed to peer 0", "hidden"),
        words="the source's drawings are not in its text; these are graphs with the same statements",
    )


def growth(quick: bool) -> Finding:
    """Figure A.2."""
    times = (0, 1, 4, 8, 20, 50, 80)
    lines, rows, good = {}, [], True
    for seed in range(2 if quick else 5):
        graph = geometric(50, 0.2, seed=seed, connected=False)
        parts = graph.components()
        sets = [set(reconstructible(graph, [0, 1], t).peers.tolist()) for t in times]
        own = set(np.flatnonzero(np.isin(parts, parts[:2])).tolist())
        good &= all(a <= b for a, b in pairwise(sets)) and sets[-1] == sets[-2] and sets[-1] <= own
        counts = [len(one) for one in sets]
        rows.append((seed, len(own), *counts))
        lines[f"graph {seed}"] = (times, counts)
    return Finding(
        header=("graph", "in reach", *(f"T = {t}" for t in times)),
        rows=rows,
        checks=(Check("the exposed only grow with T, end before T = n, and stay in reach", good),),
        draw=curves(lines, "steps", "peers exposed to 0 and 1"),
        settings={"graph": "geometric:50,radius=0.2"},
    )


def among_families() -> tuple[dict[int, list[int]], bool]:
    """Gossip averaging among the Florentine families: whose values each computes, by T, and whether
    these are the counts of the reference."""
    graph = florentine(kind="laplacian")
    found = {steps: all_attackers(graph, steps).counts.tolist() for steps in FLORENTINE}
    return found, found == FLORENTINE


FIGURES = (
    Figure(
        id="th-4.1",
        title="Two attackers, three iterations",
        number="Figure 4.1",
        page="p. 57",
        repeat=two_attackers,
        criterion="exactly 3 and 4 stay hidden, and x3 + x4 leaks, for both kinds of weights",
        cpu_s=1,
        theory=("gossip:EXP-1", "gossip:REC-2"),
    ),
    Figure(
        id="th-4.2",
        title="Share of peers exposed on Erdos-Renyi graphs",
        number="Figure 4.2",
        page="p. 62",
        repeat=erdos_renyi_shares,
        criterion="T = n exposes 90 % in every cell; with the rule for T connectivity decides",
        cpu_s=60,
        theory=("gossip:EXP-2",),
    ),
    Figure(
        id="th-4.3",
        title="Who is exposed to whom on a Facebook ego graph",
        number="Figure 4.3",
        page="p. 64",
        repeat=ego_maps,
        criterion="mean, least and most at T = 4 and 10",
        cpu_s=20,
        theory=("gossip:EXP-3",),
        data=("ego_facebook",),
    ),
    Figure(
        id="th-A.3",
        title="Who is exposed to two attackers of each ego graph",
        number="Figure A.3",
        page="p. 137",
        repeat=other_egos,
        criterion="own communities are exposed more, and mostly",
        cpu_s=30,
        theory=("gossip:EXP-3",),
        data=("ego_facebook",),
    ),
    Figure(
        id="th-t4.1",
        title="Centrality against the number exposed",
        number="Table 4.1",
        page="p. 64",
        repeat=centrality,
        criterion="degree first everywhere, 0.90 to 0.98 on Erdos-Renyi graphs",
        cpu_s=20,
        theory=("gossip:EXP-4",),
        data=("ego_facebook",),
        instead="the rows of ego:414 are left out: the data folder is not here",
    ),
    Figure(
        id="th-tA.1",
        title="Distance and communicability against being exposed",
        number="Table A.1",
        page="p. 136",
        repeat=pairs,
        criterion="within 0.05 of the reference on Erdos-Renyi graphs",
        cpu_s=25,
        theory=("gossip:EXP-5",),
        data=("ego_facebook",),
        instead="the rows of ego:414 are left out: the data folder is not here",
    ),
    Figure(
        id="th-A.1",
        title="No simple criterion says who is exposed",
        number="Figure A.1",
        page="p. 134",
        repeat=no_criterion,
        criterion="exact sets on five graphs",
        cpu_s=1,
        theory=("gossip:EXP-6",),
    ),
    Figure(
        id="th-A.2",
        title="The exposed grow with the steps, and stop",
        number="Figure A.2",
        page="p. 137",
        repeat=growth,
        criterion="sets only grow, are constant in the end, and stay in their component",
        cpu_s=3,
        theory=("gossip:EXP-7",),
    ),
)
