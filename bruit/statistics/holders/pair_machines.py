"""The two sides of a garbled batch of comparisons: who garbles, and who evaluates (perso:LDP-11).

    garbler                                              evaluator
       points: 128 base transfers  ------------------------->
       <------------------------- point: their answer; columns: transfers of its inputs, batch 0
       tables: garbled gates, its own labels  -------------->
       <------------------------- outputs: the noisy bits with proof; columns of the next batch
       ...

Both learn the noisy bits and nothing else, if both follow the protocol (semi-honest) and the
assumptions of `hashing` and `base_transfer` hold. The proof is a hash of the output labels: an
evaluator cannot claim other bits. What a party that cheats could do: a garbler can garble another
circuit, and so learn more from the bits that come back, or fix its share of the inputs. An
evaluator can use inconsistent transfers to learn bits of the offset, and with it both labels of a
wire. Either can stop after it has seen the bits, or use other numbers than its own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from bruit.arrays import Bools, Words
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.holders.base_transfer import COUNT, POINT, Chooser, offer, random_bits
from bruit.statistics.holders.garbling import chosen, evaluate_garbled, garble, last_bits
from bruit.statistics.holders.hashing import BLOCK, Hasher, from_bytes, to_bytes
from bruit.statistics.holders.machine import HolderMachine, exactly, pack, unpack
from bruit.statistics.holders.noisy_bit import NoisyBit, Numbers
from bruit.statistics.holders.transfer_extension import Receiver, Sender, columns_bytes, offset_of

BATCH = 1024  # pairs garbled at once: what fits in cache
DIGEST = 32


@final
@dataclass(frozen=True)
class PairJob:
    """What both sides know: the noisy bit asked of every pair, how many pairs, and a session id
    never used before."""

    bit: NoisyBit
    pairs: int
    session: bytes
    batch: int = BATCH

    def part(self, number: int) -> slice:
        """The pairs of one batch."""
        return slice(number * self.batch, min(self.pairs, (number + 1) * self.batch))

    @property
    def batches(self) -> int:
        return -(-self.pairs // self.batch)

    def hasher(self) -> Hasher:
        return Hasher(hashlib.sha256(b"bruit garbling" + self.session).digest()[:BLOCK])

    def proof(self, number: int, labels: Words) -> bytes:
        """Shows that the output labels are known."""
        return hashlib.sha256(self.session + number.to_bytes(8, "big") + to_bytes(labels)).digest()


class PairMachine(HolderMachine):
    """What garbler and evaluator share: inputs, and the noisy bits of all pairs once done."""

    def __init__(
        self, job: PairJob, numbers: Numbers, draw: Callable[[int], bytes] = os.urandom
    ) -> None:
        wanted = (job.pairs, job.bit.comparison.columns)
        if numbers.shape != wanted or not job.pairs:
            raise ConfigError(
                f"this job compares {wanted[0]} >= 1 pairs of {wanted[1]} numbers, found numbers of"
                f" shape {numbers.shape}"
            )
        self.job, self.hasher = job, job.hasher()
        self.bits = np.zeros(job.pairs, dtype=np.bool_)
        self._numbers, self._draw = numbers, draw
        self._batch = 0
        self._due = ""

    @property
    def batches_done(self) -> int:
        return self._batch

    @property
    def largest(self) -> int:
        """Every message has one size only, which job and batch tell."""
        if self.done:
            return 1
        circuit, part = self.job.bit.circuit, self.job.part(self._batch)
        count = part.stop - part.start
        sizes: dict[str, int] = {
            "points": COUNT * POINT,
            "point": POINT,
            "columns": columns_bytes(circuit.evaluator * count),
            "tables": BLOCK * count * (2 * circuit.ands + circuit.garbler) + (count + 7) // 8,
            "outputs": (count + 7) // 8 + DIGEST,
        }
        return 1 + sizes.get(self._due, 0)

    def _inputs(self) -> Bools:
        """This party's input bits of the batch  # (inputs, N)."""
        return np.ascontiguousarray(
            self.job.bit.bits_of(self._numbers[self.job.part(self._batch)], self._draw).T
        )

    def _store(self, bits: Bools) -> None:
        self.bits[self.job.part(self._batch)] = bits
        self._batch += 1
        self.done = self._batch == self.job.batches


@final
class Garbler(PairMachine):
    """Garbles batch after batch; its offset is the secret of the transfers."""

    def start(self) -> list[bytes]:
        self._secret = random_bits(self._draw(COUNT // 8))
        self._offset = offset_of(self._secret)
        self._chooser = Chooser(self.job.session, self._secret)
        self._due = "point"
        return [pack("points", self._chooser.message)]

    def receive(self, message: bytes) -> list[bytes]:
        content = unpack(message, self._due)
        if self._due == "point":
            self._sender = Sender(self._secret, self._chooser.keys(content))
            self._due = "columns"
            return []
        if self._due == "columns":
            answer = self._garble(content)
            self._due = "outputs"
            return [answer]
        self._check(content)
        self._due = "nothing" if self.done else "columns"
        return []

    def _garble(self, columns: bytes) -> bytes:
        circuit, part = self.job.bit.circuit, self.job.part(self._batch)
        count = part.stop - part.start
        theirs = self._sender.extend(columns, circuit.evaluator * count, self._batch)
        own = from_bytes(self._draw(BLOCK * circuit.garbler * count), circuit.garbler, count)
        zeros = np.concatenate((own, theirs.reshape(circuit.evaluator, count, 2)))
        made = garble(circuit, zeros, self._offset, self.hasher, part.start)
        self._outputs = made.outputs
        labels = chosen(own, self._inputs(), self._offset)
        decode = np.packbits(last_bits(made.outputs)[0])
        return pack("tables", to_bytes(made.tables) + to_bytes(labels) + decode.tobytes())

    def _check(self, content: bytes) -> None:
        bits = _read_outputs(content, self._outputs.shape[1])
        labels = chosen(self._outputs, bits[None, :], self._offset)
        if not hmac.compare_digest(self.job.proof(self._batch, labels), content[-DIGEST:]):
            raise RemoteProtocolError(
                "the other holder claims outputs that the garbled circuit did not give; nothing "
                "of this session can be used"
            )
        self._store(bits)


@final
class Evaluator(PairMachine):
    """Evaluates batch after batch; its inputs arrive by oblivious transfer."""

    def start(self) -> list[bytes]:
        self._due = "points"
        return []

    def receive(self, message: bytes) -> list[bytes]:
        content = unpack(message, self._due)
        if self._due == "points":
            answer, keys = offer(
                self.job.session, exactly(content, COUNT * POINT, "the base transfers")
            )
            self._receiver = Receiver(keys)
            self._due = "tables"
            return [pack("point", answer), self._columns()]
        outputs = self._evaluate(content)
        if self.done:
            self._due = "nothing"
            return [outputs]
        return [outputs, self._columns()]

    def _columns(self) -> bytes:
        bits = self._inputs()
        message, labels = self._receiver.extend(bits.reshape(-1), self._batch)
        self._labels = labels.reshape(*bits.shape, 2)
        return pack("columns", message)

    def _evaluate(self, content: bytes) -> bytes:
        circuit, part = self.job.bit.circuit, self.job.part(self._batch)
        count = part.stop - part.start
        tables_end = 2 * BLOCK * circuit.ands * count
        labels_end = tables_end + BLOCK * circuit.garbler * count
        exactly(content, labels_end + (count + 7) // 8, "a batch of garbled circuits")
        tables = from_bytes(content[:tables_end], circuit.ands, 2, count)
        labels = np.concatenate(
            (from_bytes(content[tables_end:labels_end], circuit.garbler, count), self._labels)
        )
        outputs = evaluate_garbled(circuit, labels, tables, self.hasher, part.start)
        decode = np.unpackbits(
            np.frombuffer(content[labels_end:], dtype=np.uint8), count=count
        ).astype(np.bool_)
        bits = last_bits(outputs)[0] ^ decode
        proof = self.job.proof(self._batch, outputs)
        self._store(bits)
        return pack("outputs", np.packbits(bits).tobytes() + proof)


def bytes_per_pair(bit: NoisyBit, batch: int = BATCH) -> float:
    """Bytes that cross the wire for one pair of a full batch, both ways, after the base
    transfers."""
    circuit = bit.circuit
    transfers = columns_bytes(circuit.evaluator * batch)
    tables = BLOCK * batch * (2 * circuit.ands + circuit.garbler)
    return (transfers + tables + 2 * ((batch + 7) // 8) + DIGEST + 3) / batch


def _read_outputs(content: bytes, count: int) -> Bools:
    exactly(content, (count + 7) // 8 + DIGEST, "the outputs")
    return np.unpackbits(np.frombuffer(content[:-DIGEST], dtype=np.uint8), count=count).astype(
        np.bool_
    )
