"""The inner-product argument: two vectors behind one commitment, shown in 2 log2(N) points
(Bulletproofs, section 3).

    P = <a, G> + <b, H'> + <a, b> U,   H'_i = y**-i H_i;  a round halves everything, for a challenge e:
    a <- a_lo + a_hi / e,   b <- b_lo + e b_hi,   G <- G_lo + e G_hi,   H' <- H'_lo + H'_hi / e,   P <- P + e L + R / e
    L = <a_lo, G_hi> + <b_hi, H'_lo> + <a_lo, b_hi> U,       R = <a_hi, G_lo> + <b_lo, H'_hi> + <a_hi, b_lo> U

Soundness: under the discrete logarithm assumption, four challenges of each round extract the
vectors. This is the published argument with e for the square of its challenge and the factors
moved, which saves half of the products. Bunz, Bootle, Boneh, Poelstra, Wuille, Maxwell 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.statistics.average.proofs.group import ORDER, Point, inverse
from bruit.statistics.average.proofs.multi_scalar import Table, table, weighted_sum
from bruit.statistics.average.proofs.pedersen import inner_base, vector_bases
from bruit.statistics.average.proofs.transcript import Transcript


@dataclass(frozen=True)
class InnerProductProof:
    """Both cross terms of every round, and the last two numbers."""

    left: tuple[Point, ...]
    right: tuple[Point, ...]
    a: int
    b: int


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True)) % ORDER


def prove_inner_product(
    a: list[int], b: list[int], powers: Sequence[int], factor: int, transcript: Transcript
) -> InnerProductProof:
    """`powers` are y**-i, `factor` what U is multiplied with; the statement is in the transcript
    already."""
    bases, primed = vector_bases(len(a))
    scales = list(powers)  # of H, until the first fold makes points of them
    lefts, rights = [], []
    while len(a) > 1:
        half = len(a) // 2
        crosses = []
        for low, high in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            rows = np.concatenate((bases[high], primed[low], table([inner_base()])))
            scaled = [x * scale % ORDER for x, scale in zip(b[high], scales[low], strict=True)]
            crosses.append(
                weighted_sum(rows, [*a[low], *scaled, factor * dot(a[low], b[high]) % ORDER])
            )
        left, right = crosses
        challenge = _round(transcript, left, right)
        back = inverse(challenge)
        a = [(x + back * y) % ORDER for x, y in zip(a[:half], a[half:], strict=True)]
        b = [(x + challenge * y) % ORDER for x, y in zip(b[:half], b[half:], strict=True)]
        if len(a) > 1:
            bases = _folded(bases, [1] * half, [challenge] * half)
            primed = _folded(
                primed, scales[:half], [back * scale % ORDER for scale in scales[half:]]
            )
            scales = [1] * half
        lefts.append(left)
        rights.append(right)
    return InnerProductProof(tuple(lefts), tuple(rights), a[0], b[0])


def _folded(points: Table, low: Sequence[int], high: Sequence[int]) -> Table:
    half = len(points) // 2
    held = [Point(row.tobytes()) for row in points]
    pairs = zip(low, held[:half], high, held[half:], strict=True)
    return table([(p if x == 1 else x * p) + y * q for x, p, y, q in pairs])


def _round(transcript: Transcript, left: Point, right: Point) -> int:
    transcript.append_point(b"L", left)
    transcript.append_point(b"R", right)
    return transcript.challenge(b"e")


def round_challenges(proof: InnerProductProof, transcript: Transcript) -> list[int]:
    return [
        _round(transcript, left, right) for left, right in zip(proof.left, proof.right, strict=True)
    ]


def folding_coefficients(challenges: Sequence[int]) -> list[int]:
    """s_i, the coefficient of G_i after all rounds: the product of e_j over the bits j of i, the
    highest first."""
    found = [1]
    for challenge in challenges:
        found = [x * factor % ORDER for x in found for factor in (1, challenge)]
    return found
