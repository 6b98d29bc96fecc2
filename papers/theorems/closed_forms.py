"""Closed forms of the exact loss on graphs with weights plus = 1 (gossip:MUF-13), and on
butterflies (gossip:MUF-X2).

    ring; path seen from an end     1 if k <= T, else 0                    k = distance(u, v) >= 1
    complete; star seen from its hub       1 for T >= 1
    star of n seen from a leaf      hub 1 for T >= 1; other leaves 1 / (n - 2) for T >= 2
    hypercube(m)                    0 if k > T; else m / binomial(m, k) for k <= m - 1; 1 for k = m
    butterfly, radices r_0, r_1...  1 / (r_0 ... r_{i-1}), i the highest digit in which u and v differ

in local-DP units. On the hypercube the loss does not fall with the distance: least half-way, 1 at
the antipode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.theorem import IDEALLY


def line_loss(distance: int, steps: int) -> float:
    """On a ring, or on a path whose end observes: everybody within reach is exposed.

    >>> line_loss(3, 3), line_loss(4, 3)
    (1.0, 0.0)
    """
    _check(distance, steps)
    return 1.0 if distance <= steps else 0.0


def hub_loss(steps: int) -> float:
    """In the view of somebody who hears everybody: on a complete graph, or in the middle of a
    star."""
    _check(1, steps)
    return 1.0 if steps else 0.0


def star_leaf_loss(n: int, distance: int, steps: int) -> float:
    """In the view of a leaf: of the hub (distance 1) or of another leaf (distance 2).

    >>> star_leaf_loss(6, 2, 3)
    0.25
    """
    _check(distance, steps)
    if n < 3 or distance > 2:
        raise ConfigError(
            f"a star of {n} peers has no peer at distance {distance} of a leaf; give n >= 3 and 1 "
            f"or 2"
        )
    if distance == 1:
        return hub_loss(steps)
    return 1 / (n - 2) if steps >= 2 else 0.0


def hypercube_loss(m: int, distance: int, steps: int) -> float:
    """Among 2^m peers, of a peer that differs in `distance` bits.

    >>> [round(hypercube_loss(4, k, 4), 8) for k in (1, 2, 3, 4)]
    [1.0, 0.66666667, 1.0, 1.0]
    """
    _check(distance, steps)
    if m < 1 or distance > m:
        raise ConfigError(f"a hypercube of {m} dimensions has no pair at distance {distance}")
    if distance > steps:
        return 0.0
    return 1.0 if distance == m else m / math.comb(m, distance)


def hypercube_rank(m: int, steps: int) -> int:
    """How many independent values one peer of a hypercube learns, its own included.

    >>> hypercube_rank(10, 17), hypercube_rank(11, 19)
    (92, 112)
    """
    _check(1, steps)
    if m < 1:
        raise ConfigError(f"a hypercube has at least 1 dimension here, found {m}")
    return 1 + m * steps if steps <= m - 1 else m * (m - 1) + 2


def butterfly_loss(radices: Sequence[int], u: int, v: int) -> float:
    """On a butterfly of prod(radices) peers after one round per digit; the lowest digit is
    exchanged first.

    >>> [butterfly_loss((2, 2, 2), u, 0) for u in range(1, 8)], butterfly_loss((2, 3), 4, 0)
    ([1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25], 0.5)
    """
    if not radices or min(radices) < 2:
        raise ConfigError(f"a butterfly needs radices of at least 2, found {list(radices)}")
    n = math.prod(radices)
    if not (0 <= u < n and 0 <= v < n):
        raise ConfigError(f"the peers of this butterfly are 0..{n - 1}, found {u} and {v}")
    if u == v:
        raise PrivacyError(
            f"the loss of peer {u} in its own view is undefined; ask about another peer"
        )
    size, loss = 1, 1.0
    for radix in radices:
        if u // size % radix != v // size % radix:
            loss = 1 / size
        size *= radix
    return loss


def butterfly_mean(radices: Sequence[int]) -> float:
    """A summary that protects no pair: (1/n) sum over u != v of the loss, the same for every v.

    >>> butterfly_mean((2,) * 11)
    0.00537109375
    """
    return sum(radix - 1 for radix in radices) / math.prod(radices)


def closed_form_guarantee(
    family: str, distance: int, loss: float, noise_multiplier: float
) -> Guarantee:
    """One of the losses above as a guarantee about a pair of a family of graphs, before any graph
    is built.

    >>> round(closed_form_guarantee("hypercube:11", 1, hypercube_loss(11, 1, 19), 1.0).epsilon(1e-6), 8)
    4.88655412
    """
    return Guarantee(
        theorem=f"closed form of the exact loss on {family}",
        spec="gossip:MUF-13",
        status="ideal",
        level="user",
        of=f"a peer at distance {distance}",
        against="one observer",
        hypotheses=IDEALLY,
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=(),
        seen="all messages the observer receives, and its own value and noise",
    )


def _check(distance: int, steps: int) -> None:
    if distance < 1:
        raise PrivacyError(
            f"a pair is at distance 1 or more, found {distance}: nobody has secrets from oneself"
        )
    if steps < 0:
        raise ConfigError(f"the number of gossip steps is {steps}; it must be 0 or more")
