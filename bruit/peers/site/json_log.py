"""The log of a peer as lines of JSON, for whoever collects logs:

    {"time": ..., "level": ..., "logger": ..., "peer": ..., "event": ..., "kind": ...}

`event` is the sentence that a plain log would hold, `kind` the same before names and counts were put
into it, so that events can be counted. No value and no record is in them. What libraries say may quote
anything, so of theirs only the kind of an error is told. Tracebacks are left out for the same reason.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

SPEAKER: ContextVar[int | None] = ContextVar("SPEAKER", default=None)
OWN = "bruit"


@contextlib.contextmanager
def speaking(peer: int) -> Iterator[None]:
    """What is logged meanwhile, here and in tasks begun here, is of that peer."""
    token = SPEAKER.set(peer)
    try:
        yield
    finally:
        SPEAKER.reset(token)


class JsonLines(logging.Formatter):
    """One line of JSON a record."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "peer": SPEAKER.get(),
        }
        if record.name.split(".")[0] == OWN:
            line |= {"event": record.getMessage(), "kind": str(record.msg)}
        else:
            line |= {"event": "a library has something to say", "kind": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)
