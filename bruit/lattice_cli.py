"""`bruit attack lattice`: noisy values found again in the messages of averaging, because they lie on a known grid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bruit.errors import ConfigError
from bruit.terminal import Delta, GraphName, Json, Quiet, Sigma, Steps, Ticker, emit_json, say

if TYPE_CHECKING:
    from bruit.audits.lattice import LatticeAudit
    from bruit.audits.lattice_talk import Numbers, Protocol

SHOWN = 5  # hidden peers printed, those first whose guesses exceed what is allowed by most


def attack_lattice(
    seen_by: Annotated[str, typer.Option(help="The curious peers: one (7), or several who collude (3,7).")],
    place: Annotated[Path | None, typer.Argument(
        metavar="RUN", help="A run folder, an experiment file or a bundled name; or name a --graph.")] = None,
    graph: GraphName = None,
    steps: Steps = None,
    sigma: Sigma = None,
    clip: Annotated[float, typer.Option(help="Bound on what a peer puts in; coins are -clip and +clip.")] = 1.0,
    algorithm: Annotated[str, typer.Option(help="averaging or chebyshev, accelerated.")] = "averaging",
    of: Annotated[int | None, typer.Option(help="Guess at this peer only (all hidden ones if not named).")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Runs that are attacked, each with fresh noise.")] = 200,
    numbers: Annotated[str, typer.Option(help="sent: as bruit sends them; float: values on a grid, mixed in floats; "
                                              "dithered: whole numbers with dithers.")] = "sent",
    bits: Annotated[int, typer.Option(help="For float and dithered: values on multiples of sigma / 2^bits.")] = 20,
    dither_bits: Annotated[int, typer.Option(help="For dithered: dithers of sigma / 2^bits.")] = 10,
    unknown_dithers: Annotated[bool, typer.Option("--unknown-dithers", help="Solve for the dithers too, instead of "
                                                                            "taking them as noise.")] = False,
    messages: Annotated[int | None, typer.Option(min=1, help="Use only the first so many messages.")] = None,
    delta: Delta = 1e-6,
    confidence: Annotated[float, typer.Option(help="A true epsilon is refuted with the remaining probability.")] = (
        1 - 1e-6
    ),
    seed: Annotated[int, typer.Option(help="Seed of the coins and the noise.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Do the digits of a mean give the values behind it away? Exit code 1: yes, and the printed epsilon is refuted.

    Example: bruit attack lattice --graph er:24,c=1 --steps 7 --sigma 0.2 --clip 0.5 --seen-by 0 --trials 20
    """
    from dataclasses import replace

    from bruit.audits.lattice import Trying, audit_lattice

    try:
        observers = sorted({int(part) for part in seen_by.split(",")})
    except ValueError:
        raise ConfigError(f"--seen-by {seen_by!r} is neither a peer nor peers like 3,7") from None
    if place is not None:
        if graph is not None or steps is not None or sigma is not None:
            raise ConfigError("a run folder or an experiment says its graph, steps and noise itself; leave out --graph,"
                              " --steps and --sigma, or the folder")  # fmt: skip
        protocol = _protocol_of(place)
    else:
        protocol = _named(graph, steps, sigma, clip, algorithm)
    protocol = replace(protocol, numbers=cast("Numbers", numbers), bits=bits, dither_bits=dither_bits)
    how = Trying(trials, of, messages, "unknown" if unknown_dithers else "noise", delta, confidence, seed)
    with Ticker(quiet or as_json, "attacked runs") as ticker:
        found = audit_lattice(protocol, observers, how, ticker)
    if as_json:
        emit_json(found.to_dict())
    else:
        _tell(found)
    if found.refuted:
        raise typer.Exit(1)


def _named(graph: str | None, steps: int | None, sigma: float | None, clip: float, algorithm: str) -> Protocol:
    from bruit.algorithms.averaging import Averaging
    from bruit.algorithms.chebyshev import Chebyshev
    from bruit.audits.lattice_talk import Protocol
    from bruit.graphs import graph as named_graph
    from bruit.mechanisms import Gaussian

    if graph is None or steps is None or sigma is None:
        raise ConfigError("name a run folder or an experiment, or a protocol: --graph ... --steps ... --sigma ...")
    if steps < 1:
        raise ConfigError(f"--steps {steps}: nobody would say anything; ask for at least one step")
    if algorithm not in ("averaging", "chebyshev"):
        raise ConfigError(f"the lattice attack takes averaging or chebyshev apart, found {algorithm!r}")
    chosen = Averaging() if algorithm == "averaging" else Chebyshev()
    return Protocol(chosen, named_graph(graph), Gaussian(clip=clip, sigma=sigma), steps)


def _protocol_of(place: Path) -> Protocol:
    """The protocol of a run or an experiment; coins take the place of its data."""
    from bruit.audits.lattice_talk import Protocol
    from bruit.build import build
    from bruit.config import read
    from bruit.result import load

    if not place.is_dir():
        file, text = read(place)
        made = build(file, text, str(place))
        return Protocol(made.algorithm, made.graph, made.privacy, made.steps)
    done = load(place)
    if done.phase or done.trace.missed or len(done.trace.faults.round):
        raise ConfigError(f"{place} goes on from an earlier run, or some of its messages were lost; the lattice attack"
                          " is made for complete rounds from the start")  # fmt: skip
    return Protocol(done.algorithm, done.graph, done.privacy, done.steps)


def _tell(found: LatticeAudit) -> None:
    from bruit.audits.lattice import TAXONOMY

    who = ("peer " if len(found.seen_by) == 1 else "peers ") + ", ".join(map(str, found.seen_by))
    dithers = f"dithers of {found.dither:.3g}" if found.dither else "no dithers"
    say(f"{found.algorithm} on {found.graph}, {found.steps} steps, seen by {who}, numbers: {found.numbers} (values on"
        f" multiples of {found.grid:.3g}, {dithers})")  # fmt: skip
    say(f"  {found.messages} messages, {found.unknowns} unknown whole numbers, {found.trials} trials")
    if found.guesses:
        said = f"{len(found.hidden)} hidden peers" if len(found.hidden) > 1 else f"peer {found.hidden[0]} is hidden"
        say(f"  {said}: {found.found} of {len(found.hidden) * found.trials} values found exactly, all of them in"
            f" {found.everybody} of {found.trials} trials")  # fmt: skip
    for guess in sorted(found.guesses, key=lambda guess: guess.bound - guess.low)[:SHOWN]:
        say(f"  peer {guess.of}: {guess.found} found; {guess.right} coins guessed right, between {100 * guess.low:.1f}"
            f" and {100 * guess.high:.1f} % (confidence {found.confidence:.7g} for all); loss {guess.loss:.3g}, epsilon"
            f" {guess.epsilon:.3g} at delta {found.delta:g} allows {100 * guess.bound:.1f} %")  # fmt: skip
    if len(found.guesses) > SHOWN:
        say(f"  and {len(found.guesses) - SHOWN} more (--json lists all)")
    if found.refuted:
        say(f"  whoever knows a noisy value has seen a whole release: epsilon {found.whole_release:.3g} at delta"
            f" {found.delta:g}")  # fmt: skip
    say(f"the lattice attack {found.verdict}" if found.guesses else found.verdict)
    view = "single peer" if len(found.seen_by) == 1 else f"coalition of {len(found.seen_by)} peers"
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in TAXONOMY.items())}; view: {view}")
    say(f"defence: {found.defence}")
