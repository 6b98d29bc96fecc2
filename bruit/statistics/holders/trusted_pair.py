"""A trusted pair: what two holders would find together, computed in one place, by the same circuit
in the clear.

The law of the result is that of the real protocol, without its cost: simulations, and choosing P
and epsilon.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from bruit.arrays import Bools
from bruit.errors import ConfigError
from bruit.statistics.holders.question import HolderRows, TablesQuestion


def trusted_pair(
    question: TablesQuestion,
    first: HolderRows,
    second: HolderRows,
    seed: int,
    draw: Callable[[int], bytes] = os.urandom,
) -> Bools:
    """The noisy bits of all pairs of both holders' rows; seed: of the public pairing  # (P, m)."""
    labels = np.concatenate((first.labels, second.labels))
    if trouble := question.trouble(len(labels), int(labels.sum())):
        raise ConfigError(trouble)
    numbers, mirrored = (
        np.concatenate(part)
        for part in ((first.numbers, second.numbers), (first.mirrored, second.mirrored))
    )
    pairs = question.pairs(labels, seed).reshape(-1, 2)
    bits = question.bit.in_the_clear(numbers[pairs[:, 0]], mirrored[pairs[:, 1]], draw)
    return bits.reshape(question.rounds, -1)
