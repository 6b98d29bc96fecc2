"""What liars say, made of what they heard: attacks to test rules with.

    sign-flip   -strength times what they should say
    alie        to all: mean - strength * deviation of what they heard, number by number
    dissensus   to j: what j said, away from the mean of what they heard by strength times its distance
    label-flip  what they should say, of answers on flipped labels (of tasks with gradients)

A liar knows its own neighborhood: what it heard in the last exchange. In the first one it has
heard nothing, and is honest where its lie is made of that. In a simulation and between real peers
liars are the same code.
Spec: gossip:LIE-3. ALIE is arXiv:1902.06156, dissensus arXiv:2202.01545.
"""

from __future__ import annotations

import numpy as np

from bruit.algorithms.messages import Edges, Slots
from bruit.arrays import Array, Bools, Ints

ATTACKS = ("sign-flip", "alie", "dissensus", "label-flip")


def lying(ids: Ints, liars: tuple[int, ...]) -> Bools:
    """Which of these peers lie."""
    return np.isin(ids, liars)


def told(
    attack: str, strength: float, liars: tuple[int, ...], said: Array, heard: Slots, edges: Edges
) -> Slots:
    """What each peer tells each neighbor: honest ones what they said, liars their lies."""
    copies = edges.expand(said)
    lanes = np.repeat(np.arange(len(edges.ids)), np.diff(edges.start))
    false = lying(edges.ids, liars)[lanes]
    lies = _lies(attack, strength, said, heard)
    return copies.replace(np.where(false[:, None], heard.replace(lies).on(edges).rows, copies.rows))


def _lies(attack: str, strength: float, said: Array, heard: Slots) -> Array:
    """The lie of each lane to each peer that it heard  # (copies heard, d)."""
    degree = np.diff(heard.start)
    lanes = np.repeat(np.arange(len(degree)), degree)
    if attack == "label-flip":
        return said[lanes]
    if attack == "sign-flip":
        return -strength * said[lanes]
    count = np.maximum(degree, 1)[:, None]
    mean = heard.sums() / count
    apart = heard.rows - mean[lanes]
    if attack == "dissensus":
        return heard.rows + strength * apart
    return (mean - strength * np.sqrt(heard.replace(apart**2).sums() / count))[lanes]
