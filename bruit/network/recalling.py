"""Recalling: how a host that starts again becomes what it was, and how it keeps its journal short meanwhile.

The last snapshot is read, and the inputs since then are executed again: the same state, the same noise, the same
spend, or the host refuses to go on. A snapshot is taken when the inputs since the last one outweigh it several times.
"""

from __future__ import annotations

import logging
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.algorithms.home import TaskDoor
from bruit.errors import LocalProtocolError, PrivacyError
from bruit.network.journal import Input
from bruit.network.snapshots import freeze, thaw
from bruit.privacy.events import from_json

if TYPE_CHECKING:
    from bruit.network.host import Host

log = logging.getLogger("bruit.network")
TIME = struct.Struct("<d")
REMEMBERED = (  # and the machine's memory
    "meetings", "missed", "skipped", "skipped_for", "sent", "payloads", "payload_bytes", "_alarms", "_alarm_count",
    "_behind", "_bound", "_gone", "receipts",
)  # fmt: skip
OUTWEIGH = 4  # how many times the inputs are larger than the snapshot that replaces them, at least


def recall(host: Host) -> None:
    """After a restart: execute what the journal holds again, and check that it cost what it had cost."""
    kept = host.journal.latest_snapshot()
    if kept is not None:
        _resume(host, thaw(kept, {type(host.machine.seat.algorithm).__module__}))
        host.enough = max(host.settings.kept, OUTWEIGH * len(kept))
    for known in host.journal.inputs():
        _again(host, known)
    spent = [(line.peer, line.step, line.clock, line.event) for line in host.journal.spent()]
    columns = [host.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    again = [(p, s, c, host.ledger.events[e].to_json()) for p, s, c, e in zip(*columns, strict=True)]
    if spent != again:
        raise PrivacyError(f"the inputs in {host.journal.path}, executed again, spend otherwise than its ledger "
                           f"says ({len(again)} and {len(spent)} lines): refusing to go on; use the version that "
                           f"began the run")  # fmt: skip


def _again(host: Host, known: Input) -> None:
    """Execute a committed input again."""
    if known.kind == "refused":
        host.refused["message"] += 1
        return
    now, payload = TIME.unpack(known.payload[:8])[0], known.payload[8:]
    host._began = time.monotonic() - now
    if known.kind == "own":
        host._own.pop(0)
    if known.kind == "alarm":
        alarm, number = payload.decode().split(":")
        host.take_alarm(min(entry for entry in host._alarms if entry[2:] == (alarm, int(number))), now)
    host._carry_out(host._react(known.kind, known.sender, now, payload), None)
    host.count_meeting_time(known.kind, now)
    host._spent = host.ledger.calls


def _resume(host: Host, memory: dict[str, Any]) -> None:
    """As a snapshot says; the ledger lines of that time are in the journal."""
    host.machine.resume(memory["machine"])
    vars(host).update(memory["host"])
    host.refused.update({"message": memory["refused"]} if memory["refused"] else {})
    if isinstance(door := host.machine.seat.door, TaskDoor):
        door.left_out.extend(memory["left_out"])
    host._began = time.monotonic() - memory["now"]
    for line in host.journal.spent()[: memory["spent"]]:
        peer, step, clock = (np.array([number]) for number in line[:3])
        host.ledger.record(peer, step, clock, from_json(line.event))
    host._spent = host.ledger.calls


def keep(host: Host) -> None:
    """Take a snapshot, when the journal has grown enough, of a host that owes nothing to itself and is not done."""
    if host.journal.volume < host.enough or host._own or host.done:
        return
    memory = {"machine": host.machine.memory(), "host": {name: vars(host)[name] for name in REMEMBERED},
              "refused": host.refused["message"], "now": host._now(), "spent": len(host.ledger),
              "left_out": list(host.left_out)}  # fmt: skip
    try:
        state = freeze(memory)
    except LocalProtocolError as error:
        log.info("the journal keeps all inputs: %s", error)
        host.enough = 2**63
        return
    host.journal.snapshot(state)
    host.enough = max(host.settings.kept, OUTWEIGH * len(state))
