"""The group secp256k1, of prime order, through coincurve (libsecp256k1): points are added and
multiplied by it only.

Scalars are integers modulo ORDER. The identity, which the library cannot hold, is the empty point;
it never travels. Points whose discrete logarithm nobody knows come from hashing (try and increment:
a hash as x, the even y). Multiplication takes variable time: whoever shares the machine might
measure it; nobody on the network can.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bruit.errors import ConfigError, RemoteProtocolError

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
POINT_BYTES, SCALAR_BYTES, RAW_BYTES = 33, 32, 64
COMPRESSED = 258  # SECP256K1_EC_COMPRESSED


@dataclass(frozen=True)
class Library:
    """libsecp256k1 as coincurve ships it: its foreign functions and one context."""

    ffi: Any
    lib: Any
    context: Any


@lru_cache(maxsize=1)
def library() -> Library:
    """The library, loaded at first use; it is in the extra `verify`."""
    try:
        bindings = importlib.import_module("coincurve._libsecp256k1")
        context = importlib.import_module("coincurve.context").GLOBAL_CONTEXT.ctx
    except ImportError:
        raise ConfigError(
            "verification needs coincurve; install the extra: pip install 'bruit[verify]'"
        ) from None
    return Library(bindings.ffi, bindings.lib, context)


@dataclass(frozen=True, eq=False)
class Point:
    """A point in the library's own form, 64 bytes; empty for the identity. Made by the functions
    below only."""

    raw: bytes = b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.encoded() == other.encoded()

    def __hash__(self) -> int:
        return hash(self.encoded())

    def __add__(self, other: Point) -> Point:
        return total((self, other))

    def __neg__(self) -> Point:
        if not self.raw:
            return self
        used = library()
        result = used.ffi.new(
            "secp256k1_pubkey *", used.ffi.from_buffer("secp256k1_pubkey *", self.raw)[0]
        )
        used.lib.secp256k1_ec_pubkey_negate(used.context, result)
        return Point(bytes(used.ffi.buffer(result, RAW_BYTES)))

    def __sub__(self, other: Point) -> Point:
        return self + -other

    def __rmul__(self, scalar: int) -> Point:
        scalar %= ORDER
        if not self.raw or scalar == 0:
            return Point()
        used = library()
        result = used.ffi.new(
            "secp256k1_pubkey *", used.ffi.from_buffer("secp256k1_pubkey *", self.raw)[0]
        )
        used.lib.secp256k1_ec_pubkey_tweak_mul(
            used.context, result, scalar.to_bytes(SCALAR_BYTES, "big")
        )
        return Point(bytes(used.ffi.buffer(result, RAW_BYTES)))

    def encoded(self) -> bytes:
        """33 bytes: the parity of y, and x; 33 zeros for the identity."""
        if not self.raw:
            return bytes(POINT_BYTES)
        used = library()
        out, length = used.ffi.new("unsigned char [33]"), used.ffi.new("size_t *", POINT_BYTES)
        held = used.ffi.from_buffer("secp256k1_pubkey *", self.raw)
        used.lib.secp256k1_ec_pubkey_serialize(used.context, out, length, held, COMPRESSED)
        return bytes(used.ffi.buffer(out, POINT_BYTES))

    def __repr__(self) -> str:
        return f"Point({self.encoded().hex()})"


def total(points: Iterable[Point]) -> Point:
    """The sum of points."""
    held = [point.raw for point in points if point.raw]
    if not held:
        return Point()
    used = library()
    pointers = [used.ffi.from_buffer("secp256k1_pubkey *", raw) for raw in held]
    result = used.ffi.new("secp256k1_pubkey *")
    if not used.lib.secp256k1_ec_pubkey_combine(used.context, result, pointers, len(pointers)):
        return Point()  # all points are valid, so a sum the library cannot hold is the identity
    return Point(bytes(used.ffi.buffer(result, RAW_BYTES)))


def decoded(data: bytes) -> Point:
    """The point that 33 bytes from outside stand for; anything else, the identity included, is
    refused."""
    found = _parsed(data) if len(data) == POINT_BYTES else None
    if found is None:
        raise RemoteProtocolError(
            f"{len(data)} bytes are no point of secp256k1 in compressed form (33 bytes)"
        )
    return found


def decoded_scalar(data: bytes) -> int:
    """The scalar that 32 bytes stand for; only numbers below ORDER are."""
    value = int.from_bytes(data, "big")
    if len(data) != SCALAR_BYTES or value >= ORDER:
        raise RemoteProtocolError(
            f"{len(data)} bytes are no scalar of secp256k1 (32 bytes, below its order)"
        )
    return value


def encoded_scalar(value: int) -> bytes:
    return (value % ORDER).to_bytes(SCALAR_BYTES, "big")


@lru_cache(maxsize=1)
def generator() -> Point:
    """The curve's own generator."""
    return decoded(
        bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
    )


def hashed_point(name: bytes) -> Point:
    """A point whose logarithm nobody knows, not to the generator nor to another hashed point.

    The first of SHA-256(name | 0), SHA-256(name | 1), ... that is the x of a point (one in two is);
    its even y.
    """
    for count in range(256):
        x = hashlib.sha256(
            b"bruit hash to secp256k1" + len(name).to_bytes(4, "big") + name + bytes([count])
        ).digest()
        found = _parsed(b"\x02" + x)
        if found is not None:
            return found
    raise ConfigError(f"no point was found from {name!r}: that has probability 2**-256")


def random_scalar() -> int:
    """A uniform nonzero scalar from the operating system."""
    while True:
        value = int.from_bytes(os.urandom(SCALAR_BYTES), "big")
        if 0 < value < ORDER:
            return value


def inverse(scalar: int) -> int:
    return pow(scalar, -1, ORDER)


def inverses(scalars: Sequence[int]) -> list[int]:
    """All inverses for the price of one and three products each (Montgomery)."""
    products = [1]
    for scalar in scalars:
        products.append(products[-1] * scalar % ORDER)
    back = inverse(products[-1])
    found = [0] * len(scalars)
    for place in range(len(scalars) - 1, -1, -1):
        found[place] = back * products[place] % ORDER
        back = back * scalars[place] % ORDER
    return found


def _parsed(data: bytes) -> Point | None:
    used = library()
    result = used.ffi.new("secp256k1_pubkey *")
    if not used.lib.secp256k1_ec_pubkey_parse(used.context, result, data, len(data)):
        return None
    return Point(bytes(used.ffi.buffer(result, RAW_BYTES)))
