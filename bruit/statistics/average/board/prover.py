"""One participant of a verified average: given the record of the board, it says what it has to say
next.

    post = prover.next(record)  ->  append to the board  ->  absorb into the record  ->  again, until there is nothing

No clock, thread or socket. The rule it keeps whatever the board says: it agrees once, to one list
of those who left, and opens its masked value and its exchanges with them (perso:GOPA-7) only after
everybody else who is left has signed that it agrees to the same board. A peer that is listed as
gone opens nothing. Its secrets live as long as it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.randomness import Dice, Secure
from bruit.statistics.average.board.agreement import MOST, AverageAgreement
from bruit.statistics.average.board.checks import proof_statement, proof_transcript
from bruit.statistics.average.board.coins import coin_hash, coins_of
from bruit.statistics.average.board.kinds import BLAME
from bruit.statistics.average.board.pair_secret import PairNoise, exchange, own, show
from bruit.statistics.average.board.payloads import (
    COIN_BYTES,
    Commit,
    Join,
    MaskedOpening,
    Proof,
    Rollback,
    coin_text,
    list_text,
    shown_text,
)
from bruit.statistics.average.board.posts import Post, Sign
from bruit.statistics.average.board.record import Record
from bruit.statistics.average.proofs.bit_proof import prove_bits, range_bits
from bruit.statistics.average.proofs.group import ORDER, generator, random_scalar
from bruit.statistics.average.proofs.pedersen import bit_commitment, commitment


class Prover:
    """Peer `me` with its value, `agreement.width` numbers between low and high; `sign` is its
    Ed25519 signature.

    `dice` draw the rounding, the noise and the coin: `Secure()`, unless a rehearsal wants to be
    repeated."""

    def __init__(
        self,
        agreement: AverageAgreement,
        me: int,
        value: Array,
        sign: Sign,
        dice: Dice | None = None,
    ) -> None:
        self.agreement, self.me, self._sign = agreement, me, sign
        if not 0 <= me < agreement.peers:
            raise ConfigError(f"there is no peer {me} in this agreement of {agreement.peers}")
        chosen = Secure() if dice is None else dice
        self._levels = rounded_levels(agreement, value, me, chosen)
        self._noise_bits = _coin_flips(chosen, me, agreement.width * agreement.noise_bits)
        self._posted: dict[str, Post] = {}
        self._coin = os.urandom(COIN_BYTES)
        self._secret = random_scalar()
        self._key = self._secret * generator()
        self._bit_blinding = random_scalar()
        self._value_blindings, self._noise_blindings = (
            tuple(random_scalar() for _ in range(agreement.width)) for _ in range(2)
        )

    def next(self, record: Record) -> list[Post]:
        """What this peer says now; nothing if it has to wait. Until it is on the record, the same
        post again."""
        kind = self._owed(record)
        if kind is None:
            return []
        if kind not in self._posted:
            made = Post(
                run=self.agreement.run,
                author=self.me,
                kind=kind,
                seen=record.length,
                head=record.heads[-1],
                payload=self._payload(kind, record),
            )
            self._posted[kind] = made.signed(self._sign)
        return [self._posted[kind]]

    def _owed(self, record: Record) -> str | None:
        """The kind of post that the record waits for from this peer."""
        me, said = self.me, record.said
        if me not in record.joins:
            return (
                "join"
                if record.length > 0 and record.roster is None and (me, "join") not in said
                else None
            )
        if record.roster is None or me not in record.roster:
            return None
        if record.sealed is None:
            return "commit" if (me, "commit") not in said else self._blame(record)
        if me not in record.sealed:
            return None
        if (me, "reveal") not in said:
            return "reveal"
        if record.dropped is None:
            ready = record.beacon() is not None and (me, "proof") not in said
            return "proof" if ready and self.protected(record) else None
        return self._owed_last(record)

    def _owed_last(self, record: Record) -> str | None:
        """After the last list: agree, and then open."""
        me, said = self.me, record.said
        if me not in record.online() or not record.may_agree(me):
            return None
        if (me, "agree") not in said:
            return "agree"
        if not record.is_agreed():
            return None
        if (me, "mask") not in said:
            return "mask"
        return "rollback" if self.must_open(record) else None

    def _payload(self, kind: str, record: Record) -> str:
        if kind.startswith(BLAME):
            other = record.joins[int(kind.removeprefix(BLAME))].key
            return shown_text(show(self.agreement.run, self._secret, self._key, other))
        if kind == "reveal":
            return coin_text(self._coin)
        if kind == "join":
            return self.join().text()
        if kind == "agree":
            return list_text(record.online())
        makers: dict[str, Callable[[Record], Commit | Proof | MaskedOpening | Rollback]] = {
            "commit": self.commit,
            "proof": self.proof,
            "mask": self.mask,
            "rollback": self.rollback,
        }
        return makers[kind](record).text()

    def protected(self, record: Record) -> bool:
        """Whether enough exchanges are left to go on; else the peer stays silent and is dropped."""
        return len(record.partners(self.me, record.sealed or ())) >= self.agreement.partners

    def must_open(self, record: Record) -> bool:
        """Whether the record waits for this peer's exchanges with those who left."""
        owed = bool(record.to_open(self.me)) and (self.me, "rollback") not in record.said
        return owed and record.is_agreed() and record.may_agree(self.me)

    def join(self) -> Join:
        run = self.agreement.run
        return Join(self._key, coin_hash(run, self.me, self._coin), own(run, self.me, self._secret))

    def commit(self, record: Record) -> Commit:
        """Commitments to the value, to all bits, and to the exchange with every neighbor on the
        list."""
        partners = record.partners(self.me, record.roster or ())
        value = tuple(
            commitment(x, r) for x, r in zip(self._levels, self._value_blindings, strict=True)
        )
        pairs = {v: self._exchange(record, v).commitments() for v in partners}
        return Commit(value, bit_commitment(self._bits(), self._bit_blinding), pairs)

    def proof(self, record: Record) -> Proof:
        """The commitment to the noise, and the proof that all is as agreed. It tells nothing about
        the value."""
        beacon = record.beacon()
        if beacon is None:
            raise RemoteProtocolError("there are no public coins yet: nothing could be proven")
        if any(abs(value) >= MOST for value in self._masked(record, beacon).masked):
            raise ConfigError("a masked value overflows 2**62; agree on less pair noise")
        noise = tuple(
            commitment(x, r)
            for x, r in zip(self._noise(beacon), self._noise_blindings, strict=True)
        )
        statement = proof_statement(self.agreement, self.me, beacon, record.commits[self.me], noise)
        each = [
            r
            for pair in zip(self._value_blindings, self._noise_blindings, strict=True)
            for r in pair
        ]
        made = prove_bits(
            statement, self._bits(), self._bit_blinding, each, proof_transcript(record, self.me)
        )
        return Proof(noise, made)

    def mask(self, record: Record) -> MaskedOpening:
        """The masked value; refused before everybody who is left has agreed to this board."""
        beacon = record.beacon()
        if beacon is None or not record.is_agreed() or self.me not in record.online():
            raise RemoteProtocolError(
                "not everybody has agreed to this board yet: a masked value stays closed"
            )
        return self._masked(record, beacon)

    def _masked(self, record: Record, beacon: bytes) -> MaskedOpening:
        noise = self._noise(beacon)
        partners = [
            self._exchange(record, v) for v in record.partners(self.me, record.sealed or ())
        ]
        masked, blindings = [], []
        for k in range(self.agreement.width):
            masked.append(self._levels[k] + noise[k] + sum(pair.noise[k] for pair in partners))
            parts = (
                self._value_blindings[k],
                self._noise_blindings[k],
                *(pair.blindings[k] for pair in partners),
            )
            blindings.append(sum(parts) % ORDER)
        return MaskedOpening(tuple(masked), tuple(blindings))

    def rollback(self, record: Record) -> Rollback:
        """Openings of the exchanges with dropped peers."""
        return Rollback({v: self._exchange(record, v) for v in record.to_open(self.me)})

    def _blame(self, record: Record) -> str | None:
        for pair in record.mismatches:
            if self.me in pair:
                other = pair[0] + pair[1] - self.me
                if (self.me, f"{BLAME}{other}") not in record.said and not self._at_fault(
                    record, other
                ):
                    return f"{BLAME}{other}"
        return None

    def _at_fault(self, record: Record, other: int) -> bool:
        return self._exchange(record, other).commitments() != record.commits[self.me].pairs[other]

    def _exchange(self, record: Record, other: int) -> PairNoise:
        return exchange(self.agreement, self._secret * record.joins[other].key, self.me, other)

    def _noise(self, beacon: bytes) -> list[int]:
        width, m = self.agreement.width, self.agreement.noise_bits
        drawn = self._noise_bits ^ coins_of(beacon, self.me, width * m)
        return [int(row.sum()) - m // 2 for row in drawn.reshape(width, m)]

    def _bits(self) -> Bools:
        """Bits of the range and of the noise of every number, filled up with zeros  # (length,)."""
        rows = self._noise_bits.reshape(self.agreement.width, -1)
        parts = [
            bit
            for x, row in zip(self._levels, rows, strict=True)
            for bit in (*range_bits(x, self.agreement.levels), *row.tolist())
        ]
        return np.array(parts + [False] * (self.agreement.length - len(parts)))


def rounded_levels(
    agreement: AverageAgreement, value: Array, peer: int, dice: Dice
) -> tuple[int, ...]:
    """Values as levels, rounded up or down at random so that they are right on average; nothing is
    clipped."""
    row = np.atleast_1d(np.asarray(value, np.float64))
    if row.shape != (agreement.width,) or not np.isfinite(row).all():
        raise ConfigError(
            f"peer {peer} must hold {agreement.width} finite numbers, found shape {row.shape};"
            " look for missing ones"
        )
    if row.min() < agreement.low or row.max() > agreement.high:
        raise ConfigError(
            f"the value of peer {peer} is out of range: {row.min():g} to {row.max():g} is not"
            f" within {agreement.low:g}..{agreement.high:g}; clip it, or agree on a larger range"
        )
    scaled = (row - agreement.low) / (agreement.high - agreement.low) * agreement.levels
    draws = dice.words("round", np.array([peer]), 0, 0, agreement.width)[0] / 2.0**64
    found = np.floor(scaled) + (draws < scaled - np.floor(scaled))
    return tuple(int(x) for x in np.clip(found, 0, agreement.levels))


def _coin_flips(dice: Dice, peer: int, count: int) -> Bools:
    """Private fair bits  # (count,)."""
    words = dice.words("coin", np.array([peer]), 0, 0, (count + 63) // 64)[0]
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)
