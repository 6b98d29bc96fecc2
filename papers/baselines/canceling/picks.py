"""Who exchanges noise with whom, drawn by the peers themselves during the run: a random k-out graph
(perso:GOPA-2).

Every peer picks k distinct others uniformly with dice that nobody else can throw; an edge joins two
peers when one picked the other. The picks of dishonest peers may be anything: the k-out theorem
counts those of honest ones only.
"""

from __future__ import annotations

import numpy as np

from bruit.errors import ConfigError
from bruit.randomness import Dice, Secure


def picked(me: int, k: int, peers: int, number: int, dice: Dice | None = None) -> tuple[int, ...]:
    """k distinct others of `me` in round `number`: those with the smallest of peers - 1 random
    words.

    >>> from bruit.randomness import Replay
    >>> len(set(picked(3, 4, 10, 0, Replay(1))) - {3})
    4
    """
    if not 0 <= me < peers:
        raise ConfigError(f"peers are 0..{peers - 1}, found {me}")
    if not 1 <= k < peers:
        raise ConfigError(f"a peer picks between 1 and {peers - 1} of the others, found k = {k}")
    words = (Secure() if dice is None else dice).words(
        "picks", np.array([me]), number, 0, peers - 1
    )[0]
    chosen = np.argsort(words, kind="stable")[:k]
    return tuple(sorted((chosen + (chosen >= me)).tolist()))
