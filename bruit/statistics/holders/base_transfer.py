"""Base oblivious transfers: 128 times, one key of two, and who offers does not learn which (Naor,
Pinkas 2001).

    C: a point of P-256 hashed from the session, whose logarithm nobody knows
    chooser    a random, A = a G;   sends Q = A if its bit is 0, C - A if it is 1
    offerer    b random, sends B = b G;    key_0 = H(x(b Q)),   key_1 = H(x(b (C - Q)))
    chooser    key of its bit = H(x(a B))

Q is uniform whatever the bit is, so the bit is hidden without assumption; both keys at once would
take a Diffie-Hellman secret with C (computational Diffie-Hellman, H = SHA-256 as a random oracle).
Scalar products are those of `cryptography`; the one addition per transfer is done here on public
points.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, final

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bruit.arrays import Bools
from bruit.errors import RemoteProtocolError

CURVE = ec.SECP256R1()
PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
COUNT = 128  # base transfers: the bits of a label
POINT = 33  # bytes of a compressed point
KEY = 16  # bytes of a transferred key


class P256Point(NamedTuple):
    """A point of P-256 that is not the neutral one."""

    x: int
    y: int


@final
class Chooser:
    """Gets one key of each pair; `message` goes to the offerer."""

    def __init__(self, session: bytes, bits: Bools) -> None:
        self._session, self._bits = session, bits
        self._secrets = [ec.generate_private_key(CURVE) for _ in bits]
        center = hashed_point(session)
        own = [_numbers(secret.public_key()) for secret in self._secrets]
        # Both points are made whatever the bit is, so that the bit does not change what is
        # computed.
        both = [(point, difference(center, point)) for point in own]
        self.message = b"".join(
            _spelled(pair[int(bit)]) for pair, bit in zip(both, bits, strict=True)
        )

    def keys(self, answer: bytes) -> list[bytes]:
        """The keys of its bits, from the offerer's point."""
        offered = _key(_read(answer))
        return [
            _derived(self._session, place, int(bit), secret.exchange(ec.ECDH(), offered))
            for place, (bit, secret) in enumerate(zip(self._bits, self._secrets, strict=True))
        ]


def offer(session: bytes, message: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """The offerer: its answer, and both keys of every transfer."""
    if len(message) % POINT:
        raise RemoteProtocolError(
            f"base transfers are points of {POINT} bytes, found {len(message)} bytes"
        )
    secret, center = ec.generate_private_key(CURVE), hashed_point(session)
    keys = []
    for place in range(len(message) // POINT):
        zero = _read(message[place * POINT : (place + 1) * POINT])
        both = (zero, difference(center, zero))
        first, second = (
            _derived(session, place, bit, secret.exchange(ec.ECDH(), _key(point)))
            for bit, point in enumerate(both)
        )
        keys.append((first, second))
    return _spelled(_numbers(secret.public_key())), keys


def hashed_point(session: bytes) -> P256Point:
    """The first x = SHA-256(session, counter) that lies on the curve."""
    counter = 0
    while True:
        x = hashlib.sha256(b"bruit base transfer" + counter.to_bytes(4, "big") + session).digest()
        try:
            return _read(b"\x02" + x)
        except RemoteProtocolError:
            counter += 1


def difference(left: P256Point, right: P256Point) -> P256Point:
    """left - right, for points that are neither equal nor opposite."""
    if left.x == right.x:
        raise RemoteProtocolError(
            "a base transfer names a point that no honest chooser could have drawn"
        )
    slope = (-right.y - left.y) * pow(right.x - left.x, -1, PRIME) % PRIME
    x = (slope * slope - left.x - right.x) % PRIME
    return P256Point(x, (slope * (left.x - x) - left.y) % PRIME)


def random_bits(data: bytes) -> Bools:
    """The chooser's bits as the offset of garbling wants them: the first one is 1, the others are
    random."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little").astype(np.bool_)
    bits[0] = True
    return bits


def _derived(session: bytes, place: int, bit: int, secret: bytes) -> bytes:
    tag = b"bruit transferred key" + bytes([place, bit])
    return hashlib.sha256(tag + session + secret).digest()[:KEY]


def _numbers(public: ec.EllipticCurvePublicKey) -> P256Point:
    numbers = public.public_numbers()
    return P256Point(numbers.x, numbers.y)


def _key(point: P256Point) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicNumbers(point.x, point.y, CURVE).public_key()


def _spelled(point: P256Point) -> bytes:
    return _key(point).public_bytes(Encoding.X962, PublicFormat.CompressedPoint)


def _read(data: bytes) -> P256Point:
    try:
        if len(data) != POINT:
            raise ValueError(f"{len(data)} bytes")
        return _numbers(ec.EllipticCurvePublicKey.from_encoded_point(CURVE, data))
    except ValueError as error:
        raise RemoteProtocolError(f"a base transfer holds no point of P-256 ({error})") from None
