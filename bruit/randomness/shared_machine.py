"""Machines that others use too: real noise is never drawn there.

Whoever runs a cluster can read the memory of its workers, and with it the key of secure dice. So a
worker of a cluster says so once, and from then on `Secure` refuses: in this process, and in all
that it begins, which inherit its environment.
"""

from __future__ import annotations

import os

from bruit.errors import PrivacyError

DECLARED = "BRUIT_SHARED_MACHINE"


def declare_shared(where: str) -> None:
    """From now on this process is on a machine that others use too."""
    os.environ[DECLARED] = where


def refuse_if_shared() -> None:
    """Refuses to draw what nobody else may know."""
    where = os.environ.get(DECLARED)
    if where:
        raise PrivacyError(
            f"real noise was to be drawn {where}, where others can read it; clusters simulate"
            " (Replay), and real peers draw their noise at home"
        )
