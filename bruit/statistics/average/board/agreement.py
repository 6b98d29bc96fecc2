"""An agreement: everything the peers of a verified average promise each other, and the name of their
run.

    value:  X = (x - low) / (high - low) * levels, rounded at random to 0..levels, unbiased
    own noise: the sum of `noise_bits` coins minus half of them, in levels; pair noise: N(0, pair_sigma^2), rounded
    masked value = X + own noise + sum of pair noise, an integer below 2**62 in size

No sum wraps around. A masked value that is not below 2**62 is refused. Values and own noises are
proven to be at most levels + noise_bits each, so every sum of at most 2**24 peers is below 2**87.
The group has order above 2**255: equal modulo the order means equal. Pair noise needs no range: it
cancels in the group itself.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.graphs import Graph, fixed_graph, from_edges
from bruit.statistics.average.proofs.bit_proof import range_weights
from bruit.statistics.average.proofs.pedersen import LONGEST

MOST = 2**62  # of a masked value
WIDEST = 2.0**46  # of pair noise, in levels: it is sampled exactly, and sums of it stay below MOST


@dataclass(frozen=True, kw_only=True)
class AverageAgreement:
    """One verified round. `keys` are the Ed25519 public keys of the peers, in order, as hexadecimal
    digits.

    Peer `organizer` serves the board and closes its lists, and is trusted to add what it gets. A
    peer with fewer than `partners` exchanges publishes nothing, and opens none if fewer would be
    left closed; nothing is opened with fewer than `online` peers left. `moved` is by how many
    levels what is protected may move a number: one row, say; None if everything that a peer holds
    is. `nonce` makes every run another one.
    """

    keys: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    low: float
    high: float
    levels: int
    noise_bits: int
    pair_sigma: float = 2.0**40
    width: int = 1
    organizer: int = 0
    partners: int = 1
    online: int = 2
    title: str = ""
    moved: int | None = None
    nonce: str = field(default_factory=lambda: os.urandom(16).hex())

    def __post_init__(self) -> None:
        self._check_peers()
        self._check_numbers()

    def _check_peers(self) -> None:
        """Who takes part, who talks to whom, and who organizes."""
        n = len(self.keys)
        if (
            not 2 <= n < 2**24
            or len(set(self.keys)) < n
            or not all(_is_hex(key, 32) for key in self.keys)
        ):
            raise ConfigError(
                f"an agreement lists 2 or more peers by different Ed25519 keys of 32 bytes, found "
                f"{n}"
            )
        pairs = set(self.edges)
        if len(pairs) < len(self.edges) or not all(0 <= u < v < n for u, v in pairs):
            raise ConfigError(
                f"edges are different pairs u < v of peers 0..{n - 1}; look for doubled or "
                f"reversed ones"
            )
        if not (
            0 <= self.organizer < n
            and self.partners >= 0
            and self.online >= 2
            and _is_hex(self.nonce, 16)
        ):
            raise ConfigError(
                "the organizer is one of the peers, partners >= 0, online >= 2, the nonce has 16 "
                "bytes"
            )

    def _check_numbers(self) -> None:
        """Where values lie, how finely they are cut, and how much noise hides them."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(
                f"values lie between low and high, two finite numbers, found {self.low} and "
                f"{self.high}"
            )
        if (
            not 1 <= self.levels < 2**32
            or self.noise_bits < 2
            or self.noise_bits % 2
            or self.width < 1
        ):
            raise ConfigError(
                f"a value has 1 or more levels, an even number of noise bits, a width of 1 or "
                f"more; found {self.levels}, {self.noise_bits}, {self.width}"
            )
        if not 1 <= self.pair_sigma <= WIDEST:
            raise ConfigError(f"pair noise is 1 to 2**46 levels wide, found {self.pair_sigma:g}")
        if self.moved is not None and (
            type(self.moved) is not int or not 1 <= self.moved <= self.levels
        ):
            raise ConfigError(
                f"what is protected moves a number by 1 to {self.levels} levels, found "
                f"{self.moved!r}"
            )
        if self.length > LONGEST:
            raise ConfigError(
                f"{self.width} numbers of {self.bits_each} bits need a proof of more than {LONGEST}"
                " bits; use fewer noise bits, or several runs"
            )

    @property
    def level(self) -> Literal["record", "user"]:
        """What the epsilon of this run is about: one row of a peer, or everything it holds."""
        return "user" if self.moved is None else "record"

    @property
    def shift(self) -> int:
        """Levels by which what is protected may move a number."""
        return self.levels if self.moved is None else self.moved

    @property
    def peers(self) -> int:
        return len(self.keys)

    @property
    def bits_each(self) -> int:
        """Bits in the proof of one number: of its range and of its noise."""
        return len(range_weights(self.levels)) + self.noise_bits

    @property
    def length(self) -> int:
        """Bits in the proof of one peer, filled up to a power of two."""
        return 1 << (self.width * self.bits_each - 1).bit_length()

    @cached_property
    def run(self) -> bytes:
        """The name of the run: a hash of the whole agreement."""
        return hashlib.sha256(b"bruit verified run 2" + self.to_json().encode()).digest()

    @cached_property
    def neighbors(self) -> tuple[tuple[int, ...], ...]:
        found: list[set[int]] = [set() for _ in self.keys]
        for u, v in self.edges:
            found[u].add(v)
            found[v].add(u)
        return tuple(tuple(sorted(others)) for others in found)

    def graph(self) -> Graph:
        return from_edges(self.peers, list(self.edges))

    def decode_mean(self, total: Sequence[int], count: int) -> Array:
        """The mean that sums of masked values of `count` peers stand for  # (width,)."""
        step = (self.high - self.low) / self.levels
        return np.array([self.low + step * value / count for value in total])

    def error(self, count: int) -> float:
        """Standard error of that mean at most: coins, and rounding at random."""
        return (self.high - self.low) / self.levels * math.sqrt((self.noise_bits + 1) / (4 * count))

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> AverageAgreement:
        """Read an agreement from outside; whatever is wrong with it is a RemoteProtocolError."""
        try:
            found: dict[str, Any] = json.loads(text)
            found["keys"] = tuple(found["keys"])
            found["edges"] = tuple((int(u), int(v)) for u, v in found["edges"])
            made = cls(**found)
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            OverflowError,
            RecursionError,
            ConfigError,
        ) as error:
            raise RemoteProtocolError(f"the agreement cannot be read: {error}") from None
        if made.to_json() != text:
            raise RemoteProtocolError("the agreement is not written in its one canonical form")
        return made


def agree(
    keys: Iterable[bytes], graph: Graph | str, low: float, high: float, **more: Any
) -> AverageAgreement:
    """The agreement of peers with these raw Ed25519 public keys, neighbors as in the graph; `more`
    as in `AverageAgreement`."""
    edges = tuple(sorted((min(u, v), max(u, v)) for u, v in fixed_graph(graph).edges().tolist()))
    return AverageAgreement(
        keys=tuple(key.hex() for key in keys), edges=edges, low=float(low), high=float(high), **more
    )


def _is_hex(text: object, count: int) -> bool:
    try:
        return isinstance(text, str) and text == text.lower() and len(bytes.fromhex(text)) == count
    except ValueError:
        return False
