"""Hostile frames: bytes of a listed neighbor that has gone mad. A peer may refuse them, and do
nothing else.

`python -m benchmarks.reliability.frames [--full] [--json]`. Most go through the codec, the
listener's `accept` and the machine of a real participant in this process; some through a real
socket with mutual TLS to a process, which must then still take part in an honest run. Whatever is
raised but RemoteProtocolError counts as a crash.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import resource
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.counts import Count, Progress, answer
from benchmarks.reliability.village import Village, until, village
from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import RemoteProtocolError
from bruit.peers.host import Host
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire import wire_pb2
from bruit.peers.wire.codec import METHOD, SERVICE, Conversation, Frame, decode, encode

FEW, GOAL = 20_000, 1_000_000  # frames in this process
SOCKET_FEW, SOCKET_GOAL = 300, 5_000  # frames through a socket
ME, NEIGHBOR = 0, 1
SHORT = 8  # rounds: none is so far ahead that its sender waits with it, and all that follows
MOST_GROWTH = 64.0  # MiB by which this process may grow meanwhile
HUGE = (0, 1, 2, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def hostile(honest: bytes, dice: random.Random) -> bytes:
    """Honest bytes, changed: flipped, cut, repeated, mixed, or another frame in the same form with
    lies in it."""
    way = dice.randrange(8)
    data = bytearray(honest)
    if way == 0:
        for _ in range(dice.randint(1, 8)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif way == 1:
        del data[dice.randrange(len(data)) :]
    elif way == 2:
        data += dice.randbytes(dice.randint(1, 64))
    elif way == 3:
        start = dice.randrange(len(data))
        data[start:start] = data[: dice.randrange(len(data))]
    elif way == 4:
        data = bytearray(dice.randbytes(dice.randint(0, 200)))
    else:
        return lying(honest, dice, way)
    return bytes(data)


def lying(honest: bytes, dice: random.Random, way: int) -> bytes:
    """A frame that protobuf can read, and whose words are not what they should be."""
    frame = wire_pb2.Frame.FromString(honest)
    if way == 5:
        setattr(frame, dice.choice(("sequence", "number", "acknowledged")), dice.choice(HUGE))
    elif way == 6:
        frame.kind = dice.choice(
            ("hello", "ack", "bye", "offer", "answer", "token", "result", "", "x" * 100, "round")
        )
        frame.sender = dice.choice((0, 1, 2, 2**32 - 1))
    elif frame.fields:
        field = frame.fields[0]
        odd = np.array([[np.nan, np.inf]]) if dice.random() < 0.5 else np.full((1, 2), 1e308)
        field.data = (
            odd.astype("<f8").tobytes()
            if dice.random() < 0.5
            else dice.randbytes(dice.randint(0, 64))
        )
        if dice.random() < 0.5:
            field.shape[:] = [
                dice.choice((0, 1, 2, 2**20, 2**31 - 1)) for _ in range(dice.randint(0, 6))
            ]
        field.dtype = dice.choice(("float64", "int64", "bool", "uint8", "object", ""))
    try:
        return frame.SerializeToString()
    except ValueError:
        return honest[:-1]


def honest_frame(host: Host, sequence: int, number: int) -> bytes:
    voice = Conversation(host.run_id, host.algorithm, NEIGHBOR)
    return encode(Frame.of(voice, sequence, Envelope("round", number, np.zeros((1, 2)))))


async def feed(
    host: Host, count: int, dice: random.Random, progress: Progress, found: Counter[str]
) -> None:
    """Give a participant so many hostile frames, as its listener would; `found` counts what became
    of them."""
    voice = Conversation(host.run_id, host.algorithm, NEIGHBOR)
    for done in range(count):
        data = hostile(
            honest_frame(host, 1 + found["heard by the machine"], dice.randrange(4)), dice
        )
        try:
            frame = decode(data, voice, host.settings.limits)
            await host.ears.accept(NEIGHBOR, frame, data)
            while not host.ears.queue.empty():
                _, taken, _ = host.ears.queue.get_nowait()
                found["heard by the machine"] += 1
                host.machine.hear(0.0, NEIGHBOR, taken.envelope(host.machine.example))
            found["taken"] += 1
        except RemoteProtocolError:
            found["refused"] += 1
        except Exception as error:  # this is what is looked for
            found["crashed"] += 1
            print(
                f"frames: {type(error).__name__}: {error}; the frame was {data.hex()}",
                file=sys.stderr,
            )
        progress(done, f"{found['refused']} refused")


def in_process(count: int, dice: random.Random) -> tuple[Counter[str], float]:
    with village(steps=SHORT) as here:
        one = participant(read_site(here.sites[ME]))
        recall(one.host)  # a start has a key of its own before anything is drawn
        one.host.machine.begin(0.0)
        progress = Progress("frames", count)

        async def everything() -> tuple[Counter[str], float]:
            found: Counter[str] = Counter()
            await feed(
                one.host, 2_000, dice, progress, found
            )  # what is loaded or kept once is there by now
            before = _resident()
            await feed(one.host, count - 2_000, dice, progress, found)
            return found, _resident() - before

        try:
            return asyncio.run(everything())
        finally:
            one.host.journal.close()


def _resident() -> float:
    """MiB of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def through_sockets(count: int, seed: int) -> tuple[int, bool]:
    """How many frames a waiting peer was sent, and whether it then takes part in an honest run as
    if nothing were."""
    with village() as here:
        here.start(ME)
        until(lambda: here.status(ME), "a peer that listens")
        told = here.sites[NEIGHBOR].parent / "attacked.txt"
        pid = os.fork()
        if pid == 0:
            _attack(here, count, seed, told)
        os.waitpid(pid, 0)
        sent = int(told.read_text()) if told.exists() else 0
        for peer in (1, 2):
            here.start(peer)
        until(
            lambda: all(here.status(peer).get("step", 0) >= 3 for peer in range(3)),
            "an honest run afterwards",
        )
        missed = sum(here.status(peer).get("missed", 1) for peer in range(3))
        return sent, missed == 0 and [here.end(peer, signal.SIGTERM) for peer in range(3)] == [
            130
        ] * 3


def _attack(here: Village, count: int, seed: int, told: Path) -> None:
    """In a process of its own: as a listed neighbor, say garbage for as long as one is listened to,
    again and again."""
    try:
        sent = 0
        deadline = time.monotonic() + 60 + count / 20
        for frames in _salvos(here, count, seed):
            if time.monotonic() > deadline:
                break
            sent += frames
            told.write_text(str(sent))
    finally:
        os._exit(0)


def _salvos(here: Village, count: int, seed: int) -> Iterator[int]:
    import grpc

    from bruit.peers.wire.identity import TLS_NAME, Identity

    logging.disable(logging.CRITICAL)
    dice, me = random.Random(seed), Identity.load(here.sites[NEIGHBOR].parent)
    one = participant(read_site(here.sites[NEIGHBOR]))
    voice = Conversation(one.host.run_id, one.host.algorithm, NEIGHBOR)
    one.host.journal.close()
    hello = encode(Frame(conversation=voice, sequence=0, kind="hello"))
    base = encode(Frame.of(voice, 1, Envelope("round", 0, np.zeros((1, 2)))))
    entry = here.book.entry(ME)
    credentials = grpc.ssl_channel_credentials(
        entry.certificate.encode(), me.key, me.certificate.encode()
    )
    settings = [("grpc.ssl_target_name_override", TLS_NAME), ("grpc.enable_retries", 0)]
    done = 0
    with grpc.secure_channel(entry.address, credentials, settings) as channel:
        while done < count:
            bad = [frame for _ in range(4) if _refused(frame := hostile(base, dice), voice)]
            talk: Any = channel.stream_stream(f"/{SERVICE}/{METHOD}")
            call = talk(iter([hello, *bad]), timeout=5.0)
            try:
                for _ in call:
                    pass
            except grpc.RpcError:
                pass
            done += len(bad)
            yield len(bad)


def _refused(data: bytes, voice: Conversation) -> bool:
    """Whether it is no frame at all; one that is may be taken for a true word of this neighbor."""
    try:
        decode(data, voice)
    except RemoteProtocolError:
        return True
    return False


def ask(full: bool) -> list[Count]:
    count, by_socket = (GOAL, SOCKET_GOAL) if full else (FEW, SOCKET_FEW)
    logging.disable(logging.CRITICAL)
    seed = secrets.randbits(32)
    print(f"frames: seed {seed}", file=sys.stderr)
    sent, well = through_sockets(
        by_socket, seed
    )  # first: whoever forks must not have spoken before
    found, grown = in_process(count, random.Random(seed))
    total = found["taken"] + found["refused"] + found["crashed"]
    return [
        Count(
            "frames",
            "hostile frames to a participant in this process",
            total,
            f">= {count:,}",
            total >= count,
        ),
        Count(
            "frames",
            "refused, with the one error that frames may cause",
            found["refused"],
            "any",
            held=True,
        ),
        Count(
            "frames",
            "of all, those that reached the machine",
            found["heard by the machine"],
            f">= {count // 50:,}",
            found["heard by the machine"] >= count // 50,
        ),
        Count("frames", "crashes: any other error", found["crashed"], "0", found["crashed"] == 0),
        Count(
            "frames",
            "MiB by which the process grew meanwhile",
            grown,
            f"<= {MOST_GROWTH:g}",
            grown <= MOST_GROWTH,
        ),
        Count(
            "frames",
            "hostile frames through a socket",
            sent,
            f">= {by_socket:,}",
            sent >= by_socket,
        ),
        Count("frames", "an honest run afterwards, with nobody missed", float(well), "1", well),
    ]


if __name__ == "__main__":
    answer(ask)
