"""Loss against distance, walk and gossip, at about 2048 peers (walk:RWE-5, RWE-10, the source's
Figs. 7.3(a) and D.2).

Order 2 and noise multiplier 1, so that local DP costs 1 a release. In the view of one observer,
mean over the peers of each distance:

    walk, printed       T/n contributions by Thm 7.7; for T < n this is less than one contribution, not a bound
    sender, printed     the same if the sender is known: the worst neighbor of the observer (walk:RW-9)
    walk, proven        one contribution of a walk with a cool-down; the sender may be known at no cost (walk:RW-14)
    gossip, printed     one averaging by Thm 6.1, a sum over messages that share their noise
    gossip, exact       the same by the projection on all the observer heard (gossip:MUF-2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs import Graph, erdos_renyi, geometric, grid, hypercube
from bruit.privacy.ahead.walk_ahead import contribution_divergence, segment_law
from bruit.privacy.exact import leverage
from bruit.privacy.theorems.published import published_losses
from papers.figures.walk_lengths import gossip_steps, walk_steps
from papers.printed.walk import printed_sums, visit_sums

ORDER, Z, REST, FOLLOWED, SAMPLED = 2.0, 1.0, 50, 2**14, 2


def graphs() -> dict[str, Graph]:
    """The 11-cube, an Erdos-Renyi graph with q = 1.2 log n / n, a 45 x 45 grid, a geometric graph
    of radius .07."""
    return {
        "hypercube": hypercube(11),
        "erdos-renyi": erdos_renyi(2048, c=1.2, seed=0),
        "grid": grid(45, 45),
        "geometric": geometric(2048, 0.07, seed=0),
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """One number a distance for every way to charge."""

    distances: Ints
    printed: Array
    sender: Array
    proven: Array
    gossip_printed: Array
    gossip_exact: Array
    walk_steps: int
    gossip_steps: int
    certified: (
        bool  # whether the exact loss of gossip is one, or an upper bound where digits ran out
    )


def by_distance(graph: Graph, losses: Array, observer: int, distances: Ints) -> Array:
    """The mean loss of the peers at each distance from the observer."""
    far = graph.distances(observer)
    return np.array([losses[far == d].mean() for d in distances])


def printed_walk(graph: Graph, observer: int, steps: int) -> Array:
    """NOT A GUARANTEE. Thm 7.7 with N = T / n, cut at the local loss 1  # (n,)."""
    return np.asarray(
        np.minimum(1.0, ORDER / Z**2 * steps / graph.n * printed_sums(graph, steps)[:, observer])
    )


def known_senders(graph: Graph, observer: int, steps: int) -> Array:
    """NOT A GUARANTEE. The worst neighbor w of the observer by S_T(u, w), 1/2 (local DP) if u is
    one (walk:RW-9)."""
    neighbors, sums = graph.neighbors(observer), visit_sums(graph, steps)
    found = np.array([sums[u, neighbors[neighbors != u]].max(initial=0.0) for u in range(graph.n)])
    found[neighbors] = np.maximum(found[neighbors], 0.5)
    return np.minimum(1.0, ORDER / Z**2 * steps / graph.n * found)


def proven_walk(graph: Graph, observer: int, distances: Ints, rest: int = REST) -> Array:
    """One contribution with a cool-down: mean over a few peers of each distance, walks followed for
    2^14 steps."""
    far = graph.distances(observer)

    def one(d: int) -> float:
        peers = np.flatnonzero(far == d)
        some = peers[np.linspace(0, len(peers) - 1, min(SAMPLED, len(peers))).astype(int)]
        some = some[:1] if graph.group is not None else some
        laws = [segment_law(graph.weights, int(u), [observer], rest, FOLLOWED) for u in some]
        return float(np.mean([contribution_divergence(law, ORDER, Z) for law in laws]))

    return np.array([one(int(d)) for d in distances])


def curves(graph: Graph, distances: Ints | None = None, observer: int | None = None) -> Curves:
    """All curves of one graph, by default up to distance 11, seen from the peer of most
    neighbors."""
    v = int(graph.degrees.argmax()) if observer is None else observer
    walk, gossip = walk_steps(graph, Z), gossip_steps(graph, Z)
    wanted = np.arange(1, 12) if distances is None else distances
    chosen = wanted[wanted <= graph.distances(v).max()]

    def mean(losses: Array) -> Array:
        return by_distance(graph, losses, v, chosen)

    printed, exact = (
        published_losses(lambda _: graph, graph.n, gossip, [v]),
        leverage(graph, [v], gossip),
    )
    return Curves(
        distances=chosen,
        printed=mean(printed_walk(graph, v, walk)),
        sender=mean(known_senders(graph, v, walk)),
        proven=proven_walk(graph, v, chosen),
        gossip_printed=mean(printed),
        gossip_exact=mean(exact.loss),
        walk_steps=walk,
        gossip_steps=gossip,
        certified=exact.status == "exact",
    )
