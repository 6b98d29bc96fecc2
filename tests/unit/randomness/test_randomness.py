"""Addressed draws: layout of an address, independence of batch and path, refusals (style.md 2.2,
2.6)."""

import copy
import hashlib
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bruit.errors import ConfigError, PrivacyError
from bruit.randomness import Replay, Secure, pair
from bruit.randomness import dice as randomness

KINDS = ("uniform", "normal")


def numpy_numbers(kind, dice, lanes, steps, use, count, run=0):
    """The numpy path, whatever is loaded: words, then the plain transformation."""
    words = dice.words("noise", lanes, steps, use, count + count % 2, run)
    return randomness._NUMBERS[kind](words)[:, :count]


def test_aes_of_the_cipher_library_is_fips_197():
    key, plain = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    assert encryptor.update(plain).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@pytest.mark.parametrize(
    ("run", "lane", "step", "use", "block"),
    [
        (0, 0, 0, 0, 0),
        (1, 2, 3, 4, 5),
        (2**16 - 1, 2**48 - 1, 2**32 - 1, 255, 700),
        (0, 7, 1, 0, 2**10),
    ],
)
def test_a_word_is_aes_of_its_address_written_out_by_hand(run, lane, step, use, block):
    master = hashlib.blake2b(b"7", person=b"bruit replay").digest()[:16]
    key = hashlib.blake2b(b"noise", key=master).digest()[:16]
    address = (run << 48 | lane) | step << 64 | (use << 24 | block) << 96
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    expected = np.frombuffer(cipher.update(address.to_bytes(16, "little")), "<u8")
    words = Replay(7).words("noise", np.array([lane]), step, use, 2 * block + 2, run)
    assert (words[0, -2:] == expected).all()


def test_words_are_prefixes_of_longer_draws():
    dice, lanes = Replay(1), np.arange(9)
    longer = dice.words("noise", lanes, 3, 0, 11)
    for count in range(11):
        assert (dice.words("noise", lanes, 3, 0, count) == longer[:, :count]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_rows_do_not_depend_on_the_batch(kind, count):
    dice, lanes = Replay(5), np.array([4, 0, 2**40, 17])
    steps, runs = np.array([3, 3, 9, 0]), np.array([0, 1, 1, 2])
    draw = getattr(dice, kind)
    together = draw("noise", lanes, steps, 2, count, runs)
    for i in range(len(lanes)):
        alone = draw("noise", lanes[i : i + 1], int(steps[i]), 2, count, int(runs[i]))
        assert (alone[0] == together[i]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "count"), [(5, 3), (1000, 50), (3, 30001)])
def test_compiled_and_numpy_paths_give_the_same_bits(kind, rows, count):
    dice, lanes, steps = Replay(11), np.arange(rows) * 3, np.arange(rows)
    from bruit.randomness import compiled as noise  # noqa: F401  (once loaded, every draw is compiled)

    compiled = getattr(dice, kind)("noise", lanes, steps, 1, count)
    assert (compiled == numpy_numbers(kind, dice, lanes, steps, 1, count)).all()


def test_small_draws_do_not_load_numba_and_agree_with_the_compiled_path():
    program = (
        "import sys, numpy as np\nfrom bruit.randomness import Replay\ndraws = [getattr(Replay(2),"
        f" kind)('noise', np.arange(20), 1, 0, 9) for kind in {KINDS!r}]\nassert 'numba' not in"
        " sys.modules\nprint(''.join(draw.tobytes().hex() for draw in draws))\n"
    )
    lean = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()
    from bruit.randomness import compiled as noise  # noqa: F401

    here = "".join(
        getattr(Replay(2), kind)("noise", np.arange(20), 1, 0, 9).tobytes().hex() for kind in KINDS
    )
    assert lean == here


def test_numbers_are_what_the_library_functions_say():
    """Box-Muller, logarithm and angles against numpy's own log, cos and sin, to a few units in the
    last place."""
    dice, lanes = Replay(3), np.arange(400)
    words = dice.words("noise", lanes, 0, 0, 50)
    uniform = ((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52
    assert (dice.uniform("noise", lanes, 0, 0, 50) == uniform).all()
    radius = np.sqrt(-2 * np.log(uniform[:, 0::2]))
    turn, angle = words[:, 1::2], (uniform[:, 1::2] - 0.5) * math.pi / 2
    cosine, sine = np.cos(angle) * np.where(turn & np.uint64(2), -1, 1), np.sin(angle)
    swap = (turn & np.uint64(1)).astype(bool)
    normal = dice.normal("noise", lanes, 0, 0, 50)
    np.testing.assert_allclose(normal[:, 0::2], radius * np.where(swap, sine, cosine), rtol=4e-15)
    np.testing.assert_allclose(normal[:, 1::2], radius * np.where(swap, cosine, sine), rtol=4e-15)


def test_extreme_words_give_finite_numbers_inside_the_open_interval():
    words = np.array([[0, 0, 2**64 - 1, 2**64 - 1, 2**63, 1]], dtype=np.uint64)
    uniform = randomness._uniform(words)
    assert uniform.min() == 2.0**-53
    assert uniform.max() == 1 - 2.0**-53
    for kind in KINDS:
        assert np.isfinite(randomness._NUMBERS[kind](words)).all()


def test_single_precision_normals_follow_the_same_formula():
    dice, lanes = Replay(3), np.arange(50)
    got = dice.normal32("noise", lanes, 0, 0, 22)
    assert got.dtype == np.float32
    assert (got[7] == dice.normal32("noise", lanes[7:8], 0, 0, 22)[0]).all()
    halves = dice.words("noise", lanes, 0, 0, 12).view(np.uint32)[:, :24]
    first, turn = halves[:, 0::2], halves[:, 1::2]
    radius = np.sqrt(-2 * np.log(((first >> 1).astype(np.float64) + 0.5) * 2.0**-31))
    angle = ((turn >> 9).astype(np.float64) * 2.0**-23 - 0.5 + 2.0**-24) * math.pi / 2
    cosine, sine = np.cos(angle) * np.where(turn & 2, -1, 1), np.sin(angle)
    expected = np.empty((50, 24))
    expected[:, 0::2] = radius * np.where(turn & 1, sine, cosine)
    expected[:, 1::2] = radius * np.where(turn & 1, cosine, sine)
    # 24-bit uniforms lose relative accuracy only where the radius is near 0
    np.testing.assert_allclose(got, expected[:, :22], rtol=2e-5, atol=1e-3)
    assert np.median(np.abs(got / expected[:, :22] - 1)) < 1e-6


def test_every_part_of_the_address_matters():
    dice, lane = Replay(1), np.array([5])
    base = dice.words("noise", lane, 1, 0, 2)[0, 0]
    others = [
        dice.words("hop", lane, 1, 0, 2),
        dice.words("noise", lane + 1, 1, 0, 2),
        dice.words("noise", lane, 2, 0, 2),
        dice.words("noise", lane, 1, 1, 2),
        dice.words("noise", lane, 1, 0, 2, run=1),
        Replay(2).words("noise", lane, 1, 0, 2),
    ]
    assert base not in [other[0, 0] for other in others]


def test_replay_repeats_and_secure_does_not():
    lanes = np.arange(3)
    assert (Replay(4).normal("noise", lanes, 1) == Replay(4).normal("noise", lanes, 1)).all()
    dice = Secure()
    assert (dice.normal("noise", lanes, 1) == dice.normal("noise", lanes, 1)).all()
    assert (dice.normal("noise", lanes, 1) != Secure().normal("noise", lanes, 1)).all()


def test_replay_travels_and_secure_stays():
    dice = pickle.loads(pickle.dumps(Replay(9)))
    assert repr(dice) == "Replay(9)"
    assert (
        dice.normal("noise", np.arange(3), 1) == Replay(9).normal("noise", np.arange(3), 1)
    ).all()
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivacyError, match="two holders would draw the same noise"):
            leave(Secure())


def test_secure_never_shows_its_key():
    dice = Secure()
    assert repr(dice) == str(dice) == "Secure()"
    assert dice._secret().hex() not in repr(dice)


def test_threads_share_dice():
    dice, lanes = Replay(6), np.arange(300)
    expected, results = dice.normal("noise", lanes, 0, 0, 200), {}

    def work(i):
        results[i] = all(
            (dice.normal("noise", lanes, 0, 0, 200) == expected).all() for _ in range(20)
        )

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_a_pair_has_one_lane_from_both_ends():
    a, b = np.array([3, 0, 2**24 - 1]), np.array([9, 5, 1])
    assert (pair(a, b) == pair(b, a)).all()
    assert pair(a, b)[0] == 3 << 24 | 9
    assert (Replay(0).pair(a, b) == pair(a, b)).all()
    assert pair(a, b).max() < 2**48
    with pytest.raises(ConfigError, match=r"peers in 0..2\*\*24 - 1, found 1 and 16777216"):
        pair(np.array([1]), np.array([2**24]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.array([2**48]), 0, 0, 1),
            r"lane of a draw must be in 0\.\.2\*\*48 - 1, found 281474976710656",
        ),
        ((np.array([-1]), 0, 0, 1), "lane of a draw must be in"),
        ((np.array([0]), 2**32, 0, 1), "step of a draw must be in"),
        ((np.array([0]), 0, 256, 1), r"use of a draw must be in 0\.\.2\*\*8 - 1, found 256"),
        ((np.array([0]), 0, -1, 1), "use of a draw must be in"),
        ((np.array([0]), 0, 0, 1, 2**16), "run of a draw must be in"),
        ((np.array([0.5]), 0, 0, 1), "lane of a draw must be whole numbers, found float64"),
        (
            (np.array([0, 1]), np.array([0, 1, 2]), 0, 1),
            r"step of a draw has shape \(3,\) for 2 lanes",
        ),
        ((np.array([[0]]), 0, 0, 1), "lanes must be a list of peers"),
        ((np.array([0]), 0, 0, -1), "numbers per lane, found -1"),
        ((np.array([0]), 0, 0, 2**25 + 1), "split it over several uses"),
    ],
)
def test_addresses_outside_their_fields_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Replay(0).words("noise", *arguments)


def test_no_lanes_and_no_numbers_are_fine():
    dice = Replay(0)
    assert dice.normal("noise", np.array([], dtype=np.int64), 0, 0, 4).shape == (0, 4)
    assert dice.normal(
        "noise", np.array([], dtype=np.int64), np.array([], dtype=np.int64), 0, 4
    ).shape == (0, 4)
    assert dice.normal("noise", np.arange(3), 0, 0, 0).shape == (3, 0)
    assert dice.normal32("noise", np.arange(3), 0, 0, 0).shape == (3, 0)
