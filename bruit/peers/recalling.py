"""Recalling: how a host that starts again becomes what it was, and how it keeps its journal short
meanwhile.

The last snapshot is read, and the inputs since then are executed again: the same state, the same
noise, the same spend, or the host refuses to go on. A snapshot is taken when the inputs since the
last one outweigh it several times.

Then a new life begins. Its first input, before anything else, is a fresh key of the operating
system for the dice that hide things: noise, and choices of the peer's own. Executed again it is the
same key at the same place, so that what was released is what comes out; but nothing that is new
after a start shares a number with anything drawn before, even if the journal is an old copy and
does not know of it. Rehearsals have dice that replay, and no such key.

Words that were masked cannot be made again, because the key of a start that masks them is in no
file (`agreed_masks`). They are in the journal before the input that caused them, and said again as
they are.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.algorithms.task_door import TaskDoor
from bruit.errors import LocalProtocolError, PrivacyError
from bruit.peers.journal.snapshots import freeze, thaw
from bruit.peers.journal.step import Input
from bruit.peers.wire.codec import decode
from bruit.privacy.events import from_json
from bruit.randomness import Secure

if TYPE_CHECKING:
    from bruit.peers.host import Host

log = logging.getLogger("bruit.peers")
TIME = struct.Struct("<d")
# what a snapshot keeps beside the machine's memory, and where it is: parts and fields of a host
REMEMBERED = {
    "met": "met",
    "absent": "absences.of",
    "skipped": "absences.skipped",
    "skipped_for": "absences.skipped_for",
    "_gone": "absences.gone",
    "sent": "speech.sent",
    "payloads": "speech.payloads",
    "payload_bytes": "speech.payload_bytes",
    "receipts": "speech.receipts",
    "_alarms": "clock.alarms",
    "_alarm_count": "clock.alarm_count",
    "_behind": "clock.behind",
    "_bound": "clock.bound",
}
STARTS = -1  # whose inputs the keys of the starts are: no peer's
OUTWEIGH = 4  # how many times the inputs are larger than the snapshot that replaces them, at least


def recall(host: Host) -> None:
    """At every start: execute what the journal holds again, check that it cost what it had cost,
    and begin a life."""
    kept = host.journal.latest_snapshot()
    if kept is not None:
        _resume(host, thaw(kept, {type(host.machine.seat.algorithm).__module__}))
        host.enough = max(host.settings.kept, OUTWEIGH * len(kept))
    for known in host.journal.inputs():
        _again(host, known)
    spent = [(line.peer, line.step, line.clock, line.event) for line in host.journal.spent()]
    columns = [host.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    again = [
        (p, s, c, host.ledger.events[e].to_json()) for p, s, c, e in zip(*columns, strict=True)
    ]
    if spent != again:
        raise PrivacyError(
            f"the inputs in {host.journal.path}, executed again, spend otherwise than its ledger "
            f"says ({len(again)} and {len(spent)} lines): refusing to go on; use the version that "
            f"began the run"
        )
    _begin_life(host)


def _begin_life(host: Host) -> None:
    """A key of its own for the dice of this start, committed before anything is drawn."""
    if not isinstance(host.machine.seat.dice, Secure):
        return
    key = os.urandom(16)
    with host.journal.step() as step:
        step.input("start", STARTS, step.last_sequence(STARTS) + 1, key)
    _take_key(host, key)


def _take_key(host: Host, key: bytes) -> None:
    dice = host.machine.seat.dice
    if not key or not isinstance(dice, Secure):
        return
    dice.rekey(key)
    host.key = key
    host.speech.life = hashlib.blake2b(key, digest_size=8, person=b"bruit life").digest()


def _again(host: Host, known: Input) -> None:
    """Execute a committed input again."""
    if known.kind == "refused":
        host.refused["message"] += 1
        if known.payload == b"own":
            host._own.pop(0)
        return
    if known.kind == "start":
        _take_key(host, known.payload)
        return
    if known.kind == "words":
        frame = decode(known.payload, host._voice(host.me), host.limits)
        host.machine.recite(frame.envelope(host.machine.row_of(frame.kind)))
        return
    now, payload = TIME.unpack(known.payload[:8])[0], known.payload[8:]
    host.clock.show(now)
    if known.kind == "own":
        host._own.pop(0)
    if known.kind == "alarm":
        alarm, number = payload.decode().split(":")
        host.clock.take_alarm(
            min(entry for entry in host.clock.alarms if entry[2:] == (alarm, int(number))), now
        )
    host._carry_out(host._react(known.kind, known.sender, now, payload), None)
    host.count_meeting_time(known.kind, now)
    host._spent = host.ledger.calls


def _resume(host: Host, memory: dict[str, Any]) -> None:
    """As a snapshot says; the ledger lines of that time are in the journal."""
    if set(memory["host"]) != set(REMEMBERED):
        raise LocalProtocolError(
            f"the snapshot in {host.journal.path} was written by another version of bruit, which"
            " remembers other things: use the version that began the run"
        )
    host.machine.resume(memory["machine"])
    _take_key(host, bytes.fromhex(memory["key"]))
    for name, place in REMEMBERED.items():
        part, _, field = place.rpartition(".")
        setattr(attrgetter(part)(host) if part else host, field, memory["host"][name])
    host.refused.update({"message": memory["refused"]} if memory["refused"] else {})
    if isinstance(door := host.machine.seat.door, TaskDoor):
        door.left_out.extend(memory["left_out"])
    host.clock.show(memory["now"])
    for line in host.journal.spent()[: memory["spent"]]:
        peer, step, clock = (np.array([number]) for number in line[:3])
        host.ledger.record(peer, step, clock, from_json(line.event))
    host._spent = host.ledger.calls


def keep(host: Host) -> None:
    """Take a snapshot, when the journal has grown enough, of a host that owes nothing to itself and
    is not done."""
    if host.journal.volume < host.enough or host._own or host.done:
        return
    memory = {
        "machine": host.machine.memory(),
        "host": {name: attrgetter(place)(host) for name, place in REMEMBERED.items()},
        "refused": host.refused["message"],
        "now": host.clock.now(),
        "spent": len(host.ledger),
        "left_out": list(host.left_out),
        "key": host.key.hex(),
    }
    try:
        state = freeze(memory)
    except LocalProtocolError as error:
        log.info("the journal keeps all inputs: %s", error)
        host.enough = 2**63
        return
    host.journal.snapshot(state)
    host.enough = max(host.settings.kept, OUTWEIGH * len(state))
