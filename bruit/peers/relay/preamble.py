"""The few words between a peer and a relay, one line of ASCII each, before bytes are passed on.

    peer to relay      bruit-relay 1 listen            calls for me come over this line
                       bruit-relay 1 call FINGERPRINT  connect me with that peer
                       bruit-relay 1 take TOKEN        here I am for the call of that name
                       bruit-relay 1 succeed BYTES     a member has a new key; so many bytes follow
    relay to peer      ok    no REASON    call TOKEN    ping
    peer to relay      pong

Who speaks is known from the certificate of the TLS line to the relay, never from these words. Bytes
from outside may raise RemoteProtocolError and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bruit.errors import RemoteProtocolError

VERSION = 1
LONGEST = 256  # bytes of a line
WORD = "bruit-relay"
FINGERPRINT = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){15}")
TOKEN = re.compile(r"[0-9a-f]{32}")
TOLD = re.compile(r"[ -~]{1,200}")
BYTES = re.compile(r"[1-9][0-9]{0,3}")
OBJECTS = {"listen": None, "call": FINGERPRINT, "take": TOKEN, "succeed": BYTES}


@dataclass(frozen=True)
class Ask:
    """What a peer wants of a relay; `what` is a fingerprint, a token, or a number."""

    kind: str
    what: str = ""

    def line(self) -> bytes:
        words = (WORD, str(VERSION), self.kind, self.what)
        return " ".join(word for word in words if word).encode() + b"\n"


@dataclass(frozen=True)
class RelayWord:
    """What a relay says; `what` is a token or a reason."""

    kind: str
    what: str = ""


def asked(line: bytes) -> Ask:
    """What a peer asks for."""
    words = _text(line).split(" ")
    if words[0] != WORD or len(words) < 3:
        raise RemoteProtocolError("a caller does not speak to a relay")
    if words[1] != str(VERSION):
        raise RemoteProtocolError(
            f"a caller speaks version {words[1][:12]!r} of the relay's words, here it is {VERSION}"
        )
    kind, rest = words[2], words[3:]
    if kind not in OBJECTS:
        raise RemoteProtocolError(f"a caller asks for {kind[:20]!r}, which no relay does")
    form = OBJECTS[kind]
    if form is None and not rest:
        return Ask(kind)
    if form is None or len(rest) != 1 or not form.fullmatch(rest[0]):
        raise RemoteProtocolError(f"a caller asks for {kind!r} of nothing that can be")
    return Ask(kind, rest[0])


def said(line: bytes) -> RelayWord:
    """What a relay says to a peer."""
    kind, _, what = _text(line).partition(" ")
    if kind in ("ok", "ping") and not what:
        return RelayWord(kind)
    if (kind == "call" and TOKEN.fullmatch(what)) or (kind == "no" and TOLD.fullmatch(what)):
        return RelayWord(kind, what)
    raise RemoteProtocolError("the relay says what no relay says")


def _text(line: bytes) -> str:
    if len(line) > LONGEST or not line.endswith(b"\n"):
        raise RemoteProtocolError(f"a line of {len(line)} bytes came that does not end")
    try:
        return line[:-1].decode("ascii")
    except UnicodeDecodeError as error:
        raise RemoteProtocolError("a line came that is not ASCII") from error
