"""Boolean circuits: what two parties compute without showing their inputs to each other.

    wires: the garbler's inputs, then the evaluator's, then one per gate, in order; XOR and NOT are free, AND costs

`evaluate` runs a circuit in the clear, on many instances at once: the reference that the garbled
one must equal bit for bit (perso:LDP-11, the cleartext mode).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np

from bruit.arrays import Bools
from bruit.errors import ConfigError

Kind = Literal["xor", "and", "not"]


class Gate(NamedTuple):
    """Its output wire is the number of inputs plus its place among the gates; `not` reads left
    only."""

    kind: Kind
    left: int
    right: int


@final
@dataclass(frozen=True)
class Circuit:
    """Gates in an order in which they can be computed."""

    garbler: int  # input wires of the garbler, the first ones
    evaluator: int  # input wires of the evaluator, the next ones
    gates: tuple[Gate, ...]
    outputs: tuple[int, ...]

    @property
    def inputs(self) -> int:
        return self.garbler + self.evaluator

    @cached_property
    def ands(self) -> int:
        """How many gates cost something."""
        return sum(gate.kind == "and" for gate in self.gates)

    def digest(self) -> bytes:
        """The same for the same circuit: both holders compare it before they begin."""
        return hashlib.sha256(
            repr((self.garbler, self.evaluator, self.gates, self.outputs)).encode()
        ).digest()


@final
class Builder:
    """Writes a circuit down, gate by gate; each method gives the number of the wire it makes."""

    def __init__(self, garbler: int, evaluator: int) -> None:
        self._garbler, self._evaluator = garbler, evaluator
        self._gates: list[Gate] = []

    def xor(self, left: int, right: int) -> int:
        return self._add(Gate("xor", left, right))

    def and_(self, left: int, right: int) -> int:
        return self._add(Gate("and", left, right))

    def not_(self, wire: int) -> int:
        return self._add(Gate("not", wire, wire))

    def circuit(self, *outputs: int) -> Circuit:
        return Circuit(self._garbler, self._evaluator, tuple(self._gates), outputs)

    def _add(self, gate: Gate) -> int:
        self._gates.append(gate)
        return self._garbler + self._evaluator + len(self._gates) - 1


def greater(make: Builder, x: Sequence[int], y: Sequence[int], tie: int | None = None) -> int:
    """[x > y] of two numbers, least bit first, one AND per bit; equal numbers give the wire `tie`,
    or 0 without one.

        c_(i+1) = x_i ^ ((x_i ^ c_i) & (y_i ^ c_i)),   c_0 = tie
    """
    carry = tie if tie is not None else make.and_(x[0], make.not_(y[0]))
    for a, b in zip(x, y, strict=True) if tie is not None else zip(x[1:], y[1:], strict=True):
        carry = make.xor(a, make.and_(make.xor(a, carry), make.xor(b, carry)))
    return carry


def subtract(make: Builder, x: Sequence[int], y: Sequence[int]) -> tuple[list[int], int]:
    """x - y modulo 2^bits, least bit first, and [x < y], one AND per bit.

    d_i = x_i ^ y_i ^ b_i,   b_(i+1) = b_i ^ ((not x_i ^ b_i) & (y_i ^ b_i)),   b_0 = 0
    """
    found = [make.xor(x[0], y[0])]
    borrow = make.and_(make.not_(x[0]), y[0])
    for a, b in zip(x[1:], y[1:], strict=True):
        moved = make.xor(b, borrow)
        found.append(make.xor(a, moved))
        borrow = make.xor(borrow, make.and_(make.not_(make.xor(a, borrow)), moved))
    return found, borrow


def equal(make: Builder, x: Sequence[int], y: Sequence[int]) -> int:
    """[x = y]: one AND less than there are bits."""
    same = [make.not_(make.xor(a, b)) for a, b in zip(x, y, strict=True)]
    found = same[0]
    for bit in same[1:]:
        found = make.and_(found, bit)
    return found


def below(make: Builder, word: Sequence[int], threshold: int) -> int:
    """[word < threshold] for a public threshold, 0 < threshold < 2^bits; the zeros at its end cost
    nothing."""
    if not 0 < threshold < 1 << len(word):
        raise ConfigError(
            f"a {len(word)}-bit word is compared with a number in 1..{(1 << len(word)) - 1}, "
            f"found {threshold}"
        )
    low = (threshold & -threshold).bit_length() - 1
    less = make.not_(word[low])
    for place in range(low + 1, len(word)):
        if threshold >> place & 1:
            less = make.not_(make.and_(word[place], make.not_(less)))
        else:
            less = make.and_(make.not_(word[place]), less)
    return less


def evaluate(circuit: Circuit, garbler: Bools, evaluator: Bools) -> Bools:
    """The outputs of many instances, in the clear: bits (N, inputs of each party) in, bits (N,
    outputs) out."""
    wires = [*np.asarray(garbler, dtype=np.bool_).T, *np.asarray(evaluator, dtype=np.bool_).T]
    if garbler.shape[1] != circuit.garbler or evaluator.shape[1] != circuit.evaluator:
        raise ConfigError(
            f"the circuit takes {circuit.garbler} and {circuit.evaluator} bits, found "
            f"{garbler.shape[1]} and {evaluator.shape[1]}"
        )
    for kind, left, right in circuit.gates:
        if kind == "and":
            wires.append(wires[left] & wires[right])
        else:
            wires.append(wires[left] ^ wires[right] if kind == "xor" else ~wires[left])
    return np.stack([wires[wire] for wire in circuit.outputs], axis=1)
