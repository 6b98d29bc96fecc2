"""Writing a run folder: it is there whole or not at all, and replaces nothing but a run folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.errors import ConfigError
from bruit.files import plain, to_json
from bruit.graphs.stored import graph_columns
from bruit.runs.folder.manifest import BEFORE, FILES, digest, manifest_of
from bruit.runs.model import FILE as MODEL

if TYPE_CHECKING:
    from bruit.runs.result import Run


def save_folder(run: Run, target: Path, overwrite: bool = False) -> Path:
    """Write the run folder; it appears whole or not at all, and replaces nothing but a run
    folder."""
    if target.exists() and not overwrite:
        raise ConfigError(f"{target} exists; choose another name or allow overwriting")
    check_folder(target)
    missing = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(None, f".{target.name}.", target.parent, True) as draft:
            _write(run, Path(draft) / "new")
            _swap(Path(draft), target)
    except OSError as error:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise ConfigError(
            f"cannot write the run folder {target}: {error.strerror or error}"
        ) from None
    return target


def _write(run: Run, folder: Path) -> None:
    """All files of the folder, the manifest last, on the disk when this returns."""
    folder.mkdir()
    columns = run.trace.columns() | graph_columns(run.graph)
    np.savez_compressed(folder / "trace.npz", **columns)
    run.ledger.save(folder / "ledger.npz")
    rows: dict[str, Any] = (
        {} if run.start is None else {"start": np.asarray(run.start.rows, np.float64)}
    )
    if run.own_models is not None:
        rows["own_models"] = run.own_models
    np.savez_compressed(folder / "estimates.npz", estimates=run.estimates, **rows)
    if run.learned is not None:
        (folder / MODEL).write_text(to_json(run.model.describe()), encoding="utf-8")
    scores = {
        "steps": run.metrics.steps,
        "rows": run.metrics.rows,
        "references": run.references,
        "joining": None if run.joining is None else run.joining.describe(),
    }
    (folder / "metrics.json").write_text(to_json(scores), encoding="utf-8")
    (folder / "experiment.toml").write_text(run.experiment, encoding="utf-8")
    if run.before is not None:
        _write(run.before, folder / BEFORE)
    about = plain(manifest_of(run))
    files = FILES if run.learned is None else (*FILES, MODEL)
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    sums["manifest"] = digest(about)
    (folder / "manifest.json").write_text(to_json({**about, "sha256": sums}), encoding="utf-8")
    for name in (*files, "manifest.json"):
        with open(folder / name, "rb") as written:
            os.fsync(written.fileno())


def check_folder(target: Path) -> None:
    """Refuse a place where no run folder could be written, or where something else lies."""
    if target.exists() and not (target / "manifest.json").is_file():
        raise ConfigError(
            f"{target} exists and is not a run folder, so it is left alone; choose another name"
        )
    there = next(parent for parent in target.absolute().parents if parent.exists())
    if not there.is_dir():
        raise ConfigError(f"cannot write the run folder {target}: {there} is not a folder")
    if not os.access(there, os.W_OK):
        raise ConfigError(f"cannot write the run folder {target}: {there} may not be written")


def _swap(draft: Path, target: Path) -> None:
    """Put draft/new in place of the target; the old run is there until the new one is."""
    if not target.exists():
        os.replace(draft / "new", target)
        return
    os.replace(target, draft / "old")
    try:
        os.replace(draft / "new", target)
    except OSError:
        (draft / "old").rename(target)
        raise
