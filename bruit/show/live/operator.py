"""What the operator of one real peer may see: this peer's own status and report, and the names of
its neighbors.

Read from the peer's folder only: `site.toml`, the address book, what was agreed on, and
`state/status.json` and `state/report.json`. No journal, no record and no value of anybody, this
peer's own included.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.graphs import graph as named_graph
from bruit.peers.site.site import Site, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.runs.file import read

STALE = 3.0  # seconds after which a peer that runs would have told something new
LARGEST = 2**20  # bytes of a status or report
TOLD = (
    "step",
    "steps",
    "done",
    "neighbors",
    "connected",
    "sent",
    "meetings",
    "bytes_sent",
    "bytes_received",
    "refused",
    "missed",
    "delta",
    "met",
    "waiting_for",
    "unconfirmed",
    "skipped",
    "missing",
    "left_out",
    "releases",
    "releases_planned",
    "releases_sure",
    "budget_agreed",
)
AT_THE_END = ("metrics", "silent_releases", "left_over", "run", "problems", "notes")


def operator_view(site_toml: str | Path) -> dict[str, Any]:
    """One peer as its operator sees it; `state` is waiting (nothing told yet), gathering (its
    neighbors are not there), running, quiet, stopped, failed (it gave up, or went otherwise than
    asked) or done."""
    site = read_site(site_toml)
    book = AddressBook.read(site.folder / site.file.book)
    me = site.file.peer
    if me >= len(book.entries):
        raise ConfigError(
            f"this site is peer {me}, but the address book lists 0..{len(book.entries) - 1}"
        )
    status, age = _read(site.state / "status.json")
    report, _ = _read(site.state / "report.json")
    latest = report if report is not None and _later(site) else status
    shown: dict[str, Any] = {
        "peer": me,
        "name": book.entry(me).name,
        "state": _state(status, report, latest, age),
        "seconds_ago": None if age is None else round(age, 1),
        "others": _neighbors(site, book),
    }
    if latest is None:
        return shown
    shown |= {key: latest.get(key) for key in (*TOLD, *(AT_THE_END if latest is report else ()))}
    epsilon, budget = _number(latest.get("epsilon")), _number(latest.get("budget"))
    left = None if budget is None or epsilon is None else max(0.0, budget - epsilon)
    return {
        **shown,
        "epsilon": epsilon,
        "epsilon_received": _number(latest.get("epsilon_received")),
        "budget": budget,
        "budget_left": left,
    }


def _read(path: Path) -> tuple[dict[str, Any] | None, float | None]:
    """A record the peer wrote, and how many seconds ago; None when there is none yet."""
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(
                f"{path} is larger than {LARGEST} bytes, so it is not what a peer writes"
            )
        found, age = (
            json.loads(path.read_text(encoding="utf-8")),
            time.time() - path.stat().st_mtime,
        )
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} does not hold a record; the peer's state folder is damaged")
    return found, max(0.0, age)


def _later(site: Site) -> bool:
    """Whether the report is the last word: a peer that goes on after a stop writes a newer
    status."""
    status, report = site.state / "status.json", site.state / "report.json"
    return not status.exists() or report.stat().st_mtime >= status.stat().st_mtime


def _state(status: Any, report: Any, latest: Any, age: float | None) -> str:
    if latest is None:
        return "waiting"
    if latest is report and latest.get("problems"):
        return "failed"
    if latest.get("done"):
        return "done"
    if latest is report:
        return "stopped"
    if age is None or age >= STALE:
        return "quiet"
    return "gathering" if latest.get("waiting") else "running"


def _number(value: Any) -> float | None:
    """A number of a status; an infinite one is written as a word, and told as None like one that is
    not there."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _neighbors(site: Site, book: AddressBook) -> list[dict[str, Any]]:
    """Whom this peer talks to: number and name, for the first rounds of a graph that changes."""
    path = site.folder / site.file.experiment
    if not path.is_file():
        raise ConfigError(f"cannot read {path}: there is no such file")
    file, _ = read(path)
    graph = named_graph(file.graph, run_seed=file.seed)
    if graph.n != len(book.entries):
        raise ConfigError(
            f"the graph {graph.name} has {graph.n} peers, the address book {len(book.entries)}"
        )
    graphs = (
        [graph] if isinstance(graph, Graph) else [graph.at(t) for t in range(graph.period or 64)]
    )
    others = sorted({int(v) for one in graphs for v in one.neighbors(site.file.peer)})
    return [{"peer": v, "name": book.entry(v).name} for v in others]
