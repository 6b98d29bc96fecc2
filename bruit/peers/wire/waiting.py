"""Waiting: messages of neighbors that have come and were not yet worked on, a short queue for each
neighbor.

A full queue stops the line of that neighbor and of nobody else: what does not fit stays with its
sender, who keeps it in its own journal. Neighbors take turns, one message each. So memory is at
most

    neighbors x EACH messages x the size of a frame,

and nobody waits longer for a turn because another one talks much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bruit.peers.wire.codec import Frame

EACH = 16  # messages of one neighbor that wait here
Item = tuple[int, Frame, bytes]  # who said it, what, and in which bytes


@dataclass
class Waiting:
    """The queues. `held` says whether the first message of a neighbor is of a future that cannot be
    used yet: then it waits, and what follows it too."""

    held: Callable[[int, Frame], bool] = lambda sender, frame: False
    each: int = EACH
    _queues: dict[int, deque[Item]] = field(default_factory=dict)  # in the order of turns
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _room: dict[int, asyncio.Event] = field(default_factory=dict)

    def full(self, sender: int) -> bool:
        return len(self._queues.get(sender, ())) >= self.each

    async def room(self, sender: int) -> None:
        """Until one more message of that neighbor fits; look again afterwards, another line may
        have been faster."""
        while self.full(sender):
            event = self._room.setdefault(sender, asyncio.Event())
            event.clear()
            await event.wait()

    def put(self, item: Item) -> None:
        """Without waiting: ask for `room` before."""
        self._queues.setdefault(item[0], deque()).append(item)
        self._came.set()

    def put_back(self, item: Item) -> None:
        """What was taken and cannot be worked on yet is again the first of its neighbor."""
        self._queues.setdefault(item[0], deque()).appendleft(item)
        self._came.set()

    def _next(self) -> int | None:
        """Whose turn it is."""
        return next(
            (
                sender
                for sender, queue in self._queues.items()
                if queue and not self.held(sender, queue[0][1])
            ),
            None,
        )

    def empty(self) -> bool:
        """Whether nothing can be worked on now."""
        return self._next() is None

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def get_nowait(self) -> Item:
        sender = self._next()
        if sender is None:
            raise asyncio.QueueEmpty
        queue = self._queues.pop(sender)
        item = queue.popleft()
        if queue:
            self._queues[sender] = queue  # at the end of the row
        if sender in self._room:
            self._room[sender].set()
        return item

    async def get(self) -> Item:
        while self.empty():
            self._came.clear()
            await self._came.wait()
        return self.get_nowait()
