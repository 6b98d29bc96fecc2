"""Garbled circuits equal clear ones bit for bit; the hash is the published one; transfers transfer
one of two."""

import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bruit.errors import RemoteProtocolError
from bruit.statistics.holders import base_transfer
from bruit.statistics.holders.base_transfer import (
    Chooser,
    difference,
    hashed_point,
    offer,
    random_bits,
)
from bruit.statistics.holders.circuits import Builder, evaluate
from bruit.statistics.holders.garbling import chosen, evaluate_garbled, garble, last_bits
from bruit.statistics.holders.hashing import Hasher, from_bytes, to_bytes
from bruit.statistics.holders.transfer_extension import Receiver, Sender, columns_bytes, offset_of


def random_labels(*shape):
    return from_bytes(os.urandom(16 * int(np.prod(shape))), *shape)


def test_the_hash_is_tmmo_block_by_block():
    """P(P(x) xor i) xor P(x), spelled out with Python integers."""
    key = bytes(range(16))

    def permuted(block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    labels = random_labels(2, 3)
    found = Hasher(key)(labels, (5, 2**40), np.array([7, 8, 2**50], dtype=np.uint64))
    for row, place in enumerate((5, 2**40)):
        for column, instance in enumerate((7, 8, 2**50)):
            inner = int.from_bytes(permuted(to_bytes(labels[row, column])), "little")
            tweaked = (inner ^ (place | instance << 64)).to_bytes(16, "little")
            wanted = int.from_bytes(permuted(tweaked), "little") ^ inner
            assert int.from_bytes(to_bytes(found[row, column]), "little") == wanted


def random_circuit(rng, inputs, gates):
    make = Builder(inputs, inputs)
    for count in range(2 * inputs, 2 * inputs + gates):
        left, right = rng.integers(0, count, 2).tolist()
        (make.xor, make.and_, lambda wire, _: make.not_(wire))[int(rng.integers(3))](left, right)
    return make.circuit(*range(2 * inputs + gates - 4, 2 * inputs + gates), 0)


@pytest.mark.parametrize("seed", range(12))
def test_garbled_equals_clear(seed):
    rng = np.random.default_rng(seed)
    circuit = random_circuit(rng, 5, 60)
    count = int(rng.integers(1, 40))
    bits = rng.random((10, count)) < 0.5
    offset = offset_of(random_bits(os.urandom(16)))
    zeros, hasher = random_labels(10, count), Hasher(os.urandom(16))
    made = garble(circuit, zeros, offset, hasher, first=17)
    outputs = evaluate_garbled(circuit, chosen(zeros, bits, offset), made.tables, hasher, first=17)
    values = last_bits(outputs) ^ last_bits(made.outputs)
    assert (values == evaluate(circuit, bits[:5].T, bits[5:].T).T).all()
    assert (outputs == chosen(made.outputs, values, offset)).all()
    assert made.tables.nbytes == 32 * circuit.ands * count


def test_two_instances_of_one_circuit_share_no_table_and_another_tweak_breaks_them():
    make = Builder(1, 1)
    circuit = make.circuit(make.and_(0, 1))
    offset, hasher = offset_of(random_bits(os.urandom(16))), Hasher(os.urandom(16))
    zeros = np.repeat(random_labels(2, 1), 2, axis=1)  # even from the same labels
    made = garble(circuit, zeros, offset, hasher)
    assert (made.tables[0, :, 0] != made.tables[0, :, 1]).any(axis=-1).all()
    outputs = evaluate_garbled(circuit, zeros, made.tables, hasher, first=1)
    known = chosen(np.repeat(made.outputs, 2, axis=0), np.array([[False] * 2, [True] * 2]), offset)
    assert not (outputs == known).all(axis=-1).any()


def test_point_difference_is_that_of_scalars():
    """(a - b) G, scalar by scalar, with the group order of P-256."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    for a, b in ((5, 3), (2, 7), (order - 1, 12345678901234567890)):
        point = [
            ec.derive_private_key(k % order, ec.SECP256R1()).public_key().public_numbers()
            for k in (a, b, a - b)
        ]
        left, right, wanted = (base_transfer.P256Point(part.x, part.y) for part in point)
        assert difference(left, right) == wanted


def test_base_transfers_give_one_key_of_two():
    session, bits = os.urandom(32), random_bits(os.urandom(16))
    chooser = Chooser(session, bits)
    answer, offered = offer(session, chooser.message)
    keys = chooser.keys(answer)
    assert bits[0]
    assert len(offered) == 128
    assert [pair[int(bit)] for pair, bit in zip(offered, bits, strict=True)] == keys
    assert len({key for pair in offered for key in pair}) == 256
    other = offer(os.urandom(32), chooser.message)[1]
    assert other[0] != offered[0]


def test_points_that_no_honest_party_sends_are_refused():
    session = bytes(32)
    center = hashed_point(session)
    spelled = bytes([2 + center.y % 2]) + center.x.to_bytes(32, "big")
    assert center == hashed_point(session) != hashed_point(bytes(31) + b"x")
    for bad, message in (
        (b"\x02" + b"\xff" * 32, "no point of P-256"),
        (bytes(33), "no point of P-256"),
        (bytes(32), "33 bytes"),
        (spelled, "no honest chooser"),
    ):
        with pytest.raises(RemoteProtocolError, match=message):
            offer(session, bad)
    with pytest.raises(RemoteProtocolError, match="no point of P-256"):
        Chooser(session, random_bits(bytes(16))).keys(b"\x02")


@pytest.mark.parametrize("count", [1, 8, 61, 1000])
def test_extended_transfers_give_the_label_of_the_bit(count):
    """q_j = t_j xor c_j D, and the two batches of one session differ."""
    rng = np.random.default_rng(count)
    secret, bits = random_bits(os.urandom(16)), rng.random(count) < 0.5
    pairs = [(os.urandom(16), os.urandom(16)) for _ in range(128)]
    receiver = Receiver(pairs)
    sender = Sender(secret, [pair[int(bit)] for pair, bit in zip(pairs, secret, strict=True)])
    before = None
    for batch in (0, 1):
        message, labels = receiver.extend(bits, batch)
        assert len(message) == columns_bytes(count)
        zeros = sender.extend(message, count, batch)
        assert (labels == chosen(zeros, bits, offset_of(secret))).all()
        assert before is None or (before != zeros).any(axis=1).all()
        before = zeros
    with pytest.raises(RemoteProtocolError, match="bytes, found 3"):
        sender.extend(b"abc", count, 2)
