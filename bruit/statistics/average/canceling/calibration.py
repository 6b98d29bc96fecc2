"""Own and pair noise for a budget on the graph that was drawn, by its exact spectrum
(perso:GOPA-3).

    own^2 = (1 + s) B^2 / (m mu^2),   pair: the least with max_v theta_v B^2 <= mu^2,   mu that of (epsilon, delta)

m is the smallest component of honest peers that is expected to stay, B how far one value may move
in L2. s = 1 % of variance above a trusted curator's is what the noise between neighbors may spend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.calibrate import least
from bruit.privacy.exact import Laplacian, Quadrature, laplacian_among
from bruit.privacy.toolbox.gaussian import mu_of

SURPLUS = 0.01
VAST = 1e6  # times the own noise: more would not improve anything
# peers up to which all eigenvalues are computed; more need a graph that mixes fast, as k-out graphs
# do
SMALL = 300


@dataclass(frozen=True)
class Noises:
    """Standard deviations, in the units of the values."""

    own_sigma: float
    pair_sigma: float


def noises(
    graph: Graph,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    colluders: Iterable[int] = (),
    leaving: float = 0.0,
) -> Noises:
    """Noises with which every honest peer keeps (epsilon, delta) in the view of the colluders
    together.

    `leaving` is the share of peers that may drop out: own noise grows by 1 / sqrt(1 - leaving), and
    that between neighbors, of whom fewer are left, by 1 / (1 - leaving). Enough in most draws: what
    those who leave cost the others is accounted for exactly when it is known who left.
    """
    if not sensitivity > 0:
        raise PrivacyError(f"the sensitivity is a positive number, found {sensitivity}")
    if not 0 <= leaving < 1:
        raise PrivacyError(f"a share of peers that leave lies in [0, 1), found {leaving}")
    honest = np.setdiff1d(np.arange(graph.n), np.fromiter(colluders, np.int64))
    among = laplacian_among(graph, honest)
    alone = among.peers[among.sizes == 1]
    if len(alone):
        raise PrivacyError(
            f"all neighbors of peer {alone[0]} collude, or it has none: only its own noise protects"
            " it; use a graph with more neighbors, or local DP"
        )
    mu = mu_of(epsilon, delta) / sensitivity
    staying = max(1.0, math.floor(float(among.sizes.min()) * (1 - leaving) + 1e-9))
    together = math.sqrt((1 + SURPLUS) / float(among.sizes.min())) / mu
    measure = _measure(among)
    if measure.at(together, VAST * together).max() > mu**2:
        raise PrivacyError(
            f"no noise between the {len(honest)} honest peers of {graph.name} was found that hides"
            " them all: the graph mixes too slowly; use kout"
        )
    pair = least(lambda pair: float(measure.at(together, pair).max()), mu**2, together)
    return Noises(math.sqrt((1 + SURPLUS) / staying) / mu, pair / (1 - leaving))


def _measure(among: Laplacian) -> Quadrature:
    """The spectral measures of all peers: from all eigenvalues when they are few, else by
    Lanczos."""
    lanes = np.arange(len(among.peers))
    if len(lanes) > SMALL:
        return Quadrature.of(among, lanes)
    values, vectors = np.linalg.eigh(among.matrix.toarray())
    constant = values <= 1e-9 * max(1.0, float(values[-1]))
    nodes = np.broadcast_to(np.where(constant, 1.0, values), vectors.shape)
    return Quadrature(nodes, np.where(constant, 0.0, vectors**2), 1.0 / among.sizes)
