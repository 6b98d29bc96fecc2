"""Zero-knowledge proof that a committed vector holds bits, and that weighted sums of them are
committed numbers.

    A = alpha H + <a, G> + <a - 1, H>,   V_k = v_k G + gamma_k H:      a in {0, 1}^N  and  <a, w_k> = v_k for all k

A Bulletproof (Bunz et al. 2018, section 4.2) whose powers of two are any public weights: a range is
one choice of them, a sum of coins another, and one proof covers all numbers of a peer in 2 log2(N)
+ 4 points and 5 scalars. With

    l(X) = a - z + s_L X,    r(X) = y^i (a - 1 + z + s_R X) + sum_k z^(1+k) w_k,    t(X) = <l(X), r(X)>

t(0) = sum_k z^(1+k) v_k + (z - z^2) sum_i y^i - sum_k z^(2+k) sum_i w_k,i  for all y, z only if the
statement is true. Soundness: knowledge of a, under the discrete logarithm assumption and a random
oracle. Zero knowledge: perfect in the random oracle model. The weights must be fixed before y and
z: they are hashed, with A and all V_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Bools
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.proofs.equations import Equation
from bruit.statistics.average.proofs.group import (
    ORDER,
    POINT_BYTES,
    SCALAR_BYTES,
    Point,
    decoded,
    decoded_scalar,
    encoded_scalar,
    inverse,
    inverses,
    random_scalar,
)
from bruit.statistics.average.proofs.inner_product import (
    InnerProductProof,
    dot,
    folding_coefficients,
    prove_inner_product,
    round_challenges,
)
from bruit.statistics.average.proofs.multi_scalar import table, weighted_sum
from bruit.statistics.average.proofs.pedersen import (
    LONGEST,
    blinding_base,
    commitment,
    vector_bases,
)
from bruit.statistics.average.proofs.transcript import Transcript


@dataclass(frozen=True)
class Weighted:
    """One claim: the bits from `start` on, times the weights, sum to what `value` commits to."""

    value: Point
    start: int
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Statement:
    """`length` bits (a power of two) behind `bits`, and the sums claimed of them."""

    length: int
    bits: Point
    sums: tuple[Weighted, ...]

    def __post_init__(self) -> None:
        if not 1 < self.length <= LONGEST or self.length & (self.length - 1):
            raise ConfigError(
                f"a proof is about 2 to {LONGEST} bits, a power of two of them, found {self.length}"
            )
        if any(
            part.start < 0 or part.start + len(part.weights) > self.length for part in self.sums
        ):
            raise ConfigError(f"a sum reaches beyond the {self.length} bits of its statement")

    def spread(self, z: int) -> list[int]:
        """sum_k z^(1+k) w_k  # (length,)."""
        found, power = [0] * self.length, z * z % ORDER
        for part in self.sums:
            for place, weight in enumerate(part.weights, part.start):
                found[place] = (found[place] + power * weight) % ORDER
            power = power * z % ORDER
        return found

    def bind(self, transcript: Transcript) -> None:
        transcript.append(b"bit proof", b"bruit bits 1")
        transcript.append_number(b"length", self.length)
        transcript.append_number(b"sums", len(self.sums))
        transcript.append_point(b"A", self.bits)
        for part in self.sums:
            transcript.append_point(b"V", part.value)
            transcript.append_number(b"start", part.start)
            transcript.append(
                b"weights", b"".join(encoded_scalar(weight) for weight in part.weights)
            )


@dataclass(frozen=True, kw_only=True)
class BitProof:
    """S, T1, T2; t, its blinding, the blinding of the vectors; and the inner product."""

    s: Point
    t1: Point
    t2: Point
    t: int
    t_blinding: int
    blinding: int
    inner: InnerProductProof

    def encoded(self) -> bytes:
        points = (self.s, self.t1, self.t2, *self.inner.left, *self.inner.right)
        scalars = (self.t, self.t_blinding, self.blinding, self.inner.a, self.inner.b)
        return b"".join([*(p.encoded() for p in points), *(encoded_scalar(x) for x in scalars)])

    @classmethod
    def decoded(cls, data: bytes, length: int) -> BitProof:
        """Read a proof about `length` bits; anything of another size is refused."""
        rounds = length.bit_length() - 1
        count = 3 + 2 * rounds
        if len(data) != proof_bytes(length):
            raise RemoteProtocolError(
                f"a proof about {length} bits has {proof_bytes(length)} bytes, found {len(data)}"
            )
        cut = count * POINT_BYTES
        points = [decoded(data[k : k + POINT_BYTES]) for k in range(0, cut, POINT_BYTES)]
        scalars = [
            decoded_scalar(data[k : k + SCALAR_BYTES]) for k in range(cut, len(data), SCALAR_BYTES)
        ]
        inner = InnerProductProof(
            tuple(points[3 : 3 + rounds]), tuple(points[3 + rounds :]), scalars[3], scalars[4]
        )
        return cls(
            s=points[0],
            t1=points[1],
            t2=points[2],
            t=scalars[0],
            t_blinding=scalars[1],
            blinding=scalars[2],
            inner=inner,
        )


def proof_bytes(length: int) -> int:
    """The one size of a proof about so many bits."""
    return (3 + 2 * (length.bit_length() - 1)) * POINT_BYTES + 5 * SCALAR_BYTES


def powers_of(x: int, count: int) -> list[int]:
    found = [1]
    for _ in range(count - 1):
        found.append(found[-1] * x % ORDER)
    return found


def prove_bits(
    statement: Statement,
    bits: Bools,
    blinding: int,
    blindings: Sequence[int],
    transcript: Transcript,
) -> BitProof:
    """The proof; `blinding` is that of A, `blindings` are those of the sums. It verifies only if
    all is true."""
    n = statement.length
    statement.bind(transcript)
    s_left, s_right = ([random_scalar() for _ in range(n)] for _ in range(2))
    rho = random_scalar()
    rows = np.concatenate((*vector_bases(n), table([blinding_base()])))
    s = weighted_sum(rows, [*s_left, *s_right, rho])
    transcript.append_point(b"S", s)
    y, z = transcript.challenge(b"y"), transcript.challenge(b"z")
    ys, spread = powers_of(y, n), statement.spread(z)
    left = [(int(bit) - z) % ORDER for bit in bits]
    right = [
        (y_i * (int(bit) - 1 + z) + w) % ORDER for bit, y_i, w in zip(bits, ys, spread, strict=True)
    ]
    right_slope = [y_i * x % ORDER for y_i, x in zip(ys, s_right, strict=True)]
    slope, curve = (dot(left, right_slope) + dot(s_left, right)) % ORDER, dot(s_left, right_slope)
    tau1, tau2 = random_scalar(), random_scalar()
    t1, t2 = commitment(slope, tau1), commitment(curve, tau2)
    x = _after_t(transcript, t1, t2)
    a = [(p + x * q) % ORDER for p, q in zip(left, s_left, strict=True)]
    b = [(p + x * q) % ORDER for p, q in zip(right, right_slope, strict=True)]
    t = dot(a, b)
    gammas = sum(
        z_k * gamma
        for z_k, gamma in zip(powers_of(z, len(blindings) + 2)[2:], blindings, strict=True)
    )
    t_blinding, whole = (tau2 * x * x + tau1 * x + gammas) % ORDER, (blinding + rho * x) % ORDER
    factor = _after_openings(transcript, t, t_blinding, whole)
    inner = prove_inner_product(a, b, powers_of(inverse(y), n), factor, transcript)
    return BitProof(s=s, t1=t1, t2=t2, t=t, t_blinding=t_blinding, blinding=whole, inner=inner)


def bit_equations(
    statement: Statement, proof: BitProof, transcript: Transcript
) -> tuple[Equation, Equation]:
    """What must hold for the proof to be accepted: of the polynomial, and of the vectors."""
    n = statement.length
    statement.bind(transcript)
    transcript.append_point(b"S", proof.s)
    y, z = transcript.challenge(b"y"), transcript.challenge(b"z")
    x = _after_t(transcript, proof.t1, proof.t2)
    factor = _after_openings(transcript, proof.t, proof.t_blinding, proof.blinding)
    rounds = round_challenges(proof.inner, transcript)
    spread = statement.spread(z)
    known = (z - z * z) * sum(powers_of(y, n)) - z * sum(spread)
    z_powers = powers_of(z, len(statement.sums) + 2)[2:]
    polynomial = Equation(
        points=(
            *((-z_k, part.value) for z_k, part in zip(z_powers, statement.sums, strict=True)),
            (-x, proof.t1),
            (-x * x, proof.t2),
        ),
        base=proof.t - known,
        blinding=proof.t_blinding,
    )
    back, *rounds_back = inverses([y, *rounds])
    a, b = proof.inner.a, proof.inner.b
    shrink = powers_of(back, n)
    s, s_back = folding_coefficients(rounds), folding_coefficients(rounds_back)
    crosses = (
        *zip(rounds, proof.inner.left, strict=True),
        *zip(rounds_back, proof.inner.right, strict=True),
    )
    vectors = Equation(
        points=((1, statement.bits), (x, proof.s), *crosses),
        blinding=-proof.blinding,
        inner=factor * (proof.t - a * b),
        left=tuple((-z - a * s_i) % ORDER for s_i in s),
        right=tuple(
            (z + p * (w - b * s_i)) % ORDER
            for p, w, s_i in zip(shrink, spread, s_back, strict=True)
        ),
    )
    return polynomial, vectors


def _after_t(transcript: Transcript, t1: Point, t2: Point) -> int:
    transcript.append_point(b"T1", t1)
    transcript.append_point(b"T2", t2)
    return transcript.challenge(b"x")


def _after_openings(transcript: Transcript, t: int, t_blinding: int, blinding: int) -> int:
    for label, scalar in ((b"t", t), (b"t blinding", t_blinding), (b"blinding", blinding)):
        transcript.append_scalar(label, scalar)
    return transcript.challenge(b"inner")


def range_weights(top: int) -> tuple[int, ...]:
    """Weights with which bits sum to every number of 0..top and to no other: 1, 2, 4, ... and what
    is left.

    >>> range_weights(10)
    (1, 2, 4, 3)
    """
    if top < 1:
        raise ConfigError(f"a range 0..top has top >= 1, found {top}")
    length = top.bit_length()
    return (*(1 << k for k in range(length - 1)), top - (1 << (length - 1)) + 1)


def range_bits(value: int, top: int) -> tuple[bool, ...]:
    """Bits of a number of 0..top, to those weights."""
    length = top.bit_length()
    last = value >= 1 << (length - 1)
    rest = value - (range_weights(top)[-1] if last else 0)
    return (*(bool(rest >> k & 1) for k in range(length - 1)), last)
