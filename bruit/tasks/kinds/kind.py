"""A kind of task, as experiment files and participants speak of it: which keys it reads, the task it
makes for all peers, and the records that one peer keeps of it.

A kind stands in the file of its task, and is found by looking: a new task is one new file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bruit.discovery import classes
from bruit.errors import ConfigError
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.tasks.data.own_rows import Agreement
    from bruit.tasks.data.recipe import Recipe
    from bruit.tasks.kinds.section import TaskSection

FILE = frozenset({"data", "label", "holes"})
TABLE = FILE | {
    "split",
    "owner",
    "columns",
    "drop",
    "fill",
    "public",
    "classes",
    "vocabulary",
    "scales",
    "standardize",
    "test",
    "components",
}
MODEL = TABLE | {"own_test", "rows", "l2", "derivative_clip", "columns_file"}
OWN_TEST = 0.2  # of personal and boosted tasks, which are judged on records of one's own


class TaskKind(ABC):
    """One kind of task. Below it: one class per kind, in the file of the task, without fields.

    `keys` are keys of [task] that mean something for it, and `own_keys` those that hardly another
    kind has, with their types; anything else would be ignored, and is refused.
    """

    name: ClassVar[str]
    task: ClassVar[type[Task]]  # what it makes, which says what it answers
    keys: ClassVar[frozenset[str]] = frozenset()
    own_keys: ClassVar[Mapping[str, Any]] = {}
    pointless: ClassVar[Mapping[str, str]] = {}  # keys of others that have no place, and why
    drawn: ClassVar[frozenset[str] | None] = (
        None  # keys that it reads without data; None: it needs data
    )
    of_pairs: ClassVar[bool] = False  # whether it asks about pairs of points
    counted: ClassVar[bool] = (
        False  # whether a value is one of several, as randomized response tells
    )
    held: ClassVar[bool] = False  # whether participants can hold its records, each their own
    scored: ClassVar[bool] = False  # whether it makes models, which public records can judge
    summed: ClassVar[bool] = False  # whether gradients of single records can be clipped and summed

    @abstractmethod
    def build(self, section: TaskSection, peers: int, seed: int) -> Task:
        """The task of a section, dealt to so many peers."""

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        """The records of one peer of such a task, as arrays that a file keeps; of kinds that are
        `held`."""
        raise ConfigError(f"a task of type {type(task).__name__} cannot be dealt to participants")

    def agreed(self, section: TaskSection) -> Mapping[str, Any]:
        """What the records of a participant must have been prepared for, by the names of their
        columns: what is in their file and in the experiment too."""
        return {}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Task:
        """The task of one peer of so many from such arrays: that of a single peer, number 0."""
        raise ConfigError(f"no participant holds records of a {self.name} task alone")

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """The same arrays from a participant's own CSV file, prepared by what was agreed on and by
        nothing else; `tell` hears what was left out and filled."""
        raise ConfigError(f"records of a {self.name} task are not made from a CSV file")


def kinds() -> dict[str, TaskKind]:
    """Every kind of task of the folder, by name: a new file is enrolled by being there."""
    import bruit.tasks as folder

    # no kind is in files that are loaded when they are needed
    found = classes(folder, TaskKind, without=("compiled", "with_torch"))  # type: ignore[type-abstract]
    return dict(sorted({kind.name: kind() for kind in found}.items()))


def held_kinds() -> dict[str, TaskKind]:
    """Those whose records participants can hold."""
    return {name: kind for name, kind in kinds().items() if kind.held}


def common_keys(section: TaskSection, peers: int, seed: int) -> dict[str, Any]:
    """What every task of a data set is told: who holds which record, and what is agreed on."""
    return {
        "peers": peers,
        "split": section.split,
        "seed": seed,
        "label": section.label,
        "owner": section.owner,
        "agreed": section.agreed(),
    }


def table_keys(section: TaskSection, peers: int, seed: int) -> dict[str, Any]:
    """The same, and how columns are prepared."""
    return common_keys(section, peers, seed) | {
        "standardize": section.standardize,
        "test": section.test,
        "components": section.components,
        "choice": section.choice(),
    }


def model_keys(section: TaskSection, peers: int, seed: int) -> dict[str, Any]:
    """The same, and what belongs to models that speak through scores."""
    return table_keys(section, peers, seed) | {
        "rows": section.rows,
        "l2": section.l2,
        "derivative_clip": section.derivative_clip,
        "columns_file": section.columns_file,
    }


def judged_share(section: TaskSection) -> float:
    """The share of its own records that a peer is judged on, where every peer is."""
    return OWN_TEST if section.own_test is None else section.own_test
