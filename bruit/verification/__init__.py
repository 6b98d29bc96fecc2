"""Averages that anybody can check: commitments, zero-knowledge proofs, and a signed board (perso:GOPA-9, 10).

    agreement = agree(public_keys, graph, low, high, levels=8, noise_bits=64)     # everybody has the same
    board, record = BoardFile("board.db"), Record(agreement)                      # every peer keeps a copy
    prover = Prover(agreement, me, value, identity.sign)                          # one participant
    for post in prover.next(record): ...                                          # send it, append it, absorb it
    verify("board.db").accepted                                                   # anybody, later, offline
"""

from bruit.verification.agreement import Agreement, agree
from bruit.verification.board_file import BoardFile
from bruit.verification.organizer import Organizer
from bruit.verification.posts import Post, SignedHead
from bruit.verification.privacy import guarantee, worst_epsilon
from bruit.verification.prover import Prover
from bruit.verification.record import Finding, Record
from bruit.verification.verified_run import VerifiedRun, verified_run
from bruit.verification.verify import Report, load_record, verify

__all__ = [
    "Agreement", "BoardFile", "Finding", "Organizer", "Post", "Prover", "Record", "Report", "SignedHead", "VerifiedRun",
    "agree", "guarantee", "load_record", "verified_run", "verify", "worst_epsilon",
]  # fmt: skip
