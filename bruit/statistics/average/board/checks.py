"""What a peer in the mean must satisfy (perso:GOPA-9 (4.4), GOPA-10 (4.6), (4.7)), as equations for
batches.

    (4.4)  Com(X) + Com(eta) + sum_v Com(Delta_uv) = masked G + blinding H
    (4.7)  X in 0..levels:            X   = sum of committed bits times `range_weights`
    (4.6)  eta as drawn:              eta = sum_i (b_i xor c_i) - m / 2 = sum_i (1 - 2 c_i) b_i + sum_i c_i - m / 2

(4.6) and (4.7) are proven before anything is opened; the masked value that (4.4) fixes comes last,
and there is only one that fits. The bits b were committed to before the public coins c existed: eta
is a centered binomial number if either was fair.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.coins import coins_of
from bruit.statistics.average.board.payloads import Commit, MaskedOpening, Proof
from bruit.statistics.average.proofs.bit_proof import (
    Statement,
    Weighted,
    bit_equations,
    range_weights,
)
from bruit.statistics.average.proofs.equations import Equation, failing
from bruit.statistics.average.proofs.group import Point, generator
from bruit.statistics.average.proofs.transcript import Transcript

if TYPE_CHECKING:
    from bruit.statistics.average.board.record import Record


def proof_statement(
    agreement: AverageAgreement, peer: int, beacon: bytes, commit: Commit, noise: tuple[Point, ...]
) -> Statement:
    """What a peer proves about its bits: its values are in range, and its noise is what its bits
    and the coins give."""
    ranges, m = range_weights(agreement.levels), agreement.noise_bits
    coins = coins_of(beacon, peer, agreement.width * m).reshape(agreement.width, m)
    sums = []
    for k, row in enumerate(coins):
        start, ones = k * agreement.bits_each, int(row.sum())
        signs = tuple(-1 if coin else 1 for coin in row)
        sums.append(Weighted(commit.value[k], start, ranges))
        sums.append(Weighted(noise[k] + (m // 2 - ones) * generator(), start + len(ranges), signs))
    return Statement(agreement.length, commit.bits, tuple(sums))


def proof_transcript(record: Record, peer: int) -> Transcript:
    """Everything a proof is bound to: run, peer, coins, list, the peer's own commitments."""
    transcript = Transcript(b"bruit gopa proof 2")
    transcript.append(b"run", record.agreement.run)
    transcript.append_number(b"peer", peer)
    transcript.append(b"beacon", record.beacon() or b"")
    transcript.append(b"sealed", repr(record.sealed).encode())
    transcript.append(b"commit", hashlib.sha256(record.said[peer, "commit"].to_bytes()).digest())
    return transcript


def sum_equations(record: Record, peer: int, mask: MaskedOpening) -> list[Equation]:
    """(4.4), for every number of the peer."""
    commit, noise = record.commits[peer], record.proofs[peer].noise
    partners = record.partners(peer, record.sealed or ())
    found = []
    for k in range(record.agreement.width):
        points = [commit.value[k], noise[k], *(commit.pairs[v][k] for v in partners)]
        found.append(
            Equation(
                points=tuple((1, point) for point in points),
                base=-mask.masked[k],
                blinding=-mask.blindings[k],
            )
        )
    return found


def proof_equations(record: Record, peer: int, proof: Proof) -> list[Equation]:
    """(4.6) and (4.7)."""
    statement = proof_statement(
        record.agreement, peer, record.beacon() or b"", record.commits[peer], proof.noise
    )
    return list(bit_equations(statement, proof.proof, proof_transcript(record, peer)))


def proof_faults(record: Record) -> dict[int, str]:
    """Peers whose proof is wrong, and why: one batch for all of them."""
    peers = sorted(record.proofs)
    wrong = failing([proof_equations(record, u, record.proofs[u]) for u in peers])
    return {peers[place]: fault_of(peers[place]) for place in wrong}


def fault_of(peer: int) -> str:
    return f"the proof of peer {peer} is wrong: its value is out of range, or its noise is not as drawn"
