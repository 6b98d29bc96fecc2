"""The whole demonstration on one screen: found, start, watch; what was learned, and everyone's
account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bruit.algorithms.algorithm import EVERYBODY
from bruit.arrays import Array
from bruit.graphs.sequence import Butterfly, butterfly
from bruit.how_many import how_many
from bruit.peers.engine import held_ports
from bruit.peers.founding.demo import orders, table, watch
from bruit.peers.founding.founding import START_TIMEOUT, plan_network, settle
from bruit.peers.founding.nursery import Nursery
from bruit.peers.site.agreed_run import AgreedRun
from bruit.peers.site.signed_report import check, disagreements
from bruit.peers.wire.address_book import AddressBook
from bruit.privacy.guarantee import level_words
from bruit.privacy.pair_table import Summary
from bruit.runs.run import rehearse
from bruit.show import summary as report
from bruit.tasks import Task

BUNDLED = "real-peers"  # the experiment that is shown unless another one is named
GRADIENTS = 2  # of the bundled experiment, each followed by exchanges until all agree
# peers up to which the bundled experiment deals classes unevenly; among more some would get no
# records
SKEWED = 24


@dataclass(frozen=True)
class DemonstrationScores:
    """What was learned, measured by whoever plays everybody and so knows all records: by peer, and
    in comparison."""

    metric: str
    each: tuple[float, ...]
    together: float
    alone: float
    central: float

    @property
    def better(self) -> bool:
        """Whether peers did better together than each alone: accuracy is to be high, errors are to
        be low."""
        return (
            self.together > self.alone if self.metric == "accuracy" else self.together < self.alone
        )


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """How it ended, for programs and for people."""

    reports: list[dict[str, Any]]
    scores: DemonstrationScores | None
    verdict: str | None
    summary: Summary | None
    why: str  # why there is no summary
    missed: bool
    flaws: list[str]  # why the signed reports cannot all be believed

    @property
    def code(self) -> int:
        """0 when everybody took part to the end, 1 when somebody was missed on the way, one had
        another problem, or a signature does not hold."""
        wrong = self.missed or self.flaws or any(one["problems"] for one in self.reports)
        return 1 if wrong else 0

    def plain(self) -> dict[str, Any]:
        scores = self.scores
        return {
            "reports": self.reports,
            "verified": not self.flaws,
            "flaws": self.flaws,
            "scores": None if scores is None else {**vars(scores), "better": scores.better},
            "privacy": None if self.summary is None else report.summary_json(self.summary),
        }

    def lines(self) -> Iterator[RenderableType]:
        yield _reports(self.reports, self.scores)
        for one in self.reports:
            yield from (Text(f"peer {one['peer']}: {word}") for word in one["problems"])
        yield from (Text(f"NOT VERIFIED: {word}") for word in self.flaws)
        if not self.flaws:
            yield Text(
                f"{how_many(len(self.reports), 'signed report')} verified: each by the key in the address"
                " book, all of one run"
            )
        if self.scores is not None and self.verdict is not None:
            yield _comparison(self.scores)
            yield Text(self.verdict)
        if self.summary is None:
            against = _against(self.reports)
            which = "the local epsilon of each peer"
            if against != "local":
                which = f"the epsilon of each peer {against}"
            yield Text(f"{self.why}: only {which} holds")
        else:
            yield report.privacy_table(self.summary)
            yield report.privacy_notes(self.summary)


def demonstrate(
    peers: int,
    experiment: str,
    graph: str | None,
    home: Path,
    screen: Console | None = None,
    together: int = 1,
) -> Demonstration:
    """Run it, watched on a screen if there is one: what was learned, the reports, and what any peer
    could have learned about any other."""
    agreed = plan_demonstration(peers, experiment, graph)
    sites = settle(
        agreed, home, timeout=patience(peers), start_timeout=max(START_TIMEOUT, 5.0 * peers)
    )
    book = AddressBook.read(sites[0].parent / "book.toml")
    ports = [entry.port for entry in book.entries]
    with held_ports(ports), Nursery(orders(sites, together), home / "nursery.txt") as nursery:
        if screen is None:
            reports = watch(sites, nursery.children, None)
        else:
            with Live(
                table([{}] * peers), console=screen, refresh_per_second=8, transient=True
            ) as live:
                reports = watch(sites, nursery.children, live)
    scores = _scores(agreed, np.vstack([_model(site) for site in sites]))
    missed = any(one["missed"] or not one["done"] for one in reports)
    summary, why = (None, "somebody was missed on the way") if missed else _summary(agreed)
    sentence = None if scores is None else verdict(scores, agreed)
    return Demonstration(
        reports=reports,
        scores=scores,
        verdict=sentence,
        summary=summary,
        why=why,
        missed=missed,
        flaws=unverified(sites, book),
    )


def unverified(sites: list[Path], book: AddressBook) -> list[str]:
    """What `bruit peer report` finds wrong with everybody's signed report: nothing, if all is well."""
    found = [check(site.parent / "state" / "report.json", book) for site in sites]
    return [f"{one.path}: {one.wrong}" for one in found if one.wrong] + disagreements(found)


def patience(peers: int) -> float:
    """How many seconds a peer waits for another one in a round: all of them share this machine."""
    return max(20.0, float(peers))


def plan_demonstration(
    peers: int, experiment: str = BUNDLED, graph: str | None = None
) -> AgreedRun[Task]:
    """What is shown. The bundled experiment gets a butterfly of the asked size, and as many
    exchanges per gradient as that has digits."""
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


def _scores(agreed: AgreedRun[Task], models: Array) -> DemonstrationScores | None:
    """None when the experiment asks for no comparison (references = false)."""
    if not agreed.file.references:
        return None
    task = agreed.task
    each = tuple(task.judge(models, peer).value for peer in range(len(models)))
    known = task.references()
    return DemonstrationScores(
        task.metric, each, task.evaluate(models)[task.metric], known["alone"], known["central"]
    )


def _reports(reports: list[dict[str, Any]], scores: DemonstrationScores | None) -> Table:
    shown = Table(
        title="everyone's own model and account",
        title_justify="left",
        caption=_of_what(reports),
        caption_justify="left",
    )
    for name in (
        "peer",
        *(() if scores is None else (scores.metric,)),
        "messages",
        "bytes sent",
        f"epsilon spent ({_against(reports)})",
    ):
        shown.add_column(name, justify="right")
    for place, one in enumerate(reports):
        score = () if scores is None else (f"{scores.each[place]:.4f}",)
        spent = f"{float(one['epsilon']):.4g}"
        shown.add_row(str(one["peer"]), *score, str(one["sent"]), str(one["bytes_sent"]), spent)
    return shown


def _against(reports: list[dict[str, Any]]) -> str:
    """Whom the epsilons in the reports hold against."""
    found = {one.get("against", EVERYBODY) for one in reports} - {EVERYBODY}
    return f"against {found.pop()}" if len(found) == 1 else "local"


def _of_what(reports: list[dict[str, Any]]) -> str | None:
    """At which delta the epsilons hold, and what they are about, where there is noise."""
    one = reports[0]
    if "level" not in one:
        return None
    protected = level_words(one["level"], one.get("adjacency", "replace"))
    return f"epsilon at delta = {one['delta']:g}, {protected}"


def _comparison(scores: DemonstrationScores) -> Table:
    shown = Table(
        title=f"was it worth it? ({scores.metric}, mean over peers)", title_justify="left"
    )
    shown.add_column("who")
    shown.add_column(scores.metric, justify="right")
    shown.add_row(report.REFERENCES["alone"], f"{scores.alone:.4f}")
    shown.add_row("together, with bruit", f"{scores.together:.4f}", style="bold")
    shown.add_row(report.REFERENCES["central"], f"{scores.central:.4f}")
    return shown


def verdict(scores: DemonstrationScores, agreed: AgreedRun[Task]) -> str:
    """Whether it was worth it, in one sentence; if not, why, and what would help."""
    if agreed.privacy is None:
        hidden = "Nothing is hidden: there is no noise."
    else:
        whole = (
            "everything that one peer holds"
            if agreed.privacy.level == "user"
            else "one record of a peer"
        )
        hidden = f"The noise hides {whole} ({agreed.privacy.level} level)."
    if scores.better:
        return f"Together is better than alone. {hidden}"
    if agreed.privacy is None:
        return f"Together is not better than alone here. {hidden} More steps would help, or peers that hold less each."
    return (
        f"Together is not better than alone here. {hidden} Only {agreed.graph.n} peers share its"
        " cost, which shrinks with their number. What would help: more peers (--peers), a larger"
        " epsilon, fewer numbers to learn (task.components), or records that a peer alone learns"
        " less from."
    )


def _summary(agreed: AgreedRun[Task]) -> tuple[Summary | None, str]:
    """What the agreed experiment lets anybody learn when nobody is missed, from public facts only;
    or why not.

    Only rounds are agreed on ahead: meetings and walks are drawn by the peers themselves, and
    nobody knows them all.
    """
    graph, algorithm, noise, about = (
        agreed.graph,
        agreed.algorithm,
        agreed.privacy,
        agreed.file.privacy,
    )
    if about is None or noise is None:
        return None, "there was no privacy"
    if not algorithm.schedule.synchronous:
        return None, "nobody knows all the meetings that took place"
    if not isinstance(graph, Butterfly) and graph.n > 512:
        return None, "all pairs of so many peers take too long"
    known = rehearse(algorithm, graph, noise, agreed.steps, agreed.file.seed, agreed.task.width)
    return known.summary(about.delta), ""
