"""The group is the library's: our sums and multiples agree with coincurve's own keys, point by
point."""

import hashlib
import sys

import numpy as np
import pytest
from coincurve import PrivateKey, PublicKey

from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.statistics.average.proofs import multi_scalar
from bruit.statistics.average.proofs.group import (
    ORDER,
    Point,
    decoded,
    decoded_scalar,
    encoded_scalar,
    generator,
    hashed_point,
    inverse,
    inverses,
    library,
    random_scalar,
    total,
)
from bruit.statistics.average.proofs.multi_scalar import subset_sum, table, weighted_sum
from bruit.statistics.average.proofs.pedersen import (
    bit_commitment,
    blinding_base,
    commitment,
    inner_base,
    vector_bases,
)

SCALARS = [
    1,
    2,
    3,
    ORDER - 1,
    ORDER // 2,
    2**255 % ORDER,
    2**128 - 1,
    *(random_scalar() for _ in range(5)),
]


@pytest.mark.parametrize(
    "scalar", SCALARS, ids=range(len(SCALARS))
)  # some are drawn: no names from them
def test_multiples_and_sums_are_those_of_coincurve(scalar):
    key = PrivateKey.from_int(scalar).public_key
    other = PrivateKey().public_key
    point, second = decoded(key.format()), decoded(other.format())
    assert scalar * generator() == point
    assert (point + second).encoded() == PublicKey.combine_keys([key, other]).format()
    assert (7 * point).encoded() == key.multiply((7).to_bytes(32, "big")).format()
    assert (-point).encoded()[1:] == point.encoded()[1:]
    assert point - point == Point()
    assert point + Point() == point


def test_the_identity_and_what_wraps_around():
    assert 0 * generator() == Point() == ORDER * generator()
    assert (ORDER - 1) * generator() == -generator() == -1 * generator()
    assert total([]) == Point()
    assert -Point() == Point()
    assert 5 * Point() == Point()
    assert total([generator(), generator(), -2 * generator()]) == Point()


@pytest.mark.parametrize("count", [0, 1, 30, 620])
def test_sums_by_buckets_are_sums_of_multiples(count):
    """perso:GOPA-9: one by one below FEW, by buckets above; scalars 0, 1, -1 and equal points
    included."""
    points = [hashed_point(b"test %d" % (k % 40)) for k in range(count)]
    scalars = ([0, 1, ORDER - 1, 2**255] + [random_scalar() for _ in range(count)])[:count]
    wanted = total(s * p for s, p in zip(scalars, points, strict=True))
    rows = table(points) if points else np.zeros((0, 64), np.uint8)
    assert weighted_sum(rows, scalars) == wanted


@pytest.mark.parametrize("width", [2, 3, 5, 8, 13])
def test_every_width_of_window_gives_the_same(width, monkeypatch):
    points = table([hashed_point(b"w %d" % k) for k in range(20)])
    scalars = [random_scalar() for _ in range(20)]
    wanted = weighted_sum(points, scalars)
    monkeypatch.setattr(multi_scalar, "FEW", 0)
    monkeypatch.setattr(multi_scalar, "window_width", lambda _: width)
    assert weighted_sum(points, scalars) == wanted
    assert (
        weighted_sum(np.concatenate((points, points)), [*scalars, *(-s for s in scalars)])
        == Point()
    )


def test_hashed_points_come_from_their_hash_alone():
    """Nobody knows their logarithm: x is a hash of the name, nothing else enters."""
    name = b"blinding"
    found = [
        hashlib.sha256(
            b"bruit hash to secp256k1" + len(name).to_bytes(4, "big") + name + bytes([k])
        ).digest()
        for k in range(16)
    ]
    assert blinding_base().encoded()[0] == 2
    assert blinding_base().encoded()[1:] in found
    left, right = vector_bases(16)
    single = {blinding_base().raw, inner_base().raw, generator().raw}
    assert len({row.tobytes() for row in (*left, *right)} | single) == 35


def test_commitments_add_up():
    """perso:GOPA-9: Com(v, r) + Com(v', r') = Com(v + v', r + r'), negative values too."""
    r, s = random_scalar(), random_scalar()
    assert commitment(5, r) + commitment(-8, s) == commitment(-3, r + s)
    assert commitment(5, r) != commitment(6, r)
    assert commitment(5, r) != commitment(5, s)


def test_bits_are_committed_with_what_they_lack_to_one():
    bits = np.array([True, False, False, True])
    left, right = ([Point(row.tobytes()) for row in rows] for rows in vector_bases(4))
    wanted = left[0] + left[3] - right[1] - right[2] + 9 * blinding_base()
    assert bit_commitment(bits, 9) == wanted


def test_inverses():
    scalars = [random_scalar() for _ in range(9)]
    assert inverses(scalars) == [inverse(s) for s in scalars]
    assert all(s * inverse(s) % ORDER == 1 for s in scalars)


@pytest.mark.parametrize(
    "data", [b"", b"\x02" * 33, bytes(33), b"\x04" + bytes(64), b"\x02" + b"\xff" * 32]
)
def test_bytes_that_are_no_point(data):
    if data == b"\x02" * 33:
        assert decoded(data).encoded() == data
        return
    with pytest.raises(RemoteProtocolError, match=f"{len(data)} bytes are no point"):
        decoded(data)


def test_bytes_that_are_no_scalar():
    assert decoded_scalar(encoded_scalar(ORDER - 1)) == ORDER - 1
    for data in (bytes(31), ORDER.to_bytes(32, "big")):
        with pytest.raises(RemoteProtocolError, match="no scalar"):
            decoded_scalar(data)


def test_tables_refuse_what_they_cannot_hold():
    with pytest.raises(LocalProtocolError, match="identity"):
        table([Point()])
    with pytest.raises(LocalProtocolError, match="1 points have 2 scalars"):
        weighted_sum(table([generator()]), [1, 2])
    assert subset_sum(table([generator()]), np.array([], np.int64)) == Point()


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    library.cache_clear()
    monkeypatch.setitem(sys.modules, "coincurve._libsecp256k1", None)
    with pytest.raises(ConfigError, match=r"pip install 'bruit\[verify\]'"):
        library()
    monkeypatch.undo()
    library.cache_clear()
    assert library().lib is not None
