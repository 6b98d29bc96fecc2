"""Running one participant: status while it runs, a report at its end, and an orderly stop on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np

from bruit.algorithms.doorway import believed
from bruit.errors import ConfigError
from bruit.network.host import Host
from bruit.privacy.ledger import Budget, Ledger
from bruit.sites.own_model import save_own_model
from bruit.sites.site import Participant
from bruit.sites.verdict import left_over, met, missing, notes, problems
from bruit.whole_files import to_json, write_whole

log = logging.getLogger("bruit.network")
EVERY = 0.2  # seconds between two status files
MISSED, STOPPED = 1, 130  # exit codes: it went otherwise than asked; stopped before the end, the next start goes on


def status(of: Participant) -> dict[str, Any]:
    """What the operator of a peer may see while it runs.

    `sent` counts messages that arrived, by the word of their receivers; `epsilon` all that was spent, and
    `epsilon_received` what is in messages that arrived.
    """
    host = of.host
    up = sum(line.connected for line in host.lines.values())
    sent, total = host.receipts.confirmed(host.journal), spent(of)
    return {
        "peer": host.me, "step": host.machine.count, "steps": host.machine.seat.steps, "done": host.ended or host.done,
        "neighbors": len(host.lines), "connected": up, "met": len(met(host)),
        "waiting_for": host.gathering.missing() if host.gathering.waiting else [], "waiting": host.gathering.waiting,
        "sent": sent, "unconfirmed": host.sent - sent, "meetings": len(host.meetings), "skipped": host.skipped,
        "bytes_sent": sum(line.sent_bytes for line in host.lines.values()), "bytes_received": host.ears.received_bytes,
        "refused": refusals(host), "missed": len([miss for miss in host.missed if not miss.late]),
        "missing": [host.book.entry(peer).name for peer in missing(host)], "left_out": len(host.left_out),
        "epsilon": total, "epsilon_received": received(of, total), "delta": delta_of(of),
        "budget": None if of.budget is None else of.budget.epsilon, "rehearsal": of.rehearsed,
    }  # fmt: skip


def refusals(host: Host) -> dict[str, int]:
    """What was refused, by kind: callers, frames, messages, repetitions, and receipts of what was never sent."""
    receipts = sum(line.refused for line in host.lines.values())
    return {**host.refused, "receipt": receipts} if receipts else dict(host.refused)


def delta_of(of: Participant) -> float:
    return 1e-6 if of.budget is None else of.budget.delta


def spent(of: Participant) -> float:
    """Epsilon of everything this peer has released so far, against everybody (local DP)."""
    return _epsilon(of, of.host.ledger)


def received(of: Participant, total: float) -> float:
    """What of the `total` epsilon is in messages that arrived: nobody has confirmed to have seen the rest."""
    host = of.host
    seen = host.receipts.seen_lines(host.journal)
    return total if seen >= host.ledger.calls else _epsilon(of, host.ledger.head(seen))


def _epsilon(of: Participant, ledger: Ledger) -> float:
    if not ledger.is_data().any() or ledger.has_exact():  # known without loading an accountant
        return math.inf if ledger.has_exact() else 0.0
    return Budget(1.0, delta_of(of)).spent(ledger, of.host.me)


def last_line(of: Participant) -> str:
    """How it ended, in one line: steps, what arrived, what was missed, what was spent and who saw it."""
    now, host = status(of), of.host
    name = host.book.entry(host.me).name
    who = f"peer {host.me}" if name == f"peer-{host.me}" else f"peer {host.me} ({name})"
    if host.gave_up and host.machine.state is None:
        return f"{who}: {host.gave_up}; report in {of.site.state}"
    steps = f"{now['step']} of {now['steps']} steps"
    if host.settings.horizon is not None:
        steps = f"{now['step']} updates in {now['steps']} units of time"
    word = "epsilon spent" if not of.rehearsed else "rehearsed, nothing is protected: epsilon would be"
    parts = [steps, f"{now['sent']} messages sent", *problems(host), *notes(host),
             f"{word} {now['epsilon']:.4g} at delta {now['delta']:g}{_unseen(now)}"]  # fmt: skip
    return f"{who}: {', '.join(parts)}; report in {of.site.state}"


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
            log.warning("the budget is spent: peer %d goes on with the full noise and without its data", of.host.me)


def metrics_text(of: Participant) -> str:
    """The same numbers in the text format of Prometheus."""
    lines = []
    for name, value in status(of).items():
        value = len(value) if isinstance(value, list) else value
        if isinstance(value, bool | int | float):
            lines.append(f"# TYPE bruit_{name} gauge\nbruit_{name}{{peer=\"{of.host.me}\"}} {float(value)}")
    lines += [f'bruit_refused_total{{peer="{of.host.me}",kind="{kind}"}} {n}' for kind, n in of.host.refused.items()]
    return "\n".join(lines) + "\n"


async def _serve_metrics(of: Participant, port: int) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            body = metrics_text(of).encode()
            head = f"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, "127.0.0.1", port)
    except OSError as error:
        raise ConfigError(f"the metrics port {port} cannot be used: {error.strerror}") from None


def _show(of: Participant, notice: _Notice) -> None:
    notice(of)
    write_whole(of.site.state / "status.json", lambda file: file.write(to_json(status(of)).encode()))


async def _watch(of: Participant, notice: _Notice) -> None:
    while True:
        _show(of, notice)
        await asyncio.sleep(EVERY)


async def _run_all(people: list[Participant], metrics_port: int | None, ready: Callable[[], None] | None) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for one in people:
            one.host.stop()

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    if ready is not None:
        ready()
    ports = [None if metrics_port is None else metrics_port + k for k in range(len(people))]
    await asyncio.gather(*(_run(one, port) for one, port in zip(people, ports, strict=True)))


async def _run(of: Participant, metrics_port: int | None) -> None:
    server = None if metrics_port is None else await _serve_metrics(of, metrics_port)
    notice = _Notice()
    watcher = asyncio.create_task(_watch(of, notice))
    try:
        await of.host.run()
        _show(of, notice)
    finally:
        watcher.cancel()
        if server is not None:
            server.close()


def run_participants(
    people: list[Participant], metrics_port: int | None = None, ready: Callable[[], None] | None = None
) -> int:
    """Take part until the end, several peers in one process if asked to. The exit code: 0 when all of them ended as
    asked, 1 when one met nobody, missed more than planned or gave up, 130 when one was stopped and can go on later.
    Metrics of the k-th peer are served on the k-th port from `metrics_port`."""
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
        write_report(one)
        for problem in problems(one.host):
            log.warning("peer %d: %s", one.host.me, problem)
    if any(not one.host.ended and not one.host.gave_up for one in people):
        return STOPPED
    return MISSED if any(problems(one.host) for one in people) else 0


def write_report(of: Participant) -> dict[str, Any]:
    """The model and the report in the state folder."""
    host = of.host
    metrics: dict[str, float] = {}
    if host.machine.state is not None:
        estimate = believed(host.machine.seat.algorithm, host.machine.state)
        write_whole(of.site.state / "model.npz", lambda file: np.savez_compressed(file, model=estimate))
        (of.site.state / "model.npz").chmod(0o600)  # as model.json: a model of its own is for this participant only
        metrics = of.task.evaluate(estimate)
        save_own_model(of, spent(of), delta_of(of))
    report = {**status(of), "metrics": metrics, "scored_on": of.task.scored_on, "algorithm": host.algorithm,
              "run": host.run_id, "silent_releases": len(host.left_out), "left_over": sum(left_over(host).values()),
              "contributions_left_out": [list(place) for place in host.left_out],
              "skipped_for": {host.book.entry(peer).name: count for peer, count in host.skipped_for.items()},
              "problems": problems(host), "notes": notes(host)}  # fmt: skip
    write_whole(of.site.state / "report.json", lambda file: file.write(to_json(report).encode()))
    return report
