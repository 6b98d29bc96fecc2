"""The codec refuses, by name, every frame that is not of the conversation."""

import math
import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.peers.wire import wire_pb2
from bruit.peers.wire.codec import (
    Conversation,
    Field,
    Frame,
    Limits,
    decode,
    encode,
    fields_of,
    like,
)

TALK = Conversation("00ff" * 16, "averaging", 2)
ROW = np.array([[1.5, -2.0]])


class Pair(NamedTuple):
    model: np.ndarray
    count: np.ndarray


def message(**changes):
    """A good frame in protobuf's own hands, with some parts replaced."""
    parts = {
        "run_id": bytes.fromhex(TALK.run_id),
        "algorithm": "averaging",
        "sender": 2,
        "sequence": 1,
        "kind": "round",
        "number": 7,
        "fields": [field()],
        "acknowledged": 0,
    } | changes
    return wire_pb2.Frame(**parts).SerializeToString()


def field(**changes):
    parts = {"name": "", "dtype": "float64", "shape": [1, 2], "data": ROW.tobytes()} | changes
    return wire_pb2.Field(**parts)


def test_the_layout_of_the_bytes_is_the_documented_one():
    read = wire_pb2.Frame.FromString(encode(Frame.of(TALK, 5, Envelope("round", 7, ROW), 4)))
    assert (read.run_id, read.algorithm, read.sender) == (b"\x00\xff" * 16, "averaging", 2)
    assert (read.sequence, read.kind, read.number, read.acknowledged) == (5, "round", 7, 4)
    (array,) = read.fields
    assert (array.name, array.dtype, list(array.shape)) == ("", "float64", [1, 2])
    assert array.data == bytes.fromhex(
        "000000000000f83f00000000000000c0"
    )  # IEEE 754, little endian


def test_a_good_frame_is_read_and_may_be_written_to():
    frame = decode(message(), TALK)
    row = frame.envelope(np.zeros((0, 2))).row
    row += 1
    assert row.tolist() == [[2.5, -1.0]]


def test_named_tuples_keep_their_type_and_order():
    pair = Pair(ROW, np.array([[3]]))
    heard = decode(encode(Frame.of(TALK, 1, Envelope("token", 0, pair))), TALK).envelope(pair).row
    assert type(heard) is Pair
    assert heard.count.tolist() == [[3]]


def test_empty_messages_and_control_frames():
    assert decode(encode(Frame.of(TALK, 1, Envelope("offer", 3))), TALK).envelope(None).row is None
    assert (
        decode(
            encode(Frame(conversation=TALK, sequence=0, kind="ack", acknowledged=9)), TALK
        ).acknowledged
        == 9
    )
    with pytest.raises(RemoteProtocolError, match="'ack' carries no message"):
        decode(encode(Frame(conversation=TALK, sequence=0, kind="ack")), TALK).envelope(None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (message(run_id=b"\x01" * 32), "says run '0101"),
        (message(run_id=b""), "says run ''"),
        (message(algorithm="muffliato"), "says algorithm 'muffliato' where 'averaging'"),
        (message(sender=3), "says sender 3 where 2"),
        (message(kind="shout"), "unknown kind 'shout'"),
        (message(kind=""), "unknown kind"),
        (message(number=2**63), "numbered beyond"),
        (message(sequence=2**64 - 1), "numbered beyond"),
        (message(acknowledged=2**63), "numbered beyond"),
        (message(sequence=0), "'round' without a place"),
        (message(kind="hello"), "'hello' with a payload or a place"),
        (message(fields=[field(dtype="object")]), "type 'object'; only float64, int64, bool"),
        (message(fields=[field(dtype="float32")]), "type 'float32'"),
        (message(fields=[field(shape=[1, 3])]), "came with 16 bytes"),
        (message(fields=[field(shape=[2, 1])]), "one row"),
        (message(fields=[field(shape=[])]), "one row"),
        (message(fields=[field(shape=[1, 1, 1, 1, 2])]), "at most 4 axes"),
        (message(fields=[field(shape=[1] * 30 + [2])]), "more than the 4 axes"),
        (message(fields=[field(shape=[1, 2**32 - 1, 2**32 - 1, 0], data=b"")]), "larger than"),
        (message(fields=[field(shape=[1, 2**31], data=b"")]), "larger than"),
        (message(fields=[field(data=np.array([[1.0, math.nan]]).tobytes())]), "not finite"),
        (message(fields=[field(data=np.array([[math.inf, 0]]).tobytes())]), "not finite"),
        (message(fields=[field(dtype="bool", data=b"\x00\x02")]), "neither 0 nor 1"),
        (message(fields=[field()] * 17), "more often than the 16 times"),
        (message() + message(), "repeats its part 1"),
        (message() + b"\x4a\x01x", "a stamp of 1 bytes came where 32 are due"),
        (message() + b"\x52\x21" + b"x" * 33, "a stamp of 33 bytes came where 32 are due"),
        (message() + b"\x5a\x01x", "no frame"),
        (message()[:-1], "cut short"),
        (b"\xff" * 20, "more than 64 bits"),
        (b"\x80", "middle of a number"),
        (b"", "says run ''"),
        (b"\x12\x02\xff\xfe", "no frame"),
    ],
)
def test_what_does_not_belong_is_refused_by_name(data, words):
    with pytest.raises(RemoteProtocolError, match=words):
        decode(data, TALK)


def test_sizes_are_refused_before_anything_is_built():
    with pytest.raises(RemoteProtocolError, match="101 bytes came, more than the 100 allowed"):
        decode(b"\0" * 101, TALK, Limits(bytes=100))
    many = b"\x3a\x00" * 2**20  # a million empty fields, in 2 MiB
    tracemalloc.start()
    with pytest.raises(RemoteProtocolError, match="more often"):
        decode(many, TALK)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (np.zeros((1, 3)), r"float64 \(1, 2\) where float64 \(1, 3\)"),
        (np.zeros((1, 2), np.int64), "where int64"),
        (None, "1 arrays came where 0"),
        (Pair(ROW, ROW), "1 arrays came where 2"),
    ],
)
def test_a_payload_of_another_type_is_refused(example, words):
    with pytest.raises(RemoteProtocolError, match=words):
        like(example, decode(message(), TALK).fields)


def test_names_of_fields_must_agree():
    with pytest.raises(RemoteProtocolError, match="named 'x' came where 'model'"):
        like(Pair(ROW, ROW), (Field("x", ROW), Field("count", ROW)))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Frame.of(TALK, -1, Envelope("round", 0, ROW)), "sequence of a frame must be an integer"),
        (Frame.of(TALK, 1, Envelope("round", 2**63, ROW)), "number of a frame"),
        (Frame.of(TALK, 1, Envelope("round", 0, ROW * math.nan)), "not finite"),
        (Frame.of(TALK, 1, Envelope("round", 0, ROW.astype(np.float32))), "float32 cannot be sent"),
        (Frame.of(TALK, 1, Envelope("round", 0, np.zeros((2, 2)))), "one row"),
        (Frame.of(TALK, 0, Envelope("round", 0, ROW)), "without a place"),
        (
            Frame(conversation=Conversation("xyz", "averaging", 2), sequence=1, kind="round"),
            "non-hexadecimal",
        ),
        (
            Frame(conversation=Conversation("00", "averaging", -2), sequence=1, kind="round"),
            "nobody may accept",
        ),
    ],
)
def test_nothing_that_would_be_refused_is_sent(frame, words):
    with pytest.raises(LocalProtocolError, match=words):
        encode(frame)


def test_too_large_a_frame_is_not_sent():
    with pytest.raises(LocalProtocolError, match="more than the 60 allowed"):
        encode(Frame.of(TALK, 1, Envelope("round", 0, ROW)), Limits(bytes=60))


def test_payloads_are_arrays():
    with pytest.raises(LocalProtocolError, match="found list"):
        fields_of([1.0])


def test_words_of_64_bits_travel_as_they_are():
    words = np.array([[0, 1, 2**63, 2**64 - 1]], np.uint64)
    sent = encode(Frame.of(TALK, 1, Envelope("speak", 3, words)))
    assert wire_pb2.Frame.FromString(sent).fields[0].data == words.astype("<u8").tobytes()
    read = decode(sent, TALK).envelope(words[:0])
    assert read.row.dtype == np.uint64
    assert np.array_equal(read.row, words)
    with pytest.raises(RemoteProtocolError, match=r"came as uint64 .* where int64"):
        decode(sent, TALK).envelope(words[:0].astype(np.int64))
