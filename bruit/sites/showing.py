"""The whole demonstration on one screen: found, start, watch, and the table of everyone's model and account."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from bruit import report
from bruit.algorithms.schedules import Rounds
from bruit.build import build_privacy, protocol
from bruit.config import parse
from bruit.entrance import refuse_for_real_peers
from bruit.experiment import rehearse
from bruit.graphs.sequence import Butterfly, butterfly
from bruit.privacy.account import Summary
from bruit.sites.demo import start, table, watch
from bruit.sites.founding import found
from bruit.sites.own_records import read_share
from bruit.sites.site import read_site


def demonstrate(peers: int, experiment: str, graph: str | None, home: Path, console: Console, screen: Console | None,
                emit: Callable[[Any], None] | None, together: int = 1) -> None:  # fmt: skip
    """Run it, then print (or emit) the reports and what any peer could have learned about any other.

    The bundled experiment gets a butterfly of the asked size, and as many exchanges per gradient as that has digits.
    """
    changes: dict[str, str] = {}
    if experiment == "real-peers" and graph is None:
        graph = f"butterfly:{peers},relabel=true"
        digits = len(butterfly(peers).radices)
        changes = {"mixing": str(digits), "steps": str(3 * digits)}
    sites = found(experiment, peers, graph, home, timeout=20.0, changes=changes)
    processes = start(sites, together=together)
    if screen is None:
        reports = watch(sites, processes, None)
    else:
        with Live(table([{}] * peers), console=screen, refresh_per_second=8, transient=True) as live:
            reports = watch(sites, processes, live)
    first = read_site(sites[0])
    share, _ = read_share(first.folder / first.file.records, first.file.peer, peers)
    summary, why = _summary(sites[0].parent / "experiment.toml", share.width)
    if any(one["missed"] for one in reports):
        summary, why = None, "somebody was missed on the way"
    if emit is not None:
        emit({"reports": reports, "privacy": None if summary is None else report.summary_json(summary)})
        return
    console.print(_reports(reports))
    if summary is None:
        console.print(f"{why}: only the local epsilon of each peer holds")
    else:
        console.print(report.privacy_table(summary))
        console.print(report.privacy_notes(summary))


def _reports(reports: list[dict[str, Any]]) -> Table:
    shown = Table(title="everyone's own model and account", title_justify="left")
    names = list(reports[0]["metrics"])[:1]
    for name in ("peer", *names, "messages", "bytes sent", "epsilon spent (local)"):
        shown.add_column(name, justify="right")
    for one in reports:
        scores = (f"{one['metrics'][name]:.4f}" for name in names)
        spent = f"{float(one['epsilon']):.4g}"
        shown.add_row(str(one["peer"]), *scores, str(one["sent"]), str(one["bytes_sent"]), spent)
    return shown


def _summary(path: Path, width: int) -> tuple[Summary | None, str]:
    """What the agreed experiment lets anybody learn when nobody is missed, from public facts only; or why not.

    `width` is how many numbers a value has: noise and rounding depend on it. Only rounds are agreed on ahead: meetings
    and walks are drawn by the peers themselves, and nobody knows them all.
    """
    text = path.read_text()
    file = parse(text, path.name)
    agreed = protocol(file, text, path.name)
    graph, algorithm, steps = agreed.graph, agreed.algorithm, agreed.steps
    noise = None if file.privacy is None else build_privacy(file.privacy, algorithm, graph, steps, file.seed, width)
    refuse_for_real_peers(algorithm, noise)
    if file.privacy is None or noise is None:
        return None, "there was no privacy"
    if not isinstance(algorithm.schedule, Rounds):
        return None, "nobody knows all the meetings that took place"
    if not isinstance(graph, Butterfly) and graph.n > 512:
        return None, "all pairs of so many peers take too long"
    return rehearse(algorithm, graph, noise, steps, file.seed, width).summary(file.privacy.delta), ""
