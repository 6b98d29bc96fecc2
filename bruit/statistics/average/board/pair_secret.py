"""The secret of two neighbors, the noise it gives both ends, and a proof that names the one who
lies about it.

    S = a B = b A  (Diffie-Hellman in the group of the commitments),   stream = SHAKE-256(HKDF(S; run, both peers))
    Delta_uv = -Delta_vu: N(0, pair_sigma^2) on a fine grid, rounded, from the stream;   r_uv = -r_vu: its blinding

Both ends can compute both commitments, which must be each other's negative: no proof is needed for
their sum to be zero. If they are not, either end shows S with a proof that log_G A = log_B S
(Chaum, Pedersen 1992): everybody derives noise and blinding, and sees which end committed to
something else. That opens this one exchange, with the other end only. Soundness: special soundness
of the proof and a random oracle; what S hides rests on the Diffie-Hellman problem.

Whoever joins proves that it knows its secret (Schnorr 1991). Without that, a peer could join with a
key made from a neighbor's, A + k G, be blamed by everybody, and read the secrets b A off what they
show. With it, b (A + k G) is nothing that its owner could not compute alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bruit.privacy.ahead.gopa_binomial import pair_grid
from bruit.randomness import Secure
from bruit.randomness.discrete_normal import discrete_normals
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.canceling.seeds import ZERO
from bruit.statistics.average.proofs.group import ORDER, Point, generator, random_scalar
from bruit.statistics.average.proofs.pedersen import commitment
from bruit.statistics.average.proofs.transcript import Transcript


@dataclass(frozen=True)
class PairNoise:
    """What one end adds against the other, with the blindings of its commitments."""

    noise: tuple[int, ...]
    blindings: tuple[int, ...]

    def commitments(self) -> tuple[Point, ...]:
        return tuple(
            commitment(value, blinding)
            for value, blinding in zip(self.noise, self.blindings, strict=True)
        )


def exchange(agreement: AverageAgreement, shared: Point, me: int, other: int) -> PairNoise:
    """What `me` adds against `other`; the other end's is the negative."""
    low, high = min(me, other), max(me, other)
    info = b"bruit pair" + agreement.run + low.to_bytes(8, "big") + high.to_bytes(8, "big")
    length = 16 + 64 * agreement.width
    stream = hashlib.shake_256(
        HKDF(SHA256(), 32, salt=None, info=info).derive(shared.encoded())
    ).digest(length)
    grid = pair_grid(agreement.pair_sigma)
    draws = discrete_normals(
        Secure(stream[:16]),
        "pair",
        ZERO,
        0,
        0,
        agreement.width,
        agreement.pair_sigma / grid,
        grid=grid,
    )[0]
    sign = 1 if me == low else -1
    noise = (sign * int(x) for x in np.rint(draws))
    places = range(16, length, 64)
    blindings = (sign * int.from_bytes(stream[k : k + 64], "big") % ORDER for k in places)
    return PairNoise(tuple(noise), tuple(blindings))


@dataclass(frozen=True)
class Owned:
    """The proof that somebody knows the secret of its key."""

    challenge: int
    response: int


def own(run: bytes, peer: int, secret: int) -> Owned:
    """A proof bound to the run and to the peer: nobody else can repeat it."""
    nonce = random_scalar()
    challenge = _own_challenge(run, peer, secret * generator(), nonce * generator())
    return Owned(challenge, (nonce + challenge * secret) % ORDER)


def is_owned(run: bytes, peer: int, owned: Owned, key: Point) -> bool:
    """Whether that peer knows the secret of the key."""
    first = owned.response * generator() - owned.challenge * key
    return _own_challenge(run, peer, key, first) == owned.challenge


def _own_challenge(run: bytes, peer: int, key: Point, first: Point) -> int:
    transcript = Transcript(b"bruit own key 1")
    transcript.append(b"run", run)
    transcript.append_number(b"peer", peer)
    transcript.append_point(b"key", key)
    transcript.append_point(b"t", first)
    return transcript.challenge(b"e")


@dataclass(frozen=True)
class Shown:
    """The shared point of two neighbors, and the proof that it is."""

    shared: Point
    challenge: int
    response: int


def show(run: bytes, secret: int, mine: Point, other: Point) -> Shown:
    """The shared point with a proof bound to the run and both public keys."""
    shared, nonce = secret * other, random_scalar()
    challenge = _challenge(run, mine, other, shared, nonce * generator(), nonce * other)
    return Shown(shared, challenge, (nonce + challenge * secret) % ORDER)


def is_shared(run: bytes, shown: Shown, mine: Point, other: Point) -> bool:
    """Whether the shown point is the one both keys have in common."""
    first = shown.response * generator() - shown.challenge * mine
    second = shown.response * other - shown.challenge * shown.shared
    return _challenge(run, mine, other, shown.shared, first, second) == shown.challenge


def _challenge(
    run: bytes, mine: Point, other: Point, shared: Point, first: Point, second: Point
) -> int:
    transcript = Transcript(b"bruit shared point 1")
    transcript.append(b"run", run)
    for label, point in (
        (b"mine", mine),
        (b"other", other),
        (b"shared", shared),
        (b"t1", first),
        (b"t2", second),
    ):
        transcript.append_point(label, point)
    return transcript.challenge(b"e")
