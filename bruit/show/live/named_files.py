"""Files and code that an experiment of the page names: only files in the folder that the page
serves, and no code.

Whoever reaches the page could otherwise have any table of this machine read, and shown to peers of
a simulation, by naming it, or have modules of this machine imported. Data sets, graphs and networks
that have a name of their own come with bruit, or lie in the data folder, and are free.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from bruit.errors import ConfigError
from bruit.graphs.names import edge_file
from bruit.runs.file import line_of, rewritten
from bruit.tasks.data.agreed_columns import columns_name, shipped
from bruit.tasks.data.catalog import catalog

BUILT_IN = ("mlp", "cnn")  # networks that need no code of anybody


class Named(NamedTuple):
    """A key of an experiment, its value, and the path of the file in it; no path if it cannot be
    told, or is code."""

    key: str
    value: str
    path: str | None


def named_files(text: str) -> list[Named]:
    """All files and code that an experiment names, whatever their paths."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return []  # whoever parses it says what is wrong
    task, graph, found = content.get("task"), content.get("graph"), []
    data = task.get("data") if isinstance(task, dict) else None
    if isinstance(data, str) and data not in catalog():
        found.append(Named("task.data", data, data or None))
    columns = task.get("columns_file") if isinstance(task, dict) else None
    if isinstance(columns, str) and columns.partition(",")[0].strip() not in shipped():
        found.append(Named("task.columns_file", columns, columns_name(columns)))
    module = task.get("module") if isinstance(task, dict) else None
    if isinstance(module, str) and module.partition(":")[0] not in BUILT_IN:
        found.append(Named("task.module", module, None))
    if isinstance(graph, str) and re.split("[:,]", graph.strip())[0].strip() == "file":
        found.append(Named("graph", graph, edge_file(graph)))
    return found


def file_problems(text: str, folder: Path) -> list[dict[str, object]]:
    """What is wrong with the files that an experiment names: key, line and sentence."""
    return [
        {"key": one.key, "line": line_of(text, tuple(one.key.split("."))), "text": why}
        for one in named_files(text)
        if (why := _why_not(one, folder))
    ]


def written_out(text: str, folder: Path) -> str:
    """The same experiment with the paths of its files in the folder written out; a file elsewhere
    is refused."""
    for one in named_files(text):
        why = _why_not(one, folder)
        if why:
            raise ConfigError(why)
        path = one.path or ""
        start = one.value.index(path, one.value.find(":") + 1 if one.key == "graph" else 0)
        whole = one.value[:start] + str((folder / path).resolve()) + one.value[start + len(path) :]
        text = rewritten(text, one.key, one.value, whole)
    return text


def _why_not(one: Named, folder: Path) -> str:
    home = folder.resolve()
    if one.key == "task.module":
        return (
            f"task.module = {one.value!r} names code, and this page imports none; use mlp:64,32 or "
            "cnn:small, or `bruit run`"
        )
    if one.path is None or "\0" in one.path:
        return f"{one.key} = {one.value!r} names no file that can be told"
    place = (home / one.path).resolve()  # where it leads, links followed
    if not place.is_relative_to(home):
        return (
            f"{one.key} names {one.path}, which is not in the folder that this page serves;"
            f" put a copy into {folder} and name that, or use `bruit run`"
        )
    if not place.is_file():
        if one.key != "task.data":
            return f"{one.key} = {one.value!r}: there is no such file in {folder}"
        known = "nor a data set of that name; see `bruit list data`"
        return f"{one.key} = {one.value!r}: there is no such file in {folder}, {known}"
    return ""
