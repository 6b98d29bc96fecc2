"""What a masked value must satisfy (perso:GOPA-9 (4.4), GOPA-10 (4.6), (4.7)), as equations for batches.

    (4.4)  Com(X) + Com(eta) + sum_v Com(Delta_uv) = masked G + blinding H
    (4.7)  X in 0..levels:            X   = sum of committed bits times `range_weights`
    (4.6)  eta as drawn:              eta = sum_i (b_i xor c_i) - m / 2 = sum_i (1 - 2 c_i) b_i + sum_i c_i - m / 2

The bits b were committed to before the public coins c existed: eta is a centered binomial number if either was fair.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from bruit.verification.agreement import Agreement
from bruit.verification.bit_proof import Statement, Weighted, bit_equations, range_weights
from bruit.verification.coins import coins_of
from bruit.verification.equations import Equation, all_hold, failing
from bruit.verification.group import Point, generator
from bruit.verification.payloads import Commit, Mask
from bruit.verification.transcript import Transcript

if TYPE_CHECKING:
    from bruit.verification.record import Record


def mask_statement(
    agreement: Agreement, peer: int, beacon: bytes, commit: Commit, noise: tuple[Point, ...]
) -> Statement:
    """What a peer proves about its bits: its values are in range, and its noise is what its bits and the coins give."""
    ranges, m = range_weights(agreement.levels), agreement.noise_bits
    coins = coins_of(beacon, peer, agreement.width * m).reshape(agreement.width, m)
    sums = []
    for k, row in enumerate(coins):
        start, ones = k * agreement.bits_each, int(row.sum())
        signs = tuple(-1 if coin else 1 for coin in row)
        sums.append(Weighted(commit.value[k], start, ranges))
        sums.append(Weighted(noise[k] + (m // 2 - ones) * generator(), start + len(ranges), signs))
    return Statement(agreement.length, commit.bits, tuple(sums))


def mask_transcript(record: Record, peer: int, masked: tuple[int, ...], blindings: tuple[int, ...]) -> Transcript:
    """Everything a proof is bound to: run, peer, coins, list, the peer's own commitments, its masked value."""
    transcript = Transcript(b"bruit gopa mask 1")
    transcript.append(b"run", record.agreement.run)
    transcript.append_number(b"peer", peer)
    transcript.append(b"beacon", record.beacon() or b"")
    transcript.append(b"sealed", repr(record.sealed).encode())
    transcript.append(b"commit", hashlib.sha256(record.said[peer, "commit"].to_bytes()).digest())
    for value, blinding in zip(masked, blindings, strict=True):
        transcript.append_number(b"masked", value)
        transcript.append_scalar(b"blinding", blinding)
    return transcript


def sum_equations(record: Record, peer: int, mask: Mask) -> list[Equation]:
    """(4.4), for every number of the peer."""
    commit, partners = record.commits[peer], record.partners(peer, record.sealed or ())
    found = []
    for k in range(record.agreement.width):
        points = [commit.value[k], mask.noise[k], *(commit.pairs[v][k] for v in partners)]
        found.append(Equation(tuple((1, point) for point in points), base=-mask.masked[k], blinding=-mask.blindings[k]))
    return found


def proof_equations(record: Record, peer: int, mask: Mask) -> list[Equation]:
    """(4.6) and (4.7)."""
    statement = mask_statement(record.agreement, peer, record.beacon() or b"", record.commits[peer], mask.noise)
    transcript = mask_transcript(record, peer, mask.masked, mask.blindings)
    return list(bit_equations(statement, mask.proof, transcript))


def mask_faults(record: Record) -> dict[int, str]:
    """Peers whose masked value or proof is wrong, and which of the two."""
    peers = sorted(record.masks)
    sums = [sum_equations(record, u, record.masks[u]) for u in peers]
    proofs = [proof_equations(record, u, record.masks[u]) for u in peers]
    found = {}
    for place in failing([[*a, *b] for a, b in zip(sums, proofs, strict=True)]):
        u = peers[place]
        if not all_hold(sums[place]):
            found[u] = f"the masked value of peer {u} is not the sum of what it committed to"
        else:
            found[u] = f"the proof of peer {u} is wrong: its value is out of range, or its noise is not as drawn"
    return found
