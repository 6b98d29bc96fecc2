"""The whole demonstration on one screen: found, start, watch; what was learned, and everyone's account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from bruit import report
from bruit.algorithms.schedules import Rounds
from bruit.arrays import Array
from bruit.experiment import rehearse
from bruit.graphs.sequence import Butterfly, butterfly
from bruit.privacy.account import Summary
from bruit.sites.agreed_run import AgreedRun
from bruit.sites.demo import start, table, watch
from bruit.sites.founding import plan_network, settle
from bruit.tasks import Task

BUNDLED = "real-peers"  # the experiment that is shown unless another one is named
GRADIENTS = 2  # of the bundled experiment, each followed by exchanges until all agree
SKEWED = 24  # peers up to which the bundled experiment deals classes unevenly; among more some would get no records


@dataclass(frozen=True)
class Scores:
    """What was learned, measured by whoever plays everybody and so knows all records: by peer, and in comparison."""

    metric: str
    each: tuple[float, ...]
    together: float
    alone: float
    central: float

    @property
    def better(self) -> bool:
        """Whether peers did better together than each alone: accuracy is to be high, errors are to be low."""
        return self.together > self.alone if self.metric == "accuracy" else self.together < self.alone


def demonstrate(peers: int, experiment: str, graph: str | None, home: Path, console: Console, screen: Console | None,
                emit: Callable[[Any], None] | None, together: int = 1) -> int:  # fmt: skip
    """Run it, then print (or emit) what was learned, the reports, and what any peer could have learned about any other.

    0 when everybody took part to the end, 1 when somebody was missed on the way or one had another problem.
    """
    agreed = plan_demonstration(peers, experiment, graph)
    sites = settle(agreed, home, timeout=20.0)
    processes = start(sites, together=together)
    if screen is None:
        reports = watch(sites, processes, None)
    else:
        with Live(table([{}] * peers), console=screen, refresh_per_second=8, transient=True) as live:
            reports = watch(sites, processes, live)
    scores = _scores(agreed, np.vstack([_model(site) for site in sites]))
    missed = any(one["missed"] for one in reports)
    summary, why = (None, "somebody was missed on the way") if missed else _summary(agreed)
    if emit is not None:
        emit({"reports": reports, "scores": None if scores is None else {**vars(scores), "better": scores.better},
              "privacy": None if summary is None else report.summary_json(summary)})  # fmt: skip
    else:
        _show(console, agreed, reports, scores, summary, why)
    return 1 if missed or any(one["problems"] for one in reports) else 0


def plan_demonstration(peers: int, experiment: str = BUNDLED, graph: str | None = None) -> AgreedRun[Task]:
    """What is shown. The bundled experiment gets a butterfly of the asked size, and as many exchanges per gradient as
    that has digits."""
    changes: dict[str, str] = {}
    if experiment == BUNDLED and graph is None and peers > 1:
        graph = f"butterfly:{peers},relabel=true"
        digits = len(butterfly(peers).radices)
        changes = {"mixing": str(digits), "steps": str(GRADIENTS * digits)}
    if experiment == BUNDLED and peers > SKEWED:
        changes["split"] = '"iid"'
    return plan_network(experiment, peers, graph, changes)


def _model(site: Path) -> Array:
    with np.load(site.parent / "state" / "model.npz", allow_pickle=False) as stored:
        return np.asarray(stored["model"], np.float64)


def _scores(agreed: AgreedRun[Task], models: Array) -> Scores | None:
    """None when the experiment asks for no comparison (references = false)."""
    if not agreed.file.references:
        return None
    task = agreed.task
    each = tuple(task.evaluate(row[None])[task.metric] for row in models)
    known = task.references()
    return Scores(task.metric, each, task.evaluate(models)[task.metric], known["alone"], known["central"])


def _show(console: Console, agreed: AgreedRun[Task], reports: list[dict[str, Any]], scores: Scores | None,
          summary: Summary | None, why: str) -> None:  # fmt: skip
    console.print(_reports(reports, scores))
    if scores is not None:
        console.print(_comparison(scores))
        console.print(verdict(scores, agreed))
    if summary is None:
        console.print(f"{why}: only the local epsilon of each peer holds")
    else:
        console.print(report.privacy_table(summary))
        console.print(report.privacy_notes(summary))


def _reports(reports: list[dict[str, Any]], scores: Scores | None) -> Table:
    shown = Table(title="everyone's own model and account", title_justify="left")
    for name in ("peer", *(() if scores is None else (scores.metric,)), "messages", "bytes sent",
                 "epsilon spent (local)"):  # fmt: skip
        shown.add_column(name, justify="right")
    for place, one in enumerate(reports):
        score = () if scores is None else (f"{scores.each[place]:.4f}",)
        spent = f"{float(one['epsilon']):.4g}"
        shown.add_row(str(one["peer"]), *score, str(one["sent"]), str(one["bytes_sent"]), spent)
    return shown


def _comparison(scores: Scores) -> Table:
    shown = Table(title=f"was it worth it? ({scores.metric}, mean over peers)", title_justify="left")
    shown.add_column("who")
    shown.add_column(scores.metric, justify="right")
    shown.add_row(report.REFERENCES["alone"], f"{scores.alone:.4f}")
    shown.add_row("together, with bruit", f"{scores.together:.4f}", style="bold")  # consoles here take no markup
    shown.add_row(report.REFERENCES["central"], f"{scores.central:.4f}")
    return shown


def verdict(scores: Scores, agreed: AgreedRun[Task]) -> str:
    """Whether it was worth it, in one sentence; if not, why, and what would help."""
    if agreed.privacy is None:
        hidden = "Nothing is hidden: there is no noise."
    else:
        whole = "everything that one peer holds" if agreed.privacy.level == "user" else "one record of a peer"
        hidden = f"The noise hides {whole} ({agreed.privacy.level} level)."
    if scores.better:
        return f"Together is better than alone. {hidden}"
    if agreed.privacy is None:
        return f"Together is not better than alone here. {hidden} More steps would help, or peers that hold less each."
    return (
        f"Together is not better than alone here. {hidden} Only {agreed.graph.n} peers share its cost, which shrinks"
        " with their number. What would help: more peers (--peers), a larger epsilon, fewer numbers to learn"
        " (task.components), or records that a peer alone learns less from."
    )


def _summary(agreed: AgreedRun[Task]) -> tuple[Summary | None, str]:
    """What the agreed experiment lets anybody learn when nobody is missed, from public facts only; or why not.

    Only rounds are agreed on ahead: meetings and walks are drawn by the peers themselves, and nobody knows them all.
    """
    graph, algorithm, noise, about = agreed.graph, agreed.algorithm, agreed.privacy, agreed.file.privacy
    if about is None or noise is None:
        return None, "there was no privacy"
    if not isinstance(algorithm.schedule, Rounds):
        return None, "nobody knows all the meetings that took place"
    if not isinstance(graph, Butterfly) and graph.n > 512:
        return None, "all pairs of so many peers take too long"
    known = rehearse(algorithm, graph, noise, agreed.steps, agreed.file.seed, agreed.task.width)
    return known.summary(about.delta), ""
