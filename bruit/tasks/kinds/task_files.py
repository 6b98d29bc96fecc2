"""Tasks as experiment files describe them: keys that mean something for a kind, and the task they
make."""

from __future__ import annotations

from bruit.errors import ConfigError
from bruit.tasks import Task
from bruit.tasks.kinds.kind import kinds
from bruit.tasks.kinds.section import TaskSection

IN_COLUMNS_FILE = (
    "label",
    "classes",
    "columns",
    "drop",
    "fill",
    "holes",
    "vocabulary",
    "scales",
    "standardize",
    "components",
)


def build_task(section: TaskSection, peers: int, seed: int) -> Task:
    """The task of a section, dealt to so many peers."""
    kind = kinds()[section.kind]
    if section.data is None and kind.drawn is None:
        raise ConfigError(
            f"a {section.kind} task needs data: a name of `bruit list data`, or a CSV, Parquet or NPZ file"
        )
    refuse_idle_keys(section)
    return kind.build(section, peers, seed)


def refuse_idle_keys(section: TaskSection) -> None:
    """Refuse keys that say nothing about a task of this kind: nothing that was written is
    ignored."""
    kind, fields, known = section.kind, TaskSection.model_fields, kinds()
    useful = known[kind].keys if section.data is not None else known[kind].drawn or frozenset()
    idle = next(
        (
            key
            for key in sorted(set(fields) - useful - {"kind", "data"})
            if getattr(section, key) != fields[key].default
        ),
        None,
    )
    if idle is None:
        _refuse_twice(section)
        return
    having = [name for name, other in known.items() if idle in other.keys]
    if len(having) <= 2 and kind not in having:
        raise ConfigError(
            f"task.{idle} is of {' or '.join(having)} tasks, found a {kind} task; leave it out"
        )
    data = "" if section.data else " without data"
    why = f", since {known[kind].pointless[idle]}" if idle in known[kind].pointless else ""
    raise ConfigError(f"task.{idle} says nothing about a {kind} task{data}{why}; leave it out")


def _refuse_twice(section: TaskSection) -> None:
    """Refuse keys that say something of columns where a columns file says all."""
    fields = TaskSection.model_fields
    for key in IN_COLUMNS_FILE if section.columns_file is not None else ():
        if getattr(section, key) != fields[key].default:
            raise ConfigError(
                f"task.{key} is said in the columns file {section.columns_file}; leave it out here"
            )
