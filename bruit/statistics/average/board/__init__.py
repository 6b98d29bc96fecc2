"""Averages that anybody can check: commitments, zero-knowledge proofs, and a signed board
(perso:GOPA-9, 10).

    agreement = agree(public_keys, graph, low, high, levels=8, noise_bits=64)  # everybody has the same
    board, record = BoardFile("board.db"), Record(agreement)  # every peer keeps a copy
    prover = Prover(agreement, me, value, identity.sign)  # one participant
    for post in prover.next(record): ...  # send it, append it, absorb it
    verify("board.db").accepted  # anybody, later, offline

Who takes part for real uses `bruit.statistics.average.averaging`, which pays before it opens.
"""

from bruit.statistics.average.board.agreement import AverageAgreement, agree
from bruit.statistics.average.board.board_file import BoardFile
from bruit.statistics.average.board.findings import BoardFinding
from bruit.statistics.average.board.organizer import Organizer
from bruit.statistics.average.board.posts import Post, SignedHead
from bruit.statistics.average.board.privacy import guarantee, worst_epsilon
from bruit.statistics.average.board.prover import Prover
from bruit.statistics.average.board.record import Record
from bruit.statistics.average.board.verified_run import VerifiedRun, verified_run
from bruit.statistics.average.board.verify import Report, load_record, verify

__all__ = [
    "AverageAgreement",
    "BoardFile",
    "BoardFinding",
    "Organizer",
    "Post",
    "Prover",
    "Record",
    "Report",
    "SignedHead",
    "VerifiedRun",
    "agree",
    "guarantee",
    "load_record",
    "verified_run",
    "verify",
    "worst_epsilon",
]
