"""Broken rules: what kinds there are, and who is named for one."""

from __future__ import annotations

from dataclasses import dataclass

from bruit.errors import RemoteProtocolError

PROVEN, UNEXPLAINED, LATE, REFUSED = (
    "non-canceling pair",
    "unexplained pair",
    "late",
    "refused opening",
)
NOT_AGREED, NOT_STORED = "no agreement", "refused post"
INNOCENT = (UNEXPLAINED, LATE, REFUSED, NOT_AGREED)
"""Findings about peers that may be honest: a post was on its way when a list was closed, or would
have exposed one."""


@dataclass(frozen=True)
class BoardFinding:
    """One broken rule: by whom (None when no signature tells), what kind, in words, and where on
    the board."""

    peer: int | None
    kind: str
    text: str
    position: int | None = None


class RuleBroken(RemoteProtocolError):
    """A rule of the protocol was broken, by somebody or by nobody that a signature names."""

    def __init__(self, peer: int | None, kind: str, text: str) -> None:
        super().__init__(text)
        self.peer, self.kind = peer, kind
