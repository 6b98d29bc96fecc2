"""Dice: every random number has an address, and is a pure function of it.

    block(purpose, run, lane, step, use, j) = AES-128(key(purpose), run | lane | step | use | j)
    key(purpose)                            = blake2b(purpose, keyed by the dice's own key), first 16 bytes

One 128-bit block gives two 64-bit words. Bits of the block that is encrypted, least significant
byte first: lane 48, run 16, step 32, block number 24, use 8. Numbers follow from words by fixed
sequences of IEEE additions, products, quotients and square roots (no library logarithm, no fused
operation), so a number depends neither on the batch it is drawn in, nor on the path (numpy or
compiled), nor on the machine.

Two uses of one address give the same number twice. Noise used twice is a privacy bug: callers count
their uses. `Replay` is for simulation and rehearsals, `Secure` for everything that leaves a real
peer. Noise is addressed by what it hides as well. The dice behind a simulated door are keyed by the
seed *and* a digest of the records and of all else the run depends on, so that only the identical
run repeats them. Schedules and public draws follow the seed alone.
"""

import hashlib
import math
import os
import sys
import threading
from abc import ABC, abstractmethod
from typing import NoReturn, Protocol, cast, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError, LocalProtocolError, PrivacyError
from bruit.randomness.shared_machine import refuse_if_shared

LANE_BITS, RUN_BITS, STEP_BITS, USE_BITS, BLOCK_BITS, PAIR_BITS = 48, 16, 32, 8, 24, 24
BULK = 2**15  # numbers from which loading the compiled path pays for itself
_HALF_PI = math.pi / 2
# Minimax coefficients (fdlibm's) of 2 artanh, sine and cosine on the reduced ranges.
_LOG_TERMS = (
    0.6666666666666735,
    0.3999999999940942,
    0.2857142874366239,
    0.22222198432149784,
    0.1818357216161805,
    0.15313837699209373,
    0.14798198605116586,
)
_SIN_TERMS = (
    1.0,
    -0.16666666666666632,
    0.00833333333332249,
    -0.0001984126982985795,
    2.7557313707070068e-06,
    -2.5050760253406863e-08,
    1.58969099521155e-10,
)
_COS_TERMS = (
    1.0,
    -0.5,
    0.0416666666666666,
    -0.001388888888887411,
    2.480158728947673e-05,
    -2.7557314351390663e-07,
    2.087572321298175e-09,
    -1.1359647557788195e-11,
)
_MANTISSA, _ONE = np.uint64(2**52 - 1), np.uint64(1023 << 52)
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)


class BlockCipher(Protocol):
    """What is needed of a cipher: encrypt a buffer of whole blocks into another."""

    def update_into(self, data: NDArray[np.uint8], buf: NDArray[np.uint8]) -> int: ...


class Dice(ABC):
    """A source of addressed random numbers; rows are lanes (a peer, or a pair of peers)."""

    def __init__(self) -> None:
        self._ciphers = threading.local()  # a cipher context serves one thread at a time

    @abstractmethod
    def _secret(self) -> bytes:
        """The 16-byte key from which the key of each purpose is derived."""

    def words(
        self,
        purpose: str,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        count: int,
        run: Ints | int = 0,
    ) -> Words:
        """64-bit words; word 2 j + h of a row is half h of block j."""
        return cast(
            Words, self._draw("words", purpose, _address(lanes, steps, use, run), count)
        )  # (len(lanes), count)

    def uniform(
        self,
        purpose: str,
        lanes: Ints,
        steps: Ints | int,
        use: int = 0,
        count: int = 1,
        run: Ints | int = 0,
    ) -> Array:
        """Uniform numbers in (0, 1): odd multiples of 2**-53, never 0 or 1."""
        return self._draw(
            "uniform", purpose, _address(lanes, steps, use, run), count
        )  # (len(lanes), count)

    def normal(
        self,
        purpose: str,
        lanes: Ints,
        steps: Ints | int,
        use: int = 0,
        count: int = 1,
        run: Ints | int = 0,
    ) -> Array:
        """Standard normals by Box-Muller: block j gives normals 2 j and 2 j + 1 of its row. Tails
        end at 8.57."""
        return self._draw(
            "normal", purpose, _address(lanes, steps, use, run), count
        )  # (len(lanes), count)

    def normal32(
        self,
        purpose: str,
        lanes: Ints,
        steps: Ints | int,
        use: int = 0,
        count: int = 1,
        run: Ints | int = 0,
    ) -> NDArray[np.float32]:
        """Single-precision normals, four per block, for fused simulation kernels only. Tails end at
        6.66."""
        from bruit.randomness import compiled as noise

        high, low = _address(lanes, steps, use, run)
        _check_count(count, 4)
        return noise.draw32(self._cipher(purpose), high, low, count)  # (len(lanes), count)

    def _draw(self, kind: str, purpose: str, address: tuple[Words, Words], count: int) -> Array:
        high, low = address
        _check_count(count, 2)
        # The two paths give the same bits, so which one runs can be decided by what is cheapest
        # here and now.
        if len(high) * count >= BULK or "bruit.randomness.compiled" in sys.modules:
            from bruit.randomness import compiled as noise

            return cast(Array, noise.draw(kind, self._cipher(purpose), high, low, count))
        words = _encrypt(self._cipher(purpose), high, low, (count + 1) // 2)  # (n, 2 * blocks)
        return np.ascontiguousarray(_NUMBERS[kind](words)[:, :count])

    def _cipher(self, purpose: str) -> BlockCipher:
        cached = cast("dict[str, BlockCipher]", self._ciphers.__dict__)
        if purpose not in cached:
            key = hashlib.blake2b(purpose.encode(), key=self._secret()).digest()[:16]
            # Explicit counter blocks in ECB mode: any address can be reached without a new context.
            context = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
            cached[purpose] = cast(BlockCipher, context)
        return cached[purpose]

    @staticmethod
    def pair(a: Ints, b: Ints) -> Ints:
        """The lane of an unordered pair of peers; see the function of the same name."""
        return pair(a, b)


@final
class Replay(Dice):
    """Dice that fall the same way each time: the key comes from a seed. Simulation and rehearsals
    only.

    `hides` is the digest of what their numbers hide. Dice that hide different things share no
    number, whatever the seed; dice that hide nothing (schedules, public draws, examples) leave it
    empty.
    """

    def __init__(self, seed: int, hides: bytes = b"") -> None:
        super().__init__()
        self.seed, self._hides = int(seed), bytes(hides)

    def _secret(self) -> bytes:
        named = str(self.seed).encode() + (b" hides " + self._hides if self._hides else b"")
        return hashlib.blake2b(named, person=b"bruit replay").digest()[:16]

    def __repr__(self) -> str:
        return f"Replay({self.seed}, hides=...)" if self._hides else f"Replay({self.seed})"

    def __reduce__(self) -> tuple[type["Replay"], tuple[int, bytes]]:
        return Replay, (self.seed, self._hides)


@final
class Secure(Dice):
    """Dice nobody else can throw: the key comes from the operating system and is never shown.

    A peer that must survive a crash keeps its keys in its journal and gives them back here, in
    order: the same address then has the same noise under the same key, so that nothing already
    released is ever drawn anew. Every start has a key of its own, so that what is new shares no
    number with anything drawn before, even by a journal that forgot it.
    """

    def __init__(self, key: bytes | None = None) -> None:
        super().__init__()
        refuse_if_shared()
        if key is not None and len(key) != 16:
            raise ConfigError(f"secure dice need a key of 16 bytes, found {len(key)}")
        self.__key: bytes | None = os.urandom(16) if key is None else key

    def rekey(self, key: bytes | None) -> None:
        """From now on all numbers come from that key; with None there are none before the next
        key."""
        if key is not None and len(key) != 16:
            raise ConfigError(f"secure dice need a key of 16 bytes, found {len(key)}")
        if key is not None:
            refuse_if_shared()
        self.__key = key
        self._ciphers = threading.local()  # of all threads

    def _secret(self) -> bytes:
        if self.__key is None:
            raise LocalProtocolError(
                "secure dice were to fall before this start had a key of its own; recall the "
                "journal first"
            )
        return self.__key

    def __repr__(self) -> str:
        return "Secure()"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(
            "secure dice cannot be copied or saved: two holders would draw the same noise; make new"
        )


def pair(a: Ints, b: Ints) -> Ints:
    """Lane of an unordered pair of peers: min << 24 | max, for ids below 2**24; the same from both
    ends."""
    a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    low, high = np.minimum(a, b), np.maximum(a, b)
    if low.size and (low.min() < 0 or high.max() >= 1 << PAIR_BITS):
        raise ConfigError(
            f"a pair needs peers in 0..2**24 - 1, found {low.min()} and {high.max()}; renumber the "
            f"peers"
        )
    return cast(Ints, low << PAIR_BITS | high)


def _address(lanes: Ints, steps: Ints | int, use: int, run: Ints | int) -> tuple[Words, Words]:
    """The two 64-bit halves of the address of block 0 of each row; block j adds j << 32 to the
    second."""
    lanes = np.asarray(lanes)
    if lanes.ndim != 1:
        raise ConfigError(
            f"lanes must be a list of peers, found shape {lanes.shape}; pass one lane per row"
        )
    rows = len(lanes)
    high = _field("lane", lanes, LANE_BITS, rows) | _field("run", run, RUN_BITS, rows) << np.uint64(
        LANE_BITS
    )
    low = _field("step", steps, STEP_BITS, rows) | _field("use", use, USE_BITS, rows) << np.uint64(
        56
    )
    return high, low if len(low) == rows else np.full(rows, low[0])


def _field(name: str, values: Ints | int, bits: int, rows: int) -> Words:
    """One field of the address as words: a column, or a single word that stands for all rows."""
    if isinstance(values, int):
        least = most = values
    else:
        values = np.asarray(values)
        if values.dtype.kind not in "iu" and values.size:
            raise ConfigError(
                f"{name} of a draw must be whole numbers, found {values.dtype}; convert them first"
            )
        if values.ndim and values.shape != (rows,):
            raise ConfigError(
                f"{name} of a draw has shape {values.shape} for {rows} lanes; pass one, or one per "
                f"lane"
            )
        least, most = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if least < 0 or most >= 1 << bits:
        raise ConfigError(
            f"{name} of a draw must be in 0..2**{bits} - 1, found {least}..{most}; "
            "an address outside its field would meet another one and repeat its noise"
        )
    return np.atleast_1d(np.asarray(values, dtype=np.uint64))


def _check_count(count: int, per_block: int) -> None:
    if not 0 <= count <= per_block << BLOCK_BITS:
        most = per_block << BLOCK_BITS
        raise ConfigError(
            f"one draw gives 0..{most} numbers per lane, found {count}; split it over several uses"
        )


def _encrypt(cipher: BlockCipher, high: Words, low: Words, blocks: int) -> Words:
    counters = np.empty((len(high), blocks, 2), dtype=np.uint64)
    counters[:, :, 0] = high[:, None]
    counters[:, :, 1] = low[:, None] + (np.arange(blocks, dtype=np.uint64) << np.uint64(32))
    words = np.empty(counters.size + 2, dtype=np.uint64)  # update_into asks for a block of slack
    if counters.size:
        cipher.update_into(counters.reshape(-1).view(np.uint8), words.view(np.uint8))
    return words[: counters.size].reshape(len(high), 2 * blocks)


def _words(words: Words) -> Words:
    return words


def _uniform(words: Words) -> Array:
    centered = ((words >> np.uint64(12)) | _ONE).view(np.float64)
    centered -= 1.0 - 2.0**-53
    return centered


def _polynomial(terms: tuple[float, ...], power: Array) -> Array:
    """terms[0] + terms[1] z + terms[2] z**2 + ..., by Estrin's scheme: neighbors joined by z, then
    z**2, then z**4."""
    parts: list[Array] = [np.float64(term) for term in terms]  # type: ignore[misc]
    while len(parts) > 1:
        joined = [low + power * high for low, high in zip(parts[0::2], parts[1::2], strict=False)]
        parts = joined + parts[2 * len(joined) :]
        power = power * power
    return parts[0]


def _log(u: Array) -> Array:
    """log u = e log 2 + log m, m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s), s = (m - 1) / (m +
    1)."""
    bits = u.view(np.uint64) + (_ONE - _ROOT_HALF)
    exponent = (bits >> np.uint64(52)).astype(np.float64) - 1023.0
    m = ((bits & _MANTISSA) + _ROOT_HALF).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return exponent * math.log(2.0) + (2.0 * s + s * z * _polynomial(_LOG_TERMS, z))


def _normal(words: Words) -> Array:
    radius = np.sqrt(-2.0 * _log(_uniform(words[:, 0::2])))
    turn = words[:, 1::2]
    angle = (
        _uniform(turn) - 0.5
    ) * _HALF_PI  # in (-pi/4, pi/4), symmetric; two free bits choose the quadrant
    z = angle * angle
    sine, cosine = angle * _polynomial(_SIN_TERMS, z), _polynomial(_COS_TERMS, z)
    cosine = np.where(turn & np.uint64(2), -cosine, cosine)
    swap = (turn & np.uint64(1)).astype(bool)
    out = np.empty(words.shape)
    out[:, 0::2] = radius * np.where(swap, sine, cosine)
    out[:, 1::2] = radius * np.where(swap, cosine, sine)
    return out


_NUMBERS = {"words": _words, "uniform": _uniform, "normal": _normal}
