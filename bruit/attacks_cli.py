"""The commands that attack a run or a protocol: attack reconstruct, invert, membership, linkage, lattice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.errors import ConfigError
from bruit.lattice_cli import attack_lattice
from bruit.linkage_cli import attack_linkage
from bruit.membership_cli import attack_membership
from bruit.terminal import Force, GraphName, Json, Steps, emit_json, say
from bruit.whole_files import check_place

if TYPE_CHECKING:
    from bruit.attacks import Reconstruction, Recovered
    from bruit.attacks.inversion import Inverted
    from bruit.result import Run
    from bruit.tasks.linear import LinearTask

attack_app = typer.Typer(help="What curious peers really get out of what they saw.", no_args_is_help=True)
attack_app.command("membership")(attack_membership)
attack_app.command("linkage")(attack_linkage)
attack_app.command("lattice")(attack_lattice)

SeenBy = Annotated[str, typer.Option(help="The curious peers: one (7), or several who collude (3,7).")]
SHOWN = 5  # relations printed
LISTED = 500  # hidden peers beyond which the relations are only counted


@attack_app.callback()
def attack() -> None:
    """What curious peers really get out of what they saw."""


@attack_app.command("reconstruct")
def attack_reconstruct(
    seen_by: SeenBy,
    folder: Annotated[Path | None, typer.Argument(metavar="RUN", help="A run folder; or name a --graph.")] = None,
    graph: GraphName = None,
    steps: Steps = None,
    algorithm: Annotated[str | None, typer.Option(help="averaging (if left out) or chebyshev, accelerated.")] = None,
    sums: Annotated[
        bool, typer.Option("--secure-aggregation", "--sums", help="Every neighborhood tells sums only.")
    ] = False,
    published_weights: Annotated[
        bool, typer.Option("--published-weights", help="Weights 1 / max degree as printed in the papers (plus=0).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whose values can these peers compute from gossip averaging, and, for a run, which values are they?

    Example: bruit attack reconstruct --graph ego:414 --seen-by 7 --steps 10
    """
    observers = _peers(seen_by)
    if folder is None:
        answer = _predicted(graph, observers, steps, _Protocol(algorithm or "averaging", sums, published_weights))
    elif graph is not None or steps is not None or algorithm is not None or sums or published_weights:
        raise ConfigError("a run folder says its graph, weights and steps itself; leave out the other options, or the"
                          " folder")  # fmt: skip
    else:
        answer = _recovered(folder, observers)
    if as_json:
        emit_json(answer)
    else:
        _tell(answer)


@attack_app.command("invert")
def attack_invert(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of gossip-sgd.")],
    seen_by: SeenBy,
    method: Annotated[str, typer.Option(help="ols, or gls (weighted by what each message carries).")] = "ols",
    picture: Annotated[Path | None, typer.Option(help="Write a PNG: true images above recovered ones.")] = None,
    image: Annotated[str | None, typer.Option(help="Size of an image, e.g. 8x8 or 32x32x3; else a square.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Gradients of the others from what these peers heard of gossip SGD, and records from the gradients.

    Example: bruit attack invert runs/mine.run --seen-by 0
    """
    if picture is not None:
        check_place(picture, force)
    answer = _inverted(folder, _peers(seen_by), method, picture, image)
    if as_json:
        emit_json(answer)
        return
    say(f"on {answer['graph']}, seen by {', '.join(map(str, answer['seen_by']))}: the gradients of"
        f" {len(answer['estimable'])} of {answer['others']} peers can be told apart")  # fmt: skip
    for row in answer["records"]:
        mixture = "" if row["purity"] > 0.999 else f" (a mixture, purity {row['purity']:.2f})"
        label = "right" if row["label_right"] else "wrong"
        say(f"  peer {row['peer']}: {row['psnr']:.1f} dB, label {label}{mixture}")
    say(f"{answer['recovered']} records above {answer['threshold']:g} dB")
    if answer["picture"]:
        say(f"true images above recovered ones in {answer['picture']}")
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}")
    say(f"defence: {answer['defence']}")


def _inverted(folder: Path, observers: list[int], method: str, picture: Path | None,
              image: str | None) -> dict[str, Any]:  # fmt: skip
    import numpy as np

    from bruit.attacks import gradients, inversion
    from bruit.mechanisms import Gaussian
    from bruit.result import load

    if method not in ("ols", "gls"):
        raise ConfigError(f"--method is ols or gls, found {method!r}")
    run = load(folder)
    again, task = _watched(run, observers)
    chosen: gradients.Method = "gls" if method == "gls" else "ols"
    found = gradients.from_run(again, task, set(observers), method=chosen)
    records = inversion.invert(task, found)
    scores = inversion.score(task, records)
    rows = [
        {"peer": int(peer), "psnr": float(scores.psnr[k]), "label_right": bool(scores.label_right[k]),
         "purity": float(records.purity[k]), "invertible": bool(records.invertible[k])}
        for k, peer in enumerate(records.peers)
    ]  # fmt: skip
    noisy = run.privacy is not None and run.privacy.sigma > 0
    held = run.epsilon(seen_by=observers)
    if picture is not None:
        _pictured(picture, image, task, records)
    releases = int(run.facts().releases().max(initial=1))
    sigma = Gaussian().calibrate(1.0, 1e-6, max(1, releases)).sigma
    text = (
        f"The noise of this run is the defence: it leaves epsilon {float(held):.3g} at delta {held.delta:g},"
        f" {held.guarantee.level} level, for the worst peer." if noisy else
        f"Gaussian noise of sigma = {sigma:.4g} per unit of clip on each of {releases} gradients, before it is first"
        " said, would leave at most epsilon 1 at delta 1e-06, user level, against everybody."
    )  # fmt: skip
    return {
        "graph": run.graph.name, "seen_by": observers, "others": run.n - len(observers), "method": method,
        "estimable": found.peers[found.estimable].tolist(), "records": rows,
        "recovered": int(np.sum(scores.psnr > inversion.SUCCESS)), "threshold": inversion.SUCCESS,
        "picture": None if picture is None else str(picture),
        "taxonomy": {"goal": "data reconstruction", "behaviour": "passive (honest but curious)",
                     "knowledge": "gradients: model, rate, graph and schedule known",
                     "view": "single peer" if len(observers) == 1 else "coalition"},
        "defence": text,
    }  # fmt: skip


def _pictured(place: Path, image: str | None, task: LinearTask, records: Inverted) -> None:
    """The closest true record of every peer above what came out of its gradient, scaled to the largest true value."""
    import math

    import numpy as np

    from bruit.attacks import inversion, picture

    pixels = records.inputs.shape[1]
    side = math.isqrt(pixels)
    shape = (side, side)
    if image is not None:
        try:
            shape = tuple(int(part) for part in image.split("x"))  # type: ignore[assignment]
        except ValueError:
            raise ConfigError(f"--image {image!r} is no size like 8x8 or 32x32x3") from None
    if math.prod(shape) != pixels:
        raise ConfigError(f"records of {pixels} numbers are no images of {'x'.join(map(str, shape))}; say their size"
                          " with --image HEIGHTxWIDTH[x3]")  # fmt: skip
    closest = inversion.score(task, records).record
    truth = np.stack([inversion.true_records(task, int(peer))[0][place_of]
                      for peer, place_of in zip(records.peers, closest, strict=True)])  # fmt: skip
    picture.save_grid(place, truth, records.inputs, shape, float(np.abs(truth).max()) or 1.0)


def _watched(run: Run, observers: list[int]) -> tuple[Run, Any]:
    """The run's trace again with these peers watched, since runs keep few views; and its task."""
    from bruit.build import build
    from bruit.config import parse
    from bruit.experiment import run as run_again

    if not run.experiment:
        raise ConfigError("this run was not made from an experiment file, so its records cannot be loaded again; use"
                          " the functions of bruit.attacks on the run in memory")  # fmt: skip
    task = build(parse(run.experiment).model_copy(update={"seed": run.seed})).task
    again = run_again(run.algorithm, run.graph, task, privacy=run.privacy, steps=run.steps, seed=run.seed,
                      watch=observers, evaluate_every=0, given=run.trace)  # fmt: skip
    return again, task


def _peers(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError(f"--seen-by {text!r} is neither a peer nor peers like 3,7") from None


@dataclass(frozen=True)
class _Protocol:
    """Which averaging is predicted: its name, whether neighborhoods tell sums only, printed weights."""

    algorithm: str
    sums: bool
    published: bool


def _predicted(name: str | None, observers: list[int], steps: int | None, asked: _Protocol) -> dict[str, Any]:
    from bruit.attacks.reconstruct import defence, reconstructible
    from bruit.graphs import Graph
    from bruit.graphs import graph as named_graph

    if name is None or steps is None:
        raise ConfigError("name either a run folder or a protocol: --graph ... --steps ...")
    if asked.algorithm not in ("averaging", "chebyshev"):
        raise ConfigError(f"a prediction is made for averaging or chebyshev, found {asked.algorithm!r}; for other"
                          " averaging, run it and name the run folder")  # fmt: skip
    found = named_graph(name)
    if asked.algorithm == "chebyshev" and not isinstance(found, Graph):
        raise ConfigError(f"accelerated gossip needs one fixed graph, found the sequence {found.name}")
    if asked.published:
        if not isinstance(found, Graph):
            raise ConfigError(f"--published-weights needs one fixed graph, found the sequence {found.name}")
        found = found.reweighted("max", plus=0)
    # Accelerated messages are rows of P_t(W), deg P_t = t: they span what those of W^t span (gossip:REC-3).
    exposed = reconstructible(found, observers, steps, "sums" if asked.sums else "messages")
    hidden = None
    if isinstance(found, Graph) and not asked.sums:
        hidden = reconstructible(found, observers, steps, "sums")
    return _answer(found.name, steps, exposed) | {"algorithm": asked.algorithm, "defence": defence(exposed, hidden)}


def _recovered(folder: Path, observers: list[int]) -> dict[str, Any]:
    from bruit.attacks import decide, run_knowledge
    from bruit.attacks.reconstruct import defence
    from bruit.result import load

    run = load(folder)
    exposed = decide(run_knowledge(run, observers))
    text = defence(exposed)
    if run.privacy is not None and run.privacy.sigma > 0:
        held = run.epsilon(seen_by=observers)
        text = (
            f"The noise of this run is the defence: these observers computed noisy values, which leave epsilon"
            f" {float(held):.3g} at delta {held.delta:g}, {run.privacy.level} level, for the worst peer."
        )
    answer = _answer(run.graph.name, run.steps, exposed) | {"defence": text}
    if run.experiment:
        answer |= _values(run, observers)
    return answer


def _values(run: Run, observers: list[int]) -> dict[str, Any]:
    """Carry the attack out: the run's trace again with these peers watched, since runs keep few views."""
    import numpy as np

    from bruit.attacks import own_dithers, reconstruct, run_knowledge, starting_values

    again, task = _watched(run, observers)
    released, known = starting_values(run, task), run_knowledge(again, observers)
    own, dithers = released[np.array(observers)], None if known.sent is None else own_dithers(again, task, observers)
    found: Recovered = reconstruct(again.view(set(observers)), known, own, dithers)
    true, noisy = found.score(task), found.score_noisy(released)
    return {
        "reliable": np.flatnonzero(found.reliable).tolist(), "residual": found.residual,
        "recovered": true.recovered.tolist(), "recovered_with_noise": noisy.recovered.tolist(),
        "largest_error": float(np.nanmax(true.errors)) if np.isfinite(true.errors).any() else None,
        "tolerance": true.tolerance, "sigma": 0.0 if run.privacy is None else run.privacy.sigma,
        "dithered": known.sent is not None, "tolerance_with_noise": noisy.tolerance,
        "errors": [float(found.error[u]) for u in found.prediction.peers],
    }  # fmt: skip


def _answer(name: str, steps: int, found: Reconstruction) -> dict[str, Any]:
    shown = found.relations()[:SHOWN] if found.hidden.size <= LISTED else ()
    return {
        "graph": name, "peers": found.known.n, "steps": steps, "seen_by": found.observers.tolist(),
        "reconstructible": found.peers.tolist(), "hidden": found.hidden.tolist(), "rank": found.rank,
        "relations": found.relation_count, "first_relations": [str(relation) for relation in shown],
        "proven": found.proven, "taxonomy": found.taxonomy,
    }  # fmt: skip


def _tell(answer: dict[str, Any]) -> None:
    exposed, n = answer["reconstructible"], answer["peers"]
    who = ("peer " if len(answer["seen_by"]) == 1 else "peers ") + ", ".join(map(str, answer["seen_by"]))
    say(f"after {answer['steps']} steps on {answer['graph']}, {who} can compute {len(exposed)} of {n} values:")
    say("  " + ", ".join(map(str, exposed)))
    if answer["relations"]:
        say(f"and {answer['relations']} relations among {len(answer['hidden'])} hidden values")
        for text in answer["first_relations"]:
            say(f"  {text}")
    if "recovered" in answer:
        blur = f", to {answer['tolerance_with_noise']:.2g} for the dithers" if answer["dithered"] else ""
        say(f"values recovered to {answer['tolerance']:g}: {len(answer['recovered'])} true ones,"
            f" {len(answer['recovered_with_noise'])} with their noise (sigma {answer['sigma']:g}{blur});"
            f" residual {answer['residual']:.1e}")  # fmt: skip
        blurred = len(exposed) - len(answer["seen_by"]) - len(answer["recovered_with_noise"])
        if answer["dithered"] and blurred:
            say(f"{blurred} more are determined, but dithers blur them by more than their own noise")
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}")
    say(f"defence: {answer['defence']}")
