"""One holder of rows in a conversation of two: agree, compare the pairs that cross, tell the bits
of one's own pairs.

    garbler: hello  ->  evaluator: hello  ->  garbled pairs (`pair_machines`)  ->  evaluator: own  ->  garbler: own

A hello says the question, how many rows there are, their labels if the question is an AUC, and a
random nonce; all of it is public. The two nonces make the session and with it the pairing. A pair
whose two rows have one holder is computed there, by the same circuit in the clear, and only its
noisy bit is told. So every bit of every pair has the same law, and each holder's rows are
epsilon-DP against the other and whoever it tells.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any, Literal, final

import numpy as np

from bruit.arrays import Bools
from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.statistics.holders.machine import HolderMachine, exactly, pack, unpack
from bruit.statistics.holders.pair_machines import Evaluator, Garbler, PairJob, PairMachine
from bruit.statistics.holders.question import MOST_ROWS, HolderRows, TablesQuestion

PROTOCOL = "bruit two-party 1"
NONCE = 32
HELLO = 2**12  # bytes of a hello beside its labels
MOST_CLAIMED = 2**20  # rows times rounds of the other holder, unless more are allowed: some 60 MiB
Role = Literal["garbler", "evaluator"]
Spend = Callable[[TablesQuestion], None]


@final
class Holder(HolderMachine):
    """`spend` is called once, when all is agreed and before anything about the rows leaves; it may
    refuse.

    `bruit.statistics.holders.Spending` writes the question down;
    `bruit.accounts.account.unrecorded` is for data one may lose. `most_rows` is what the other
    party may claim to hold, rows times rounds: memory for them is taken on its word.
    """

    def __init__(
        self,
        role: Role,
        question: TablesQuestion,
        rows: HolderRows,
        spend: Spend,
        draw: Callable[[int], bytes] = os.urandom,
        most_rows: int = MOST_CLAIMED,
    ) -> None:
        if not 1 <= most_rows <= MOST_ROWS:
            raise ConfigError(
                f"the other table may have 1 to {MOST_ROWS} rows, times rounds; found {most_rows}"
            )
        self.role, self.question, self.rows, self.most_rows = role, question, rows, most_rows
        self._spend, self._draw = spend, draw
        self._hello, self._stage = b"", "hello"
        self._pairs: PairMachine | None = None
        self._bits: Bools | None = None
        self._theirs = 0  # pairs of the other holder alone

    def start(self) -> list[bytes]:
        self._hello = self._greeting()
        return [pack("hello", self._hello)] if self.role == "garbler" else []

    def receive(self, message: bytes) -> list[bytes]:
        if self._stage == "hello":
            return self._agree(unpack(message, "hello"))
        if self._stage == "pairs" and self._pairs is not None:
            answers = self._pairs.receive(message)
            return answers + self._after_pairs() if self._pairs.done else answers
        if self._stage == "own":
            return self._finish(unpack(message, "own"))
        raise RemoteProtocolError("the other holder went on talking after the end")

    @property
    def largest(self) -> int:
        if self._stage == "hello":
            return 1 + HELLO + (self.most_rows // 4 if self.question.needs_labels else 0)
        if self._stage == "pairs" and self._pairs is not None:
            return self._pairs.largest
        return 1 + (self._theirs + 7) // 8 if self._stage == "own" else 1

    @property
    def bits(self) -> Bools:
        """The noisy bits of all pairs, once done, 1 where the kernel takes its higher value  # (P,
        m)."""
        if self._bits is None:
            raise LocalProtocolError("the conversation is not over: there are no bits yet")
        return self._bits

    @property
    def crossing(self) -> int:
        """Pairs between the two holders."""
        return int((self._first != self._second).sum())

    @property
    def progress(self) -> tuple[int, int]:
        """Batches of crossing pairs done, and all of them."""
        return (
            (0, 0) if self._pairs is None else (self._pairs.batches_done, self._pairs.job.batches)
        )

    def _greeting(self) -> bytes:
        asked = self.question
        about = {
            "protocol": PROTOCOL,
            "role": self.role,
            "statistic": asked.name,
            "epsilon": asked.epsilon,
            "rounds": asked.rounds,
            "noise_bits": asked.noise_bits,
            "circuit": asked.bit.circuit.digest().hex(),
            "rows": len(self.rows.labels),
            "nonce": self._draw(NONCE).hex(),
            "labels": np.packbits(self.rows.labels).tobytes().hex() if asked.needs_labels else "",
        }
        return json.dumps(about).encode()

    def _agree(self, theirs: bytes) -> list[bytes]:
        labels = _labels_of(theirs, self._hello, self.most_rows // self.question.rounds)
        hellos, sides = (self._hello, theirs), (self.rows.labels, labels)
        both = np.concatenate(sides if self.role == "garbler" else sides[::-1])
        if trouble := self.question.trouble(len(both), int(both.sum())):
            raise RemoteProtocolError(trouble)
        session = hashlib.sha256(
            b"".join(
                hashlib.sha256(hello).digest()
                for hello in (hellos if self.role == "garbler" else hellos[::-1])
            )
        ).digest()
        self._lay_out(
            both, session, len(self.rows.labels) if self.role == "garbler" else len(labels)
        )
        self._spend(self.question)
        to_send = [pack("hello", self._hello)] if self.role == "evaluator" else []
        if self._pairs is None:
            return to_send + self._after_pairs()
        self._stage = "pairs"
        return to_send + self._pairs.start()

    def _lay_out(self, labels: Bools, session: bytes, border: int) -> None:
        """Which pairs there are, who holds their rows, and the job of those that cross; rows from
        border on are B's."""
        seed = int.from_bytes(hashlib.sha256(b"bruit pairing" + session).digest(), "big")
        pairs = self.question.pairs(labels, seed).reshape(-1, 2)
        self._first, self._second = (
            pairs[:, side] >= border for side in (0, 1)
        )  # True: the evaluator's
        mine = self.role == "evaluator"
        self._own_pairs = (self._first == mine) & (self._second == mine)
        self._local = pairs - (border if mine else 0)
        cross = self._first != self._second
        rows = self._local[cross, (self._first[cross] != mine).astype(np.int64)]
        if len(rows):
            job = PairJob(self.question.bit, len(rows), session)
            self._pairs = (
                Evaluator(job, self.rows.mirrored[rows], self._draw)
                if mine
                else Garbler(job, self.rows.numbers[rows], self._draw)
            )
        self._theirs = int(((self._first != mine) & (self._second != mine)).sum())
        self._shown_bits = np.zeros(len(pairs), dtype=np.bool_)

    def _after_pairs(self) -> list[bytes]:
        """All crossing pairs are done: whoever evaluates tells its own bits first."""
        self._stage = "own"
        if self._pairs is not None:
            cross = self._first != self._second
            # The circuit compares the garbler's row with the evaluator's: an auc whose positive is
            # the
            # evaluator's is asked the other way round. Other kernels are symmetric.
            turned = self._first[cross] if self.question.needs_labels else False
            self._shown_bits[cross] = self._pairs.bits ^ turned
        own = self._local[self._own_pairs]
        self._shown_bits[self._own_pairs] = self.question.bit.in_the_clear(
            self.rows.numbers[own[:, 0]], self.rows.mirrored[own[:, 1]], self._draw
        )
        return [self._own_message()] if self.role == "evaluator" else []

    def _own_message(self) -> bytes:
        return pack("own", np.packbits(self._shown_bits[self._own_pairs]).tobytes())

    def _finish(self, content: bytes) -> list[bytes]:
        theirs = (self._first == self._second) & ~self._own_pairs
        count = int(theirs.sum())
        exactly(content, (count + 7) // 8, "the bits of the other holder's own pairs")
        self._shown_bits[theirs] = np.unpackbits(
            np.frombuffer(content, dtype=np.uint8), count=count
        )
        self._bits = self._shown_bits.reshape(self.question.rounds, -1)
        self._stage, self.done = "over", True
        return [self._own_message()] if self.role == "garbler" else []


def _labels_of(theirs: bytes, mine: bytes, most: int) -> Bools:
    """The other holder's labels, if its hello fits ours in everything that must be the same. Nothing
    is allocated for more rows than are allowed."""
    heard, own = _read(theirs), json.loads(mine)
    if heard.keys() != own.keys():
        raise RemoteProtocolError(
            "the other holder's hello does not name what this version names; use the same bruit"
        )
    for name in ("protocol", "statistic", "epsilon", "rounds", "noise_bits", "circuit"):
        if heard[name] != own[name]:
            raise RemoteProtocolError(
                f"the other holder asks with {name} = {str(heard[name])[:100]!r}, we with "
                f"{own[name]!r}; agree on one and start again"
            )
    if heard["role"] == own["role"]:
        raise RemoteProtocolError(
            f"both holders are the {own['role']}; one must listen and the other connect"
        )
    if heard["nonce"] == own["nonce"]:
        raise RemoteProtocolError("the other holder only repeats what we say")
    rows, labels, nonce = heard["rows"], heard["labels"], heard["nonce"]
    if type(rows) is not int or not 1 <= rows <= most:
        raise RemoteProtocolError(
            f"the other holder must have 1 to {most} rows, it says {str(rows)[:100]}; if that is"
            " true, allow for more: --most-rows, its rows times rounds"
        )
    _from_hex(nonce, NONCE)
    if own["statistic"] != "auc":
        _from_hex(labels, 0)
        return np.zeros(rows, dtype=np.bool_)
    packed = np.frombuffer(_from_hex(labels, (rows + 7) // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=rows).astype(np.bool_)


def _read(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RemoteProtocolError(
            "the other holder's hello is no JSON record; is it `bruit auc --listen` or `--with`?"
        )
    return found


def _from_hex(text: object, size: int) -> bytes:
    try:
        data = bytes.fromhex(text) if isinstance(text, str) else None
    except ValueError:
        data = None
    if data is None or len(data) != size:
        raise RemoteProtocolError(
            f"the other holder's hello holds a field that is not {size} bytes in hexadecimal"
        )
    return data
