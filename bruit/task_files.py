"""Tasks as experiment files describe them: which keys mean something for which kind, and the task they make."""

from __future__ import annotations

from typing import Any

from bruit.config import TaskSection
from bruit.errors import ConfigError
from bruit.tasks import Boosted, Logistic, Mean, Pairwise, Personal, Ridge, Softmax, Task, histogram
from bruit.tasks.statistic_file import load_statistic

LINEAR: dict[str, Any] = {"ridge": Ridge, "logistic": Logistic, "softmax": Softmax}
FILE = frozenset({"data", "label", "holes"})
TABLE = FILE | {"split", "owner", "columns", "drop", "fill", "public", "classes", "vocabulary", "scales", "standardize",
                "test", "components"}  # fmt: skip
MODEL = TABLE | {"rows", "l2", "derivative_clip"}
PERSONAL = frozenset({"own_test"})
KEYS: dict[str, frozenset[str]] = {
    "mean": frozenset({"dim"}),
    "ridge": MODEL - {"classes"},
    "logistic": MODEL,
    "softmax": MODEL,
    "histogram": FILE | {"dim", "classes"},
    "statistic": FILE | {"split", "owner", "columns", "fill", "classes", "kernel", "bins", "low", "high"},
    "pairwise": TABLE | {"rows", "loss", "bins"},
    "personal": MODEL | PERSONAL | {"model", "ridge"},
    "boosted": TABLE | PERSONAL | {"predictors"},
}  # fmt: skip
"""What may be said about a task of each kind; anything else would be ignored, and is refused."""


def build_task(section: TaskSection, peers: int, seed: int) -> Task:
    """The task of a section, dealt to so many peers."""
    if section.data is None and section.kind not in ("mean", "histogram"):
        raise ConfigError(f"a {section.kind} task needs data: a name of `bruit list data`, or a CSV or NPZ file")
    refuse_idle_keys(section)
    if section.kind == "mean":
        if section.data is not None:
            raise ConfigError("a mean task draws uniform values of task.dim numbers; to average a file, use Python")
        return Mean.uniform(peers, section.dim, seed)
    if section.kind == "histogram":
        return histogram(peers, section.dim, section.data, section.label, seed, section.agreed(), section.choice())
    return _load(section, section.data or "", peers, seed)


def refuse_idle_keys(section: TaskSection) -> None:
    """Refuse keys that say nothing about a task of this kind: nothing that was written is ignored."""
    kind, fields = section.kind, TaskSection.model_fields
    useful = KEYS[kind] | {"kind", "data"}
    if section.data is None:
        useful = frozenset({"kind", "data", "dim"})
    idle = next((key for key in sorted(set(fields) - useful) if getattr(section, key) != fields[key].default), None)
    if idle is None:
        return
    kinds = [name for name, keys in KEYS.items() if idle in keys]
    if len(kinds) <= 2 and kind not in kinds:
        raise ConfigError(f"task.{idle} is of {' or '.join(kinds)} tasks, found a {kind} task; leave it out")
    data = "" if section.data else " without data"
    raise ConfigError(f"task.{idle} says nothing about a {kind} task{data}; leave it out")


def _load(section: TaskSection, data: str, peers: int, seed: int) -> Task:
    """A task of a data set: whatever is agreed on and chosen, and the keys of its kind."""
    common: dict[str, Any] = {"peers": peers, "split": section.split, "seed": seed, "label": section.label,
                              "owner": section.owner, "agreed": section.agreed()}  # fmt: skip
    if section.kind == "statistic":
        return load_statistic(data, section.kernel, section.columns, bins=section.bins, low=section.low,
                              high=section.high, fill=section.fill, holes=section.holes, **common)  # fmt: skip
    common |= {"standardize": section.standardize, "test": section.test, "components": section.components,
               "choice": section.choice()}  # fmt: skip
    if section.kind == "boosted":
        return Boosted.load(data, predictors=section.predictors, own_test=section.own_test, **common)
    common["rows"] = section.rows
    if section.kind == "pairwise":
        return Pairwise.load(data, section.loss, bins=section.bins, **common)
    common |= {"l2": section.l2, "derivative_clip": section.derivative_clip}
    if section.kind == "personal":
        return Personal.load(LINEAR[section.model], data, ridge=section.ridge, own_test=section.own_test, **common)
    task: Task = LINEAR[section.kind].load(data, **common)
    return task
