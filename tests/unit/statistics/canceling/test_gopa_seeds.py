"""Agreed seeds: the same from both ends, different for other terms, rounds and keys; noise is
normal and opposite."""

import numpy as np
import pytest
from scipy import stats

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.canceling.seeds import (
    KeyPair,
    confirmation,
    confirmed,
    pair_noise,
    round_key,
    uniform_mask,
)
from bruit.statistics.average.canceling.terms import Terms

TERMS = Terms(number=0, peers=10, width=5000, clip=1.0, own_sigma=0.5, pair_sigma=30.0, degree=4)


def test_both_ends_agree_and_strangers_do_not():
    a, b, c = KeyPair(), KeyPair(), KeyPair()
    seed = a.agree(3, 7, b.public, b"terms")
    assert seed == b.agree(7, 3, a.public, b"terms")
    assert seed != b.agree(7, 3, a.public, b"other terms")
    assert seed != c.agree(7, 3, a.public, b"terms")
    assert seed != a.agree(3, 8, b.public, b"terms")
    assert "private" not in repr(a)
    assert KeyPair.from_bytes(a.secret_bytes()).public == a.public


def test_confirmations_cannot_be_reflected():
    seed = KeyPair().agree(0, 1, KeyPair().public, b"")
    assert confirmed(seed, 1, confirmation(seed, 1))
    assert not confirmed(seed, 1, confirmation(seed, 0))


def test_noise_is_opposite_normal_and_fresh_each_round():
    seed = KeyPair().agree(0, 1, KeyPair().public, TERMS.digest)
    mine, yours = (pair_noise(round_key(seed, 0), *ends, TERMS) for ends in ((0, 1), (1, 0)))
    assert not (mine + yours).any()
    row = TERMS.field.decode(mine)
    assert stats.kstest(row / 30.0, "norm").pvalue > 1e-6
    later = TERMS.field.decode(pair_noise(round_key(seed, 1), 0, 1, TERMS))
    assert abs(np.corrcoef(row, later)[0, 1]) < 0.08  # 5.6 standard errors


def test_masks_are_uniform_words():
    words = uniform_mask(bytes(16), 4000)
    assert words.dtype == np.uint64
    assert stats.kstest(words / 2.0**64, "uniform").pvalue > 1e-6


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (
            lambda: KeyPair().agree(0, 1, bytes(32), b""),
            RemoteProtocolError,
            "no usable X25519 public key",
        ),
        (lambda: KeyPair().agree(0, 1, b"short", b""), RemoteProtocolError, "peer 1 sent 5 bytes"),
        (lambda: KeyPair.from_bytes(b"x"), ConfigError, "32 bytes, found 1"),
        (lambda: pair_noise(b"x", 0, 1, TERMS), RemoteProtocolError, "16 bytes"),
    ],
)
def test_wrong_keys(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
