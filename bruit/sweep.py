"""Sweeps: one experiment for every combination of values and several seeds, one row per run."""

from __future__ import annotations

import csv
import io
import itertools
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.table import Table

from bruit.build import build
from bruit.config import from_dict, read
from bruit.errors import ConfigError
from bruit.repeating import check_workers
from bruit.settings import change, read_value, with_key
from bruit.whole_files import write_whole

_Task = tuple[dict[str, Any], dict[str, Any], str, float]  # what was varied, the experiment, its name, delta


def parse_vary(texts: list[str]) -> list[tuple[str, list[Any]]]:
    """`privacy.sigma=0.5,1` as a dotted key and its values, read as TOML."""
    found = []
    for text in texts:
        key, sign, values = text.partition("=")
        if not sign or not values:
            raise ConfigError(f"--vary {text!r} is not of the form key=value,value,...")
        found.append((key.strip(), [read_value(part) for part in values.split(",")]))
    return found


def sweep(experiment: str, vary: list[str], seeds: int, delta: float,
          progress: Callable[[int, int], None] | None = None, jobs: int = 1,
          settings: Sequence[str] = ()) -> list[dict[str, Any]]:  # fmt: skip
    """All runs, in order; every row names its setting, seed, final metrics and epsilons. `jobs` run at the same time.

    More than one job takes processes, each of which imports bruit once: a script that sweeps so needs the usual
    `if __name__ == "__main__":`. `settings` hold for all runs, as `bruit run --set` takes them.
    """
    _, text = read(experiment)
    content, grid = tomllib.loads(change(text, settings, experiment).text), parse_vary(vary)
    both = [key for key, _ in grid if any(text.partition("=")[0].strip() == key for text in settings)]
    if both:
        raise ConfigError(f"{both[0]} is set and varied; keep --set or --vary")
    combinations = list(itertools.product(*(values for _, values in grid)))
    tasks = []
    for values, seed in itertools.product(combinations, range(seeds)):
        changed = {**content, "seed": int(content.get("seed", 0)) + seed}
        for (key, _), value in zip(grid, values, strict=True):
            changed = with_key(changed, key, value)
        named = {key: value for (key, _), value in zip(grid, values, strict=True)}
        tasks.append((named, changed, experiment, delta))
    rows = []
    with _rows(tasks, check_workers(jobs)) as found:
        for row in found:
            rows.append(row)
            if progress is not None:
                progress(len(rows), len(tasks))
    return rows


@contextmanager
def _rows(tasks: list[_Task], jobs: int) -> Iterator[Iterator[dict[str, Any]]]:
    """The rows of all runs as they are done, in order; what was not begun when something fails is not begun at all."""
    if jobs == 1 or len(tasks) < 2:
        yield map(_row, tasks)
        return
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"))
    try:
        yield pool.map(_row, tasks)
    finally:
        pool.shutdown(cancel_futures=True)


def _row(task: _Task) -> dict[str, Any]:
    """One run and its row."""
    named, changed, experiment, delta = task
    result = build(from_dict(changed, where=experiment)).run()
    summary = result.summary(delta)
    return (
        named
        | {"seed": changed["seed"]}
        | {name: result.metrics.last(name) for name in result.metrics.names()}
        | result.references
        | {"epsilon_worst": summary.epsilons[0], "epsilon_typical": summary.epsilons[1]}
        | {"epsilon_local": summary.local_epsilon, "delta": delta, "status": summary.status}
    )


def to_table(rows: list[dict[str, Any]]) -> Table:
    table, names = Table(), _columns(rows)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name, "")) for name in names))
    for setting, group in _settings(rows).items():
        if len(group) > 1:
            table.add_section()
            numbers = {name: [row[name] for row in group if isinstance(row.get(name), float)] for name in names}
            means = {name: sum(found) / len(found) for name, found in numbers.items() if len(found) == len(group)}
            shown = {**means, **dict(zip(names, setting, strict=False)), "seed": "mean"}
            table.add_row(*(_cell(shown.get(name, "")) for name in names))
    return table


def _settings(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Rows by what was varied: the columns before the seed."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        names = list(row)
        groups.setdefault(tuple(row[name] for name in names[: names.index("seed")]), []).append(row)
    return groups


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def to_csv(rows: list[dict[str, Any]], path: Path) -> None:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=_columns(rows))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, lambda file: file.write(stream.getvalue().encode()))


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """All names in order of appearance: tasks with different metrics may share a sweep."""
    return list(dict.fromkeys(name for row in rows for name in row))
