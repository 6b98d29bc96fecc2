"""The crash file of a real peer: what its algorithm was given when it raised, kept at home.

It lies in the peer's own state folder, which its owner alone may enter, and its owner alone may read
it. It holds private data of this peer and of nobody else: its state, the messages it had received,
and what its door answered. A later crash in the same function takes its place.

The error that is told says where it happened and of which kind it was, not in which words: an
exception may quote the data it failed on, and errors end up in logs. The words are in the file.

Masks of pairs are secrets of one start and are written nowhere (`agreed_masks`). Where there are any
the file holds no answers of the door.
"""

from __future__ import annotations

from typing import cast

from bruit.algorithms.crash import FailedCall
from bruit.errors import AlgorithmError, BruitError
from bruit.peers.site.site import Participant
from bruit.runs.crashes.crash import Surroundings, save_call


def kept_at_home(error: AlgorithmError, of: Participant) -> AlgorithmError:
    """The error as it may be told, with the file in which its call was kept, or why it was not."""
    if error.call is None:
        return error
    call, masked = cast(FailedCall, error.call), _masked(of)
    where = _where(call, of)
    told = f"{call.algorithm.name()}: {call.function} raised {type(error.__cause__).__name__}"
    told = f"{told} at {where}"
    seat = of.host.machine.seat
    around = Surroundings(
        graph=seat.graph,
        steps=seat.steps,
        seed=None,
        digest=of.host.run_id,
        engine="real peer",
        where=where,
        peers=[seat.me],
    )
    try:
        path = save_call(error, around, of.site.state, answers=not masked)
    except (BruitError, OSError) as problem:
        return AlgorithmError(f"{told}; what it was given could not be saved: {problem}")
    without = " (without what the door answered, since masks are written nowhere)" * masked
    return AlgorithmError(
        f"{told}; what it was given was saved{without}: it is private data of this peer, for you "
        f"alone; look at it with: bruit replay --crash {path}",
        saved=path,
    )


def _masked(of: Participant) -> bool:
    """Whether the door gives out masks that are secrets of this start."""
    return of.host.masks is not None and of.host.machine.keyed


def _where(call: FailedCall, of: Participant) -> str:
    """Which peer, at which step; after which one, if the function is not told its step."""
    if call.home is not None:
        return call.where()
    return f"peer {of.host.me}, after step {of.host.machine.count}"
