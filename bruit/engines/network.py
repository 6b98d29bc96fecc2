"""Network: real sockets. A rehearsal hosts all peers on loopback, with mutual TLS, journals and replayable dice.

The same hosts run in the field, one process each, with cryptographic dice (`bruit peer run`); a rehearsal shows that
what runs between machines is what the simulator computes. It uses data one may lose, and a seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.doorway import believed, joined
from bruit.algorithms.messages import take
from bruit.algorithms.schedules import Pairs, Rounds, Wakes
from bruit.engines.engine import Engine, Job, Metrics, Outcome
from bruit.engines.given import refuse_given
from bruit.errors import ConfigError, ConformanceError
from bruit.network.address_book import AddressBook, Entry, run_id
from bruit.network.host import Host, Settings
from bruit.network.identity import Identity
from bruit.network.journal import Journal
from bruit.privacy.ledger import Ledger
from bruit.protocols.peer import Seat, peer_machine
from bruit.trace import Faults, Meetings, Trace

PORTS = range(10_000, 32_768)


@dataclass(frozen=True)
class Network(Engine):
    """All peers of a job as hosts in this process; `pace` is the length of a unit of time in seconds."""

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
    """Ports of loopback that nobody uses now, and that nobody is likely to take before they are listened to: the system
    gives none of PORTS to who asks for any port, and others who look here begin somewhere else."""
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


async def _rehearse(engine: Network, job: Job, folder: Path) -> Outcome:
    public = job.algorithm.prepare(job.graph, job.steps)
    people = [Identity.create(f"peer-{peer}") for peer in range(job.n)]
    ports = free_ports(job.n)
    book = AddressBook.of(
        Entry(peer, one.name, "127.0.0.1", port, one.certificate)
        for peer, (one, port) in enumerate(zip(people, ports, strict=True))
    )
    run = run_id(book, f"rehearsal of {job.algorithm.describe()} on {job.graph.name}, {job.steps} steps")
    calls = Meetings.none() if isinstance(job.schedule, Rounds) else job.meetings()
    hosts = []
    for peer in range(job.n):
        mine, own = calls.of(peer), Ledger(job.n)
        earlier = None if job.states is None else take(job.states, np.array([peer]))
        seat = Seat(peer, job.algorithm, job.graph, job.door.with_ledger(own), job.dice, job.steps, public,
                    Faults.none(), mine.time, mine.b, earlier, engine.timeout)  # fmt: skip
        journal = Journal.open(folder / f"peer-{peer}.db", run, {"rehearsal": "yes"})
        horizon = float(job.steps) if isinstance(job.schedule, Pairs | Wakes) else None
        settings = Settings(engine.timeout, engine.pace, horizon)
        hosts.append(Host(people[peer], book, run, peer_machine(seat), journal, own, settings))
    try:
        await asyncio.gather(*(host.run() for host in hosts))
    finally:
        for host in hosts:
            host.journal.close()
    return _outcome(job, hosts, public)


def _outcome(job: Job, hosts: list[Host], public: Any) -> Outcome:
    lost = [host for host in hosts if host.gave_up]
    if lost:
        raise ConformanceError(f"peer {lost[0].me} {lost[0].gave_up}")
    short = [host.me for host in hosts if isinstance(job.schedule, Rounds) and host.machine.count < job.steps]
    if short:
        raise ConformanceError(f"peer {short[0]} did not reach the last round")
    for host in hosts:
        job.ledger.extend(host.ledger)
    missed = sum(not miss.late for host in hosts for miss in host.missed)
    trace = Trace(job.n, job.steps, messages=sum(host.payloads for host in hosts), missed=missed,
                  refusals=sum(host.skipped for host in hosts),
                  bytes=sum(host.payload_bytes for host in hosts))  # fmt: skip
    met = sorted((event[0] + host.origin, *event[1:]) for host in hosts for event in host.meetings)
    trace.meetings = Meetings(
        np.array([event[0] for event in met], np.float64), np.array([event[1] for event in met], np.int64),
        np.array([event[2] for event in met], np.int64),
    )  # fmt: skip
    if isinstance(job.schedule, Wakes):
        trace.reads = [event[3] for event in met]
    state = joined([host.machine.state for host in hosts])
    metrics = Metrics()
    if job.evaluate is not None and job.evaluate_every > 0:
        metrics.add(job.steps, job.evaluate(believed(job.algorithm, state)))
    return Outcome(state, trace, metrics, public, unwatched="")
