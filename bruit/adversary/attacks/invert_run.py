"""Inversion of a saved run of gossip SGD: gradients from what curious peers heard, records from the
gradients, pictures of both."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from bruit.adversary.attacks import gradients, inversion
from bruit.adversary.attacks.first_layer import Attackable
from bruit.adversary.attacks.inversion import Inverted
from bruit.adversary.attacks.picture import save_grid
from bruit.adversary.attacks.watched_run import watched
from bruit.errors import ConfigError
from bruit.mechanisms import Gaussian
from bruit.runs.result import Run


def inverted(
    run: Run,
    observers: list[int],
    method: str = "ols",
    picture: Path | None = None,
    image: str | None = None,
) -> dict[str, Any]:
    """The records that come out of the gradients these peers can tell apart, beside the true
    ones."""
    if method not in ("ols", "gls"):
        raise ConfigError(f"--method is ols or gls, found {method!r}")
    again, task = watched(run, observers)
    chosen: gradients.Method = "gls" if method == "gls" else "ols"
    found = gradients.from_run(again, task, set(observers), method=chosen)
    records = inversion.invert(task, found)
    scores = inversion.score(task, records)
    rows = [
        {
            "peer": int(peer),
            "psnr": float(scores.psnr[k]),
            "label_right": bool(scores.label_right[k]),
            "purity": float(records.purity[k]),
            "invertible": bool(records.invertible[k]),
        }
        for k, peer in enumerate(records.peers)
    ]
    if picture is not None:
        _pictured(picture, image, task, records)
    return {
        "graph": run.graph.name,
        "seen_by": observers,
        "others": run.n - len(observers),
        "method": method,
        "estimable": found.peers[found.estimable].tolist(),
        "records": rows,
        "recovered": int(np.sum(scores.psnr > inversion.SUCCESS)),
        "threshold": inversion.SUCCESS,
        "picture": None if picture is None else str(picture),
        "taxonomy": {
            "goal": "data reconstruction",
            "behaviour": "passive (honest but curious)",
            "knowledge": "gradients: model, rate, graph and schedule known",
            "view": "single peer" if len(observers) == 1 else "coalition",
        },
        "defence": _defence(run, observers),
    }


def _defence(run: Run, observers: list[int]) -> str:
    """The noise of the run, or the noise that it would have taken."""
    if run.privacy is not None and run.privacy.sigma > 0:
        held = run.epsilon(seen_by=observers)
        return (
            f"The noise of this run is the defence: it leaves epsilon {float(held):.3g} at delta"
            f" {held.delta:g}, {held.guarantee.protected}, for the worst peer."
        )
    releases = int(run.facts().releases().max(initial=1))
    sigma = Gaussian().calibrate(1.0, 1e-6, max(1, releases)).sigma
    return (
        f"Gaussian noise of sigma = {sigma:.4g} per unit of clip on each of {releases} gradients,"
        " before it is first said, would leave at most epsilon 1 at delta 1e-06, user level,"
        " against everybody."
    )


def _pictured(place: Path, image: str | None, task: Attackable, records: Inverted) -> None:
    """The closest true record of every peer above what came out of its gradient, scaled to the
    largest true value."""
    pixels = records.inputs.shape[1]
    side = math.isqrt(pixels)
    shape = (side, side)
    if image is not None:
        try:
            shape = tuple(int(part) for part in image.split("x"))  # type: ignore[assignment]
        except ValueError:
            raise ConfigError(f"--image {image!r} is no size like 8x8 or 32x32x3") from None
    if math.prod(shape) != pixels:
        raise ConfigError(
            f"records of {pixels} numbers are no images of {'x'.join(map(str, shape))};"
            " say their size with --image HEIGHTxWIDTH[x3]"
        )
    closest = inversion.score(task, records).record
    truth = np.stack(
        [
            inversion.true_records(task, int(peer))[0][place_of]
            for peer, place_of in zip(records.peers, closest, strict=True)
        ]
    )
    save_grid(place, truth, records.inputs, shape, float(np.abs(truth).max()) or 1.0)
