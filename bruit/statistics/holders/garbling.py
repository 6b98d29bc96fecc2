"""Garbled circuits: half-gates, free XOR, point-and-permute; many instances of one circuit at once.

    label of the value v on wire w:   W_w xor v D,    D secret, its last bit 1         XOR: W_c = W_a xor W_b, free
    AND, with p = last bit of W, j and j' its two tweaks:
      T_G = H(W_a, j)  xor H(W_a xor D, j)  xor p_b D        W_G = H(W_a, j)  xor p_a T_G
      T_E = H(W_b, j') xor H(W_b xor D, j') xor W_a          W_E = H(W_b, j') xor p_b (T_E xor W_a)
      W_c = W_G xor W_E

(Zahur, Rosulek, Evans 2015, ePrint 2014/756): 32 bytes per AND. The evaluator holds one label of
each wire, which says nothing about the value; for outputs it is told the last bit of W. Rows are
instances: a thousand pairs are garbled by the same few calls as one. Secure against an evaluator
that follows the protocol; whoever garbles is trusted to garble the agreed circuit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bruit.arrays import Bools, Words
from bruit.statistics.holders.circuits import Circuit
from bruit.statistics.holders.hashing import Hasher

ONE = np.uint64(1)


class Garbled(NamedTuple):
    """tables: (ANDs, 2, N, 2), for the evaluator. outputs: the labels of 0 on output wires
    (outputs, N, 2), secret."""

    tables: Words
    outputs: Words


def garble(
    circuit: Circuit, zeros: Words, offset: Words, hasher: Hasher, first: int = 0
) -> Garbled:
    """Tables of N instances; zeros: labels of 0 on the input wires (inputs, N, 2); first: number of
    instance 0."""
    instances = np.arange(first, first + zeros.shape[1], dtype=np.uint64)
    wires = list(zeros)
    tables = np.empty((circuit.ands, 2, zeros.shape[1], 2), dtype=np.uint64)
    done = 0
    for kind, left, right in circuit.gates:
        if kind == "xor":
            wires.append(wires[left] ^ wires[right])
        elif kind == "not":
            wires.append(wires[left] ^ offset)
        else:
            wires.append(
                _garble_and(
                    wires[left], wires[right], offset, hasher, done, instances, tables[done]
                )
            )
            done += 1
    return Garbled(tables, np.stack([wires[wire] for wire in circuit.outputs]))


def _garble_and(
    a: Words, b: Words, offset: Words, hasher: Hasher, number: int, instances: Words, rows: Words
) -> Words:
    """Fills the two rows of one gate and gives the label of 0 on its output  # (N, 2)."""
    place = (2 * number, 2 * number, 2 * number + 1, 2 * number + 1)
    hashed = hasher(np.stack((a, a ^ offset, b, b ^ offset)), place, instances)
    mask_a, mask_b = last_bit_mask(a), last_bit_mask(b)
    rows[0] = hashed[0] ^ hashed[1] ^ (mask_b & offset)
    rows[1] = hashed[2] ^ hashed[3] ^ a
    return np.asarray(hashed[0] ^ (mask_a & rows[0]) ^ hashed[2] ^ (mask_b & (rows[1] ^ a)))


def evaluate_garbled(
    circuit: Circuit, labels: Words, tables: Words, hasher: Hasher, first: int = 0
) -> Words:
    """The output labels (outputs, N, 2) that the input labels (inputs, N, 2) lead to."""
    instances = np.arange(first, first + labels.shape[1], dtype=np.uint64)
    wires = list(labels)
    done = 0
    for kind, left, right in circuit.gates:
        if kind == "xor":
            wires.append(wires[left] ^ wires[right])
        elif kind == "not":
            wires.append(wires[left])  # the same label now means the opposite
        else:
            a, b, rows = wires[left], wires[right], tables[done]
            hashed = hasher(np.stack((a, b)), (2 * done, 2 * done + 1), instances)
            wires.append(
                hashed[0]
                ^ (last_bit_mask(a) & rows[0])
                ^ hashed[1]
                ^ (last_bit_mask(b) & (rows[1] ^ a))
            )
            done += 1
    return np.stack([wires[wire] for wire in circuit.outputs])


def chosen(zeros: Words, bits: Bools, offset: Words) -> Words:
    """The labels of these bits: zeros (k, N, 2), bits (k, N)."""
    return np.asarray(zeros ^ (np.uint64(0) - bits.astype(np.uint64))[..., None] & offset)


def last_bits(labels: Words) -> Bools:
    """By which a label finds its row, and an output its value."""
    return (labels[..., 0] & ONE).astype(np.bool_)


def last_bit_mask(labels: Words) -> Words:
    """All ones where the last bit is one  # (..., 1)."""
    return np.asarray(np.uint64(0) - (labels[..., :1] & ONE))
