"""Who holds which rows, and who may talk to whom: the `peers` and `graph` of an estimator.

Peer i of the graph is the i-th label in sorted order. A graph with labels of its own (an edge list,
say) is matched label by label.
"""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.tasks.counted import Counted
from bruit.tasks.data.split import iid

Labels = NDArray[Any]
Peers = ArrayLike | int | None

ALL_TALK = 50  # up to so many peers everybody talks to everybody, unless a graph is given
FAMILIES = (
    "path",
    "ring",
    "star",
    "complete",
    "exponential",
    "tree",
    "er",
    "geometric",
    "regular",
    "ws",
    "ba",
    "kout",
    "butterfly",
)


class EstimatorError(ConfigError, ValueError):
    """A ConfigError that scikit-learn and its users recognize: it is a ValueError too."""


def refuse(unknown: dict[str, Any]) -> None:
    """Arguments of `fit` that other estimators have: weights would change how far one row may move
    a model."""
    if "sample_weight" in unknown:
        raise EstimatorError(
            "fit takes no sample_weight: every row of a peer counts the same, and the noise is"
            " measured for that; repeat or leave out rows, or give peers `confidences`"
        )
    if unknown:
        raise TypeError(f"fit has no argument {sorted(unknown)[0]!r}; it takes X, y and peers")


@dataclass(frozen=True, eq=False)
class Holders(Counted):
    """The labels of the peers, and the peer that holds each row; `dealt` when the labels are only
    numbers we gave."""

    labels: Labels  # (n,)
    owners: Ints  # (rows,)
    dealt: bool = False

    @property
    def n(self) -> int:
        return len(self.labels)


def hold(peers: Peers, rows: int, usual: int, seed: int) -> Holders:
    """One label a row, a number of peers to deal the rows to, or None: the usual number, at most
    one peer a row."""
    if peers is None or isinstance(peers, Integral):
        number = min(usual, rows) if peers is None else int(np.int64(peers))
        if number < 2:
            raise EstimatorError(f"rows are held by two peers or more, found {number}")
        split = iid(np.zeros(rows), number, seed)
        owners = np.empty(rows, np.int64)
        owners[split.rows] = np.repeat(np.arange(number), split.sizes)
        return Holders(np.arange(number), owners, dealt=True)
    given = _labels(peers)
    if given.shape != (rows,):
        raise EstimatorError(
            f"peers has shape {given.shape} for {rows} rows; give the label of one peer a row, or"
            " how many peers to deal the rows to"
        )
    labels, owners = np.unique(given, return_inverse=True)
    if len(labels) < 2:
        raise EstimatorError(
            f"all rows belong to peer {labels.tolist()[0]!r}; at least two peers learn together"
        )
    return Holders(labels, owners.astype(np.int64))


def settle(
    graph: Graph | GraphSequence | str | None, holders: Holders
) -> tuple[Graph | GraphSequence, Holders]:
    """The graph these peers talk over, and the peers in its order."""
    found = _graph(graph, holders.n)
    if found.n != holders.n:
        raise EstimatorError(
            f"the graph {found.name} has {found.n} peers, but the rows belong to {holders.n};"
            " every peer of the graph holds at least one row"
        )
    own = found.labels if isinstance(found, Graph) else None
    if own is None or holders.dealt:
        return found, holders
    place = {str(label): i for i, label in enumerate(holders.labels.tolist())}
    missing = [label for label in own if label not in place]
    if missing:
        raise EstimatorError(
            f"peer {missing[0]!r} of the graph {found.name} holds no row;"
            " the labels in `peers` and those of the graph must be the same"
        )
    order = np.array([place[label] for label in own])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return found, replace(holders, labels=holders.labels[order], owners=back[holders.owners])


def places_of(labels: Labels, peers: ArrayLike, rows: int, unknown: str) -> Ints:
    """The peer of each row, -1 for one that was not there in `fit` (refused unless unknown =
    "mean")."""
    given = np.asarray(peers)
    given = _labels(np.broadcast_to(given, (rows,)) if given.ndim == 0 else given)
    if given.shape != (rows,):
        raise EstimatorError(
            f"peers has shape {given.shape} for {rows} rows; give one label, or one a row"
        )
    place = {label: i for i, label in enumerate(labels.tolist())}
    places = np.array([place.get(label, -1) for label in given.tolist()], np.int64)
    if unknown == "error" and bool((places < 0).any()):
        stranger = given[places < 0].tolist()[0]
        raise EstimatorError(
            f"peer {stranger!r} was not there in fit, so it has no model; leave peers out, or set "
            "unknown_peers='mean' to use the model of all"
        )
    return places


def _labels(peers: ArrayLike) -> Labels:
    given = np.asarray(peers)
    bad = [label for label in given.ravel().tolist() if label is None or label != label]
    if bad:
        raise EstimatorError(f"the label of a peer is {bad[0]}; every row needs one")
    if given.dtype == object and len({type(label) for label in given.ravel().tolist()}) > 1:
        raise EstimatorError(
            "the labels of peers are of different types; make them all text, or all numbers"
        )
    return given


def _graph(graph: Graph | GraphSequence | str | None, n: int) -> Graph | GraphSequence:
    if isinstance(graph, Graph | GraphSequence):
        return graph
    if graph is None:
        return named_graph(f"complete:{n}" if n <= ALL_TALK else f"exponential:{n}")
    if not isinstance(graph, str):
        raise EstimatorError(
            f"graph is a Graph, a string as 'ring' or 'regular,degree=4', or None, found {graph!r}"
        )
    family, comma, options = graph.partition(",")
    return named_graph(f"{family}:{n}{comma}{options}" if family in FAMILIES else graph)
