"""A demonstration: real processes on loopback, one live table, and everyone's model and report at
the end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.live import Live
from rich.table import Table

from bruit.errors import ConfigError
from bruit.peers.founding.nursery import Order
from bruit.peers.site.running import MISSED

STILL = 180.0  # seconds without any sign of life after which a demonstration is given up
GRACE = 10.0  # seconds that a process has for an orderly end
LOOK, FEW = (
    0.1,
    20,
)  # seconds between two looks at the status of so many peers; more are looked at less often
SIGNS = ("step", "connected", "waiting", "sent", "bytes_sent", "bytes_received", "missed", "done")


class Process(Protocol):
    """What is asked of a process here: that of `subprocess`, or of a nursery."""

    returncode: int | None

    def poll(self) -> int | None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


def orders(sites: list[Path], together: int = 1, rehearse: int | None = None) -> list[Order]:
    """Who is hosted by which process."""
    parts = [sites[first : first + together] for first in range(0, len(sites), together)]
    return [
        Order(tuple(str(site) for site in part), str(part[0].parent / "log.txt"), rehearse)
        for part in parts
    ]


def end(processes: Sequence[Process]) -> None:
    """Ask all that still run to end, and kill those that do not; nobody is left behind."""
    going = [process for process in processes if process.poll() is None]
    for process in going:
        process.terminate()
    deadline = time.monotonic() + GRACE * max(1.0, len(going) / FEW)
    for process in going:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read_json(path: Path) -> dict[str, Any]:
    """A status or report file, or nothing while there is none."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def table(statuses: list[dict[str, Any]]) -> Table:
    """What all peers are doing now."""
    shown = Table(title="peers on loopback, mutual TLS 1.3", title_justify="left")
    for name in (
        "peer",
        "step",
        "neighbors",
        "sent",
        "received",
        "epsilon spent",
        "refused",
        "missed",
    ):
        shown.add_column(name, justify="right")
    for peer, now in enumerate(statuses):
        if not now:
            shown.add_row(str(peer), "starting", *[""] * 6)
            continue
        refused = sum(now["refused"].values())
        shown.add_row(
            str(peer),
            f"{now['step']}/{now['steps']}",
            f"{now['connected']}/{now['neighbors']}",
            f"{now['bytes_sent'] / 1024:.0f} KiB",
            f"{now['bytes_received'] / 1024:.0f} KiB",
            f"{float(now['epsilon']):.4g}",
            str(refused),
            str(now["missed"]),
        )
    return shown


def life(site: Path, now: dict[str, Any]) -> tuple[Any, ...]:
    """What of a peer changes while it gets anywhere, from its first file on."""
    return ((site.parent / "state" / "journal.db").exists(), *(now.get(sign) for sign in SIGNS))


def watch(
    sites: list[Path],
    processes: Sequence[Process],
    live: Live | None,
    now: Callable[[], float] = time.monotonic,
) -> list[dict[str, Any]]:
    """Show the table until all processes ended; their reports, in order of peers.

    Patience follows the peers, not the clock: it ends when nothing has moved for a while, however
    many they are.
    """
    seen: list[tuple[Any, ...]] = []
    first: list[int] = []  # who ended badly, before anybody was told to end
    looked, moved = -LOOK, now()
    every = LOOK * max(1.0, len(sites) / FEW)
    try:
        while any(process.poll() is None for process in processes):
            first = [
                place
                for place, process in enumerate(processes)
                if process.returncode not in (None, 0, MISSED)
            ]
            if first:
                break  # the others would wait for it in vain
            if now() >= looked + every:
                statuses = [read_json(site.parent / "state" / "status.json") for site in sites]
                signs = [life(site, status) for site, status in zip(sites, statuses, strict=True)]
                looked, moved = now(), moved if signs == seen else now()
                seen = signs
                if live is not None:
                    live.update(table(statuses))
            if now() > moved + STILL:
                raise ConfigError(
                    f"nothing has moved for {STILL:g} s, so the demonstration was ended;"
                    f" {_how_far(seen)}; see log.txt beside the sites"
                )
            time.sleep(LOOK)
    finally:
        end(processes)
    return _reports(sites, processes, first)


def _reports(
    sites: list[Path], processes: Sequence[Process], first: list[int]
) -> list[dict[str, Any]]:
    """Everybody's report, in order of peers; if a process failed, the last words of the `first`
    that did."""
    together = -(-len(sites) // len(processes))
    reports = [read_json(site.parent / "state" / "report.json") for site in sites]
    ended = [
        all(one.get("done") for one in reports[place * together : (place + 1) * together])
        for place in range(len(processes))
    ]
    failed = [
        place
        for place, process in enumerate(processes)  # to have missed somebody is told, not a failure
        if process.returncode not in (0, MISSED) or not ended[place]
    ]
    if failed:
        guilty = (first or failed)[0]
        words = (
            (sites[guilty * together].parent / "log.txt")
            .read_text(errors="replace")
            .strip()
            .splitlines()
        )
        last = words[-1] if words else "it said nothing"
        raise ConfigError(
            f"peer {guilty * together} ended with code {processes[guilty].returncode}: {last}"
        )
    return reports


def _how_far(seen: list[tuple[Any, ...]]) -> str:
    """How many peers came how far, in words."""
    began, done = sum(one[0] for one in seen), sum(bool(one[-1]) for one in seen)
    return f"of {len(seen)} peers {began} had started and {done} were done"
