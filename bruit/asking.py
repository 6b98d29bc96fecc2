"""Questions about epsilon from the command line: one pair, a coalition, everybody, or the whole matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bruit import report
from bruit.build import protocol
from bruit.config import from_dict
from bruit.errors import ConfigError
from bruit.experiment import rehearse
from bruit.mechanisms import Gaussian
from bruit.privacy.account import Summary
from bruit.privacy.guarantee import Epsilon, Hypothesis, Status
from bruit.result import Run
from bruit.settings import parse_settings
from bruit.tasks.task import Constants
from bruit.whole_files import write_whole


def describe_protocol(name: str, algorithm: str, settings: list[str], steps: int | None, sigma: float | None,
                      sensitivity: float, seed: int, smoothness: float | None = None,
                      dim: int = 1) -> Run:  # fmt: skip
    """A protocol without data: its ledger and meetings come from a rehearsal on blank values.

    `smoothness` declares that losses are convex, that smooth, and that gradients never reach half the sensitivity.
    """
    if sigma is None:
        raise ConfigError("say how much noise: --sigma, the standard deviation of what each peer adds")
    if not sigma > 0:
        raise ConfigError(f"sigma = {sigma:g} adds no noise, so there is no epsilon to speak of; give --sigma > 0")
    if not (0 < sensitivity < math.inf and sigma < math.inf):
        raise ConfigError(f"sigma and sensitivity must be finite and positive, found {sigma:g} and {sensitivity:g}")
    if steps is not None and steps < 1:
        raise ConfigError(f"steps = {steps}: nobody would say anything; ask for at least one step")
    asked = from_dict({
        "graph": name, "seed": seed, "task": {"kind": "mean", "dim": dim}, "privacy": {"sigma": sigma},
        "algorithm": {**_parameters(settings), "name": algorithm},
        **({} if steps is None else {"steps": steps}),
    }, where="this question")  # fmt: skip
    agreed = protocol(asked)
    noise = Gaussian(clip=sensitivity / 2, sigma=sigma)
    blank = rehearse(agreed.algorithm, agreed.graph, noise, agreed.steps, seed, dim)
    many = f"{dim} number{'s' * (dim > 1)}"
    blank.declared = (Hypothesis(f"a message holds {many}, and rounding is charged for each (--dim)", checked=False),)
    if smoothness is not None:
        if not 0 < smoothness < math.inf:
            raise ConfigError(f"the smoothness must be finite and positive, found {smoothness:g}")
        blank.constants = Constants(sensitivity / 2, smoothness, 0.0, "declared")
    return blank


def _parameters(settings: list[str]) -> dict[str, Any]:
    """What `--set algorithm.KEY=VALUE` says of the algorithm; a protocol without data has nothing else to set."""
    found = {}
    for key, value in parse_settings(settings):
        head, _, rest = key.partition(".")
        if head != "algorithm" or not rest:
            raise ConfigError(f"--set {key}: a protocol without data is described by its own options and by parameters"
                              f" of its algorithm, --set algorithm.{key.rpartition('.')[2]}=...")  # fmt: skip
        found[rest] = value
    return found


def named_observers(text: str | None) -> list[int] | str | None:
    """What `--seen-by` names: peers, everybody, or nobody."""
    if text is None or text == "everybody":
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seen-by {text!r} is neither a peer, peers like 3,7, nor 'everybody'") from None


def ask(subject: Run, of: int | None, seen_by: str | None, delta: float, status: Status,
        progress: Callable[[int, int], None] | None) -> Epsilon | Summary:  # fmt: skip
    """One epsilon when somebody is named, else the summary over all pairs."""
    if of is None and seen_by is None:
        return subject.summary(delta, status, progress)
    return subject.epsilon(of, named_observers(seen_by), delta, status)


def explain(subject: Run, found: Epsilon | Summary, delta: float, status: Status) -> str:
    """Why: of the epsilon itself, or of the worst pair behind a summary."""
    if isinstance(found, Epsilon):
        return found.why()
    m = subject.accountant().table(delta, status).losses
    if m is None:  # pairs are not told apart
        return subject.epsilon(delta=delta).why()
    if not np.any(m[~np.eye(len(m), dtype=bool)] > 0):
        return "no pair learned anything"
    of, seen_by = (int(k) for k in np.unravel_index(np.nanargmax(m), m.shape))
    return subject.epsilon(of, seen_by, delta, status).why()


def write_matrix(subject: Run, path: Path, status: Status, progress: Callable[[int, int], None] | None) -> None:
    """m[u, v] for all pairs as .npy, whole or not at all."""
    m = subject.losses(status, progress)
    write_whole(path, lambda stream: np.save(stream, m))


def answer_json(found: Epsilon | Summary) -> dict[str, Any]:
    if isinstance(found, Summary):
        return report.summary_json(found)
    about = found.guarantee
    return {
        "of": about.of, "seen_by": about.against, "loss": about.loss, "epsilon": float(found), "delta": found.delta,
        "status": about.status, "level": about.level, "theorem": about.theorem, "spec": about.spec,
        "noise_multiplier": about.noise_multiplier, "hypotheses": [str(h) for h in about.hypotheses],
        "notes": list(about.notes),
    }  # fmt: skip


def answer_text(console: Console, found: Epsilon | Summary) -> None:
    if isinstance(found, Summary):
        console.print(report.privacy_table(found))
        console.print(report.privacy_notes(found))
    else:
        console.print(found.why(), markup=False, highlight=False, soft_wrap=True)
