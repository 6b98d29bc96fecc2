"""Running one participant: status while it runs, a report at its end, and an orderly stop on
SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import grpc
import numpy as np

from bruit.algorithms.algorithm import EVERYBODY
from bruit.algorithms.doorway import believed
from bruit.arrays import Array
from bruit.errors import AlgorithmError, BrokenStateError, BruitError, ConfigError
from bruit.files import plain, to_json, write_whole
from bruit.how_many import how_many
from bruit.peers.host import Host
from bruit.peers.site.crash_file import kept_at_home
from bruit.peers.site.json_log import speaking
from bruit.peers.site.metrics_page import reply
from bruit.peers.site.own_model import save_own_model
from bruit.peers.site.signed_report import promised, signed, took_part
from bruit.peers.site.site import Participant
from bruit.peers.site.verdict import (
    complete,
    left_over,
    met,
    missed_elsewhere,
    missing,
    notes,
    problems,
)
from bruit.peers.wire.said_once import SaidOnce
from bruit.privacy.guarantee import level_facts, level_words
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.stopping import handled, interruptible

log = logging.getLogger("bruit.peers")
EVERY = 0.2  # seconds between two status files, of a process that hosts few peers
SHARE = 20  # status files take at most one such part of a process's time, and wait so many times
# as long as this process was last woken too late
SELDOM = 25  # looks after which a status is written though nothing has moved
LONGEST = 5.0  # seconds between two looks of who was woken late
FEW = 10  # peers of one process up to which they are written that often; more take turns
MISSED, STOPPED = (
    1,
    130,
)  # exit codes: it went otherwise than asked; stopped before the end, the next start goes on
BROKEN = (
    BrokenStateError.exit_code
)  # its journal is an old copy or damaged, and no next start goes on


def status(of: Participant) -> dict[str, Any]:
    """What the operator of a peer may see while it runs.

    `sent` counts messages that arrived, by the word of their receivers; `epsilon` all that was
    spent, and `epsilon_received` what is in messages that arrived.
    """
    host = of.host
    up = sum(line.connected for line in host.lines.values())
    sent, total = host.speech.receipts.confirmed(host.journal), spent(of)
    return {
        "peer": host.me,
        "step": host.machine.count,
        "steps": host.machine.seat.steps,
        "done": host.ended or host.done,
        "neighbors": len(host.lines),
        "connected": up,
        "met": len(met(host)),
        "waiting_for": host.gathering.missing() if host.gathering.waiting else [],
        "waiting": host.gathering.waiting,
        "sent": sent,
        "unconfirmed": host.speech.sent - sent,
        "meetings": host.met,
        "skipped": host.absences.skipped,
        "bytes_sent": sum(line.sent_bytes for line in host.lines.values()),
        "bytes_received": host.ears.received_bytes,
        "refused": refusals(host),
        "missed": host.absences.missed,
        "missing": [host.book.entry(peer).name for peer in missing(host)],
        "left_out": len(host.left_out),
        "epsilon": total,
        "epsilon_received": received(of, total),
        "delta": delta_of(of),
        **_protects(of),
        "against": host.machine.seat.algorithm.against,
        "budget": None if of.budget is None else of.budget.epsilon,
        "budget_agreed": None if of.agreed is None else of.agreed.epsilon,
        "releases": releases(of),
        "releases_planned": of.planned.most,
        "releases_sure": of.planned.sure,
        "rehearsal": of.rehearsed,
        **_new_key(host),
    }


def _protects(of: Participant) -> dict[str, str]:
    """What its epsilon is about; nothing without noise."""
    return {} if of.privacy is None else level_facts(of.privacy.level, of.privacy.adjacency)


def _new_key(host: Host) -> dict[str, Any]:
    """Who has heard that this peer has a new key, if it has one."""
    newest = host.people.fingerprints(host.me)[-1]
    if newest == host.book.entry(host.me).fingerprint:
        return {}
    heard = [line.entry.name for line in host.lines.values() if newest in line.heard]
    neighbors = [line.entry.name for line in host.lines.values()]
    for address, told in ({} if host.ways is None else host.ways.told).items():
        neighbors.append(f"the relay {address}")
        heard += [neighbors[-1]] if newest in told else []
    return {"new_key": {"fingerprint": newest, "heard": heard, "neighbors": neighbors}}


def releases(of: Participant) -> int:
    """How often this peer has released something of its data."""
    ledger = of.host.ledger
    return int(ledger.counts()[of.host.me, ledger.is_data()].sum())


def first_line(of: Participant) -> str:
    """What this peer may spend and how often it may release, before it begins."""
    host = of.host
    if of.privacy is None:
        return f"peer {host.me}: the experiment adds no noise: nothing is hidden"
    if of.budget is None:
        limit = "no budget: the noise was agreed on by its size, and this site sets none"
    else:
        limit = f"budget epsilon {of.budget.epsilon:g} at delta {of.budget.delta:g}"
        if (whom := host.machine.seat.algorithm.against) != EVERYBODY:
            limit += f" against {whom}"
        limit += " (as agreed)" if of.budget == of.agreed else f", {of.against_agreed()}"
    return f"peer {host.me}: {limit}; {of.planned.words() if of.agreed is None else of.planned.promise()}"


def refusals(host: Host) -> dict[str, int]:
    """What was refused, by kind: callers, frames, messages, repetitions, and receipts of what was
    never sent."""
    receipts = sum(line.refused for line in host.lines.values())
    return {**host.refused, "receipt": receipts} if receipts else dict(host.refused)


def delta_of(of: Participant) -> float:
    return 1e-6 if of.budget is None else of.budget.delta


def _if_opened(of: Participant) -> dict[str, float]:
    """Epsilon of the same releases if all masks were opened one day: each then has its own share of
    the noise only. Nothing where there are no masks."""
    if of.host.machine.seat.algorithm.against == EVERYBODY:
        return {}
    counts = of.host.ledger.counts_of(of.host.me)
    return {"epsilon_if_masks_were_opened": compose_epsilon(counts, delta_of(of))}


def spent(of: Participant) -> float:
    """Epsilon of everything this peer has released so far, against whom its algorithm says;
    infinite when its journal is an old copy, since nobody knows what was released after it was
    made."""
    return math.inf if of.host.broken else _epsilon(of, of.host.ledger)


def received(of: Participant, total: float) -> float:
    """What of the `total` epsilon is in messages that arrived: nobody has confirmed to have seen
    the rest."""
    host = of.host
    seen = host.speech.receipts.seen_lines(host.journal)
    return total if seen >= host.ledger.calls else _epsilon(of, host.ledger.head(seen))


def _epsilon(of: Participant, ledger: Ledger) -> float:
    if not ledger.is_data().any() or ledger.has_exact():  # known without loading an accountant
        return math.inf if ledger.has_exact() else 0.0
    return Budget(1.0, delta_of(of)).spent(ledger, of.host.me)


def last_line(of: Participant) -> str:
    """How it ended, in one line: steps, what arrived, what was missed, what was spent and who saw
    it."""
    now, host = status(of), of.host
    name = host.book.entry(host.me).name
    who = f"peer {host.me}" if name == f"peer-{host.me}" else f"peer {host.me} ({name})"
    if host.gave_up and host.machine.state is None:
        return f"{who}: {host.gave_up}; report in {of.site.state}"
    steps = f"{now['step']} of {how_many(now['steps'], 'step')}"
    if host.settings.horizon is not None:
        steps = f"{how_many(now['step'], 'update')} in {now['steps']} units of time"
    word = (
        "epsilon spent" if not of.rehearsed else "rehearsed, nothing is protected: epsilon would be"
    )
    whom = "" if now["against"] == EVERYBODY else f" against {now['against']}"
    parts = [
        steps,
        f"{how_many(now['sent'], 'message')} sent",
        *problems(host),
        *notes(host),
        f"{word} {now['epsilon']:.4g} at delta {now['delta']:g}{_of_what(of)}{whom}{_unseen(now)}",
    ]
    return f"{who}: {', '.join(parts)}; report in {of.site.state}"


def _of_what(of: Participant) -> str:
    """What its epsilon is about, in words."""
    noise = of.privacy
    return "" if noise is None else f" ({level_words(noise.level, noise.adjacency)})"


def _unseen(now: dict[str, Any]) -> str:
    """Which part of the epsilon nobody has confirmed to have seen."""
    if now["epsilon_received"] >= now["epsilon"]:
        return ""
    if not now["epsilon_received"]:
        return ", of which nobody received anything (it stays spent)"
    return f", of which {now['epsilon_received']:.4g} was received and the rest by nobody (it stays spent)"


class _Notice:
    """Tells the operator, once, that the budget is spent."""

    def __init__(self) -> None:
        self.given = False

    def __call__(self, of: Participant) -> None:
        if not self.given and of.host.left_out:
            self.given = True
            log.warning(
                "the budget is spent: peer %d goes on with the full noise and without its data",
                of.host.me,
            )


def metrics_text(of: Participant) -> str:
    """The same numbers in the text format of Prometheus."""
    from bruit.peers.site.metrics import page

    return page(lambda: status(of))


async def _serve_metrics(of: Participant, port: int) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            writer.write(reply(request, lambda: metrics_text(of)))
            await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, "127.0.0.1", port)
    except OSError as error:
        raise ConfigError(f"the metrics port {port} cannot be used: {error.strerror}") from None


def _show(of: Participant, notice: _Notice) -> None:
    notice(of)
    write_whole(
        of.site.state / "status.json",
        lambda file: file.write(to_json(status(of)).encode()),
        private=True,
        synced=False,
    )


def _try_to_show(of: Participant, notice: _Notice, told: SaidOnce) -> None:
    """What cannot be written now (a full disk) is told, and changes nothing else."""
    try:
        _show(of, notice)
    except (BruitError, OSError) as error:
        told.warn(
            ("status",),
            "peer %d goes on, but its status is not up to date: %s",
            of.host.me,
            error,
        )


def _signs(of: Participant) -> tuple[Any, ...]:
    """What changes when anything in the status does, receipts excepted."""
    host = of.host
    lines = [(line.connected, line.sent_bytes) for line in host.lines.values()]
    return (
        (host.machine.count, host.done, host.ended, host.gave_up, host.gathering.waiting),
        (host.absences.missed, host.absences.late, host.absences.skipped, len(host.left_out)),
        (host.ears.received_bytes, sum(host.refused.values()), tuple(lines)),
    )


async def _watch(of: Participant, notice: _Notice, hosted: int = 1) -> None:
    """Keep the status up to date, to the end; the last one is written when the watch is over.
    While nothing moves it is written seldom: of many peers on one machine most wait. Who is woken
    late is on a machine that has no time to spare, and writes it less often, too."""
    told, looks, late = SaidOnce(log), 0, 0.0
    shown: tuple[Any, ...] = ()
    try:
        while True:
            began = time.thread_time()
            if (now := _signs(of)) != shown or looks % SELDOM == 0:
                _try_to_show(of, notice, told)
            shown, looks = now, looks + 1
            cost = hosted * (time.thread_time() - began)
            pause = max(EVERY, EVERY * hosted / FEW, SHARE * cost, min(SHARE * late, LONGEST))
            due = time.monotonic() + pause
            await asyncio.sleep(pause)
            late = time.monotonic() - due
    finally:
        _try_to_show(of, notice, told)


async def _run_all(
    people: list[Participant], metrics_port: int | None, ready: Callable[[], None] | None
) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for one in people:
            one.host.stop()

    def heard(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    # not loop.add_signal_handler: when that is given back, SIGTERM kills at once, without a report
    with handled(heard):
        if ready is not None:
            ready()
        ports = [None if metrics_port is None else metrics_port + k for k in range(len(people))]
        await run_together(people, ports)


async def run_together(people: list[Participant], ports: Sequence[int | None]) -> None:
    """All of them to their end. If one fails, the others leave as they do when they are stopped,
    and then its error is raised."""
    lives = []
    for one, port in zip(people, ports, strict=True):
        with speaking(one.host.me):  # a task keeps the context that it was made in
            lives.append(asyncio.create_task(_run(one, port, len(people))))
    try:
        await asyncio.gather(*lives)
    except Exception:
        for one in people:
            one.host.stop()
        await asyncio.gather(*lives, return_exceptions=True)
        raise


async def _run(of: Participant, metrics_port: int | None, hosted: int = 1) -> None:
    server = None if metrics_port is None else await _serve_metrics(of, metrics_port)
    if of.above_agreed:
        log.warning("the budget of peer %d is %s", of.host.me, of.against_agreed())
    if of.paying is not None:
        of.paying.begin()
    notice = _Notice()
    watcher = asyncio.create_task(_watch(of, notice, hosted))
    try:
        await of.host.run()
    except AlgorithmError as error:
        raise kept_at_home(error, of) from None
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        if server is not None:
            server.close()


def run_participants(
    people: list[Participant],
    metrics_port: int | None = None,
    ready: Callable[[], None] | None = None,
) -> int:
    """Take part until the end, several peers in one process if asked to. The exit code: 0 when all
    of them ended as asked, 1 when one met nobody, missed more than planned, gave up or left out what
    the agreed budget did not hold, 3 when the journal of one is an old copy, 130 when one was
    stopped and can go on later. Metrics of the k-th peer are on the k-th port from
    `metrics_port`."""
    with interruptible():
        try:
            asyncio.run(_run_all(people, metrics_port, ready))
        except (RuntimeError, grpc.aio.UsageError) as error:
            address = ", ".join(one.host.book.entry(one.host.me).address for one in people)
            if "bind" in str(error).lower() or "address" in str(error).lower():
                raise ConfigError(f"cannot listen on {address}: is the port in use?") from None
            raise
        finally:
            for one in people:
                one.host.journal.close()
        for one in people:
            with speaking(one.host.me):
                write_report(one)
                for problem in problems(one.host):
                    log.warning("peer %d: %s", one.host.me, problem)
    if any(one.host.broken for one in people):
        return BROKEN
    if any(not one.host.ended and not one.host.gave_up for one in people):
        return STOPPED
    return MISSED if any(problems(one.host) for one in people) else 0


def _settled(of: Participant) -> dict[str, Any]:
    """What the account of the records says of this run; settled when it has ended, and given back
    where it stopped, or gave up, before anything was released."""
    if of.paying is None:
        return {}
    if not of.host.broken and not of.host.journal.lines:
        of.paying.give_back()
    elif of.host.ended and not of.host.broken:
        of.paying.settle(of.host.ledger.counts_of(of.host.me))
    account = of.paying.account
    return {"account": {"id": account.id(), "head": account.head().describe()}}


def _audited(of: Participant) -> dict[str, Any]:
    """How far the audit log has come, so that whoever has this report notices if its end is gone."""
    if of.host.ended and not of.host.broken:
        of.audit.ended(of.host.journal.lines, spent(of))
    return {"head": of.audit.head().describe()}


def _estimate(of: Participant) -> Array:
    """What this peer holds as its result."""
    machine = of.host.machine
    try:
        return believed(machine.seat.algorithm, machine.state)
    except AlgorithmError as error:
        raise kept_at_home(error, of) from None


def write_report(of: Participant) -> dict[str, Any]:
    """The model and the report in the state folder."""
    host = of.host
    metrics: dict[str, float] = {}
    if host.machine.state is not None:
        estimate = _estimate(of)
        write_whole(
            of.site.state / "model.npz",
            lambda file: np.savez_compressed(file, model=estimate),
            private=True,
        )
        metrics = of.task.evaluate(estimate)  # on public records, or nothing
        save_own_model(of, spent(of), delta_of(of))
    unsigned = {
        **status(of),
        "metrics": metrics,
        "scored_on": of.task.scored_on,
        "algorithm": host.algorithm,
        "run": host.run_id,
        "silent_releases": len(host.left_out),
        "left_over": sum(left_over(host).values()),
        "contributions_left_out": [list(place) for place in host.left_out],
        "skipped_for": {
            host.book.entry(peer).name: count for peer, count in host.absences.skipped_for.items()
        },
        **host.machine.told(),
        **_if_opened(of),
        **_settled(of),
        "assumed": [] if of.privacy is None else list(of.privacy.assumed(of.task)),
        "audit": _audited(of),
        "old_copy": host.broken,
        "complete": complete(host),
        "missed_elsewhere": missed_elsewhere(host),
        "calls_left": host.machine.calls_left,
        "promised": promised(host),
        "took_part": took_part(host),
        "problems": problems(host),
        "notes": notes(host),
    }
    since = host.people.since(host.me, host.identity.fingerprint())
    report = signed(plain(unsigned), host.identity, since)
    write_whole(
        of.site.state / "report.json",
        lambda file: file.write(to_json(report).encode()),
        private=True,
    )
    return report
