"""Thesis, chapter 6 and appendix C: what gossip averaging leaks by distance, as printed and exactly
(gossip:EXP-12 to EXP-14, EXP-16)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

import bruit as br
from bruit.algorithms.gossip.renoised import taper_of
from bruit.arrays import Array
from bruit.graphs import Graph, from_ego, geometric, hypercube
from bruit.privacy.exact import leverage
from bruit.privacy.theorems.published import published_losses
from bruit.privacy.theorems.renoised import RenoisedGossip
from papers.figures.sections import Cell
from papers.figures.walk_distance import by_distance, graphs
from papers.figures.walk_lengths import gossip_steps
from papers.figures.walk_maps import EGOS, louvain
from papers.reproduce.drawing import Lines, bars, curves, on_graphs, points, side_by_side
from papers.reproduce.figure import Check, Figure, Finding
from papers.theorems.closed_forms import hypercube_loss


def printed(graph: Graph, observer: int, steps: int) -> Array:
    """NOT A GUARANTEE. The printed sum over messages, cut at local DP  # (n,)."""
    return np.minimum(1.0, published_losses(lambda _: graph, graph.n, steps, [observer]))


def others(graph: Graph, observer: int, losses: Array) -> Array:
    """Without the observer itself."""
    return np.asarray(losses[np.arange(graph.n) != observer])


def by_distance_on_graphs(quick: bool) -> Finding:
    """Figure 6.1(a)."""
    known = {"hypercube": hypercube(7)} if quick else graphs()
    rows: list[tuple[Cell, ...]] = []
    panels: dict[str, Lines] = {}
    below = []
    for name, graph in known.items():
        v, steps = int(graph.degrees.argmax()), gossip_steps(graph, 1.0)
        far = np.arange(1, 12)
        far = far[far <= graph.distances(v).max()]
        one = by_distance(graph, printed(graph, v, steps), v, far)
        seen = leverage(graph, [v], steps)
        exact = by_distance(graph, seen.loss, v, far)
        how = "exact" if seen.status == "exact" else "at most"
        rows += [
            (name, steps, int(d), float(a), float(b), how)
            for d, a, b in zip(far, one, exact, strict=True)
        ]
        panels[name] = {"printed": (far, one), how: (far, exact)}
        below.append(bool((one < exact - 1e-9).any()))
    cube = known["hypercube"]
    last = [row for row in rows if row[0] == "hypercube"]
    dimension = int(np.log2(cube.n))
    closed = [hypercube_loss(dimension, int(str(row[2])), int(str(row[1]))) for row in last]
    far_end = [float(str(row[4])) for row in last]
    return Finding(
        header=("graph", "T", "distance", "printed", "ours", "status"),
        rows=rows,
        checks=(
            Check(
                "printed losses fall with distance on the hypercube",
                bool((np.diff([float(str(row[3])) for row in last]) <= 1e-12).all()),
            ),
            Check(
                "ours are the closed forms m / binomial(m, k) there",
                bool(np.allclose(far_end, closed, atol=1e-6)),
            ),
            Check(
                "the printed sum bounds what is learned",
                not any(below),
                "exactly, some peers are more exposed than it says: messages share their noise",
            ),
        ),
        draw=side_by_side(panels, "distance from the observer", "loss, local DP = 1", log="y"),
        settings={"sigma": 1, "observer": "of most neighbors"},
    )


def ego(quick: bool) -> Finding:
    """Figure 6.1(b): averaging on the ego graph 414, and with message noise."""
    graph = from_ego(414)
    steps = gossip_steps(graph, 1.0)
    watchers = [int(graph.degrees.argmax())] if quick else list(range(0, graph.n, 6))
    shown, exact, renoised, far_exact, far_renoised = [], [], [], [], []
    noise = br.Gaussian(clip=0.5, sigma=1.0)
    run = br.rehearse(br.Renoised(tau=0.02, flat=808), graph, noise, steps=1616)
    facts, theorem = run.facts(), RenoisedGossip(taper_of)
    for v in watchers:
        far = others(graph, v, graph.distances(v).astype(np.float64)) >= 3
        shown.append(others(graph, v, printed(graph, v, steps)))
        exact.append(others(graph, v, leverage(graph, [v], steps).loss))
        renoised.append(others(graph, v, theorem.losses(facts, (v,))))
        far_exact.append(exact[-1][far])
        far_renoised.append(renoised[-1][far])
    means = {
        name: float(np.mean([one.mean() for one in found]))
        for name, found in (
            ("printed, cut at 1", shown),
            ("exact", exact),
            ("with message noise, proven", renoised),
        )
    }
    rows: list[tuple[Cell, ...]] = [
        ("printed, cut at 1", steps, 0.774, means["printed, cut at 1"]),
        ("exact", steps, 0.960, means["exact"]),
        ("with message noise, proven", 1616, 0.335, means["with message noise, proven"]),
    ]
    v = watchers[0]
    whole = np.insert(renoised[0], v, np.nan), np.insert(exact[0], v, np.nan)
    far_mean = float(np.concatenate(far_renoised).mean())
    return Finding(
        header=("account", "steps", "reference", "mean loss"),
        rows=rows,
        checks=(
            Check(
                "leakage stays in the observer's community",
                float(np.concatenate(far_exact).mean()) < 0.1,
                "exactly, the mean loss of plain gossip is above 0.9 at distance 3 and beyond as well",
            ),
            Check(
                f"with message noise it does: mean {far_mean:.3f} at distance 3 and beyond",
                far_mean < 0.1,
            ),
        ),
        draw=on_graphs(
            {
                "plain gossip, exact": (graph, whole[1]),
                "message noise 0.02 sigma": (graph, whole[0]),
            },
            f"loss in the view of peer {v}",
        ),
        settings={"graph": "ego:414", "observers": len(watchers), "tau": 0.02},
    )


def other_egos(quick: bool) -> Finding:
    """Figure C.4: printed and exact losses inside the observers' communities and across."""
    observers, names = (2, (698, 3980)) if quick else (3, EGOS[1:])
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        graph = from_ego(name)
        steps, community = gossip_steps(graph, 1.0), louvain(graph)
        kinds: dict[str, list[float]] = {
            key: [] for key in ("said", "said far", "true", "true far")
        }
        for v in np.random.default_rng(0).choice(graph.n, observers, replace=False).tolist():
            same = others(graph, v, (community == community[v]).astype(float)) > 0
            said = others(graph, v, printed(graph, v, steps))
            exact = others(graph, v, leverage(graph, [v], steps).loss)
            for key, losses in (("said", said), ("true", exact)):
                kinds[key] += losses[same].tolist()
                kinds[f"{key} far"] += losses[~same].tolist()
        rows.append((f"ego:{name}", graph.n, steps, *(float(np.mean(k)) for k in kinds.values())))
    inside, across, exact_far = (np.array([float(str(row[k])) for row in rows]) for k in (3, 4, 6))
    return Finding(
        header=(
            *("graph", "peers", "T", "printed, own community", "printed, others"),
            *("exact, own community", "exact, others"),
        ),
        rows=rows,
        checks=(
            Check(
                "the printed loss is larger inside the observer's community, on every graph",
                bool((inside > across).all()),
            ),
            Check(
                "leakage stays in the observer's community: exact mean loss below 0.1 outside of it",
                bool((exact_far < 0.1).all()),
                f"it is {exact_far.min():.2f} at least: messages share their noise",
            ),
        ),
        draw=bars(
            [str(row[0]) for row in rows],
            {
                "printed, own community": inside,
                "printed, others": across,
                "exact, others": exact_far,
            },
            "mean loss, local DP = 1",
        ),
        settings={"observers a graph": observers, "communities": "Louvain", "sigma": 1},
        words="the source shows one observer a graph, drawn at random; printed losses are cut at local DP",
    )


def maps(quick: bool) -> Finding:
    """Figure C.1."""
    known = {
        "hypercube": hypercube(5 if quick else 7),
        "Erdos-Renyi": br.graphs.erdos_renyi(64 if quick else 128, c=1.2, seed=0),
        "grid": br.graphs.grid(*((8, 8) if quick else (11, 11))),
        "geometric": geometric(64 if quick else 128, 0.25 if quick else 0.2, seed=0),
    }
    rows: list[tuple[Cell, ...]] = []
    panels: dict[str, tuple[Graph, Array]] = {}
    for name, graph in known.items():
        v, steps = int(graph.degrees.argmax()), gossip_steps(graph, 1.0)
        loss, said = leverage(graph, [v], steps).loss.copy(), printed(graph, v, steps)
        rows.append(
            (
                name,
                graph.n,
                steps,
                float(others(graph, v, said).mean()),
                float(others(graph, v, loss).mean()),
                float(others(graph, v, loss).max()),
            )
        )
        loss[v] = np.nan
        panels[name] = (graph, loss)
    return Finding(
        header=("graph", "peers", "T", "mean, printed", "mean, exact", "worst, exact"),
        rows=rows,
        checks=(
            Check(
                "somebody is fully exposed on every graph",
                min(float(str(row[5])) for row in rows) > 1 - 1e-6,
            ),
        ),
        draw=on_graphs(panels, "exact loss"),
        settings={"sigma": 1},
        words="smaller graphs than the source's 2048, so that a map can be read; losses at 2048 are th-6.1a",
    )


def cubes(quick: bool) -> Finding:
    """Figure C.2."""
    dimensions = (4, 6) if quick else (4, 6, 8, 10)
    reference = {4: 1.05316, 6: 1.06229, 8: 0.915216, 10: 0.726574}
    rows: list[tuple[Cell, ...]] = []
    for m in dimensions:
        graph = hypercube(m)
        steps = gossip_steps(graph, 1.0)
        sums = published_losses(lambda _, graph=graph: graph, graph.n, steps, [0])  # type: ignore[misc]
        two = int(np.flatnonzero(graph.distances(0) == 2)[0])
        rows.append((graph.n, steps, reference[m], float(sums[two]), hypercube_loss(m, 2, steps)))
    found = [float(str(row[3])) for row in rows]
    exact = [float(str(row[4])) for row in rows]
    peers = [int(str(row[0])) for row in rows]
    return Finding(
        header=("peers", "T", "printed, reference", "printed", "exact"),
        rows=rows,
        checks=(
            Check(
                "printed values to 1e-5",
                bool(np.allclose(found, [reference[m] for m in dimensions], atol=1e-5)),
            ),
            Check("the exact loss 2 / (m - 1) falls", bool((np.diff(exact) < 0).all())),
            Check(
                "the printed loss falls as peers are added",
                bool((np.diff(found) < 0).all()),
                f"from 16 to 64 peers it rises, {found[0]:.3f} to {found[1]:.3f}, since T does; it falls from there on",
            ),
        ),
        draw=curves(
            {"printed": (peers, found), "exact": (peers, exact)},
            "peers",
            "loss at distance 2",
            log="x",
        ),
        settings={"sigma": 1},
    )


def places(quick: bool) -> Finding:
    """Figure C.3: loss against distance in the plane, on geometric graphs."""
    n, seeds = (200, 1) if quick else (500, 3)
    radius = 0.18 if quick else 0.11
    far_losses: list[float] = []
    rows: list[tuple[Cell, ...]] = []
    clouds: dict[str, tuple[ArrayLike, ArrayLike]] = {}
    for seed in range(seeds):
        graph = geometric(n, radius, seed=seed)
        v, steps = int(graph.degrees.argmax()), gossip_steps(graph, 1.0)
        assert graph.positions is not None
        apart = np.linalg.norm(graph.positions - graph.positions[v], axis=1)
        strangers = graph.distances(v) > 1
        said = printed(graph, v, steps)
        exact = leverage(graph, [v], steps).loss
        raw = published_losses(lambda _, graph=graph: graph, n, steps, [v])  # type: ignore[misc]
        near = float(spearmanr(apart[strangers], raw[strangers]).statistic)
        rows.append(
            (seed, steps, near, float(said[strangers].mean()), float(exact[strangers].mean()))
        )
        far = strangers & (apart >= np.quantile(apart[strangers], 0.75))
        far_losses.append(float(exact[far].mean()))
        clouds[f"printed, graph {seed}"] = (apart[strangers], raw[strangers])
    clouds["exact, last graph"] = (apart[strangers], exact[strangers])
    return Finding(
        header=(
            "graph",
            "T",
            "Spearman with distance, printed",
            "mean, printed and cut",
            "mean, exact",
        ),
        rows=rows,
        checks=(
            Check(
                "the printed loss falls with distance: Spearman -0.85 at most",
                max(float(str(row[2])) for row in rows) <= -0.85,
            ),
            Check(
                "whoever is far is hidden: exact loss below 0.1 in the farthest quarter",
                max(far_losses) < 0.1,
                f"it is {min(far_losses):.2f} at least: messages share their noise",
            ),
        ),
        draw=points(clouds, "distance in the plane", "loss", log="y"),
        settings={"n": n, "radius": radius},
    )


FIGURES = (
    Figure(
        id="th-6.1a",
        title="Loss of gossip against distance, 2048 peers",
        number="Figure 6.1(a)",
        page="p. 88",
        repeat=by_distance_on_graphs,
        criterion="printed values fall; exact ones are the closed forms, and above the printed ones somewhere",
        cpu_s=60,
        theory=("gossip:EXP-12", "gossip:MUF-2"),
    ),
    Figure(
        id="th-6.1b",
        title="Who learns what on an ego graph",
        number="Figure 6.1(b)",
        page="p. 88",
        repeat=ego,
        criterion="leakage in communities: refuted for plain gossip, true with message noise",
        cpu_s=60,
        theory=("gossip:EXP-14", "gossip:MUF-X1"),
        data=("ego_facebook",),
    ),
    Figure(
        id="th-C.4",
        title="Who learns what on the nine other ego graphs",
        number="Figure C.4",
        page="p. 165",
        repeat=other_egos,
        criterion="printed losses are larger inside communities; exact ones refute that leakage stays there",
        cpu_s=30,
        theory=("gossip:EXP-14", "gossip:MUF-X1"),
        data=("ego_facebook",),
    ),
    Figure(
        id="th-C.1",
        title="Maps of losses on four graphs",
        number="Figure C.1",
        page="p. 162",
        repeat=maps,
        criterion="somebody is fully exposed on every graph",
        cpu_s=10,
        theory=("gossip:EXP-12",),
    ),
    Figure(
        id="th-C.2",
        title="Loss at distance two on hypercubes",
        number="Figure C.2",
        page="p. 162",
        repeat=cubes,
        criterion="printed values to 1e-5; exact 2 / (m - 1)",
        cpu_s=2,
        theory=("gossip:EXP-13", "gossip:MUF-13"),
    ),
    Figure(
        id="th-C.3",
        title="Loss against distance in the plane",
        number="Figure C.3",
        page="p. 164",
        repeat=places,
        criterion="printed: Spearman -0.85; exact losses refute that far is safe",
        cpu_s=20,
        theory=("gossip:EXP-16",),
    ),
)
