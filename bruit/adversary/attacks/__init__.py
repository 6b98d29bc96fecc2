"""Attacks: what a curious peer, or several who collude, really get out of what they saw. One
attack, one file.

An attack is a function of a `View`, and of what is public: the graph, the weights, the schedule. It
never sees the truth, which `score` compares with afterwards.
"""

from bruit.adversary.attacks.all_attackers import AllAttackers, all_attackers
from bruit.adversary.attacks.knowledge import (
    Knowledge,
    accelerated_knowledge,
    knowledge,
    meeting_knowledge,
    sequence_knowledge,
)
from bruit.adversary.attacks.reconstruct import (
    Reconstruction,
    Recovered,
    RecoveryScore,
    Relation,
    decide,
    reconstruct,
    reconstructible,
)
from bruit.adversary.attacks.views import own_dithers, run_knowledge, starting_values

__all__ = [
    "AllAttackers",
    "Knowledge",
    "Reconstruction",
    "Recovered",
    "RecoveryScore",
    "Relation",
    "accelerated_knowledge",
    "all_attackers",
    "decide",
    "knowledge",
    "meeting_knowledge",
    "own_dithers",
    "reconstruct",
    "reconstructible",
    "run_knowledge",
    "sequence_knowledge",
    "starting_values",
]
