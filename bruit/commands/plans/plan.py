"""`bruit plan`: how much noise, which protocol, which graph, what error; and a plan for unequal
trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.misplaced import refuse_given
from bruit.commands.plans.design import answer_design
from bruit.commands.plans.plan_options import PlanOptions
from bruit.commands.plans.silos import answer_silos
from bruit.commands.printing import Detail, Line, Printer, Reply
from bruit.commands.terminal import (
    Delta,
    Dim,
    Dropouts,
    Epsilon,
    Force,
    GraphName,
    Json,
    Quiet,
    Sensitivity,
    Steps,
    program,
)
from bruit.errors import ConfigError
from bruit.files import check_place
from bruit.how_many import how_many

if TYPE_CHECKING:
    from rich.table import Table

    from bruit.planning.question import Question
    from bruit.planning.trust import TrustPlan


def plan(
    graph: GraphName = None,
    algorithm: Annotated[
        str | None, typer.Option(help="A protocol or algorithm; by default the best one.")
    ] = None,
    peers: Annotated[
        int | None, typer.Option(help="How many peers, when no graph says it.")
    ] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    protect: Annotated[
        str, typer.Option(help="worst (every pair) or mean (a summary, no guarantee).")
    ] = "worst",
    caps: Annotated[
        Path | None, typer.Option(help="CSV of pairs with their own epsilon: of,seen_by,epsilon.")
    ] = None,
    contributions: Annotated[int | None, typer.Option(help="Learning: gradients per peer.")] = None,
    cooldown: Annotated[int, typer.Option(help="Walks: hops a peer rests after contributing.")] = 1,
    colluders: Annotated[int, typer.Option(help="How many observers share what they see.")] = 1,
    steps: Steps = None,
    dim: Dim = 1,
    sensitivity: Sensitivity = 1.0,
    silos: Annotated[
        int | None, typer.Option(help="Holders of many records: plan for each record.")
    ] = None,
    records: Annotated[
        str | None, typer.Option(help="Silos: records of each, 200,170,30,85, or one number.")
    ] = None,
    level: Annotated[
        str | None, typer.Option(help="user, or record with --silos; by default as fits.")
    ] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="Silos: replace (a record is another) or add-remove.")
    ] = None,
    dropouts: Dropouts = 0,
    sample_rate: Annotated[
        float | None, typer.Option(help="Silos: chance of a record to be in a batch.")
    ] = None,
    trust: Annotated[
        Path | None, typer.Option(help="CSV of unequal trust: find a graph and a noise per peer.")
    ] = None,
    design: Annotated[
        bool,
        typer.Option("--design", help="Compare graphs of that many peers: whom does one expose?"),
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Write the experiment that is planned; with --trust, into a new folder."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The least noise for a budget, the predicted error, the messages, and how the other protocols
    would do.

    Without a graph one is chosen, with --peers; what follows from the plan cannot be asked for and
    is refused. --silos 4 --records 200,170,30,85 --dim 14 plans for each record of a few holders.

    Example: bruit plan --algorithm walk --graph complete:2000 --contributions 12 --epsilon 1
    --delta 1e-6
    """
    printer = Printer(json=as_json, quiet=quiet)
    asked = PlanOptions(
        graph=graph,
        algorithm=algorithm,
        peers=peers,
        epsilon=epsilon,
        delta=delta,
        protect=protect,
        caps=caps,
        contributions=contributions,
        cooldown=cooldown,
        colluders=colluders,
        steps=steps,
        dim=dim,
        sensitivity=sensitivity,
        silos=silos,
        records=records,
        level=level,
        adjacency=adjacency,
        dropouts=dropouts,
        sample_rate=sample_rate,
        trust=trust,
        design=design,
    )
    asked.refuse_misplaced()
    if design:
        refuse_given("--design compares graphs for any budget", "epsilon", "delta")
    elif trust is not None:
        refuse_given("--trust writes into a new folder", "force")
    if design:
        _check_design(save, force)
        answer_design(printer, peers, graph, steps)
    elif asked.for_silos:
        _check_save(save, force)
        answer_silos(printer, asked.silos_question(), save)
    elif trust is not None:
        printer.answer(_trust(trust, epsilon, delta, peers, save))
    else:
        _check_save(save, force)
        _answer_protocol(printer, asked.question(), algorithm, save)


def _answer_protocol(
    printer: Printer, question: Question, algorithm: str | None, save: Path | None
) -> None:
    """Plan, print, and write the experiment if asked."""
    from bruit.planning.experiment_file import write_experiment
    from bruit.planning.plan import plan as make_plan

    with printer.ticker("planning"):
        found = make_plan(question, algorithm)
        about = found.to_dict()
    if save is not None:
        write_experiment(found, save)
    printer.answer(PlanAnswer(about, save))


def _check_design(save: Path | None, force: bool) -> None:
    """A comparison plans no experiment."""
    if save is not None or force:
        raise ConfigError("--design compares graphs and plans no run; leave out --save and --force")


def _check_save(save: Path | None, force: bool) -> None:
    """Before anything is planned: whether the plan can be written."""
    if force and save is None:
        raise ConfigError("--force is about the file of --save; name one, or leave --force out")
    if save is not None:
        check_place(save)
        if save.exists() and not force:
            raise ConfigError(f"{save} exists; choose another name or add --force")


def _up(noise: float) -> str:
    from bruit.planning.option import rounded_up

    return rounded_up(noise, 6)


@dataclass(frozen=True)
class PlanAnswer:
    """The plan as data, and where its experiment was written."""

    about: dict[str, Any]
    saved: Path | None

    def plain(self) -> dict[str, Any]:
        return self.about | ({} if self.saved is None else {"written": str(self.saved)})

    def lines(self) -> Iterator[Line]:
        yield from _chosen(self.about)
        yield Detail(_alternatives(self.about))
        for protocol, why in self.about["not_applicable"].items():
            yield Detail(f"{protocol}: {why}")
        if self.saved is not None:
            yield f"wrote {self.saved}; try next:\n  {program()} run {self.saved}"


def _chosen(about: dict[str, Any]) -> Iterator[str]:
    """What is planned, what it promises and costs."""
    name, error = _predicted(about)
    most = "at most " if about["predicted"]["upper_bound"] else ""
    much = "no Gaussian noise"
    if about["noise_multiplier"] is not None:
        much = f"noise multiplier {_up(about['noise_multiplier'])} (sigma {_up(about['sigma'])})"
    yield f"{about['protocol']} on {_short(about['graph'])}: {much}, {about['status']}"
    yield f"  {about['claim']}"
    yield f"  by {about['theorem']} ({about['spec']}); trusting: {about['trust']}"
    yield f"  predicted {name}: {most}{error:.4g}  ({about['predicted']['statement']})"
    if about["verdict"]:
        yield f"  {about['verdict']}"
        yield f"  what would help: {'; or '.join(about['would_help'])}"
    yield (
        f"  {how_many(about['steps'], 'step')}, {how_many(about['messages_per_peer'], 'message')} "
        f"and {about['bytes_per_peer']:g} bytes per peer"
    )
    if about["finite_precision"]:
        yield (
            f"  finite precision is inside: it takes {about['finite_precision']:.1e} of epsilon, "
            f"with {how_many(about['dim'], 'number')} in a message"
        )
    for note in about["notes"]:
        yield f"  note: {note}"


LONG_NAME = 48


def _short(graph: str) -> str:
    """A name that fits into a line: one that holds all links or meetings is cut off."""
    return graph if len(graph) <= LONG_NAME else f"{graph[:LONG_NAME]}..."


def _alternatives(about: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title="\nthe same budget, other protocols", title_justify="left")
    for column in (
        "protocol",
        "graph",
        "noise multiplier",
        _predicted(about)[0],
        "messages per peer",
        "status",
        "trust",
    ):
        table.add_column(column)
    for row in about["alternatives"]:
        noise = "-" if row["noise_multiplier"] is None else _up(row["noise_multiplier"])
        table.add_row(
            row["protocol"],
            _short(row["graph"]),
            noise,
            f"{_predicted(row)[1]:.4g}",
            f"{row['messages_per_peer']:g}",
            row["status"],
            row["trust"],
        )
    return table


def _predicted(about: dict[str, Any]) -> tuple[str, float]:
    for key in ("error_of_the_mean", "excess_loss"):
        if key in about["predicted"]:
            return key.replace("_", " "), about["predicted"][key]
    raise ConfigError("this plan predicts nothing")


def _trust(path: Path, epsilon: float, delta: float, peers: int | None, save: Path | None) -> Reply:
    from bruit.planning.trust import facts_of, plan_trust, read_trust, write_trust

    caps = read_trust(path, epsilon, peers)
    found = plan_trust(caps, delta)
    if save is not None:
        write_trust(found, save, delta)
    about = facts_of(found, caps, delta)
    return Reply(about, _trusting(found, about, save))


def _trusting(found: TrustPlan, about: dict[str, Any], save: Path | None) -> Iterator[str]:
    from bruit.planning.trust.files import last_graph

    yield (
        f"{how_many(len(about['edges']), 'link')} among {about['peers']} peers, "
        f"{how_many(found.steps, 'round')} of {found.algorithm};"
        f" every cap holds (the tightest pair uses {100 * about['tightest']:.1f} % of its epsilon),"
        f" user level, delta = {about['delta']:g}"
    )
    yield f"  {found.status}, rounding included: {found.theorem}"
    for circle in found.circles:
        yield (
            f"  circle of {', '.join(map(str, circle))}: they average among themselves first, and"
            " others see their mean only"
        )
    graph = last_graph(found)
    for u, z in enumerate(found.multipliers.tolist()):
        yield (
            f"  peer {u}: noise multiplier {_up(z)}, talks to "
            f"{', '.join(map(str, graph.neighbors(u).tolist()))}"
        )
    yield (
        f"error of the mean {found.error:.4g}; local DP with a noise per peer"
        f" {found.local_error:.4g}, with one noise for all {found.equal_error:.4g}"
    )
    if save is not None:
        yield f"wrote {save / 'experiment.toml'}; try next:\n  {program()} run {save / 'experiment.toml'}"
