"""The commands that attack a run or a protocol: attack reconstruct, invert, membership, linkage,
lattice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bruit.commands.attacks.lattice import attack_lattice
from bruit.commands.attacks.linkage import attack_linkage
from bruit.commands.attacks.membership import attack_membership
from bruit.commands.attacks.watching import SeenBy, named, peers_of
from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Force, GraphName, Json, Steps
from bruit.errors import ConfigError
from bruit.files import check_place
from bruit.how_many import how_many

attack_app = typer.Typer(
    help="What curious peers really get out of what they saw.", no_args_is_help=True
)
attack_app.command("membership")(attack_membership)
attack_app.command("linkage")(attack_linkage)
attack_app.command("lattice")(attack_lattice)


@attack_app.callback()
def attack() -> None:
    """What curious peers really get out of what they saw."""


@attack_app.command("reconstruct")
def attack_reconstruct(
    seen_by: SeenBy,
    folder: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run folder; or name a --graph.")
    ] = None,
    graph: GraphName = None,
    steps: Steps = None,
    algorithm: Annotated[
        str | None, typer.Option(help="averaging (the default) or chebyshev, accelerated.")
    ] = None,
    sums: Annotated[
        bool,
        typer.Option("--secure-aggregation", "--sums", help="Every neighborhood tells sums only."),
    ] = False,
    published_weights: Annotated[
        bool,
        typer.Option(
            "--published-weights", help="Weights 1 / max degree as printed in the papers (plus=0)."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Whose values can these peers compute from gossip averaging, and, for a run, which values are
    they?

    Example: bruit attack reconstruct --graph ego:414 --seen-by 7 --steps 10
    """
    from bruit.adversary.attacks.reconstruct_run import AveragingKind, predicted, recovered
    from bruit.runs.result import load

    observers = peers_of(seen_by)
    if folder is None:
        asked = AveragingKind(algorithm or "averaging", sums, published_weights)
        answer = predicted(graph, observers, steps, asked)
    elif (
        graph is not None or steps is not None or algorithm is not None or sums or published_weights
    ):
        raise ConfigError(
            "a run folder says its graph, weights and steps itself; leave out the other options, or"
            " the folder"
        )
    else:
        answer = recovered(load(folder), observers)
    Printer(json=as_json).answer(Reply(answer, _computed(answer)))


@attack_app.command("invert")
def attack_invert(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of gossip-sgd.")],
    seen_by: SeenBy,
    method: Annotated[
        str, typer.Option(help="ols, or gls (weighted by what each message carries).")
    ] = "ols",
    picture: Annotated[
        Path | None, typer.Option(help="Write a PNG: true images above recovered ones.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Size of an image, e.g. 8x8 or 32x32x3; else a square.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Gradients of the others from what these peers heard of gossip SGD, and records from the
    gradients.

    Example: bruit attack invert runs/mine.run --seen-by 0
    """
    from bruit.adversary.attacks.invert_run import inverted
    from bruit.runs.result import load

    if picture is None:
        refuse_given("it is about the file of --picture", "image", "force")
    else:
        check_place(picture, force)
    answer = inverted(load(folder), peers_of(seen_by), method, picture, image)
    Printer(json=as_json).answer(Reply(answer, _pictured(answer)))


def _pictured(answer: dict[str, Any]) -> Iterator[str]:
    """What came out of the gradients, peer by peer."""
    yield (
        f"on {answer['graph']}, seen by {', '.join(map(str, answer['seen_by']))}: the gradients of"
        f" {len(answer['estimable'])} of {how_many(answer['others'], 'peer')} can be told apart"
    )
    for row in answer["records"]:
        mixture = "" if row["purity"] > 0.999 else f" (a mixture, purity {row['purity']:.2f})"
        label = "right" if row["label_right"] else "wrong"
        yield f"  peer {row['peer']}: {row['psnr']:.1f} dB, label {label}{mixture}"
    yield f"{how_many(answer['recovered'], 'record')} above {answer['threshold']:g} dB"
    if answer["picture"]:
        yield f"true images above recovered ones in {answer['picture']}"
    yield f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}"
    yield f"defence: {answer['defence']}"


def _computed(answer: dict[str, Any]) -> Iterator[str]:
    """Whose values are known, and how well."""
    exposed, n = answer["reconstructible"], answer["peers"]
    who = named(answer["seen_by"])
    yield (
        f"after {how_many(answer['steps'], 'step')} on {answer['graph']}, {who} can compute "
        f"{len(exposed)} of {how_many(n, 'value')}:"
    )
    yield ("  " + ", ".join(map(str, exposed)))
    if answer["relations"]:
        relations = how_many(answer["relations"], "relation")
        yield f"and {relations} among {how_many(len(answer['hidden']), 'hidden value')}"
        for text in answer["first_relations"]:
            yield f"  {text}"
    if "recovered" in answer:
        blur = (
            f", to {answer['tolerance_with_noise']:.2g} for the dithers"
            if answer["dithered"]
            else ""
        )
        yield (
            f"values recovered to {answer['tolerance']:g}: {len(answer['recovered'])} true ones,"
            f" {len(answer['recovered_with_noise'])} with their noise (sigma"
            f" {answer['sigma']:g}{blur}); residual {answer['residual']:.1e}"
        )
        blurred = len(exposed) - len(answer["seen_by"]) - len(answer["recovered_with_noise"])
        if answer["dithered"] and blurred:
            yield (
                f"{blurred} more are determined, but dithers blur them by more than their own noise"
            )
    yield f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}"
    yield f"defence: {answer['defence']}"
