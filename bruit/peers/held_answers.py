"""Answers that take whole units of time: how long one took does not show how many records were in it,
nor what noise was drawn (silo:SILO-2).

    from the input until anything leaves:   a whole number of units, as few as fit

The peer does nothing else meanwhile, so that neither its messages nor its silence tells more.
"""

from __future__ import annotations

import time


def hold(began: float, unit: float) -> None:
    """Wait until a whole number of units is over since then, by the machine's clock; 0: not at all."""
    if unit > 0:
        time.sleep(unit - (time.monotonic() - began) % unit)
