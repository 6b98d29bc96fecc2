"""What the pages show of a saved run: its line in the table, its numbers, its picture, and the view
of any peer.

Lines come from the manifest and the scores alone. Everything else reads the run, which checks its
digests, and is kept for as long as the folder does not change; accounting is done when somebody
asks.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.graphs.coordinates import coordinates
from bruit.runs.result import Run, load
from bruit.show import summary as report

DRAWN = 1000  # peers that are drawn, and whose losses are listed
RUNS, ANSWERS = 4, 500  # runs and answers that are kept


def plain(value: Any) -> Any:
    """As JSON knows it: numbers without bound become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def line(folder: Path) -> dict[str, Any]:
    """One line about a run folder: what it was, when, how good, beside what; a broken one says
    so."""
    name = folder.stem
    shown = name.encode("utf-8", "replace").decode()
    if name != shown:
        return {
            "name": shown,
            "state": "broken",
            "reason": "its name is not text; rename the folder",
        }
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        graph, algorithm, noise = manifest["graph"], manifest["algorithm"], manifest["privacy"]
        changed = datetime.fromtimestamp((folder / "manifest.json").stat().st_mtime, UTC)
        return {
            "name": name,
            "state": "interrupted" if manifest.get("interrupted") else "saved",
            "peers": int(graph["peers"]),
            "graph": str(graph["name"])[:200],
            "algorithm": str(algorithm["name"])[:200],
            "steps": int(manifest["steps"]),
            "seed": int(manifest["seed"]),
            "date": changed.isoformat(timespec="seconds"),
            "noisy": noise is not None,
            "verdict": _verdict(manifest.get("verdict")),
            **_scores(folder, manifest),
        }
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):
        return {
            "name": name,
            "state": "broken",
            "reason": "its manifest is missing or cannot be read",
        }


def _verdict(verdict: Any) -> dict[str, Any] | None:
    """Whether together was worse than alone, in words; whatever else a manifest holds there is left
    out."""
    if not isinstance(verdict, dict):
        return None
    return {"worse": bool(verdict["worse"]), "in_words": str(verdict["in_words"])[:200]}


def _number(value: Any) -> float | None:
    """A score as a finite number; None where there is none, or one of the words inf, -inf and nan
    (`bruit.files`)."""
    if value is None or value in ("inf", "-inf", "nan"):
        return None
    return float(value) if math.isfinite(value) else None


def _scores(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The metric of the task at the end, and its references."""
    found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    last = found["rows"][-1] if found["rows"] else {}
    metric = manifest["task"].get("metric")
    metric = metric if metric in last else next(iter(last), None)
    beside = {key: _number(found["references"].get(key)) for key in ("alone", "central")}
    return {"metric": metric, "score": None if metric is None else _number(last[metric]), **beside}


def metric_of(task: dict[str, Any], names: list[str]) -> str | None:
    """The score that the task cares about; the first one if it does not say."""
    wanted = task.get("metric")
    return str(wanted) if wanted else next(iter(names), None)


def reached(run: Run) -> int:
    """The step that a run came to: the last one, or where somebody stopped it."""
    if run.interrupted is None:
        return run.steps
    done, total = run.interrupted
    return round(run.steps * done / max(1, total))


class Saved:
    """Runs that were read, and answers that were computed, as long as their folders stay as they
    are."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, int], Run] = OrderedDict()
        self._answers: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def summary(self, folder: Path) -> dict[str, Any]:
        """Epsilon of the worst and the typical pair, and of local DP alone."""
        return self._answer(
            folder,
            ("summary",),
            lambda run: {"privacy": report.summary_json(run.summary(run.delta))},
        )

    def facts(self, folder: Path) -> dict[str, Any]:
        """All that the page of a run shows, but for the views."""
        return self._answer(folder, ("facts",), _facts)

    def view(self, folder: Path, peer: int) -> dict[str, Any]:
        """What one peer could have learned about every other."""

        def learned(run: Run) -> dict[str, Any]:
            if not 0 <= peer < run.n:
                raise ConfigError(f"there is no peer {peer}: the peers are 0..{run.n - 1}")
            epsilons = run.accountant().learned(peer, run.delta).tolist()
            return {"seen_by": peer, "step": reached(run), "epsilons": epsilons, "final": True}

        return self._answer(folder, ("view", peer), learned)

    def _answer(
        self, folder: Path, what: tuple[Any, ...], answer: Callable[[Run], dict[str, Any]]
    ) -> dict[str, Any]:
        place = (str(folder), _changed(folder))
        with self._lock:
            known = self._answers.get((*place, *what))
        if known is not None:
            return known
        found: dict[str, Any] = plain(answer(self._read(folder, place)))
        with self._lock:
            self._answers[(*place, *what)] = found
            while len(self._answers) > ANSWERS:
                self._answers.popitem(last=False)
        return found

    def _read(self, folder: Path, place: tuple[str, int]) -> Run:
        with self._lock:
            if place in self._runs:
                self._runs.move_to_end(place)
                return self._runs[place]
        run = load(folder)
        with self._lock:
            self._runs[place] = run
            while len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        return run


def _changed(folder: Path) -> int:
    try:
        return (folder / "manifest.json").stat().st_mtime_ns
    except OSError:
        return 0


def _facts(run: Run) -> dict[str, Any]:
    few = run.n <= DRAWN
    as_shown = report.as_json(run, run.summary(run.delta))
    history = [[step, row] for step, row in zip(run.metrics.steps, run.metrics.rows, strict=True)]
    return {
        "report": as_shown,
        "experiment": run.experiment,
        "history": history,
        "delta": run.delta,
        "headline": report.headline(run),
        "unit": run.algorithm.schedule.unit,
        "peers": run.n,
        "steps": run.steps,
        "noise": None if run.privacy is None else run.privacy.sigma,
        "protects": as_shown["privacy"]["protects"],
        "metric": metric_of(run.task, run.metrics.names()),
        "picture": coordinates(run.graph, run.steps).plain() if few else None,
    }
