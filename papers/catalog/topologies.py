"""Thesis, chapter 2 and Table 6.1: usual graphs, their gaps, and what private averaging costs on
them (gossip:GM-2, MUF-6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import bruit as br
from bruit.arrays import Array
from bruit.graphs import Graph, diameter, second_eigenvalue
from bruit.graphs.coordinates import coordinates
from bruit.planning.utility import (
    accelerated_steps,
    central_error,
    error_at_mean_loss,
    local_error,
    randomized_steps,
)
from papers.figures.pictures import LINK, links
from papers.figures.sections import Cell
from papers.reproduce.drawing import COLORS, Draw, bars, grid, side_by_side
from papers.reproduce.figure import Check, Figure, Finding

CLASSICAL = {  # edges, largest degree, diameter
    "star:16": (15, 15, 2),
    "path:16": (15, 2, 15),
    "ring:16": (16, 2, 8),
    "torus:4x4": (32, 4, 4),
    "hypercube:4": (32, 4, 4),
    "complete:16": (120, 15, 1),
}
RANDOM = {
    "Erdos-Renyi": "er:100,c=2",
    "Barabasi-Albert": "ba:100,m=2",
    "geometric": "geometric:100,radius=0.2",
}
EXPANDER = 8
# Table 2.2: degree and gap as printed (n = peers), and how much the gap falls from n / 4 to n peers
TOPOLOGIES: dict[str, tuple[tuple[str], tuple[str], float | None]] = {
    "complete": (("n - 1",), ("1",), 1.0),
    "expander": (("O(1)",), ("O(1)",), None),
    "torus": (("4",), ("O(1/n)",), 4.0),
    "ring": (("2",), ("O(1/n^2)",), 16.0),
    "line": (("2",), ("O(1/n^2)",), 16.0),
    "hypercube": (("",), ("",), None),
    "exponential": (("",), ("",), None),
    "star": (("",), ("",), None),
}
# Table 6.1: the error of a mean at equal mean loss falls like n to this power, up to logarithms
EXPONENTS = {
    "expander": (-2.0, -2.0),
    "torus": (-1.5, -1.0),
    "complete": (-1.0, -2.0),
    "ring": (-1.0, -1.0),
}


def made(name: str) -> Graph:
    """A graph by its name."""
    graph = br.graphs.graph(name)
    assert isinstance(graph, Graph)
    return graph


def drawn(panels: dict[str, Graph], by_degree: bool) -> Draw:
    """Graphs side by side; peers are as large as their degree where that is asked."""

    def draw(figure: Any) -> None:
        places = grid(figure, len(panels), shared=False)
        for panel, (name, graph) in zip(places, panels.items(), strict=True):
            at = coordinates(graph).places
            links(panel, graph, at)
            _around(panel, graph, at)
            sizes = 5 * graph.degrees if by_degree else 30
            panel.scatter(*at.T, s=sizes, color=COLORS[0], zorder=2)
            panel.set_title(name, fontsize=9)
            panel.set_axis_off()

    return draw


def _around(panel: Any, graph: Graph, places: Array) -> None:
    """Arcs for links that a straight line would hide, since it passes over other peers."""
    for a, b in graph.edges():
        along = places[b] - places[a]
        if not (length := float(along @ along)):
            continue
        share = (places - places[a]) @ along / length
        off = np.linalg.norm(places - places[a] - share[:, None] * along, axis=1)
        if ((off < 1e-6) & (share > 1e-6) & (share < 1 - 1e-6)).any():
            arc = {"arrowstyle": "-", "color": LINK, "lw": 0.5, "connectionstyle": "arc3,rad=0.25"}
            panel.annotate("", places[b], places[a], arrowprops=arc)


def classical(quick: bool) -> Finding:
    """Figure 2.5."""
    rows: list[tuple[Cell, ...]] = []
    panels: dict[str, Graph] = {}
    same = True
    for name, known in CLASSICAL.items():
        graph = made(name)
        found = (len(graph.edges()), int(graph.degrees.max()), diameter(graph))
        same &= found == known
        rows.append((name, *found, float(br.graphs.spectral_gap(graph))))
        panels[name] = graph
    return Finding(
        header=("graph", "edges", "degree", "diameter", "spectral gap"),
        rows=rows,
        checks=(Check("edges, degrees and diameters by hand", same),),
        draw=drawn(panels, by_degree=False),
    )


def random_graphs(quick: bool) -> Finding:
    """Figure 2.6."""
    rows: list[tuple[Cell, ...]] = []
    panels: dict[str, Graph] = {}
    most: dict[str, float] = {}
    whole = True
    for name, text in RANDOM.items():
        graph = made(text)
        degrees = graph.degrees.astype(float)
        most[name] = float(degrees.max() / degrees.mean())
        whole &= len(set(graph.components().tolist())) == 1
        rows.append(
            (name, text, float(degrees.mean()), int(degrees.max()), most[name], diameter(graph))
        )
        panels[name] = graph
    return Finding(
        header=("graph", "name here", "mean degree", "largest", "largest / mean", "diameter"),
        rows=rows,
        checks=(
            Check("all three are connected", whole),
            Check(
                "popular peers attract more: the largest degree of Barabasi-Albert is 3 times the mean,"
                " of Erdos-Renyi graphs at most 2.5",
                most["Barabasi-Albert"] >= 3 and most["Erdos-Renyi"] <= 2.5,
            ),
        ),
        draw=drawn(panels, by_degree=True),
        settings={"seed": 0},
    )


def families(n: int) -> dict[str, Graph]:
    """One graph of each family of Table 6.1."""
    side = math.isqrt(n)
    return {
        "expander": br.graphs.regular(n, degree=6, seed=0),
        "torus": br.graphs.torus(side, side),
        "complete": br.graphs.complete(n),
        "ring": br.graphs.ring(n),
    }


def errors(graph: Graph) -> tuple[float, float]:
    """Errors of the mean by synchronous and by randomized gossip, in units of alpha Delta^2 /
    epsilon at mean loss epsilon; nobody has to be worse than under local DP."""
    n, gap = graph.n, 1 - second_eigenvalue(graph)
    rounds, meetings = accelerated_steps(gap, n, 1.0), randomized_steps(gap / n, n, 1.0)
    talkative = 1 - float(graph.weights.diagonal().min())
    received = (int(graph.degrees.max()) * rounds, 2 * talkative * meetings / n)
    first, second = (error_at_mean_loss(1.0, 1.0, 1.0, n, min(one, n)) for one in received)
    return first, second


def utility(quick: bool) -> Finding:
    """Table 6.1."""
    sizes = (64, 256, 1024)
    rows: list[tuple[Cell, ...]] = []
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in EXPONENTS}
    for n in sizes:
        for name, graph in families(n).items():
            found = errors(graph)
            lines[name].append(found)
            rows.append(
                (name, n, *found, local_error(1.0, 1.0, n, 1.0), central_error(1.0, 1.0, n, 1.0))
            )
    apart = []
    for name, along in lines.items():
        slopes = np.log(np.array(along[-1]) / np.array(along[0])) / math.log(sizes[-1] / sizes[0])
        rows.append((f"{name}: exponent, source", "", *EXPONENTS[name], -1.0, -2.0))
        rows.append((f"{name}: exponent", "", *slopes.tolist(), -1.0, -2.0))
        apart += np.abs(slopes - EXPONENTS[name]).tolist()
    return Finding(
        header=("graph", "peers", "synchronous", "randomized", "local DP", "curator"),
        rows=rows,
        checks=(
            Check(
                f"errors fall with the peers like the table says: exponents within 0.3 (here {max(apart):.2f}),"
                " which is what its logarithms are worth at these sizes",
                max(apart) <= 0.3,
            ),
        ),
        draw=_utility(sizes, lines),
        settings={"sigma": 1, "mean loss": 1, "order": 1},
        words="units of alpha Delta^2 / epsilon; what a view learns is cut at local DP, and 3 is the bound's constant",
    )


def _utility(sizes: tuple[int, ...], lines: dict[str, list[tuple[float, float]]]) -> Draw:
    limits = {
        "local DP": (sizes, [local_error(1.0, 1.0, n, 1.0) for n in sizes]),
        "curator": (sizes, [central_error(1.0, 1.0, n, 1.0) for n in sizes]),
    }
    panels = {
        title: {name: (sizes, [one[k] for one in found]) for name, found in lines.items()} | limits
        for k, title in enumerate(("synchronous", "randomized"))
    }
    return side_by_side(panels, "peers", "error, alpha Delta^2 / epsilon", log="xy")


def topologies(quick: bool) -> Finding:
    """Table 2.2: gaps and degrees."""
    n = 64 if quick else 256
    rows: list[tuple[Cell, ...]] = []
    for name, (source, orders, _) in TOPOLOGIES.items():
        large, small = (made(of(name, peers)) for peers in (n, n // 4))
        gaps = [float(br.graphs.spectral_gap(graph)) for graph in (small, large)]
        degree = int(large.degrees.max())
        rows.append((name, n, *source, degree, *orders, gaps[1], gaps[0] / gaps[1]))
    ratios = {str(row[0]): float(str(row[-1])) for row in rows}
    off = {
        name: abs(ratios[name] / falls - 1)
        for name, (_, _, falls) in TOPOLOGIES.items()
        if falls is not None
    }
    degrees = {str(row[0]): row[3] for row in rows}
    return Finding(
        header=(
            *("graph", "peers", "degree, source", "degree", "gap, source", "gap"),
            "gap at a quarter of the peers / gap",
        ),
        rows=rows,
        checks=(
            Check(
                "gaps fall with the peers as fast as the table says: a quarter of the peers has 16 times"
                f" the gap on rings and lines, 4 times on a torus (within {max(off.values()):.0%}, 20 % asked)",
                max(off.values()) < 0.2,
            ),
            Check(
                "degrees are the table's",
                (degrees["complete"], degrees["torus"], degrees["ring"], degrees["line"])
                == (n - 1, 4, 2, 2),
            ),
            Check(
                f"an expander's gap and degree are O(1): a random graph of degree {EXPANDER} keeps 0.8"
                " of its gap",
                ratios["expander"] <= 1.25,
                too_small=quick,
            ),
        ),
        draw=_gaps(rows),
        words="hypercube, exponential graph and star, which the table does not have, stand beside",
    )


def of(name: str, peers: int) -> str:
    """The name of a graph of Table 2.2 with so many peers."""
    side = math.isqrt(peers)
    return {
        "torus": f"torus:{side}x{side}",
        "line": f"path:{peers}",
        "expander": f"regular:{peers},degree={EXPANDER},seed=0",
        "hypercube": f"hypercube:{peers.bit_length() - 1}",
    }.get(name, f"{name}:{peers}")


def _gaps(rows: list[tuple[Cell, ...]]) -> Draw:
    def draw(figure: Any) -> None:
        names = [str(row[0]) for row in rows]
        gaps = {"spectral gap": [float(str(row[5])) for row in rows]}
        bars(names, gaps, f"{rows[0][1]} peers")(figure)
        figure.axes[0].set_yscale("log")

    return draw


FIGURES = (
    Figure(
        id="th-2.5",
        title="Classical graphs of 16 peers",
        number="Figure 2.5",
        page="p. 28",
        repeat=classical,
        criterion="edges, degrees and diameters by hand",
        cpu_s=1,
        theory=("gossip:GM-2",),
    ),
    Figure(
        id="th-2.6",
        title="Random graphs of 100 peers",
        number="Figure 2.6",
        page="p. 29",
        repeat=random_graphs,
        criterion="connected; degrees are alike, or popular peers attract more",
        cpu_s=1,
        theory=("gossip:GM-2",),
    ),
    Figure(
        id="th-t6.1",
        title="What private averaging costs on usual graphs",
        number="Table 6.1",
        page="p. 83",
        repeat=utility,
        criterion="errors fall with the peers like the table says, up to logarithms",
        cpu_s=3,
        theory=("gossip:MUF-6", "gossip:MUF-7"),
    ),
    Figure(
        id="th-t2.2",
        title="Degrees and spectral gaps of usual graphs",
        number="Table 2.2",
        page="p. 30",
        repeat=topologies,
        criterion="gaps fall as fast as the table says",
        cpu_s=3,
        theory=("gossip:GM-2",),
    ),
)
