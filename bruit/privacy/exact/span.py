"""What an observer of linear gossip can combine: a block Krylov space, described before anything is
computed.

The observers V of averaging with a fixed symmetric matrix W know their own noisy values and hear,
at steps t < T, the rows (W^t)_{w,.} of their neighbors w. Since an observer can subtract everything
it said itself, the rows span

    span{e_v : v in V}  +  span{W_R^t e_w : t < T, w in N(V) - V},    R = all peers but V, W_R = W restricted to R,

so the computation happens on R alone (gossip:MUF-2, MUF-10). Without knowledge of its own noise the
observer has the Krylov space of W itself; under secure aggregation (gossip:MUF-X4) the starts are
the observers and the powers run from 0 to T. Peers that no row can touch are left out: their loss
is exactly 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph


@dataclass(frozen=True, kw_only=True)
class KrylovSpan:
    """span{M^t e_w : t < powers, w in starts}, M the mixing matrix restricted to some peers.

    `entries` are the positions of M's entries in the data of the graph's matrix (None: all of
    them); rows named by `silent` are read as zero; `starts` and `silent` count within `peers`.
    """

    peers: Ints  # (k,)
    matrix: csr_array  # (k, k)
    entries: Ints | None
    silent: Ints
    starts: Ints  # (d,)
    powers: int

    @property
    def size(self) -> int:
        """Number of peers some row may touch."""
        return int(self.peers.size - self.silent.size)

    @property
    def most(self) -> int:
        """The largest rank the space can have."""
        return min(self.size, self.powers * int(self.starts.size))

    def residues(self, graph: "Graph", prime: int) -> Array:
        """The entries of the matrix modulo a prime, in [-prime/2, prime/2], aligned with
        matrix.data."""
        values = graph.residues(prime).astype(np.float64)
        values[values > prime / 2] -= prime
        return values if self.entries is None else values[self.entries]


def neighborhood(graph: "Graph", observers: Ints) -> Ints:
    """The peers that some observer hears and that are not observers themselves, sorted."""
    heard = np.unique(np.concatenate([graph.neighbors(int(v)) for v in observers]))
    return np.setdiff1d(heard, observers).astype(np.int64)


def checked_observers(n: int, observers: Sequence[int] | Ints) -> Ints:
    """The set of observers as sorted peers; an empty set or an unknown peer is refused."""
    chosen = np.unique(np.asarray(observers, dtype=np.int64).reshape(-1))
    if chosen.size == 0:
        raise ConfigError("no observer was given; name at least one peer whose view is meant")
    if chosen[0] < 0 or chosen[-1] >= n:
        bad = int(chosen[0] if chosen[0] < 0 else chosen[-1])
        raise ConfigError(f"observer {bad} is not a peer of this graph, whose peers are 0..{n - 1}")
    return chosen


def checked_steps(steps: int) -> int:
    """The number of gossip steps, refused when negative."""
    if steps < 0:
        raise ConfigError(f"the number of gossip steps is {steps}; it must be 0 or more")
    return int(steps)


def checked_symmetry(graph: "Graph") -> None:
    """Refuse a mixing matrix that is not symmetric: the three-term recurrence would be wrong."""
    difference = abs(graph.weights - graph.weights.T)
    if difference.nnz and float(difference.max()) > 1e-12:
        raise PrivacyError(
            f"the mixing matrix is not symmetric (off by {float(difference.max()):.1e}); "
            "use the stacked rows of bruit.privacy.exact.rows for it"
        )


def within(matrix: csr_array, starts: Ints, silent: Ints, expansions: int) -> Bools:
    """The peers reached from starts by walks of at most so many edges that avoid the silent
    peers."""
    reached = np.zeros(matrix.shape[0], dtype=bool)
    reached[starts] = True
    count = starts.size
    for _ in range(expansions):
        reached |= (matrix @ reached.astype(np.float64)) != 0
        reached[silent] = False
        grown = int(np.count_nonzero(reached))
        if grown in (count, reached.size - silent.size):
            break
        count = grown
    return reached


def krylov_span(
    graph: "Graph",
    observers: Ints,
    steps: int,
    *,
    own_noise_known: bool = True,
    secure_aggregation: bool = False,
) -> KrylovSpan | None:
    """The space above for a set of observers; None when nothing is heard (no step, or nobody to
    hear)."""
    if secure_aggregation and not own_noise_known:
        raise ConfigError(
            "secure aggregation removes the observer's own share, so the observer knows it; set "
            "own_noise_known=True"
        )
    if secure_aggregation:
        starts, silent, powers = observers, np.zeros(0, dtype=np.int64), steps + 1
    else:
        starts, powers = neighborhood(graph, observers), steps
        silent = observers if own_noise_known else np.zeros(0, dtype=np.int64)
    if powers == 0 or starts.size == 0:
        return None
    reached = within(graph.weights, starts, silent, powers - 1)
    count = int(np.count_nonzero(reached))
    powers = min(powers, count)
    if count + silent.size == graph.n:
        return KrylovSpan(
            peers=np.arange(graph.n),
            matrix=graph.weights,
            entries=None,
            silent=silent,
            starts=starts,
            powers=powers,
        )
    peers = np.flatnonzero(reached)
    matrix, entries = _restricted(graph.weights, peers)
    return KrylovSpan(
        peers=peers,
        matrix=matrix,
        entries=entries,
        silent=np.zeros(0, dtype=np.int64),
        starts=np.searchsorted(peers, starts),
        powers=powers,
    )


def _restricted(matrix: csr_array, peers: Ints) -> tuple[csr_array, Ints]:
    """The rows and columns of some peers, and where their entries lie in the data of the whole
    matrix."""
    # Counting from 1 keeps the entry at position 0 distinguishable from a stored zero.
    counted = np.arange(1, matrix.nnz + 1, dtype=np.float64)
    places = csr_array((counted, matrix.indices, matrix.indptr), shape=matrix.shape)
    part = csr_array(places[peers][:, peers])
    entries = part.data.astype(np.int64) - 1
    return csr_array((matrix.data[entries], part.indices, part.indptr), shape=part.shape), entries
