"""The doctor: tries every line of one peer before a run, and names what fails.

    name         the host in the book is known
    port         somebody listens there
    relay        the relay knows this peer, and the neighbor is connected to it
    certificate  TLS 1.3, the certificate of the book on both sides
    version      both speak a common version of the wire
    clock        both clocks show the same time, within SKEW seconds
    book         both books list the same people
    experiment   both agreed on the same experiment, to the letter

A neighbor answers when its peer runs or waits, or while its own doctor does. No record is read, no
journal is opened, nothing is released.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from bruit.errors import BruitError, ConfigError, RemoteProtocolError
from bruit.peers.relay.preamble import Ask
from bruit.peers.relay.way import RelayUnreachable, Ways, ask_relay
from bruit.peers.settings import first_neighbors
from bruit.peers.site.agreed_run import agreed_words
from bruit.peers.site.site import Site, members_of, own_book, own_identity, site_text, ways_of
from bruit.peers.wire.address_book import people_digest
from bruit.peers.wire.checkup import CHECK, Checkup, answering
from bruit.peers.wire.codec import SERVICE, USUAL
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import TLS_NAME, Identity, fingerprint, short_form
from bruit.peers.wire.line import options
from bruit.peers.wire.members import Members
from bruit.peers.wire.pinned import pinned_context
from bruit.peers.wire.serving import ServerDoor, Serving, caller_of, serve
from bruit.peers.wire.threshold import Threshold

PATIENCE = 5.0  # seconds for each step
SKEW = 60.0  # seconds that clocks may differ
AGAIN = 0.5  # seconds between two rounds, while others are waited for


@dataclass(kw_only=True)
class PairCheck:
    """One neighbor: the steps that went well, in order, and the one that did not."""

    neighbor: str
    place: str
    good: list[str] = field(default_factory=list)
    failed: str = ""
    why: str = ""
    skew_s: float | None = None

    @property
    def ok(self) -> bool:
        return not self.failed


class StepFailed(Exception):
    """A step of the check that did not go well: its name, and why in words."""


@dataclass(frozen=True, kw_only=True)
class Examined:
    """The site that is examined: what it needs to speak to others, and nothing private."""

    me: int
    folder: Path  # of its identity
    identity: Identity
    members: Members
    neighbors: list[int]
    own: Callable[[], Checkup]
    ways: Ways | None


@dataclass(frozen=True)
class Diagnosis:
    """What was found: the last check of every neighbor, who asked this site, and notes."""

    checks: list[PairCheck]
    asked_by: list[str]
    notes: list[str]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def patient(site: Site) -> Examined:
    """What is wrong with the site itself is told here, before anybody is called."""
    book = own_book(site)
    place = site.folder / site.file.experiment
    words = agreed_words(site_text(place), place.parent, str(place))
    if words.graph.n != len(book.entries):
        raise ConfigError(
            f"the graph of {place} has {words.graph.n} peers, the address book {len(book.entries)}"
        )
    people, experiment, members = people_digest(book), words.digest, members_of(site, book)
    return Examined(
        me=site.file.peer,
        folder=site.folder / site.file.identity,
        identity=own_identity(site, members),
        members=members,
        neighbors=first_neighbors(words.graph, site.file.peer, words.steps),
        own=lambda: Checkup.now(people, experiment),
        ways=ways_of(site, members),
    )


def examine(site: Site, wait: float = 0.0) -> Diagnosis:
    """Check every neighbor, and answer those who check this site; for `wait` seconds at most until
    all is well on both sides, at least once."""
    return asyncio.run(_examine(patient(site), wait))


async def _examine(of: Examined, wait: float) -> Diagnosis:
    asked: set[int] = set()
    notes: list[str] = []
    deadline = time.monotonic() + wait
    serving = await _listen(of, asked, notes)
    try:
        if of.ways is not None:
            await of.ways.open(of.neighbors)
        checks = dict(zip(of.neighbors, await _round(of, of.neighbors), strict=True))
        while time.monotonic() < deadline:
            bad = [peer for peer, check in checks.items() if not check.ok]
            if not bad and (serving is None or asked >= set(of.neighbors)):
                break
            await asyncio.sleep(AGAIN)
            for peer, check in zip(bad, await _round(of, bad), strict=True):
                if len(check.good) >= len(
                    checks[peer].good
                ):  # the one that got furthest tells most
                    checks[peer] = check
    finally:
        if serving is not None:
            await serving.stop(0.2)
        if of.ways is not None:
            await of.ways.close()
    names = [of.members.book.entry(peer).name for peer in sorted(asked)]
    return Diagnosis(list(checks.values()), names, notes)


async def _listen(of: Examined, asked: set[int], notes: list[str]) -> Serving | None:
    """Answer others who look; None when a peer of this site, or another program, has the port."""

    def admit(context: Any) -> None:
        asked.add(caller_of(of.members, context).peer)

    def brought(threshold: Threshold) -> None:
        if of.ways is not None:
            of.ways.listen(threshold.visitor)

    door = ServerDoor(
        identity=of.identity,
        members=of.members,
        me=of.me,
        callers=of.neighbors,
        elsewhere=brought if of.ways is not None and of.ways.relayed else None,
    )
    handlers = {CHECK: answering(lambda: of.own().to_bytes(), admit)}
    try:
        return await serve(door, handlers, lambda address, why: None)
    except RuntimeError as error:
        notes.append(
            f"others are not answered from here ({error}): either the peer itself runs, and "
            f"answers, or the book says an address that is not this machine's"
        )
        return None


async def _round(of: Examined, peers: list[int]) -> list[PairCheck]:
    return list(await asyncio.gather(*(_check(of, of.members.book.entry(peer)) for peer in peers)))


async def _check(of: Examined, entry: Entry) -> PairCheck:
    place = f"relay {entry.address}" if entry.relay else entry.address
    check = PairCheck(neighbor=entry.name, place=place)
    steps = [("name", _name), ("port", _port)]
    if entry.relay:
        steps.append(("relay", _relay))
    steps.append(("certificate", _certificate))
    for step, look in steps:
        try:
            await look(of, entry)
        except (StepFailed, BruitError, OSError) as error:
            check.failed, check.why = step, str(error) or type(error).__name__
            return check
        check.good.append(step)
    await _compare(of, entry, check)
    return check


async def _name(of: Examined, entry: Entry) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().getaddrinfo(entry.host, entry.port)
    except OSError as error:
        raise StepFailed(f"{entry.host} is not known here: {error.strerror or error}") from None


async def _port(of: Examined, entry: Entry) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(entry.host, entry.port)
    except TimeoutError:
        raise StepFailed(
            f"no answer from {entry.address} within {PATIENCE:g} s: a firewall drops it, or the "
            f"machine is off"
        ) from None
    except OSError as error:
        who = "the relay" if entry.relay else "a peer, or its doctor,"
        raise StepFailed(
            f"nobody listens at {entry.address} ({error.strerror or error}): is {who} running?"
        ) from None
    writer.transport.abort()


async def _relay(of: Examined, entry: Entry) -> None:
    relay = of.members.book.way(entry)
    if relay is not None:
        try:
            _, writer = await ask_relay(of.folder, relay, Ask("call", entry.fingerprint))
        except RelayUnreachable as error:
            raise StepFailed(str(error)) from None
        writer.transport.abort()


def _context(of: Examined, entry: Entry) -> ssl.SSLContext:
    context = pinned_context(of.folder, of.members.taken(entry.peer), ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    return context


async def _connect(of: Examined, entry: Entry, context: ssl.SSLContext) -> tuple[Any, Any]:
    if of.ways is not None and entry.relay:
        path = of.ways.address(entry).removeprefix("unix:")
        return await asyncio.open_unix_connection(path, ssl=context, server_hostname=TLS_NAME)
    return await asyncio.open_connection(
        entry.host, entry.port, ssl=context, server_hostname=TLS_NAME
    )


async def _certificate(of: Examined, entry: Entry) -> None:
    """Whether both sides take the other's certificate: theirs in the handshake, ours after it."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await _connect(of, entry, _context(of, entry))
            try:
                first = await reader.read(1)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise StepFailed(f"who listens at {entry.address} does not speak TLS") from None
    except ssl.SSLCertVerificationError:
        raise StepFailed(await _other_certificate(of, entry)) from None
    except OSError as error:
        raise StepFailed(_refused(of, entry, error)) from None
    if not first:
        raise StepFailed(_refused(of, entry, None))


def _refused(of: Examined, entry: Entry, error: OSError | None) -> str:
    said = "" if error is None else f" ({getattr(error, 'reason', '') or error.strerror or error})"
    return (
        f"{entry.name} hangs up on this peer{said}: its book lists another certificate than "
        f"{short_form(of.identity.fingerprint())} for this one, or its clock is wrong"
    )


async def _other_certificate(of: Examined, entry: Entry) -> str:
    """Who it is instead, as far as it shows; nothing more is said to it, and no certificate of
    ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    shown = "none"
    with contextlib.suppress(OSError, TimeoutError, BruitError):
        async with asyncio.timeout(PATIENCE):
            _, writer = await _connect(of, entry, context)
            der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.transport.abort()
            shown = short_form(fingerprint(ssl.DER_cert_to_PEM_cert(der)))
    return (
        f"who listens at {entry.address} shows the certificate {shown}, the book lists "
        f"{short_form(entry.fingerprint)} for {entry.name}: compare fingerprints with its owner, "
        f"and dates with this clock"
    )


async def _compare(of: Examined, entry: Entry, check: PairCheck) -> None:
    """The steps that need an answer."""
    try:
        began = time.time()
        theirs = await _ask(of, entry)
        took = time.time() - began
    except RemoteProtocolError as error:
        check.failed, check.why = "version", str(error)
        return
    mine = of.own()
    check.skew_s = round(theirs.clock - (began + took / 2), 3)
    looks: dict[str, Callable[[], None]] = {
        "version": lambda: mine.versions.check(theirs.versions, entry.name),
        "clock": lambda: _same_time(check.skew_s or 0.0, took, entry.name),
        "book": lambda: _same("address book", mine.people, theirs.people, entry.name),
        "experiment": lambda: _same("experiment", mine.experiment, theirs.experiment, entry.name),
    }
    for step, look in looks.items():
        try:
            look()
        except (StepFailed, RemoteProtocolError) as error:
            check.failed, check.why = step, str(error)
            return
        check.good.append(step)


def _same_time(skew: float, took: float, who: str) -> None:
    if abs(skew) > SKEW + took / 2:
        how = "ahead of" if skew > 0 else "behind"
        raise StepFailed(
            f"the clock of {who} is {abs(skew):.0f} s {how} this one's; set both by NTP "
            f"(certificates have dates)"
        )


def _same(what: str, mine: str, theirs: str, who: str) -> None:
    if mine != theirs:
        raise StepFailed(
            f"{who} has another {what}: {theirs[:16]} there, {mine[:16]} here; even a comma "
            f"counts, send each other the file again"
        )


async def _ask(of: Examined, entry: Entry) -> Checkup:
    credentials = grpc.ssl_channel_credentials(
        of.members.roots([entry.peer]), of.identity.key, of.identity.certificate.encode()
    )
    where = entry.address if of.ways is None else of.ways.address(entry)
    settings = [*options(USUAL), ("grpc.ssl_target_name_override", TLS_NAME)]
    async with grpc.aio.secure_channel(where, credentials, settings) as channel:
        try:
            call: Any = channel.unary_unary(f"/{SERVICE}/{CHECK}")
            answer = await call(b"", timeout=PATIENCE)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise RemoteProtocolError(
                    f"{entry.name} runs a release of bruit that cannot be asked; upgrade it"
                ) from None
            raise RemoteProtocolError(
                f"{entry.name} does not answer: {str(error.details())[:200]}"
            ) from None
    return Checkup.of(answer)
