"""Losses of rounds whose mixed and masked states are given to the observers besides what they heard
(gossip:MUF-X3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.graphs.graph import Graph
from bruit.graphs.sequence import GraphSequence
from bruit.privacy.exact.rows import noisy_rows_loss
from bruit.privacy.exact.span import checked_observers, checked_steps


@dataclass(frozen=True)
class MaskedRound:
    """One round: `mixing` exchanges with message noise tau, then a mask omega; both in units of the
    release's sigma.

    `first` is the number of its first exchange on a changing graph.
    """

    mixing: int
    tau: float
    omega: float
    first: int = 0


def masked_losses(
    graph: Graph | GraphSequence, rounds: Sequence[MaskedRound], seen_by: int | Sequence[int] | Ints
) -> Array:
    """Losses of all peers over all rounds in the joint view of the observers; one per round at the
    observers  # (n,).

    >>> from bruit.graphs import ring
    >>> masked_losses(ring(8), [MaskedRound(40, 0.2, 0.1)], 0)[1:5].round(7).tolist()
    [0.9627209, 0.7872499, 0.4755804, 0.3659332]
    """
    chosen = checked_observers(graph.n, np.atleast_1d(seen_by))
    known: dict[MaskedRound, Array] = {}
    total = np.zeros(graph.n)
    for each in rounds:
        if each not in known:
            known[each] = _round(graph, each, chosen.tolist())
        total += known[each]
    return total


def _round(graph: Graph | GraphSequence, each: MaskedRound, observers: list[int]) -> Array:
    if not (each.tau > 0 and each.omega > 0):
        raise PrivacyError(
            "masked consensus needs noise in every message and in every mask, found tau ="
            f" {each.tau:g} and omega = {each.omega:g}; raise both above 0"
        )
    others = np.setdiff1d(np.arange(graph.n), observers)
    place = np.full(graph.n, -1)
    place[others] = np.arange(len(others))
    power = np.eye(len(others))
    rows: list[Array] = []
    for k in range(checked_steps(each.mixing)):
        at = graph if isinstance(graph, Graph) else graph.at(each.first + k)
        rows.append(power[[place[w] for v in observers for w in at.neighbors(v) if place[w] >= 0]])
        power = np.asarray(at.weights[others][:, others] @ power)
    heard = sum(len(part) for part in rows)
    noise = np.concatenate([np.full(heard, each.tau), np.full(len(others), each.omega)])
    losses = np.ones(graph.n)
    losses[others] = noisy_rows_loss(np.concatenate([*rows, power]), noise)
    return losses
