"""Two-party computation made real: noisy comparisons of rows that two holders never show to each other (perso:LDP-11).

Garbled circuits (half-gates, free XOR), oblivious transfer extension, noise inside the circuit; semi-honest parties.
"""

from bruit.two_party.channel import Channel, Parties, connect, listen
from bruit.two_party.noisy_bit import NoisyBit
from bruit.two_party.question import Question, Rows, rows_of
from bruit.two_party.session import Answer, ask, rehearse
from bruit.two_party.spending import Spending
from bruit.two_party.trusted_pair import trusted_pair

__all__ = [
    "Answer", "Channel", "NoisyBit", "Parties", "Question", "Rows", "Spending", "ask", "connect", "listen", "rehearse",
    "rows_of", "trusted_pair",
]
