"""Communicability and Katz centrality beside the losses of a walk: who communicates much, learns
much (walk:RW-11).

On the complete graph all pairs are alike and there is nothing to compare. Elsewhere the exponential
communicability exp(W) of a pair is set beside the loss of one in the view of the other, and the
Katz centrality of a peer beside what it could have learned. Both are facts of the public graph:
explanations, never guarantees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.graphs.centrality import communicability, katz_centrality
from bruit.runs.result import Run

MOST = 512  # peers: the losses of all pairs are computed again
GROUPS = 10


@dataclass(frozen=True, eq=False)
class Communication:
    """Pairs by how much they communicate, peers by how central they are, and the losses beside
    them."""

    pairs: Array  # (groups, 3) pairs of a tenth, their mean communicability, their mean loss
    katz: Array  # (n,)
    learned: Array  # (n,) mean loss of the others in this peer's view
    with_pairs: float  # rank correlation of communicability and loss, over pairs
    # rank correlation of Katz centrality and mean loss seen, over peers; nan if all are alike
    with_peers: float

    def sentences(self) -> list[str]:
        """In words, for a terminal or a page."""
        low, high = self.pairs[0], self.pairs[-1]
        lines = [
            f"communicability beside the loss (walk:RW-11): rank correlation {self.with_pairs:.2f}"
            f" over pairs; the mean loss is {low[2]:.4g} in the tenth of pairs that communicate"
            f" least, {high[2]:.4g} where they do most"
        ]
        if not np.isnan(self.with_peers):
            first, last = int(np.argmax(self.katz)), int(np.argmin(self.katz))
            lines.append(
                "Katz centrality beside what a peer could learn: rank correlation"
                f" {self.with_peers:.2f}; mean loss {self.learned[first]:.4g} seen by the most"
                f" central peer {first}, {self.learned[last]:.4g} by the least central {last}"
            )
        return lines

    def plain(self) -> dict[str, object]:
        """For JSON."""
        groups = [
            {"pairs": int(count), "communicability": float(much), "mean_loss": float(loss)}
            for count, much, loss in self.pairs
        ]
        peers = None if np.isnan(self.with_peers) else self.with_peers
        return {
            "spec": "walk:RW-11",
            "rank_correlation_pairs": self.with_pairs,
            "rank_correlation_peers": peers,
            "groups_of_pairs": groups,
            "katz": self.katz.tolist(),
            "mean_loss_seen": self.learned.tolist(),
        }


def communication(run: Run, losses: Array | None = None) -> Communication | None:
    """What there is to set beside the losses of a run; None unless a token walked at random on a
    graph with a shape.

    `losses` saves computing them again; beyond MOST peers they are needed.
    """
    graph, schedule = run.graph, run.algorithm.schedule
    if not isinstance(graph, Graph) or not isinstance(schedule, Walk) or schedule.order != "random":
        return None
    if (
        graph.alike
        or run.privacy is None
        or run.privacy.sigma == 0
        or (losses is None and run.n > MOST)
    ):
        return None
    try:
        found = run.losses() if losses is None else losses
    except PrivacyError:  # noise without losses of pairs
        return None
    pair = ~np.eye(run.n, dtype=bool)
    much, lost = communicability(graph)[pair].round(12), found[pair]
    if not np.isfinite(lost).all() or np.ptp(lost) == 0:
        return None
    order = np.argsort(much, kind="stable")
    groups = [
        (len(some), much[some].mean(), lost[some].mean())
        for some in np.array_split(order, GROUPS)
        if len(some)
    ]
    katz = katz_centrality(
        graph, min(0.1, 0.5 / max(1, int(graph.degrees.max())))
    )  # below 1 / rho(A)
    learned = np.nanmean(np.where(pair, found, np.nan), axis=0)
    return Communication(
        np.array(groups), katz, learned, _ranked(much, lost), _ranked(katz.round(12), learned)
    )


def _ranked(a: Array, b: Array) -> float:
    """Spearman's rank correlation; nan when one side does not vary."""
    from scipy.stats import spearmanr

    return float("nan") if np.ptp(a) == 0 or np.ptp(b) == 0 else float(spearmanr(a, b).statistic)
