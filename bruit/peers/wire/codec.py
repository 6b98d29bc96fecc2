"""Frames: what one peer says to another, as bytes and back.

A frame is a header (run, algorithm, sender, places) and the payload row as raw little-endian
arrays. Bytes from outside may raise RemoteProtocolError and nothing else, whatever they are; what
this side must never send (a number that is not finite, a type nobody agreed on) raises
LocalProtocolError before it leaves. Sizes are checked before anything is built from them, so a
small frame cannot ask for a large memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from bruit.algorithms.schedules.machine import Envelope, Kind
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.peers.wire import wire_pb2

SERVICE, METHOD = "bruit.Peer", "Talk"
CONTROL = (
    "hello",
    "ack",
    "bye",
)  # of the connection, not of the algorithm: no place among the messages, no payload
KINDS = (*get_args(Kind), *CONTROL)
HEADER = (
    4096  # bytes of a frame that are not its row: names, numbers and lengths, with room to spare
)
MOST = 2**63 - 1  # what a signed 64-bit integer holds, here and in the journal
DTYPES = {
    "float64": np.dtype("<f8"),
    "int64": np.dtype("<i8"),
    "bool": np.dtype("?"),
    "uint8": np.dtype("u1"),
    "uint64": np.dtype("<u8"),
}
VARINT, BYTES = 0, 2  # the wire types of protobuf that wire.proto uses
FRAME_TAGS = {
    1: BYTES,
    2: BYTES,
    3: VARINT,
    4: VARINT,
    5: BYTES,
    6: VARINT,
    7: BYTES,
    8: VARINT,
    9: BYTES,
    10: BYTES,
}
FIELD_TAGS = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES}
FIELDS_TAG, SHAPE_TAG = 7, 3
STAMP_BYTES = 32  # of the proof that a sender gives itself, see `bruit.peers.wire.stamps`


@dataclass(frozen=True)
class Limits:
    """How large a frame may be: in bytes, in arrays, and in axes of an array."""

    bytes: int = 64 * 2**20
    fields: int = 16
    dimensions: int = 4


USUAL = Limits()


@dataclass(frozen=True)
class Conversation:
    """What every frame of one direction repeats: the run (64 hexadecimal digits), the algorithm,
    and who speaks."""

    run_id: str
    algorithm: str
    sender: int


class Field(NamedTuple):
    """One array of a payload row; the name is empty when the row is that array itself."""

    name: str
    values: NDArray[Any]  # (1, ...)


@dataclass(frozen=True, eq=False, kw_only=True)
class Frame:
    """One message on the wire; `sequence` is its place among the sender's messages to this
    receiver, from 1.

    `acknowledged` says that all messages up to that one are in the sender's journal. `stamp` is the
    sender's own proof that it has sent this message; who receives it cannot read it, and shows it
    back as the `echo` of a receipt.
    """

    conversation: Conversation
    sequence: int
    kind: str
    number: int = 0
    fields: tuple[Field, ...] = ()
    acknowledged: int = 0
    stamp: bytes = b""
    echo: bytes = b""

    @classmethod
    def of(
        cls,
        conversation: Conversation,
        sequence: int,
        envelope: Envelope,
        acknowledged: int = 0,
        stamp: bytes = b"",
    ) -> Frame:
        """The frame that carries an envelope."""
        return cls(
            conversation=conversation,
            sequence=sequence,
            kind=envelope.kind,
            number=envelope.number,
            fields=fields_of(envelope.row),
            acknowledged=acknowledged,
            stamp=stamp,
        )

    def envelope(self, example: Any) -> Envelope:
        """The envelope it carries, its row cast to the type of `example` (None for an empty
        payload)."""
        if self.kind in CONTROL:
            raise RemoteProtocolError(f"a frame of kind {self.kind!r} carries no message")
        return Envelope(cast(Kind, self.kind), self.number, like(example, self.fields))


def fields_of(row: Any) -> tuple[Field, ...]:
    """The arrays of a payload row: none, the row itself, or the parts of a NamedTuple in order."""
    if row is None:
        return ()
    if isinstance(row, np.ndarray):
        return (Field("", row),)
    names = getattr(type(row), "_fields", None)
    if names is None or not all(isinstance(part, np.ndarray) for part in row):
        raise LocalProtocolError(
            f"a payload is an array or a NamedTuple of arrays, found {type(row).__name__}"
        )
    return tuple(Field(name, part) for name, part in zip(names, row, strict=True))


def like(example: Any, fields: tuple[Field, ...]) -> Any:
    """One payload row of the same type as `example`, whose names, types and widths must be the
    fields' exactly."""
    expected = fields_of(example)
    if len(fields) != len(expected):
        raise RemoteProtocolError(
            f"a payload of {len(fields)} arrays came where {len(expected)} were due"
        )
    for field, due in zip(fields, expected, strict=True):
        if field.name != due.name:
            raise RemoteProtocolError(
                f"an array named {field.name[:40]!r} came where {due.name!r} was due"
            )
        shape = (1, *due.values.shape[1:])
        if field.values.dtype != due.values.dtype or field.values.shape != shape:
            raise RemoteProtocolError(
                f"the array {due.name!r} came as {field.values.dtype} {field.values.shape} where "
                f"{due.values.dtype} {shape} was due"
            )
    if example is None:
        return None
    arrays = [field.values for field in fields]
    return arrays[0] if isinstance(example, np.ndarray) else type(example)(*arrays)


def frame_bytes(example: Any) -> int:
    """No frame of a run is longer whose rows have the types and widths of `example`."""
    row = [
        np.zeros((1, *field.values.shape[1:]), field.values.dtype).nbytes
        for field in fields_of(example)
    ]
    return sum(row) + HEADER


def encode(frame: Frame, limits: Limits = USUAL) -> bytes:
    """The bytes of a frame."""
    return b"".join(encode_parts(frame, None, limits))


def encode_parts(
    frame: Frame, body: bytes | None = None, limits: Limits = USUAL
) -> tuple[bytes, bytes]:
    """The bytes of a frame as (head, body), to be sent one after the other; the body is the payload
    alone.

    Whoever says the same row to several others gives the body back and has only the head made anew.
    """
    for name, value in (
        ("sequence", frame.sequence),
        ("number", frame.number),
        ("acknowledged", frame.acknowledged),
    ):
        if type(value) is not int or not 0 <= value <= MOST:
            raise LocalProtocolError(
                f"the {name} of a frame must be an integer in 0..2**63 - 1, found {value!r}"
            )
    try:
        _check(frame, limits)
        head = wire_pb2.Frame(
            run_id=bytes.fromhex(frame.conversation.run_id),
            algorithm=frame.conversation.algorithm,
            sender=frame.conversation.sender,
            sequence=frame.sequence,
            kind=frame.kind,
            number=frame.number,
            acknowledged=frame.acknowledged,
            stamp=frame.stamp,
            echo=frame.echo,
        ).SerializeToString(deterministic=True)
        if body is None:
            fields = [_pack(field, limits) for field in frame.fields]
            body = wire_pb2.Frame(fields=fields).SerializeToString(deterministic=True)
    except (RemoteProtocolError, ValueError, TypeError) as error:
        raise LocalProtocolError(
            f"this peer was about to send a frame nobody may accept: {error}"
        ) from error
    size = len(head) + len(body)
    if size > limits.bytes:
        raise LocalProtocolError(
            f"this peer was about to send {size} bytes, more than the {limits.bytes} allowed"
        )
    return head, body


def decode(data: bytes, conversation: Conversation, limits: Limits = USUAL) -> Frame:
    """The frame that `data` spells, if it belongs to this conversation; otherwise
    RemoteProtocolError."""
    if len(data) > limits.bytes:
        raise RemoteProtocolError(
            f"a frame of {len(data)} bytes came, more than the {limits.bytes} allowed"
        )
    _survey(data, limits)
    try:
        message = wire_pb2.Frame.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"{len(data)} bytes came that are no frame ({error})") from error
    said = Conversation(message.run_id.hex(), message.algorithm, message.sender)
    for name, found, due in (
        ("run", said.run_id, conversation.run_id.lower()),
        ("algorithm", said.algorithm, conversation.algorithm),
        ("sender", said.sender, conversation.sender),
    ):
        if found != due:
            shown = found[:64] if isinstance(found, str) else found
            raise RemoteProtocolError(
                f"a frame says {name} {shown!r} where {due!r} is spoken; check that everyone "
                f"uses the same address book, experiment and version"
            )
    fields = tuple(_unpack(field, limits) for field in message.fields)
    frame = Frame(
        conversation=conversation,
        sequence=message.sequence,
        kind=message.kind,
        number=message.number,
        fields=fields,
        acknowledged=message.acknowledged,
        stamp=message.stamp,
        echo=message.echo,
    )
    _check(frame, limits)
    return frame


def stamp_of(data: bytes) -> bytes:
    """The stamp in a message of this peer's own making."""
    return wire_pb2.Frame.FromString(data).stamp


def _check(frame: Frame, limits: Limits) -> None:
    """What is true of every frame, whoever made it."""
    if frame.kind not in KINDS:
        raise RemoteProtocolError(f"a frame of unknown kind {frame.kind[:40]!r}")
    if max(frame.sequence, frame.number, frame.acknowledged) > MOST:
        raise RemoteProtocolError("a frame is numbered beyond 2**63 - 1")
    if len(frame.stamp) not in (0, STAMP_BYTES) or len(frame.echo) not in (0, STAMP_BYTES):
        found = len(frame.stamp) or len(frame.echo)
        raise RemoteProtocolError(f"a stamp of {found} bytes came where {STAMP_BYTES} are due")
    if len(frame.fields) > limits.fields:
        raise RemoteProtocolError(
            f"a frame of {len(frame.fields)} arrays, more than the {limits.fields} allowed"
        )
    if frame.kind in CONTROL and (frame.fields or frame.sequence or frame.stamp):
        raise RemoteProtocolError(
            f"a frame of kind {frame.kind!r} with a payload or a place among the messages"
        )
    if frame.kind not in CONTROL and not frame.sequence:
        raise RemoteProtocolError(
            f"a frame of kind {frame.kind!r} without a place among the messages"
        )


def _pack(field: Field, limits: Limits) -> wire_pb2.Field:
    values = field.values
    name = values.dtype.name
    if name not in DTYPES:
        raise LocalProtocolError(
            f"an array of type {values.dtype} cannot be sent; use {', '.join(DTYPES)}"
        )
    _check_shape(values.shape, DTYPES[name].itemsize, limits)
    _check_finite(values)
    data = np.ascontiguousarray(values, DTYPES[name]).tobytes()
    return wire_pb2.Field(name=field.name, dtype=name, shape=values.shape, data=data)


def _unpack(field: wire_pb2.Field, limits: Limits) -> Field:
    dtype = DTYPES.get(field.dtype)
    if dtype is None:
        raise RemoteProtocolError(
            f"an array of type {field.dtype[:40]!r}; only {', '.join(DTYPES)} are spoken"
        )
    shape = tuple(field.shape)
    _check_shape(shape, dtype.itemsize, limits)
    if math.prod(shape) * dtype.itemsize != len(field.data):
        raise RemoteProtocolError(
            f"an array of shape {shape} and type {field.dtype} came with {len(field.data)} bytes"
        )
    if field.dtype == "bool" and field.data.translate(None, b"\x00\x01"):
        raise RemoteProtocolError("an array of booleans holds something that is neither 0 nor 1")
    values = (
        np.frombuffer(field.data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    )  # a copy one may write to
    _check_finite(values)
    return Field(field.name, values)


def _check_shape(shape: tuple[int, ...], itemsize: int, limits: Limits) -> None:
    if not 1 <= len(shape) <= limits.dimensions or shape[0] != 1:
        raise RemoteProtocolError(
            f"an array of shape {shape}: one row, of at most {limits.dimensions} axes, is due"
        )
    # Axes of length zero are left out: an array without content may still span more than numpy can
    # address.
    if math.prod(side for side in shape if side) * itemsize > limits.bytes:
        raise RemoteProtocolError(
            f"an array of shape {shape} is larger than the {limits.bytes} bytes allowed"
        )


def _check_finite(values: NDArray[Any]) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise RemoteProtocolError("an array holds a number that is not finite")


def _survey(data: bytes, limits: Limits) -> None:
    """Walk over the tags before protobuf builds anything.

    Two bytes make an empty field of a few hundred bytes of memory, so the parser alone would let 64
    MiB become gigabytes. Every tag must be one of wire.proto's and come once, except `fields`, at
    most limits.fields times.
    """
    for start, end in _walk(data, 0, len(data), FRAME_TAGS, (FIELDS_TAG, limits.fields)):
        for first, last in _walk(data, start, end, FIELD_TAGS, (SHAPE_TAG, 1)):
            if last - first > 5 * limits.dimensions:
                raise RemoteProtocolError(
                    f"an array of more than the {limits.dimensions} axes allowed"
                )


def _walk(
    data: bytes, at: int, end: int, tags: dict[int, int], wanted: tuple[int, int]
) -> list[tuple[int, int]]:
    """The extents of the wanted part, (number, how often at most), of one protobuf message; others
    come once."""
    found: list[tuple[int, int]] = []
    seen = 0  # a bit for every number that came
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if tags.get(number) != kind:
            raise RemoteProtocolError(f"{len(data)} bytes came that are no frame (tag {tag})")
        allowed = wanted[1] if number == wanted[0] else 1
        if len(found) >= allowed if number == wanted[0] else seen >> number & 1:
            raise RemoteProtocolError(
                f"a frame repeats its part {number} more often than the {allowed} times allowed"
            )
        seen |= 1 << number
        value, after = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at, end)
        start, at = (after, after + value) if kind == BYTES else (at, after)
        if at > end:
            raise RemoteProtocolError(f"a frame is cut short: {at - end} bytes are missing")
        if number == wanted[0]:
            found.append((start, at))
    return found


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A protobuf integer, seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= end:
            raise RemoteProtocolError("a frame is cut short in the middle of a number")
        byte = data[at]
        value, at = value | (byte & 127) << shift, at + 1
        if byte < 128:
            return value, at
    raise RemoteProtocolError("a frame holds a number of more than 64 bits")
