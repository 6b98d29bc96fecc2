"""`bruit plan`: how much noise, which protocol, which graph, what error; and a plan for unequal trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.errors import ConfigError
from bruit.terminal import (
    Delta,
    Dim,
    Epsilon,
    Force,
    GraphName,
    Json,
    Quiet,
    Sensitivity,
    Steps,
    Ticker,
    emit_json,
    out,
    program,
    say,
)
from bruit.whole_files import check_place, write_whole

if TYPE_CHECKING:
    from bruit.privacy.guarantee import Epsilon as Loss
    from bruit.result import Run


def plan(
    graph: GraphName = None,
    algorithm: Annotated[str | None, typer.Option(help="A protocol or algorithm; left out: the best one.")] = None,
    peers: Annotated[int | None, typer.Option(help="How many peers, when no graph says it.")] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    protect: Annotated[str, typer.Option(help="worst (every pair) or mean (a summary, no guarantee).")] = "worst",
    caps: Annotated[Path | None, typer.Option(help="CSV of pairs with their own epsilon: of,seen_by,epsilon.")] = None,
    contributions: Annotated[int | None, typer.Option(help="Learning: gradients per peer.")] = None,
    cooldown: Annotated[int, typer.Option(help="Walks: hops a peer rests after contributing.")] = 1,
    colluders: Annotated[int, typer.Option(help="How many observers share what they see.")] = 1,
    steps: Steps = None,
    dim: Dim = 1,
    sensitivity: Sensitivity = 1.0,
    trust: Annotated[Path | None, typer.Option(help="CSV of unequal trust: find a graph and a noise per peer.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the experiment that is planned; with --trust, a folder of noises.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The least noise for a budget, the predicted error, the messages, and how the other protocols would do.

    Without a graph one is chosen, with --peers; what follows from the plan cannot be asked for and is refused.

    Example: bruit plan --algorithm walk --graph complete:2000 --contributions 12 --epsilon 1 --delta 1e-6
    """
    if trust is not None:
        given = {"--graph": graph is not None, "--algorithm": algorithm is not None, "--caps": caps is not None,
                 "--contributions": contributions is not None, "--steps": steps is not None,
                 "--protect": protect != "worst", "--cooldown": cooldown != 1, "--colluders": colluders != 1,
                 "--dim": dim != 1, "--sensitivity": sensitivity != 1}  # fmt: skip
        named = [name for name, asked in given.items() if asked]
        if named:
            raise ConfigError(f"--trust finds graph and noise itself, in units of the sensitivity; leave out"
                              f" {', '.join(named)}")  # fmt: skip
        _trust(trust, epsilon, delta, peers, save, as_json)
        return
    from bruit.graphs import graph as named_graph
    from bruit.planning.experiment_file import experiment_text
    from bruit.planning.plan import plan as make_plan
    from bruit.planning.question import Question
    from bruit.planning.trust import read_trust

    chosen = None if graph in (None, "choose") else named_graph(str(graph))
    n = chosen.n if chosen is not None else peers
    if n is None:
        raise ConfigError("say how many peers there are: --graph complete:2000, or --peers 2000 to have one chosen")
    if peers is not None and chosen is not None and peers != chosen.n:
        raise ConfigError(f"--peers {peers} contradicts the graph {chosen.name} with its {chosen.n} peers")
    if protect not in ("worst", "mean"):
        raise ConfigError(f"--protect is worst or mean, found {protect!r}")
    if force and save is None:
        raise ConfigError("--force is about the file of --save; name one, or leave --force out")
    if save is not None:
        check_place(save)
        if save.exists() and not force:
            raise ConfigError(f"{save} exists; choose another name or add --force")
    learns = contributions is not None or algorithm in ("walk-sgd", "gossip-sgd", "walk")
    question = Question(
        n, epsilon, delta, "learning" if learns else "mean", chosen, steps, protect,  # type: ignore[arg-type]
        None if caps is None else read_trust(caps, epsilon, n), contributions or 1, cooldown, colluders, dim,
        sensitivity=sensitivity,
    )  # fmt: skip
    with Ticker(quiet or as_json, "planning"):
        found = make_plan(question, algorithm)
        about = found.to_dict()
    if save is not None:
        text = experiment_text(found)
        write_whole(save, lambda file: file.write(text.encode()))
    if as_json:
        emit_json(about | ({} if save is None else {"written": str(save)}))
        return
    _show(about, quiet)
    if save is not None:
        say(f"wrote {save}; try next:\n  {program()} run {save}")


def ask_before(subject: Run, of: int | None, seen_by: str | None, delta: float, blank: bool) -> Loss:
    """`bruit epsilon --before`: of a walk, before it goes."""
    from bruit.asking import named_observers
    from bruit.planning.before_walk import before_walk

    observers = named_observers(seen_by)
    if isinstance(observers, str):
        raise ConfigError("everybody together sees every visit, before a walk as after it; leave --before out")
    return before_walk(subject, of, observers, delta, blank=blank).epsilon(delta)


def _up(noise: float) -> str:
    from bruit.planning.option import rounded_up

    return rounded_up(noise, 6)


def _show(about: dict[str, Any], quiet: bool) -> None:
    name, error = _predicted(about)
    most = "at most " if about["predicted"]["upper_bound"] else ""
    much = "no Gaussian noise"
    if about["noise_multiplier"] is not None:
        much = f"noise multiplier {_up(about['noise_multiplier'])} (sigma {_up(about['sigma'])})"
    say(f"{about['protocol']} on {about['graph']}: {much}, {about['status']}")
    say(f"  {about['claim']}")
    say(f"  by {about['theorem']} ({about['spec']}); trusting: {about['trust']}")
    say(f"  predicted {name}: {most}{error:.4g}  ({about['predicted']['statement']})")
    if about["verdict"]:
        say(f"  {about['verdict']}")
        say(f"  what would help: {'; or '.join(about['would_help'])}")
    say(f"  {about['steps']} steps, {about['messages_per_peer']:g} messages and {about['bytes_per_peer']:g} bytes per"
        " peer")  # fmt: skip
    if about["finite_precision"]:
        say(f"  finite precision is inside: it takes {about['finite_precision']:.1e} of epsilon, with {about['dim']}"
            f" number{'s' * (about['dim'] > 1)} in a message")  # fmt: skip
    for note in about["notes"]:
        say(f"  note: {note}")
    if quiet:
        return
    from rich.table import Table

    table = Table(title="\nthe same budget, other protocols", title_justify="left")
    for column in ("protocol", "graph", "noise multiplier", name, "messages per peer", "status", "trust"):
        table.add_column(column)
    for row in about["alternatives"]:
        noise = "-" if row["noise_multiplier"] is None else _up(row["noise_multiplier"])
        table.add_row(row["protocol"], row["graph"], noise, f"{_predicted(row)[1]:.4g}",
                      f"{row['messages_per_peer']:g}", row["status"], row["trust"])  # fmt: skip
    out.print(table)
    for protocol, why in about["not_applicable"].items():
        say(f"{protocol}: {why}")


def _predicted(about: dict[str, Any]) -> tuple[str, float]:
    for key in ("error_of_the_mean", "excess_loss"):
        if key in about["predicted"]:
            return key.replace("_", " "), about["predicted"][key]
    raise ConfigError("this plan predicts nothing")


def _trust(path: Path, epsilon: float, delta: float, peers: int | None, save: Path | None, as_json: bool) -> None:
    from bruit.planning.trust import plan_trust, read_trust

    caps = read_trust(path, epsilon, peers)
    found = plan_trust(caps, delta)
    slack = float(np.nanmax(found.epsilon / caps))
    about = {
        "peers": len(caps), "edges": found.graph.edges().tolist(), "steps": found.steps,
        "noise_multipliers": found.multipliers.tolist(), "noise_multiplier": float(found.multipliers.max()),
        "status": "ideal", "delta": delta, "level": "user", "tightest": slack,
        "predicted": {"error_of_the_mean": found.error, "upper_bound": False,
                      "statement": "gossip:LG-1: sqrt(sum z_u^2) / n, once mixed"},
        "alternatives": [
            {"protocol": "local-dp, a noise per peer", "predicted": {"error_of_the_mean": found.local_error}},
            {"protocol": "local-dp, one noise for all", "predicted": {"error_of_the_mean": found.equal_error}},
        ],
    }  # fmt: skip
    if save is not None:
        for name in ("edges.txt", "noise_multipliers.csv"):
            if (save / name).exists():
                raise ConfigError(f"{save / name} exists; choose another folder for --save")
        save.mkdir(parents=True, exist_ok=True)
        np.savetxt(save / "edges.txt", found.graph.edges(), fmt="%d")
        np.savetxt(save / "noise_multipliers.csv", np.stack((np.arange(len(caps)), found.multipliers), axis=1),
                   fmt=("%d", "%.12g"), delimiter=",", header="peer,noise_multiplier", comments="")  # fmt: skip
    if as_json:
        emit_json(about)
        return
    say(f"{len(about['edges'])} links among {len(caps)} peers, {found.steps} rounds of gossip; every cap holds"
        f" (the tightest pair uses {100 * slack:.1f} % of its epsilon), user level, delta = {delta:g}")  # fmt: skip
    say("  ideal, true of real numbers and not of what is sent: no algorithm here runs noises of different sizes on a"
        " grid, and a run of them is charged as local DP")  # fmt: skip
    for u, z in enumerate(found.multipliers.tolist()):
        say(f"  peer {u}: noise multiplier {_up(z)}, talks to {', '.join(map(str, found.graph.neighbors(u).tolist()))}")
    say(f"error of the mean {found.error:.4g}; local DP with a noise per peer {found.local_error:.4g},"
        f" with one noise for all {found.equal_error:.4g}")  # fmt: skip
