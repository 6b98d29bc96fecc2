"""The commands that attack a run or a protocol: attack reconstruct, attack invert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.errors import ConfigError
from bruit.terminal import Json, emit_json, say

if TYPE_CHECKING:
    from bruit.attacks import Reconstruction, Recovered
    from bruit.result import Run

attack_app = typer.Typer(help="What curious peers really get out of what they saw.", no_args_is_help=True)

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
    graph: Annotated[str | None, typer.Option(help="A graph, e.g. ego:414: predict without any run.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many rounds of gossip averaging.")] = None,
    sums: Annotated[bool, typer.Option("--sums", help="Under secure aggregation in every neighborhood.")] = False,
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
        answer = _predicted(graph, observers, steps, sums, published_weights)
    elif graph is not None or steps is not None or sums or published_weights:
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
    as_json: Json = False,
) -> None:
    """Gradients of the others from what these peers heard of gossip SGD, and records from the gradients.

    Example: bruit attack invert runs/mine.run --seen-by 0
    """
    answer = _inverted(folder, _peers(seen_by), method)
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
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}")
    say(f"defence: {answer['defence']}")


def _inverted(folder: Path, observers: list[int], method: str) -> dict[str, Any]:
    import numpy as np

    from bruit.attacks import gradients, inversion
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
    text = (
        f"The noise of this run is the defence: it leaves epsilon {float(held):.3g} at delta {held.delta:g},"
        f" {held.guarantee.level} level, for the worst peer." if noisy else
        "Noise on every gradient before it is first said, e.g. calibrated by `bruit plan --contributions ...`."
    )  # fmt: skip
    return {
        "graph": run.graph.name, "seen_by": observers, "others": run.n - len(observers), "method": method,
        "estimable": found.peers[found.estimable].tolist(), "records": rows,
        "recovered": int(np.sum(scores.psnr > inversion.SUCCESS)), "threshold": inversion.SUCCESS,
        "taxonomy": {"goal": "data reconstruction", "behaviour": "passive (honest but curious)",
                     "knowledge": "gradients: model, rate, graph and schedule known",
                     "view": "single peer" if len(observers) == 1 else "coalition"},
        "defence": text,
    }  # fmt: skip


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


def _predicted(
    name: str | None, observers: list[int], steps: int | None, sums: bool, published: bool
) -> dict[str, Any]:
    from bruit.attacks.reconstruct import defence, reconstructible
    from bruit.graphs import Graph
    from bruit.graphs import graph as named_graph

    if name is None or steps is None:
        raise ConfigError("name either a run folder or a protocol: --graph ... --steps ...")
    found = named_graph(name)
    if published:
        if not isinstance(found, Graph):
            raise ConfigError(f"--published-weights needs one fixed graph, found the sequence {found.name}")
        found = found.reweighted("max", plus=0)
    exposed = reconstructible(found, observers, steps, "sums" if sums else "messages")
    hidden = None
    if isinstance(found, Graph) and not sums:
        hidden = reconstructible(found, observers, steps, "sums")
    return _answer(found.name, steps, exposed) | {"defence": defence(exposed, hidden)}


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

    from bruit.attacks import reconstruct, run_knowledge, starting_values

    again, task = _watched(run, observers)
    released = starting_values(run, task)
    own = released[np.array(observers)]
    found: Recovered = reconstruct(again.view(set(observers)), run_knowledge(again, observers), own)
    true, noisy = found.score(task), found.score(released)
    return {
        "reliable": np.flatnonzero(found.reliable).tolist(), "residual": found.residual,
        "recovered": true.recovered.tolist(), "recovered_with_noise": noisy.recovered.tolist(),
        "largest_error": float(np.nanmax(true.errors)) if np.isfinite(true.errors).any() else None,
        "tolerance": true.tolerance, "sigma": 0.0 if run.privacy is None else run.privacy.sigma,
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
        say(f"values recovered to {answer['tolerance']:g}: {len(answer['recovered'])} true ones,"
            f" {len(answer['recovered_with_noise'])} with their noise (sigma {answer['sigma']:g});"
            f" residual {answer['residual']:.1e}")  # fmt: skip
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}")
    say(f"defence: {answer['defence']}")
