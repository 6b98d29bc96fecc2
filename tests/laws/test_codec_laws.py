"""Laws of the codec: what was said is what is heard, and any bytes raise RemoteProtocolError or
nothing."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import RemoteProtocolError
from bruit.peers.wire import wire_pb2
from bruit.peers.wire.codec import (
    CONTROL,
    KINDS,
    MOST,
    Conversation,
    Frame,
    Limits,
    decode,
    encode,
    like,
)

TALK = Conversation("ab" * 32, "gossip-sgd", 3)
SMALL = Limits(bytes=4096)
MESSAGES = [kind for kind in KINDS if kind not in CONTROL]


class Pair(NamedTuple):
    model: np.ndarray
    flags: np.ndarray


shapes = st.lists(st.integers(0, 4), max_size=3).map(lambda sides: (1, *sides))
floats = shapes.flatmap(
    lambda shape: arrays(
        np.float64, shape, elements=st.floats(allow_nan=False, allow_infinity=False)
    )
)
integers = shapes.flatmap(lambda shape: arrays(np.int64, shape))
booleans = shapes.flatmap(lambda shape: arrays(np.bool_, shape))
columns = st.one_of(floats, integers, booleans)
rows = st.one_of(st.none(), columns, st.builds(Pair, columns, columns))
places = st.integers(0, MOST)
frames = st.builds(
    lambda kind, number, row, sequence, acknowledged: (
        Frame.of(TALK, sequence, Envelope(kind, number, row), acknowledged),
        row,
    ),
    st.sampled_from(MESSAGES),
    places,
    rows,
    st.integers(1, MOST),
    places,
)


def same(a, b):
    """Equal to the bit, in type and in shape."""
    if a is None or b is None:
        return a is b
    if isinstance(a, tuple):
        return type(a) is type(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(frames)
def test_what_was_said_is_what_is_heard(pair):
    frame, row = pair
    heard = decode(encode(frame), TALK)
    assert heard.conversation == TALK
    assert (heard.sequence, heard.kind, heard.number, heard.acknowledged) == (
        frame.sequence,
        frame.kind,
        frame.number,
        frame.acknowledged,
    )
    envelope = heard.envelope(row)
    assert (envelope.kind, envelope.number) == (frame.kind, frame.number)
    assert same(envelope.row, row)
    assert encode(heard) == encode(frame)


@given(frames, rows)
def test_a_row_is_taken_only_where_its_own_type_is_due(pair, example):
    frame, row = pair
    alike = (row is None) == (example is None) and type(row) is type(example)
    if alike and row is not None:
        parts = zip(row, example, strict=True) if isinstance(row, tuple) else [(row, example)]
        alike = all(a.dtype == b.dtype and a.shape == b.shape for a, b in parts)
    fields = decode(encode(frame), TALK).fields
    if alike:
        assert same(like(example, fields), row)
    else:
        with pytest.raises(RemoteProtocolError):
            like(example, fields)


def only_remote_errors(data, limits=SMALL):
    """Decode; a frame that comes out must be one that could have been sent."""
    try:
        frame = decode(data, TALK, limits)
    except RemoteProtocolError:
        return
    assert frame.kind in KINDS
    assert all(field.values.shape[0] == 1 for field in frame.fields)
    encode(frame)


@given(st.binary(max_size=200))
@settings(max_examples=400)
def test_any_bytes_raise_only_remote_errors(data):
    only_remote_errors(data)


@given(frames, st.data())
@settings(max_examples=400)
def test_damaged_frames_raise_only_remote_errors(pair, data):
    good = bytearray(encode(pair[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(good) - 1, 0)))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "double"]))
        if how == "flip" and good:
            good[place] ^= data.draw(st.integers(1, 255))
        elif how == "cut":
            del good[place:]
        elif how == "insert":
            good[place:place] = data.draw(st.binary(max_size=8))
        else:
            good += good[place:]
    only_remote_errors(bytes(good))


texts = st.one_of(
    st.sampled_from(["float64", "int64", "bool", "", "round", "gossip-sgd", "object"]),
    st.text(max_size=5),
)
words = st.integers(0, 2**64 - 1)
wild_fields = st.builds(
    lambda name, dtype, shape, data: wire_pb2.Field(name=name, dtype=dtype, shape=shape, data=data),
    texts,
    texts,
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1)), max_size=6),
    st.one_of(st.binary(max_size=40), st.integers(0, 5).map(lambda k: b"\0" * 8 * k)),
)
wild_frames = st.builds(
    lambda sender, sequence, kind, number, fields, acknowledged: wire_pb2.Frame(
        run_id=b"\xab" * 32,
        algorithm="gossip-sgd",
        sender=sender,
        sequence=sequence,
        kind=kind,
        number=number,
        fields=fields,
        acknowledged=acknowledged,
    ),
    st.sampled_from([3, 4]),
    words,
    st.one_of(st.sampled_from(KINDS), texts),
    words,
    st.lists(wild_fields, max_size=4),
    words,
)


@pytest.mark.slow
@given(wild_frames)
@settings(max_examples=400)
def test_well_formed_lies_raise_only_remote_errors(message):
    only_remote_errors(message.SerializeToString())
