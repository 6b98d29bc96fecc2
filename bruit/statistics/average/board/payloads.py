"""What posts carry, as records: keys and hidden coins, commitments, coins, masked values with
proofs, openings, lists.

Written as JSON with points, scalars and proofs in base64. Reading checks shapes against the
agreement and raises only RemoteProtocolError: payloads come from outside.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bruit.errors import RemoteProtocolError
from bruit.statistics.average.board.agreement import MOST, AverageAgreement
from bruit.statistics.average.board.pair_secret import Owned, PairNoise, Shown
from bruit.statistics.average.proofs.bit_proof import BitProof
from bruit.statistics.average.proofs.group import Point, decoded, decoded_scalar, encoded_scalar

COIN_BYTES = 32
T = TypeVar("T")


@dataclass(frozen=True)
class Join:
    """A public key for exchanges, the hash of a contribution to the public coins, a proof of
    knowing the secret key."""

    key: Point
    coin: bytes
    owned: Owned

    def text(self) -> str:
        proof = _scalars((self.owned.challenge, self.owned.response))
        return _json(
            {"key": _packed(self.key.encoded()), "coin": _packed(self.coin), "proof": proof}
        )


@dataclass(frozen=True)
class Commit:
    """Commitments: to the value, to all bits (of its range and of the noise), and to each
    exchange."""

    value: tuple[Point, ...]  # (width,)
    bits: Point
    pairs: Mapping[int, tuple[Point, ...]]

    def text(self) -> str:
        pairs = {str(v): _points(points) for v, points in sorted(self.pairs.items())}
        return _json(
            {"value": _points(self.value), "bits": _packed(self.bits.encoded()), "pairs": pairs}
        )


@dataclass(frozen=True)
class Proof:
    """The commitment to the noise, and the proof that it is as drawn and the value in range. It
    hides both."""

    noise: tuple[Point, ...]  # (width,)
    proof: BitProof

    def text(self) -> str:
        return _json({"noise": _points(self.noise), "proof": _packed(self.proof.encoded())})


@dataclass(frozen=True)
class MaskedOpening:
    """The masked value and the sum of all blindings: the one opening of what was committed to."""

    masked: tuple[int, ...]  # (width,)
    blindings: tuple[int, ...]  # (width,)

    def text(self) -> str:
        return _json({"masked": list(self.masked), "blindings": _scalars(self.blindings)})


@dataclass(frozen=True)
class Rollback:
    """Exchanges with dropped peers, opened."""

    pairs: Mapping[int, PairNoise]

    def text(self) -> str:
        opened = {
            str(v): {"noise": list(pair.noise), "blindings": _scalars(pair.blindings)}
            for v, pair in sorted(self.pairs.items())
        }
        return _json({"pairs": opened})


@dataclass(frozen=True)
class Sum:
    """The organizer's result: the sum over the peers online, in levels."""

    total: tuple[int, ...]
    online: tuple[int, ...]

    def text(self) -> str:
        return _json({"total": list(self.total), "online": list(self.online)})


def coin_text(coin: bytes) -> str:
    return _json({"coin": _packed(coin)})


def list_text(peers: tuple[int, ...]) -> str:
    return _json({"peers": list(peers)})


def shown_text(shown: Shown) -> str:
    return _json(
        {
            "shared": _packed(shown.shared.encoded()),
            "proof": _scalars((shown.challenge, shown.response)),
        }
    )


def read_join(text: str) -> Join:
    return _reading(lambda: _read_join(json.loads(text)))


def read_commit(text: str, agreement: AverageAgreement) -> Commit:
    def read(found: dict[str, Any]) -> Commit:
        pairs = {
            int(v): _some_points(points, agreement.width) for v, points in found["pairs"].items()
        }
        return Commit(
            _some_points(found["value"], agreement.width), decoded(_unpacked(found["bits"])), pairs
        )

    return _reading(lambda: read(json.loads(text)))


def read_coin(text: str) -> bytes:
    return _reading(lambda: _exactly(_unpacked(json.loads(text)["coin"]), COIN_BYTES))


def read_list(text: str) -> tuple[int, ...]:
    return _reading(lambda: _integers(json.loads(text)["peers"], 2**24))


def read_mask(text: str, agreement: AverageAgreement) -> MaskedOpening:
    def read(found: dict[str, Any]) -> MaskedOpening:
        masked, blindings = _integers(found["masked"], MOST), _some_scalars(found["blindings"])
        if not len(masked) == len(blindings) == agreement.width:
            raise ValueError(f"{len(masked)} masked values, {len(blindings)} blindings")
        return MaskedOpening(masked, blindings)

    return _reading(lambda: read(json.loads(text)))


def read_proof(text: str, agreement: AverageAgreement) -> Proof:
    def read(found: dict[str, Any]) -> Proof:
        proof = BitProof.decoded(_unpacked(found["proof"]), agreement.length)
        return Proof(_some_points(found["noise"], agreement.width), proof)

    return _reading(lambda: read(json.loads(text)))


def read_rollback(text: str, agreement: AverageAgreement) -> Rollback:
    def read(found: dict[str, Any]) -> PairNoise:
        pair = PairNoise(_integers(found["noise"], MOST), _some_scalars(found["blindings"]))
        if not len(pair.noise) == len(pair.blindings) == agreement.width:
            raise ValueError(f"{len(pair.noise)} numbers, {len(pair.blindings)} blindings")
        return pair

    return _reading(
        lambda: Rollback({int(v): read(pair) for v, pair in json.loads(text)["pairs"].items()})
    )


def read_sum(text: str) -> Sum:
    def read(found: dict[str, Any]) -> Sum:
        return Sum(_integers(found["total"], MOST * 2**24), _integers(found["online"], 2**24))

    return _reading(lambda: read(json.loads(text)))


def read_shown(text: str) -> Shown:
    def read(found: dict[str, Any]) -> Shown:
        challenge, response = _some_scalars(found["proof"])
        return Shown(decoded(_unpacked(found["shared"])), challenge, response)

    return _reading(lambda: read(json.loads(text)))


def _read_join(found: dict[str, Any]) -> Join:
    challenge, response = _some_scalars(found["proof"])
    coin = _exactly(_unpacked(found["coin"]), COIN_BYTES)
    return Join(decoded(_unpacked(found["key"])), coin, Owned(challenge, response))


def _reading(read: Callable[[], T]) -> T:
    try:
        return read()
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
        binascii.Error,
    ) as error:
        raise RemoteProtocolError(
            f"its payload cannot be read ({type(error).__name__}: {error})"
        ) from None


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unpacked(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _points(points: tuple[Point, ...]) -> list[str]:
    return [_packed(point.encoded()) for point in points]


def _scalars(scalars: tuple[int, ...]) -> list[str]:
    return [_packed(encoded_scalar(scalar)) for scalar in scalars]


def _some_points(found: list[str], count: int) -> tuple[Point, ...]:
    if len(found) != count:
        raise ValueError(f"{len(found)} points instead of {count}")
    return tuple(decoded(_unpacked(text)) for text in found)


def _some_scalars(found: list[str]) -> tuple[int, ...]:
    return tuple(decoded_scalar(_unpacked(text)) for text in found)


def _integers(found: list[int], most: int) -> tuple[int, ...]:
    if not isinstance(found, list) or not all(type(x) is int and -most < x < most for x in found):
        raise ValueError(f"not a list of integers below {most} in size")
    return tuple(found)


def _exactly(data: bytes, count: int) -> bytes:
    if len(data) != count:
        raise ValueError(f"{len(data)} bytes instead of {count}")
    return data
