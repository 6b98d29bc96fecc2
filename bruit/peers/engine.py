"""Network: real sockets. A rehearsal hosts all peers on loopback, with mutual TLS, journals and
replayable dice.

The same hosts run in the field, one process each, with cryptographic dice (`bruit peer run`); a
rehearsal shows that what runs between machines is what the simulator computes. It uses data one may
lose, and a seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.doorway import believed, joined
from bruit.algorithms.messages import take
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.errors import ConfigError, ConformanceError
from bruit.peers.host import Host, Meeting
from bruit.peers.journal.journal import Journal
from bruit.peers.settings import Settings
from bruit.peers.wire.address_book import AddressBook, run_id
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.seals import BookSeals
from bruit.privacy.ledger import Ledger
from bruit.runs.engines.engine import Engine, Job, Metrics, Outcome
from bruit.runs.engines.given import refuse_given
from bruit.trace import Faults, Meetings, Trace

PORTS = range(20_000, 32_768)  # above those that workers of Ray listen to


@dataclass(frozen=True)
class Network(Engine):
    """All peers of a job as hosts in this process; `pace` is the length of a unit of time in
    seconds."""

    timeout: float = 30.0
    pace: float = 0.05

    def describe(self) -> dict[str, Any]:
        return {"name": "network", "timeout": self.timeout, "pace": self.pace}

    def execute(self, job: Job) -> Outcome:
        refuse_given(job, "network")
        job.refuse_walking_on("network")
        with tempfile.TemporaryDirectory(prefix="bruit-rehearsal-") as folder:
            return asyncio.run(_rehearse(self, job, Path(folder)))


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses now, and that nobody is likely to take before they are
    listened to: the system gives none of PORTS to who asks for any port, and others who look here
    begin somewhere else."""
    begin, found = secrets.randbelow(len(PORTS)), list[int]()
    for place in range(len(PORTS)):
        if len(found) == count:
            break
        port = PORTS[(begin + place) % len(PORTS)]
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
    if len(found) == count:
        return found
    raise ConfigError(f"{count} ports of loopback are needed, {len(found)} are free")


@contextlib.contextmanager
def held_ports(ports: Iterable[int]) -> Iterator[None]:
    """Nobody else who looks for free ports finds these, while those they were found for can listen
    to them: a socket that is bound and does not listen lets in only those who ask for an address to
    be used again, as gRPC does."""
    with contextlib.ExitStack() as stack:
        for port in ports:
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(
                OSError
            ):  # taken meanwhile: whoever is to listen there says so
                one.bind(("127.0.0.1", port))
        yield


def _book_on_loopback(people: list[Identity]) -> AddressBook:
    return AddressBook.of(
        Entry(peer=peer, name=one.name, host="127.0.0.1", port=port, certificate=one.certificate)
        for peer, (one, port) in enumerate(zip(people, free_ports(len(people)), strict=True))
    )


async def _rehearse(engine: Network, job: Job, folder: Path) -> Outcome:
    public = job.public
    people = [Identity.create(f"peer-{peer}") for peer in range(job.n)]
    book = _book_on_loopback(people)
    run = run_id(
        book, f"rehearsal of {job.algorithm.describe()} on {job.graph.name}, {job.steps} steps"
    )
    calls = job.schedule.by_clock(job.graph, job.steps, job.meetings())
    hosts: list[Host] = []
    met: list[list[Meeting]] = [[] for _ in range(job.n)]
    for peer in range(job.n):
        mine, own = calls.of(peer), Ledger(peers=job.n)
        earlier = None if job.states is None else take(job.states, np.array([peer]))
        seat = Seat(
            me=peer,
            algorithm=job.algorithm,
            graph=job.graph,
            door=job.door.with_ledger(own),
            dice=job.dice,
            steps=job.steps,
            public=public,
            faults=Faults.none(),
            calls=mine.time,
            partners=mine.b,
            state=earlier,
            timeout=engine.timeout,
            seals=BookSeals(people[peer], Members(book), run),
        )
        journal = Journal.open(folder / f"peer-{peer}.db", run, {"rehearsal": "yes"})
        horizon = job.schedule.lasts(job.graph, job.steps)
        settings = Settings(timeout=engine.timeout, pace=engine.pace, horizon=horizon)
        hosts.append(
            Host(
                identity=people[peer],
                book=book,
                run_id=run,
                machine=peer_machine(seat),
                journal=journal,
                ledger=own,
                settings=settings,
                on_met=met[peer].append,
            )
        )
    try:
        await asyncio.gather(*(host.run() for host in hosts))
    finally:
        for host in hosts:
            host.journal.close()
    return _outcome(job, hosts, public, met)


def _outcome(job: Job, hosts: list[Host], public: Any, told: list[list[Meeting]]) -> Outcome:
    lost = [host for host in hosts if host.gave_up]
    if lost:
        raise ConformanceError(f"peer {lost[0].me} {lost[0].gave_up}")
    short = [host.me for host in hosts if job.schedule.behind(host.machine.count, job.steps)]
    if short:
        raise ConformanceError(f"peer {short[0]} did not reach the last round")
    for host in hosts:
        job.ledger.extend(host.ledger)
    trace = Trace(
        peers=job.n,
        steps=job.steps,
        messages=sum(host.speech.payloads for host in hosts),
        missed=sum(host.absences.missed for host in hosts),
        refusals=sum(host.absences.skipped for host in hosts),
        bytes=sum(host.speech.payload_bytes for host in hosts),
    )
    met = sorted(
        (event[0] + host.origin, *event[1:])
        for host, one in zip(hosts, told, strict=True)
        for event in one
    )
    trace.meetings = Meetings(
        np.array([event[0] for event in met], np.float64),
        np.array([event[1] for event in met], np.int64),
        np.array([event[2] for event in met], np.int64),
    )
    if job.schedule.reads:
        trace.reads = [event[3] for event in met]
    state = joined([host.machine.state for host in hosts])
    metrics = Metrics()
    if job.evaluate is not None and job.evaluate_every > 0:
        metrics.add(job.steps, job.evaluate(believed(job.algorithm, state)))
    return Outcome(state=state, trace=trace, metrics=metrics, public=public, unwatched="")
