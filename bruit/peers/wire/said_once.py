"""Said once: the operator hears of a trouble when it begins, and then from time to time how often
it came again.

Whoever is refused tries again, and a flood of refusals must not become a flood of lines in a log.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

AGAIN = 60.0  # seconds until the same trouble is worth a line again
TROUBLES = 1024  # that are told apart; of more, those not heard of for longest are forgotten


@dataclass
class SaidOnce:
    """A log that tells troubles apart by a key, such as (peer, kind of refusal)."""

    log: logging.Logger
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[tuple[object, ...], tuple[float, int]] = field(default_factory=OrderedDict)

    def warn(self, key: tuple[object, ...], text: str, *words: object) -> None:
        """One line at first, then one line a minute at most, with the number of those in
        between."""
        now = self.clock()
        when, more = self._known.pop(key, (now - AGAIN, 0))
        if now - when < AGAIN:
            self._known[key] = (when, more + 1)
            self.log.debug(text, *words)
            return
        self._known[key] = (now, 0)
        if len(self._known) > TROUBLES:
            self._known.popitem(last=False)
        if more:
            self.log.warning(f"{text}, and %d more like this before", *words, more)
        else:
            self.log.warning(text, *words)
