"""A peer that is held: where `hold.txt` beside its site names a step, it comes so far and stands
still.

It then hears nothing more, and its clock stops, so nobody is missed meanwhile. Its lines, its ears
and its status go on. So a test stops, kills or cuts off peers where it means to, however fast or
slow the machine is. A round that was heard in whole may still be closed: a peer stops at most two
steps later.
"""

import asyncio
import math
import time
from pathlib import Path

from bruit.peers.host import Host

next_message = Host._next_message


def limit(place):
    """The step to stop at; half a file, while it is written, holds too."""
    try:
        return int(place.read_text() or 0)
    except FileNotFoundError:
        return math.inf


async def held(self):
    place, before = Path(self.journal.path).parents[1] / "hold.txt", time.monotonic()
    while not self._stop.is_set() and self.machine.count >= limit(place):
        await asyncio.sleep(0.01)
    if self.clock.paused is None:
        self.clock.stood_still_since(before)
    return await next_message(self)


def change():
    Host._next_message = held
