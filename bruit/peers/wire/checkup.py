"""A checkup: what a peer tells another participant that asks before a run, over the same pinned line.

    versions of the wire, release of bruit, digests of people and experiment, what its clock shows

Nothing of it is secret among participants, and none of it depends on records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import grpc

from bruit.errors import RemoteProtocolError
from bruit.peers.wire.versions import SPOKEN, Versions

CHECK = "Check"
LONGEST = 1024  # bytes of an answer
Handler = Callable[[bytes, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Checkup:
    """What one side says about itself."""

    oldest: int
    newest: int
    release: str
    people: str
    experiment: str
    clock: float  # UTC, seconds since 1970

    @classmethod
    def now(cls, people: str, experiment: str, spoken: Versions = SPOKEN) -> Checkup:
        return cls(
            oldest=spoken.oldest,
            newest=spoken.newest,
            release=version("bruit"),
            people=people,
            experiment=experiment,
            clock=time.time(),
        )

    @property
    def versions(self) -> Versions:
        return Versions(self.oldest, self.newest)

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, data: bytes) -> Checkup:
        """What another side says; RemoteProtocolError when it says no such thing."""
        try:
            if len(data) > LONGEST:
                raise ValueError
            said = json.loads(data)
            found = cls(**said)
            whole = [found.oldest, found.newest]
            words = [found.release, found.people, found.experiment]
            if any(type(one) is not int or not 1 <= one < 2**16 for one in whole):
                raise ValueError
            if any(type(one) is not str or not one.isprintable() for one in words):
                raise ValueError
            if type(found.clock) is not float or not 0 <= found.clock < 2**40:
                raise ValueError
        except (ValueError, TypeError, RecursionError):
            raise RemoteProtocolError(f"{len(data)} bytes came that are no checkup") from None
        return found


def answering(answer: Callable[[], bytes], admit: Callable[[Any], object]) -> Any:
    """How a server answers; `admit` raises for who may not ask."""

    async def check(asked: bytes, context: Any) -> bytes:
        try:
            admit(context)
        except RemoteProtocolError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        return answer()

    return grpc.unary_unary_rpc_method_handler(check)


def hearing(hear: Callable[[bytes], None], admit: Callable[[Any], object]) -> Any:
    """How a server hears one word; what `hear` refuses is said to who said it."""

    async def told(said: bytes, context: Any) -> bytes:
        try:
            admit(context)
        except RemoteProtocolError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        try:
            hear(said)
        except RemoteProtocolError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return b""

    return grpc.unary_unary_rpc_method_handler(told)
