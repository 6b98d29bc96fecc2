"""One participant of a verified average: given the record of the board, it says what it has to say next.

    post = prover.next(record)  ->  append to the board  ->  absorb into the record  ->  again, until there is nothing

No clock, thread or socket. Two rules it keeps whatever the board says: it publishes its masked value once, after the
commitments were sealed and before the dropped were listed; and it opens an exchange only with a peer that is on the
checked list of dropped ones and has no masked value on the board (perso:GOPA-7). Its secrets live as long as it does.
"""

from __future__ import annotations

import os

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.randomness import Dice, Secure
from bruit.verification.agreement import MOST, Agreement
from bruit.verification.bit_proof import prove_bits, range_bits
from bruit.verification.checks import mask_statement, mask_transcript
from bruit.verification.coins import coin_hash, coins_of
from bruit.verification.group import ORDER, Point, generator, random_scalar
from bruit.verification.pair_secret import Exchange, exchange, own, show
from bruit.verification.payloads import (
    COIN_BYTES,
    Commit,
    Join,
    Mask,
    Rollback,
    coin_text,
    shown_text,
)
from bruit.verification.pedersen import bit_commitment, commitment
from bruit.verification.posts import Post, Sign
from bruit.verification.record import BLAME, Record


class Prover:
    """Peer `me` with its value, `agreement.width` numbers between low and high; `sign` is its Ed25519 signature.

    `dice` draw the rounding, the noise and the coin: `Secure()`, unless a rehearsal wants to be repeated."""

    def __init__(self, agreement: Agreement, me: int, value: Array, sign: Sign, dice: Dice | None = None) -> None:
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
        """What this peer says now; nothing if it has to wait. Until it is on the record, the same post again."""
        kind = self._owed(record)
        if kind is None:
            return []
        if kind not in self._posted:
            made = Post(self.agreement.run, self.me, kind, record.length, record.heads[-1], self._payload(kind, record))
            self._posted[kind] = made.signed(self._sign)
        return [self._posted[kind]]

    def _owed(self, record: Record) -> str | None:
        """The kind of post that the record waits for from this peer."""
        me, said = self.me, record.said
        if me not in record.joins:
            return "join" if record.length > 0 and record.roster is None and (me, "join") not in said else None
        if record.roster is None or me not in record.roster:
            return None
        if record.sealed is None:
            return "commit" if (me, "commit") not in said else self._blame(record)
        if me not in record.sealed:
            return None
        if (me, "reveal") not in said:
            return "reveal"
        if record.dropped is None:
            ready = record.beacon() is not None and (me, "mask") not in said
            return "mask" if ready and self.protected(record) else None
        return "rollback" if self.must_open(record) else None

    def _payload(self, kind: str, record: Record) -> str:
        if kind.startswith(BLAME):
            other = record.joins[int(kind.removeprefix(BLAME))].key
            return shown_text(show(self.agreement.run, self._secret, self._key, other))
        if kind == "reveal":
            return coin_text(self._coin)
        if kind == "join":
            return self.join().text()
        made: Commit | Mask | Rollback
        if kind == "commit":
            made = self.commit(record)
        else:
            made = self.mask(record) if kind == "mask" else self.rollback(record)
        return made.text()

    def protected(self, record: Record) -> bool:
        """Whether enough exchanges are left to publish a masked value; else the peer stays silent and is dropped."""
        return len(record.partners(self.me, record.sealed or ())) >= self.agreement.partners

    def must_open(self, record: Record) -> bool:
        owed = bool(record.to_open(self.me)) and (self.me, "rollback") not in record.said
        return owed and record.may_open(self.me)

    def join(self) -> Join:
        run = self.agreement.run
        return Join(self._key, coin_hash(run, self.me, self._coin), own(run, self.me, self._secret))

    def commit(self, record: Record) -> Commit:
        """Commitments to the value, to all bits, and to the exchange with every neighbor on the list."""
        partners = record.partners(self.me, record.roster or ())
        value = tuple(commitment(x, r) for x, r in zip(self._levels, self._value_blindings, strict=True))
        pairs = {v: self._exchange(record, v).commitments() for v in partners}
        return Commit(value, bit_commitment(self._bits(), self._bit_blinding), pairs)

    def mask(self, record: Record) -> Mask:
        """The masked value with its proof; refused when it would not be below 2**62."""
        agreement, beacon = self.agreement, record.beacon()
        if beacon is None:
            raise RemoteProtocolError("there are no public coins yet: a masked value could not be proven")
        noise = self._noise(beacon)
        partners = [self._exchange(record, v) for v in record.partners(self.me, record.sealed or ())]
        masked, blindings = [], []
        for k in range(agreement.width):
            masked.append(self._levels[k] + noise[k] + sum(pair.noise[k] for pair in partners))
            parts = (self._value_blindings[k], self._noise_blindings[k], *(pair.blindings[k] for pair in partners))
            blindings.append(sum(parts) % ORDER)
        if any(abs(value) >= MOST for value in masked):
            raise ConfigError("a masked value overflows 2**62; agree on less pair noise")
        committed = tuple(commitment(x, r) for x, r in zip(noise, self._noise_blindings, strict=True))
        return self._proven(record, tuple(masked), tuple(blindings), committed)

    def _proven(
        self, record: Record, masked: tuple[int, ...], blindings: tuple[int, ...], noise: tuple[Point, ...]
    ) -> Mask:
        statement = mask_statement(self.agreement, self.me, record.beacon() or b"", record.commits[self.me], noise)
        each = [r for pair in zip(self._value_blindings, self._noise_blindings, strict=True) for r in pair]
        transcript = mask_transcript(record, self.me, masked, blindings)
        proof = prove_bits(statement, self._bits(), self._bit_blinding, each, transcript)
        return Mask(masked, blindings, noise, proof)

    def rollback(self, record: Record) -> Rollback:
        """Openings of the exchanges with dropped peers."""
        return Rollback({v: self._exchange(record, v) for v in record.to_open(self.me)})

    def _blame(self, record: Record) -> str | None:
        for pair in record.mismatches:
            if self.me in pair:
                other = pair[0] + pair[1] - self.me
                if (self.me, f"{BLAME}{other}") not in record.said and not self._at_fault(record, other):
                    return f"{BLAME}{other}"
        return None

    def _at_fault(self, record: Record, other: int) -> bool:
        return self._exchange(record, other).commitments() != record.commits[self.me].pairs[other]

    def _exchange(self, record: Record, other: int) -> Exchange:
        return exchange(self.agreement, self._secret * record.joins[other].key, self.me, other)

    def _noise(self, beacon: bytes) -> list[int]:
        width, m = self.agreement.width, self.agreement.noise_bits
        drawn = self._noise_bits ^ coins_of(beacon, self.me, width * m)
        return [int(row.sum()) - m // 2 for row in drawn.reshape(width, m)]

    def _bits(self) -> Bools:
        """Bits of the range and of the noise of every number, filled up with zeros  # (length,)."""
        rows = self._noise_bits.reshape(self.agreement.width, -1)
        parts = [bit for x, row in zip(self._levels, rows, strict=True)
                 for bit in (*range_bits(x, self.agreement.levels), *row.tolist())]  # fmt: skip
        return np.array(parts + [False] * (self.agreement.length - len(parts)))


def rounded_levels(agreement: Agreement, value: Array, peer: int, dice: Dice) -> tuple[int, ...]:
    """Values as levels, rounded up or down at random so that they are right on average; nothing is clipped."""
    row = np.atleast_1d(np.asarray(value, np.float64))
    if row.shape != (agreement.width,) or not np.isfinite(row).all():
        raise ConfigError(f"peer {peer} must hold {agreement.width} finite numbers, found shape {row.shape}; look for"
                          " missing ones")  # fmt: skip
    if row.min() < agreement.low or row.max() > agreement.high:
        raise ConfigError(f"the value of peer {peer} is out of range: {row.min():g} to {row.max():g} is not within"
                          f" {agreement.low:g}..{agreement.high:g}; clip it, or agree on a larger range")  # fmt: skip
    scaled = (row - agreement.low) / (agreement.high - agreement.low) * agreement.levels
    draws = dice.words("round", np.array([peer]), 0, 0, agreement.width)[0] / 2.0**64
    found = np.floor(scaled) + (draws < scaled - np.floor(scaled))
    return tuple(int(x) for x in np.clip(found, 0, agreement.levels))


def _coin_flips(dice: Dice, peer: int, count: int) -> Bools:
    """Private fair bits  # (count,)."""
    words = dice.words("coin", np.array([peer]), 0, 0, (count + 63) // 64)[0]
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)
