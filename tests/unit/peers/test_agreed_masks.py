"""Secrets of pairs: alike at both ends, of one start only, and bound to who agreed."""

import hashlib
import hmac
import pickle
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bruit.errors import PrivacyError
from bruit.peers.agreed_masks import AgreedMasks

# points of low order: every private key makes the same secret with them, all zeros
WEAK = (
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
)


def two():
    one, other = AgreedMasks(), AgreedMasks()
    return one, one.renew(), other, other.renew()


def test_both_ends_agree_and_nobody_else_does():
    one, first, other, second = two()
    assert one.secret(3, 5, second) == other.secret(5, 3, first)
    third = AgreedMasks()
    third.renew()
    assert third.secret(3, 5, second) != one.secret(3, 5, second)


def test_numbers_and_keys_are_bound():
    one, first, other, second = two()
    known = one.secret(3, 5, second)
    assert one.secret(4, 5, second) != known
    assert one.secret(3, 6, second) != known
    assert one.secret(5, 3, second) != known  # the keys belong to the numbers
    other.renew()
    assert other.secret(5, 3, first) != known


def test_the_formula():
    """HKDF-SHA256 of RFC 5869, written out."""
    mine, theirs = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    a, b = (key.public_key().public_bytes_raw() for key in (mine, theirs))
    shared = mine.exchange(theirs.public_key())
    info = b"bruit masked sum 1" + struct.pack("<q", 2) + b + struct.pack("<q", 9) + a
    extracted = hmac.digest(bytes(32), shared, hashlib.sha256)
    due = hmac.digest(extracted, info + b"\x01", hashlib.sha256)
    assert AgreedMasks(mine).secret(9, 2, b) == due
    assert AgreedMasks(theirs).secret(2, 9, a) == due


@pytest.mark.parametrize("key", WEAK, ids=lambda key: key.hex()[:8])
def test_keys_that_hide_nothing_are_refused(key):
    masks = AgreedMasks(X25519PrivateKey.generate())
    assert not masks.usable(key)
    with pytest.raises(PrivacyError, match="the same secret"):
        masks.secret(0, 1, key)


def test_usual_keys_are_usable_and_others_are_not():
    assert AgreedMasks().usable(AgreedMasks().renew())
    assert not AgreedMasks().usable(b"short")


def test_without_a_key_a_secret_is_noise():
    masks = AgreedMasks()
    key = AgreedMasks().renew()
    assert len({masks.secret(0, 1, key) for _ in range(8)}) == 8


def test_no_copies():
    masks = AgreedMasks()
    masks.renew()
    assert repr(masks) == "AgreedMasks()"
    with pytest.raises(PrivacyError, match="cannot be copied"):
        pickle.dumps(masks)
