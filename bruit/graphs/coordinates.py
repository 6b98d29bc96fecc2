"""Where peers stand in a drawing: by the coordinates of a graph's own family where it has any, else
by springs.

    coordinates(torus(6, 6)).places      a grid; links that go around are short ends at its borders
    coordinates(butterfly(16)).stages    rounds as columns, peers as rows

A family is believed only if the links are its links, so a drawing never contradicts the graph.
Lines, circles, stars, trees and complete graphs are recognized whatever their name and the order of
their peers. Everything is a function of the graph: the same graph gives the same picture.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edges
from bruit.graphs.sequence import Butterfly, GraphSequence, Static

SPRING = (
    400  # peers up to which springs are relaxed; above, peers stay where their distances put them
)
PIVOTS = 48  # peers to which distances are measured
MOST_LINKS = 3000  # that are drawn; of more, evenly chosen ones
STAGED = 256  # peers up to which the rounds of a changing graph are drawn as stages
ROUNDS = 64  # of a changing graph that are joined to say who talks to whom
SHOWN_ROUNDS = (
    8  # of a changing graph that are drawn as stages; all steps of one block of a butterfly
)
FOLD = 24  # peers on a line above which it is folded
LEAVES = 32  # of a tree above which it is drawn around its root
GOLDEN = math.pi * (3 - math.sqrt(5.0))
STUB = 0.42  # length of the short ends of a torus, in links

SENTENCES = {
    "point": "There is one peer.",
    "line": "Peers stand in a line.",
    "folded line": "Peers stand in a line, which is folded to fit.",
    "circle": "Peers stand on a circle, in the order of their links.",
    "chords": "Peers stand on a circle in the order of their numbers.",
    "complete": "Everybody talks to everybody; peers stand on a circle.",
    "star": "One peer stands in the middle, all others around it.",
    "tree": "The root of the tree is on top, every peer below the one it hangs from.",
    "round tree": "The root of the tree is in the middle, every peer outside of the one it hangs "
    "from.",
    "grid": "Peers stand on their grid.",
    "torus": "Peers stand on their grid; the short ends at its borders are links that go around to "
    "the other side.",
    "slices": "Peers stand on slices of their box, side by side.",
    "levels": "Peers stand in columns by how many bits of their number are set; every link flips "
    "one bit.",
    "digits": "Peers stand in the order of their numbers; whom they talk to changes every round.",
    "given": "Peers stand where they are.",
    "springs": "Links pull peers together, all others push apart; the place of a peer means "
    "nothing else.",
    "distances": "Peers that are far apart in the graph are far apart in the picture, as nearly as "
    "paper can do it.",
}


@dataclass(frozen=True, eq=False)
class Stages:
    """Rounds as columns and peers as rows: a link of round t leads from column t to column t +
    1."""

    rows: Ints  # (n,) the row of every peer
    links: tuple[Ints, ...]  # (links, 2) of each round that is drawn

    def plain(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"rows": self.rows.tolist(), "links": [links.tolist() for links in self.links]}

    def spread(self, peer: int) -> list[Ints]:
        """Who may know something of a peer's value before each round, and after the last: peers in
        rising order."""
        known = [np.array([peer], np.int64)]
        for links in self.links:
            both = np.concatenate([links, links[:, ::-1]])
            known.append(np.unique(np.append(known[-1], both[np.isin(both[:, 0], known[-1]), 1])))
        return known


@dataclass(frozen=True, eq=False, kw_only=True)
class Picture:
    """How to draw a graph: places in the unit square, to be drawn in a box of width : height =
    `aspect` : 1.

    `links` are drawn as straight lines, `stubs` are short segments in the same square, for links
    that go around. `total` counts all links of the graph. `kind` is a key of SENTENCES."""

    kind: str
    places: Array  # (n, 2)
    aspect: float
    links: Ints  # (drawn, 2)
    stubs: Array  # (stubs, 2, 2)
    total: int
    stages: Stages | None = None

    def sentence(self) -> str:
        """How to read it, and what is left out."""
        around, drawn = len(self.stubs) // 2, len(self.links)
        left_out = self.total - drawn - around
        if self.kind == "digits":
            more = (
                "The rounds are drawn as stages."
                if self.stages
                else f"More than {STAGED} rows make no stages."
            )
            return f"{SENTENCES[self.kind]} {more}"
        if not left_out:
            return SENTENCES[self.kind]
        return f"{SENTENCES[self.kind]} {drawn + around:,} of its {self.total:,} links are drawn."

    def spacing(self) -> float:
        """The typical distance between a peer and the one nearest to it, in widths of the box."""
        if len(self.places) < 2:
            return 1.0
        from scipy.spatial import cKDTree

        places = self.places / [1.0, self.aspect]
        apart = np.asarray(
            cKDTree(places).query(places, k=2)[0], np.float64
        )  # (n, itself and the nearest)
        return float(np.quantile(apart[:, 1], 0.1))

    def plain(self) -> dict[str, Any]:
        """The same as plain data, for a page that draws it."""
        return {
            "kind": self.kind,
            "places": self.places.round(4).tolist(),
            "aspect": round(self.aspect, 4),
            "edges": self.links.tolist(),
            "stubs": self.stubs.round(4).tolist(),
            "links": self.total,
            "spacing": round(self.spacing(), 4),
            "sentence": self.sentence(),
            "stages": self.stages and self.stages.plain(),
        }


def coordinates(graph: Graph | GraphSequence, steps: int | None = None) -> Picture:
    """The picture of a graph, or of a sequence of graphs that was used for so many steps."""
    if isinstance(graph, Static):
        graph = graph.graph
    return _fixed(graph) if isinstance(graph, Graph) else _changing(graph, steps)


def talking(graph: Graph | GraphSequence, steps: int | None = None) -> Graph:
    """Who talks to whom: the graph, or all links of the first rounds of a changing one."""
    if isinstance(graph, Graph):
        return graph
    most = min(graph.period or ROUNDS, ROUNDS)
    rounds = range(max(1, most if steps is None else min(steps, most)))
    return from_edges(
        graph.n,
        np.unique(np.concatenate([graph.at(t).edges() for t in rounds]), axis=0),
        name=graph.name,
    )


def _fixed(graph: Graph) -> Picture:
    if graph.positions is not None and np.isfinite(graph.positions).all():
        return _picture(graph, "given", np.asarray(graph.positions, np.float64))
    for shape in SHAPES:
        found = shape(graph)
        if found is not None:
            return found
    kind = "springs" if graph.n <= SPRING else "distances"
    return _picture(graph, kind, _packed(graph))


def _changing(graph: GraphSequence, steps: int | None) -> Picture:
    joined = talking(graph, steps)
    if isinstance(graph, Butterfly) and len(graph.radices) > 1:
        block, order = len(graph.radices), np.asarray(graph.labels(0), np.int64)
        places = _digits(graph.radices, order if graph.relabel is None else np.arange(graph.n))
        found = _picture(joined, "digits", places, links=np.zeros((0, 2), np.int64))
    else:
        block, order, found = graph.period or SHOWN_ROUNDS, np.arange(graph.n), _fixed(joined)
    rounds = min(block, max(1, block if steps is None else steps))
    if not 1 < graph.n <= STAGED:
        return found
    stages = Stages(order, tuple(graph.at(t).edges() for t in range(rounds)))
    return Picture(
        kind=found.kind,
        places=found.places,
        aspect=found.aspect,
        links=found.links,
        stubs=found.stubs,
        total=found.total,
        stages=stages,
    )


def _picture(
    graph: Graph,
    kind: str,
    raw: Array,
    aspect: float | None = None,
    links: Ints | None = None,
    stubs: Array | None = None,
) -> Picture:
    """Any coordinates, moved and scaled (both axes alike) into the unit square."""
    drawn = _some(graph) if links is None else links
    stubs = np.zeros((0, 2, 2)) if stubs is None else stubs
    corners = np.concatenate([raw, stubs.reshape(-1, 2)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    size = np.maximum(high - low, 1e-9 * max(1.0, float(np.abs(corners).max())))
    wide = float(np.clip(size[0] / size[1], 0.5, 3.0)) if aspect is None else aspect
    width = max(float(size[0]), float(size[1]) * wide)
    box = np.array([width, width / wide])
    middle = (low + high) / 2
    return Picture(
        kind=kind,
        places=(raw - middle) / box + 0.5,
        aspect=wide,
        links=drawn,
        stubs=(stubs - middle) / box + 0.5,
        total=graph.edge_count,
    )


def _some(graph: Graph) -> Ints:
    """All links, or evenly chosen ones of very many; those of a complete graph are never listed."""
    if graph.edge_count <= MOST_LINKS:
        return graph.edges()
    if _is_complete(graph):
        first = np.arange(MOST_LINKS)
        other = (first + 1 + (first * GOLDEN * graph.n).astype(np.int64) % (graph.n - 1)) % graph.n
        return np.unique(np.sort(np.stack([first % graph.n, other], axis=1), axis=1), axis=0)
    links = graph.edges()
    return links[np.linspace(0, len(links) - 1, MOST_LINKS).astype(np.int64)]


def _around(n: int) -> Array:
    """A circle, peer 0 on top, clockwise."""
    angle = 2 * np.pi * np.arange(n) / max(n, 1)
    return np.stack([np.sin(angle), -np.cos(angle)], axis=1)


def _is_complete(graph: Graph) -> bool:
    return graph.edge_count == graph.n * (graph.n - 1) // 2


def _point(graph: Graph) -> Picture | None:
    return _picture(graph, "point", np.zeros((graph.n, 2)), 1.0) if graph.n == 1 else None


def _line(graph: Graph) -> Picture | None:
    """From the end with the smaller number."""
    if graph.edge_count != graph.n - 1 or graph.degrees.max() > 2 or not graph.is_connected():
        return None
    from scipy.sparse.csgraph import depth_first_order

    order = depth_first_order(graph.weights, int(np.argmin(graph.degrees)), directed=False)[0]
    along = np.empty(graph.n, np.int64)
    along[order] = np.arange(graph.n)
    if graph.n <= FOLD:
        return _picture(
            graph, "line", np.stack([along, np.zeros(graph.n)], axis=1).astype(np.float64)
        )
    columns = math.ceil(math.sqrt(2 * graph.n))
    row, column = np.divmod(along, columns)
    column = np.where(row % 2 == 0, column, columns - 1 - column)
    return _picture(graph, "folded line", np.stack([column, row], axis=1).astype(np.float64))


def _circle(graph: Graph) -> Picture | None:
    if (
        graph.n < 3
        or graph.degrees.min() != 2
        or graph.degrees.max() != 2
        or not graph.is_connected()
    ):
        return None
    from scipy.sparse.csgraph import depth_first_order

    order = depth_first_order(graph.weights, 0, directed=False)[0]
    places = np.empty((graph.n, 2))
    places[order] = _around(graph.n)
    return _picture(graph, "circle", places, 1.0)


def _star(graph: Graph) -> Picture | None:
    if graph.n < 4 or graph.edge_count != graph.n - 1 or graph.degrees.max() != graph.n - 1:
        return None
    middle = int(graph.degrees.argmax())
    return _picture(graph, "star", np.insert(_around(graph.n - 1), middle, 0.0, axis=0), 1.0)


def _complete(graph: Graph) -> Picture | None:
    return (
        _picture(graph, "complete", _around(graph.n), 1.0)
        if graph.n > 3 and _is_complete(graph)
        else None
    )


def _tree(graph: Graph) -> Picture | None:
    """Leaves side by side, every other peer in the middle of those that hang from it."""
    if graph.edge_count != graph.n - 1 or not graph.is_connected():
        return None
    from scipy.sparse.csgraph import depth_first_order

    root = 0 if graph.name.startswith("tree:") else int(graph.degrees.argmax())
    order, parent = depth_first_order(graph.weights, root, directed=False)
    depth, across = graph.distances(root), np.zeros(graph.n)
    leaves = order[(graph.degrees[order] == 1) & (order != root)]
    across[leaves] = np.arange(len(leaves))
    for level in range(int(depth.max()) - 1, -1, -1):
        here = np.flatnonzero(depth == level + 1)
        sums, counts = (
            np.bincount(parent[here], across[here], graph.n),
            np.bincount(parent[here], minlength=graph.n),
        )
        across = np.where(counts > 0, sums / np.maximum(counts, 1), across)
    if len(leaves) <= LEAVES:
        high = max(len(leaves) - 1, 1) / max(int(depth.max()), 1) * 0.6
        return _picture(graph, "tree", np.stack([across, depth * high], axis=1))
    angle = 2 * np.pi * across / len(leaves)
    return _picture(
        graph, "round tree", np.stack([depth * np.sin(angle), -depth * np.cos(angle)], axis=1)
    )


def _box(graph: Graph) -> Picture | None:
    """A grid or torus, if its links are among those of the family."""
    shape_name = re.match(r"(grid|torus):([0-9]+(?:x[0-9]+)*)", graph.name)
    sides = tuple(int(part) for part in shape_name[2].split("x")) if shape_name else ()
    if shape_name is None or math.prod(sides) != graph.n:
        return None
    digits = np.stack(np.unravel_index(np.arange(graph.n), sides), axis=1)  # (n, dimensions)
    links = graph.edges()
    gap = np.abs(digits[links[:, 0]] - digits[links[:, 1]])
    closed = (
        (gap == np.array(sides) - 1) & (np.array(sides) > 2)
        if shape_name[1] == "torus"
        else np.zeros(gap.shape, bool)
    )
    if (
        not (((gap == 1) | closed).sum(axis=1) == (gap > 0).sum(axis=1)).all()
        or ((gap > 0).sum(axis=1) != 1).any()
    ):
        return None
    steps = _axes(sides)
    which, axis = np.nonzero(closed)
    away = STUB * steps[axis] / np.linalg.norm(steps[axis], axis=1, keepdims=True)
    places = digits @ steps
    low, high = places[links[which, 0]], places[links[which, 1]]
    stubs = np.concatenate(
        [np.stack([low, low - away], axis=1), np.stack([high, high + away], axis=1)]
    )
    straight = links[~closed.any(axis=1)]
    some = straight[
        np.unique(
            np.linspace(0, len(straight) - 1, min(len(straight), MOST_LINKS)).astype(np.int64)
        )
    ]
    kind = "slices" if sum(side > 1 for side in sides) > 2 else shape_name[1]
    return _picture(graph, kind, places, links=some, stubs=stubs)


def _axes(sides: tuple[int, ...]) -> Array:
    """The step of each dimension on paper: the last goes right, the one before down, others from
    slice to slice."""
    steps, box = np.zeros((len(sides), 2)), [1.0, 1.0]
    for count, axis in enumerate(reversed(range(len(sides)))):
        along = count % 2
        steps[axis, along] = 1.0 if count < 2 else box[along] + 0.6
        steps[axis, 1 - along] = 0.0 if count < 2 else 0.3
        box[along] = steps[axis, along] * (sides[axis] - 1) + (1.0 if count < 2 else box[along])
    return steps


def _cube(graph: Graph) -> Picture | None:
    """Columns by the number of bits that are set."""
    shape_name = re.match(r"hypercube:([0-9]+)", graph.name)
    if shape_name is None or graph.n != 1 << int(shape_name[1]) or graph.n < 8:
        return None
    links, bits = graph.edges(), int(shape_name[1])
    flipped = links[:, 0] ^ links[:, 1]
    if (flipped & (flipped - 1)).any():
        return None
    level = np.array([int(peer).bit_count() for peer in range(graph.n)])
    sizes = np.bincount(level)
    rank = np.empty(graph.n)
    for one in range(bits + 1):
        rank[level == one] = np.arange(sizes[one]) - (sizes[one] - 1) / 2
    return _picture(
        graph, "levels", np.stack([level * (sizes.max() - 1) / bits * 1.35, rank], axis=1)
    )


def _chords(graph: Graph) -> Picture | None:
    """Families that are defined on a circle."""
    known = graph.name.startswith(("exponential:", "ws:"))
    return _picture(graph, "chords", _around(graph.n), 1.0) if known else None


def _digits(radices: tuple[int, ...], order: Ints) -> Array:
    """A position in mixed radix as column (low digits) and row (high digits), as near to a square
    as can be."""
    widths = [math.prod(radices[:k]) for k in range(1, len(radices))]
    columns = min(widths, key=lambda width: abs(math.log(width * width / len(order) / 1.5)))
    row, column = np.divmod(order, columns)
    return np.stack([column, row], axis=1).astype(np.float64)


def _packed(graph: Graph) -> Array:
    """Every connected part on its own, each in a square as large as it has peers, in rows from the
    largest on."""
    part = graph.components()
    sizes = np.bincount(part)
    if len(sizes) == 1:
        return _drawn_apart(graph)
    from scipy.sparse import csr_array

    places, width = np.zeros((graph.n, 2)), math.sqrt(1.6 * float(sizes.sum()))
    across = down = tall = 0.0
    for one in np.argsort(-sizes, kind="stable"):
        peers = np.flatnonzero(part == one)
        side = math.sqrt(float(sizes[one]))
        if across and across + side > width:
            across, down, tall = 0.0, down + tall, 0.0
        rows = csr_array(graph.weights)[peers][:, peers]
        a, b = rows.nonzero()
        inside = from_edges(len(peers), np.stack([a[a < b], b[a < b]], axis=1), name="part")
        places[peers] = coordinates(inside).places * 0.75 * side + [across, down]
        across, tall = across + side, max(tall, side)
    return places


def _drawn_apart(graph: Graph) -> Array:
    """Springs (Fruchterman and Reingold 1991) that start from distances, or the distances alone."""
    start = _by_distance(graph)
    if graph.n > SPRING:
        return _lying(_even(start))
    import networkx as nx

    drawn: nx.Graph[int] = nx.Graph()
    drawn.add_nodes_from(range(graph.n))
    drawn.add_edges_from(graph.edges().tolist())
    found = nx.spring_layout(drawn, pos=dict(enumerate(start)), iterations=100, seed=0, weight=None)
    return _lying(np.array([found[peer] for peer in range(graph.n)], np.float64))


def _lying(places: Array) -> Array:
    """The same picture, turned so that its long side lies down."""
    centered = places - places.mean(axis=0)
    across = np.linalg.eigh(centered.T @ centered)[1][:, ::-1]  # (2, 2)
    return np.asarray(centered @ (across * np.where(across[0] < 0, -1.0, 1.0)), np.float64)


def _spiral(n: int) -> Array:
    """Distinct places in the unit disk, evenly spread."""
    peers = np.arange(n)
    radius = np.sqrt((peers + 0.5) / n)
    return np.stack([radius * np.cos(GOLDEN * peers), radius * np.sin(GOLDEN * peers)], axis=1)


def _by_distance(graph: Graph) -> Array:
    """Far apart in the graph is far apart on paper, as nearly as two dimensions can: classical
    scaling of the hops to some peers that are far from each other (Brandes and Pich 2007)."""
    pivot, hops = 0, np.zeros((graph.n, 0), np.int64)
    for _ in range(min(PIVOTS, graph.n)):
        hops = np.column_stack([hops, graph.distances(pivot)])
        pivot = int(hops.min(axis=1).argmax())
    squares = hops.astype(np.float64) ** 2
    centered = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    across = np.linalg.eigh(centered.T @ centered)[1][:, :-3:-1]  # (pivots, 2)
    places = centered @ (
        across * np.where(across[np.abs(across).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    )
    size = np.maximum(np.ptp(places, axis=0), 1e-9)
    return np.asarray(
        (places - places.min(axis=0)) / size.max() + 0.02 * _spiral(graph.n), np.float64
    )


def _even(places: Array) -> Array:
    """The same directions from the middle, but as many peers in every ring of the same area: no
    heap in the middle."""
    centered = places - np.median(places, axis=0)
    length = np.maximum(np.linalg.norm(centered, axis=1), 1e-12)
    rank = np.empty(len(places))
    rank[np.argsort(length, kind="stable")] = np.arange(len(places))
    return np.asarray(
        centered / length[:, None] * np.sqrt((rank[:, None] + 0.5) / len(places)), np.float64
    )


SHAPES: tuple[Callable[[Graph], Picture | None], ...] = (
    _point,
    _line,
    _circle,
    _star,
    _complete,
    _tree,
    _box,
    _cube,
    _chords,
)
