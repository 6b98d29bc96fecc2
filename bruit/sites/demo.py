"""A demonstration: real processes on loopback, one live table, and everyone's model and report at the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.table import Table

from bruit.errors import ConfigError
from bruit.sites.running import MISSED

PATIENCE = 300.0  # seconds for the whole demonstration


def start(sites: list[Path], rehearse: int | None = None, together: int = 1) -> list[subprocess.Popen[bytes]]:
    """One process per participant, or per `together` of them; their words go to a log file beside the first site."""
    extra = [] if rehearse is None else ["--rehearse", str(rehearse)]
    processes = []
    for first in range(0, len(sites), together):
        hosted = [str(site) for site in sites[first : first + together]]
        with open(sites[first].parent / "log.txt", "wb") as log:
            command = [sys.executable, "-m", "bruit", "peer", "run", *hosted, "--quiet", *extra]
            processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
    return processes


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
    for name in ("peer", "step", "neighbors", "sent", "received", "epsilon spent", "refused", "missed"):
        shown.add_column(name, justify="right")
    for peer, now in enumerate(statuses):
        if not now:
            shown.add_row(str(peer), "starting", *[""] * 6)
            continue
        refused = sum(now["refused"].values())
        shown.add_row(
            str(peer), f"{now['step']}/{now['steps']}", f"{now['connected']}/{now['neighbors']}",
            f"{now['bytes_sent'] / 1024:.0f} KiB", f"{now['bytes_received'] / 1024:.0f} KiB",
            f"{float(now['epsilon']):.4g}", str(refused), str(now["missed"]),
        )  # fmt: skip
    return shown


def watch(sites: list[Path], processes: list[subprocess.Popen[bytes]], live: Live | None,
          now: Callable[[], float] = time.monotonic) -> list[dict[str, Any]]:  # fmt: skip
    """Show the table until all processes ended; their reports, in order of peers."""
    deadline = now() + PATIENCE
    try:
        while any(process.poll() is None for process in processes):
            if live is not None:
                live.update(table([read_json(site.parent / "state" / "status.json") for site in sites]))
            if now() > deadline:
                raise ConfigError(f"the demonstration did not end within {PATIENCE:g} s; see log.txt beside the sites")
            time.sleep(0.1)
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait(10)
    together = -(-len(sites) // len(processes))
    reports = [read_json(site.parent / "state" / "report.json") for site in sites]
    ended = [all(one.get("done") for one in reports[place * together : (place + 1) * together])
             for place in range(len(processes))]  # fmt: skip
    failed = [place for place, process in enumerate(processes)  # to have missed somebody is told, not a failure
              if process.returncode not in (0, MISSED) or not ended[place]]  # fmt: skip
    if failed:
        words = (sites[failed[0] * together].parent / "log.txt").read_text(errors="replace").strip().splitlines()
        last = words[-1] if words else "it said nothing"
        raise ConfigError(f"peer {failed[0]} ended with code {processes[failed[0]].returncode}: {last}")
    return reports
