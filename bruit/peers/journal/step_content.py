"""The content of one step of a journal, as bytes: what came in, what goes out, what others have
confirmed.

One row of the database per step costs one statement instead of one per line. A message is a head
and a body, and a body that goes to several receivers is kept once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

COUNTS = struct.Struct("<IIII")
INPUT = struct.Struct(
    "<HqqBI"
)  # length of the kind, sender, sequence, lengths of the stamp and of the payload
MESSAGE = struct.Struct("<qqII")  # receiver, sequence, place of its body, length of the head
LENGTH = struct.Struct("<I")
PAIR = struct.Struct("<qq")

Words = tuple[
    str, int, int, bytes, bytes
]  # kind, sender, sequence, payload, the stamp it came with


class StoredMessage(NamedTuple):
    """A message to one receiver; the bytes that leave are head + body."""

    receiver: int
    sequence: int
    head: bytes
    body: bytes

    @property
    def data(self) -> bytes:
        return self.head + self.body


class Content(NamedTuple):
    """What one step holds, without its ledger lines."""

    inputs: list[Words]
    messages: list[StoredMessage]
    acknowledged: dict[int, int]  # by receiver


def pack(
    inputs: Iterable[Words], messages: Iterable[StoredMessage], acknowledged: Mapping[int, int]
) -> bytes:
    """The bytes of one step."""
    places: dict[int, int] = {}  # by identity: a broadcast shares its body
    bodies: list[bytes] = []
    heads: list[bytes] = []
    said: list[bytes] = []
    for kind, sender, sequence, payload, stamp in inputs:
        name = kind.encode()
        said += (
            INPUT.pack(len(name), sender, sequence, len(stamp), len(payload)),
            name,
            stamp,
            payload,
        )
    for receiver, sequence, head, body in messages:
        if id(body) not in places:
            places[id(body)] = len(bodies)
            bodies.append(body)
        heads += (MESSAGE.pack(receiver, sequence, places[id(body)], len(head)), head)
    confirmed = [PAIR.pack(*pair) for pair in acknowledged.items()]
    counts = COUNTS.pack(len(said) // 4, len(bodies), len(heads) // 2, len(confirmed))
    kept = [part for body in bodies for part in (LENGTH.pack(len(body)), body)]
    return b"".join((counts, *said, *kept, *heads, *confirmed))


def unpack(content: bytes) -> Content:
    """The step that `pack` made these bytes from; whoever reads them has checked their seal."""
    inputs, bodies, messages, confirmed = COUNTS.unpack_from(content)
    at, found = COUNTS.size, Content([], [], {})

    def part(length: int) -> bytes:
        nonlocal at
        at += length
        return content[at - length : at]

    for _ in range(inputs):
        name, sender, sequence, stamp, payload = INPUT.unpack(part(INPUT.size))
        kind, shown = part(name).decode(), part(stamp)
        found.inputs.append((kind, sender, sequence, part(payload), shown))
    kept = [part(LENGTH.unpack(part(LENGTH.size))[0]) for _ in range(bodies)]
    for _ in range(messages):
        receiver, sequence, place, head = MESSAGE.unpack(part(MESSAGE.size))
        found.messages.append(StoredMessage(receiver, sequence, part(head), kept[place]))
    for _ in range(confirmed):
        receiver, sequence = PAIR.unpack(part(PAIR.size))
        found.acknowledged[receiver] = sequence
    return found
