"""`bruit attack lattice`: noisy values found again in the messages of averaging, because they lie
on a known grid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bruit.commands.asking import named_peer
from bruit.commands.attacks.watching import SeenBy, named, peers_of
from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Delta, GraphName, Json, Quiet, Sigma, Steps
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.adversary.audits.lattice_game.game import LatticeAudit
    from bruit.adversary.audits.lattice_game.talk import Numbers

SHOWN = 5  # hidden peers printed, those first whose guesses exceed what is allowed by most


def attack_lattice(
    seen_by: SeenBy,
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="A run folder, a TOML file, or the name of a bundled experiment; or name a --graph.",
        ),
    ] = None,
    graph: GraphName = None,
    steps: Steps = None,
    sigma: Sigma = None,
    clip: Annotated[
        float, typer.Option(help="Bound on what a peer puts in; coins are -clip and +clip.")
    ] = 1.0,
    algorithm: Annotated[
        str, typer.Option(help="averaging or chebyshev, accelerated.")
    ] = "averaging",
    of: Annotated[
        str | None, typer.Option(help="Guess at this peer only; by default at all hidden ones.")
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Runs that are attacked, each with fresh noise.")
    ] = 200,
    numbers: Annotated[
        str,
        typer.Option(
            help="sent: as bruit sends them; float: values on a grid, mixed in floats; "
            "dithered: whole numbers with dithers."
        ),
    ] = "sent",
    bits: Annotated[
        int, typer.Option(help="For float and dithered: values on multiples of sigma / 2^bits.")
    ] = 20,
    dither_bits: Annotated[int, typer.Option(help="For dithered: dithers of sigma / 2^bits.")] = 10,
    unknown_dithers: Annotated[
        bool,
        typer.Option(
            "--unknown-dithers", help="Solve for the dithers too, instead of taking them as noise."
        ),
    ] = False,
    messages: Annotated[
        int | None, typer.Option(min=1, help="Use only the first so many messages.")
    ] = None,
    delta: Delta = 1e-6,
    confidence: Annotated[
        float, typer.Option(help="A true epsilon is refuted with the remaining probability.")
    ] = (1 - 1e-6),
    seed: Annotated[int, typer.Option(help="Seed of the coins and the noise.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Do the digits of a mean give the values behind it away? Exit code 1: yes, and the printed
    epsilon is refuted.

    Example: bruit attack lattice --graph er:24,c=1 --steps 7 --sigma 0.2 --clip 0.5 --seen-by 0
    --trials 20
    """
    from dataclasses import replace

    from bruit.adversary.audits.lattice_game.game import Trying, audit_lattice
    from bruit.adversary.audits.lattice_game.protocol import named_protocol, protocol_of

    observers, printer = peers_of(seen_by), Printer(json=as_json, quiet=quiet)
    if place is not None:
        refuse_given(
            "a run folder or an experiment says its graph, steps, noise, clip and algorithm itself",
            *("graph", "steps", "sigma", "clip", "algorithm"),
        )
        protocol = protocol_of(place)
    else:
        protocol = named_protocol(graph, steps, sigma, clip, algorithm)
    _refuse_idle(numbers)
    protocol = replace(
        protocol, numbers=cast("Numbers", numbers), bits=bits, dither_bits=dither_bits
    )
    how = Trying(
        trials=trials,
        of=named_peer(of),
        messages=messages,
        dithers="unknown" if unknown_dithers else "noise",
        delta=delta,
        confidence=confidence,
        seed=seed,
    )
    with printer.ticker("attacked runs") as ticker:
        found = audit_lattice(protocol, observers, how, ticker)
    printer.answer(Reply(found.to_dict(), _digits(found)))
    if found.refuted:
        raise typer.Exit(1)


def _refuse_idle(numbers: str) -> None:
    """Options about numbers of another kind than those that are attacked."""
    if numbers == "sent":
        refuse_given("numbers are on the grid on which bruit sends them", "bits")
    if numbers != "dithered":
        refuse_given("it is about --numbers dithered", "dither_bits")


def _digits(found: LatticeAudit) -> Iterator[str]:
    from bruit.adversary.audits.lattice_game.game import TAXONOMY

    who = named(found.seen_by)
    dithers = f"dithers of {found.dither:.3g}" if found.dither else "no dithers"
    yield (
        f"{found.algorithm} on {found.graph}, {how_many(found.steps, 'step')}, seen by {who},"
        f" numbers: {found.numbers} (values on multiples of {found.grid:.3g}, {dithers})"
    )
    yield (
        f"  {how_many(found.messages, 'message')}, "
        f"{how_many(found.unknowns, 'unknown whole number')}, {how_many(found.trials, 'trial')}"
    )
    if found.guesses:
        counts = (
            f"{len(found.hidden)} hidden peers"
            if len(found.hidden) > 1
            else f"peer {found.hidden[0]} is hidden"
        )
        yield (
            f"  {counts}: {found.found} of {how_many(len(found.hidden) * found.trials, 'value')}"
            f" found exactly, all of them in {found.everybody} of {found.trials} trials"
        )
    for guess in sorted(found.guesses, key=lambda guess: guess.bound - guess.low)[:SHOWN]:
        yield (
            f"  peer {guess.of}: {guess.found} found; {guess.right} coins guessed right, between"
            f" {100 * guess.low:.1f} and {100 * guess.high:.1f} % (confidence"
            f" {found.confidence:.7g} for all); loss {guess.loss:.3g}, epsilon {guess.epsilon:.3g}"
            f" at delta {found.delta:g} allows {100 * guess.bound:.1f} %"
        )
    if len(found.guesses) > SHOWN:
        yield f"  and {len(found.guesses) - SHOWN} more (--json lists all)"
    if found.refuted:
        yield (
            "  whoever knows a noisy value has seen a whole release: epsilon"
            f" {found.whole_release:.3g} at delta {found.delta:g}"
        )
    yield (f"the lattice attack {found.verdict}" if found.guesses else found.verdict)
    view = "single peer" if len(found.seen_by) == 1 else f"coalition of {len(found.seen_by)} peers"
    yield (
        f"threat: {'; '.join(f'{key}: {value}' for key, value in TAXONOMY.items())}; view: {view}"
    )
    yield f"defence: {found.defence}"
