"""A line that breaks is laid again: at once if it was up, ever later if nobody is there."""

import asyncio
import contextlib

import pytest

from bruit.errors import RemoteProtocolError
from bruit.peers.wire import line as lines
from bruit.peers.wire.address_book import merge, public_entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.line import FIRST_PAUSE, LONGEST_PAUSE, Line


class Over(Exception):
    """Enough was seen."""


@pytest.mark.parametrize(
    ("up", "pauses"),
    [
        ([False] * 8, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, LONGEST_PAUSE, LONGEST_PAUSE]),
        ([True] * 4, [FIRST_PAUSE] * 4),
        ([False, False, False, True, False], [0.05, 0.1, 0.2, FIRST_PAUSE, 0.1]),
    ],
)
def test_pauses_grow_only_while_nobody_answers(monkeypatch, up, pauses):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)
        if len(waited) == len(up):
            raise Over

    async def talk(self, channel):
        self.connected = up[len(waited)]
        raise RemoteProtocolError("the neighbor was killed")

    monkeypatch.setattr(lines.asyncio, "sleep", sleep)
    monkeypatch.setattr(Line, "_talk", talk)
    monkeypatch.setattr(Line, "_channel", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(Line, "_tell", lambda self, error: None)

    async def kept():
        with pytest.raises(Over):
            await Line(
                identity=None,
                entry=None,
                members=None,
                journal=None,
                mine=None,
                theirs=None,
                limits=None,
                scale=None,
            ).keep()

    asyncio.run(kept())
    assert waited == pauses


@pytest.mark.parametrize(
    ("way", "told"), [("the relay says: not connected", False), ("", True)], ids=["none", "one"]
)
def test_a_certificate_is_doubted_only_where_somebody_was_reached(way, told, caplog):
    one = Identity.create("ada")
    line = Line(
        identity=one,
        entry=merge([public_entry(one, "127.0.0.1", 7000)]).entry(0),
        no_way=lambda: way,
        **dict.fromkeys(("members", "journal", "mine", "theirs", "limits", "scale")),
    )
    line._tell(asyncio.InvalidStateError("Handshake read failed"))
    assert ("does not show the certificate" in caplog.text) == told
