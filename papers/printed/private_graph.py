"""The printed losses of Muffliato on private random graphs. NOT A GUARANTEE: kept to reproduce and
to compare.

    MUF-8:   alpha Delta^2 T d_v / (sigma^2 (n - d_v))           MUF-10, C.14: the same with d_V
    MUF-11:  alpha Delta^2 / sigma^2 sum_t [beta_t + (1 - beta_t) K |N_t(V)| / (n - |N_t(V)|)]

The print counts the observers among the strangers, and its sum over runs on one hidden graph is
refuted: one neighbor joined to one of ten strangers, T = 2, alpha = 2, z = 2: twenty runs have
exact loss log(0.9 + 0.1 e^5) = 2.756, twenty printed bounds add up to 1.818. See
`bruit.privacy.ahead.private_graph` for what holds. (arXiv:2206.05091, Theorem 6, Appendix C;
gossip:MUF-8, 10, 11.)
"""

from __future__ import annotations

from collections.abc import Sequence

from bruit.errors import ConfigError


def published_stranger_divergence(
    order: float, noise_multiplier: float, n: int, degree: int, steps: int
) -> float:
    """NOT A GUARANTEE when runs are added up. The printed Renyi divergence of a non-neighbor after
    one run.

    >>> round(published_stranger_divergence(2.0, 2.0, 2000, 10, 8), 10)
    0.0201005025
    """
    _check(noise_multiplier, n, degree)
    return order / noise_multiplier**2 * steps * degree / (n - degree)


def published_fresh_divergence(
    order: float,
    noise_multiplier: float,
    n: int,
    mixing: int,
    degrees: Sequence[int],
    adjacent: Sequence[bool],
) -> float:
    """NOT A GUARANTEE. The printed sum over rounds, each with a fresh graph; without consensus
    information flows on.

    >>> round(published_fresh_divergence(2.0, 2.0, 2000, 8, [9, 11, 8], [False, True, False]), 9)
    0.534145623
    """
    if len(degrees) != len(adjacent):
        raise ConfigError(
            f"{len(degrees)} degrees and {len(adjacent)} adjacencies; give one of each per round"
        )
    total = 0.0
    for degree, near in zip(degrees, adjacent, strict=True):
        _check(noise_multiplier, n, degree)
        total += 1.0 if near else mixing * degree / (n - degree)
    return order / noise_multiplier**2 * total


def _check(noise_multiplier: float, n: int, degree: int) -> None:
    if not noise_multiplier > 0 or not 0 <= degree < n:
        raise ConfigError(
            "the printed formula needs noise and fewer neighbors than peers, found z ="
            f" {noise_multiplier}, {degree} neighbors of {n} peers"
        )
