"""What travels in a run by ballots: records that a peer keeps, and the rows that a line carries.

    ballot   Promise    I am in this ballot; my base, charges, key
    list     Roll       of this ballot's leader: who is to speak, and the promises that show why
    speak    Speech     one peer's words, and the attempt they are for
    sum      Tally      of the leader: all that a Roll says, the sum, and who vouches for it
    fetch    a hash     send me the sums up to this one, as records
    record   Tally      a sum that was asked for

Rows of one kind have one width: whoever is not shown in a list has zeros in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bruit.algorithms.schedules.ballots.chain import HASH, binding, digest, extended
from bruit.algorithms.schedules.vouchers import SEAL
from bruit.arrays import Bools, Ints, Words

Bytes = NDArray[np.uint8]


class PromiseRow(NamedTuple):
    """A promise on a line."""

    numbers: Ints  # (1, 4) ballot and round of the base, whether it is an end, charges
    chain: Bytes  # (1, 32)
    key: Bytes  # (1, 32)
    seal: Bytes  # (1, 64)


class RollRow(NamedTuple):
    """A list on a line, with the promises of all who are shown."""

    members: Bools  # (1, n)
    shown: Bools  # (1, n)
    numbers: Ints  # (1, n, 4)
    chains: Bytes  # (1, n, 32)
    keys: Bytes  # (1, n, 32)
    seals: Bytes  # (1, n, 64)


class SpeechRow(NamedTuple):
    """One peer's words on a line."""

    words: Words  # (1, d)
    binding: Bytes  # (1, 32)


class TallyRow(NamedTuple):
    """A sum on a line, with its list."""

    members: Bools
    shown: Bools
    numbers: Ints
    chains: Bytes
    keys: Bytes
    seals: Bytes
    words: Words  # (1, d)
    witness: Ints  # (1, 1)
    seal: Bytes  # (1, 64)


def text_row(content: bytes) -> Bytes:
    """Bytes as a row."""
    return np.frombuffer(content, np.uint8)[None]


@dataclass(frozen=True)
class Base:
    """What a peer goes on from: after so many rounds, the last of them summed in this ballot; or
    `ended`: in this ballot it was voted that nothing comes after them."""

    ballot: int
    round: int
    chain: bytes
    ended: bool = False


@dataclass(frozen=True)
class Promise:
    """A peer's word on entering a ballot: it adopts no sum of an earlier one for itself any more."""

    ballot: int
    base: Base
    charges: int
    key: bytes
    seal: bytes = bytes(SEAL)

    def text(self) -> str:
        """What its author signs."""
        base = self.base
        return (
            f"ballot {self.ballot}, base {base.ballot} {base.round} {base.chain.hex()}"
            f"{' ended' * base.ended}, charges {self.charges}, key {self.key.hex()}"
        )

    def row(self) -> PromiseRow:
        base = self.base
        numbers = np.array([[base.ballot, base.round, base.ended, self.charges]])
        return PromiseRow(
            numbers, text_row(self.base.chain), text_row(self.key), text_row(self.seal)
        )

    @classmethod
    def of(cls, ballot: int, row: PromiseRow) -> Promise:
        at, number, ended, charges = row.numbers[0].tolist()
        base = Base(at, number, row.chain.tobytes(), bool(ended))
        return cls(ballot, base, charges, row.key.tobytes(), row.seal.tobytes())


@dataclass(frozen=True)
class Roll:
    """The list of one ballot: `members` are to speak, `shown` are the promises that it rests on.

    Where it has no members the end is voted, by all who are shown (`voices`): each says a row of
    zeros, which is charged to nobody."""

    ballot: int
    members: tuple[int, ...]
    shown: tuple[tuple[int, Promise], ...]

    @cached_property
    def base(self) -> Base:
        """base*: of the highest ballot shown. Of several chains of that ballot (somebody said two
        things) the one that most peers show."""
        bases = [promise.base for _, promise in self.shown]
        highest = max(base.ballot for base in bases)
        votes = Counter(base for base in bases if base.ballot == highest)
        return max(votes, key=lambda base: (votes[base], base.chain))

    @property
    def voices(self) -> tuple[int, ...]:
        """Whose rows make the sum."""
        return self.members or tuple(peer for peer, _ in self.shown)

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """The members' keys, in order."""
        shown = dict(self.shown)
        return tuple(shown[peer].key for peer in self.members)

    @cached_property
    def binding(self) -> bytes:
        """H of the attempt."""
        base = self.base
        return binding(base.chain, self.ballot, base.round, self.members, self.keys)

    def row(self, peers: int) -> RollRow:
        members, shown = np.zeros((1, peers), bool), np.zeros((1, peers), bool)
        members[0, list(self.members)] = True
        numbers = np.zeros((1, peers, 4), np.int64)
        chains, keys = np.zeros((1, peers, HASH), np.uint8), np.zeros((1, peers, HASH), np.uint8)
        seals = np.zeros((1, peers, SEAL), np.uint8)
        for peer, promise in self.shown:
            shown[0, peer] = True
            numbers[0, peer], chains[0, peer], keys[0, peer], seals[0, peer] = promise.row()
        return RollRow(members, shown, numbers, chains, keys, seals)

    @classmethod
    def of(cls, ballot: int, row: RollRow | TallyRow) -> Roll:
        shown = tuple(
            (
                peer,
                Promise.of(
                    ballot,
                    PromiseRow(
                        row.numbers[:, peer],
                        row.chains[:, peer],
                        row.keys[:, peer],
                        row.seals[:, peer],
                    ),
                ),
            )
            for peer in np.flatnonzero(row.shown[0]).tolist()
        )
        return cls(ballot, tuple(np.flatnonzero(row.members[0]).tolist()), shown)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """The sum over a list. `witness` vouches for it: the leader, or who summed all words itself.

    The sum of an end is zero, and adds no round."""

    roll: Roll
    words: Words  # (1, d)
    witness: int
    bound: bytes  # H of its attempt
    base: Base  # what there is after it
    seal: bytes = bytes(SEAL)

    @classmethod
    def made(cls, roll: Roll, words: Words, witness: int, seal: bytes = bytes(SEAL)) -> Tally:
        before, bound = roll.base, roll.binding
        ended = not roll.members
        base = Base(roll.ballot, before.round + (not ended), extended(bound, words), ended)
        return cls(roll=roll, words=words, witness=witness, bound=bound, base=base, seal=seal)

    def text(self) -> str:
        """What its witness signs."""
        return f"sum of ballot {self.roll.ballot}, {self.bound.hex()}, {digest(self.words).hex()}"

    def row(self, peers: int) -> TallyRow:
        return TallyRow(
            *self.roll.row(peers), self.words, np.array([[self.witness]]), text_row(self.seal)
        )

    @classmethod
    def of(cls, ballot: int, row: TallyRow) -> Tally:
        roll = Roll.of(ballot, row)
        return cls.made(roll, row.words, int(row.witness[0, 0]), row.seal.tobytes())


def examples(peers: int, words: Words) -> dict[str, object]:
    """No rows, but of the types and widths of each kind."""

    def wide(*shape: int) -> Bytes:
        return np.zeros((0, *shape), np.uint8)

    truth = np.zeros((0, peers), bool)
    roll = RollRow(
        truth,
        truth,
        np.zeros((0, peers, 4), np.int64),
        wide(peers, HASH),
        wide(peers, HASH),
        wide(peers, SEAL),
    )
    tally = TallyRow(*roll, words, np.zeros((0, 1), np.int64), wide(SEAL))
    return {
        "ballot": PromiseRow(np.zeros((0, 4), np.int64), wide(HASH), wide(HASH), wide(SEAL)),
        "list": roll,
        "speak": SpeechRow(words, wide(HASH)),
        "sum": tally,
        "fetch": wide(HASH),
        "record": tally,
    }
