"""Machines that others use too: real noise is never drawn there.

Whoever runs a cluster can read the memory of its workers, and with it the key of secure dice. So a
worker of a cluster says so once, and from then on `Secure` refuses.
"""

from __future__ import annotations

from bruit.errors import PrivacyError

_WHERE: list[str] = []


def declare_shared(where: str) -> None:
    """From now on this process is on a machine that others use too."""
    _WHERE.append(where)


def refuse_if_shared() -> None:
    """Refuses to draw what nobody else may know."""
    if _WHERE:
        raise PrivacyError(
            f"real noise was to be drawn {_WHERE[-1]}, where others can read it; clusters simulate"
            " (Replay), and real peers draw their noise at home"
        )
