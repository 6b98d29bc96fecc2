"""Two-party computation made real: noisy comparisons of rows that two holders never show to each
other (perso:LDP-11).

Garbled circuits (half-gates, free XOR), oblivious transfer extension, noise inside the circuit;
semi-honest parties.
"""

from bruit.statistics.holders.channel import Channel, Parties, connect, listen
from bruit.statistics.holders.holder import MOST_CLAIMED
from bruit.statistics.holders.noisy_bit import NoisyBit
from bruit.statistics.holders.question import HolderRows, TablesQuestion, rows_of
from bruit.statistics.holders.session import Answer, ask, rehearse
from bruit.statistics.holders.spending import Spending
from bruit.statistics.holders.trusted_pair import trusted_pair

__all__ = [
    "MOST_CLAIMED",
    "Answer",
    "Channel",
    "HolderRows",
    "NoisyBit",
    "Parties",
    "Spending",
    "TablesQuestion",
    "ask",
    "connect",
    "listen",
    "rehearse",
    "rows_of",
    "trusted_pair",
]
