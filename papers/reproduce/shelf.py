"""Where results are kept: a folder a figure, with its table, its pictures and what was found.

table.csv      the source's numbers beside ours
picture.svg    the same picture as picture.png
found.json     checks, settings, seconds, what made it: written last, so that a folder with it is whole
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from bruit.errors import ConfigError
from bruit.files import to_json, write_whole
from papers.figures.pictures import figure as blank
from papers.reproduce.figure import Figure, Finding
from papers.reproduce.sources import Stamp, made_at, made_by

FORM = 2


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How repeating one figure ended."""

    id: str
    verdict: str  # as the source says, refuted, missed, failed, skipped
    cpu_s: float
    folder: Path
    plain: dict[str, Any]
    kept: bool = False  # found from an earlier call

    @property
    def good(self) -> bool:
        return self.verdict not in ("missed", "failed")


def opened(out: Path) -> None:
    """Refuse a folder that cannot be written, and a machine that cannot draw."""
    blank(1, 1)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write into {out}: {error.strerror}") from None


def place(out: Path, figure: Figure) -> Path:
    return out / figure.id


def kept(out: Path, figure: Figure, quick: bool) -> Outcome | None:
    """What an earlier call found, if it was asked in the same way and is whole."""
    file = place(out, figure) / "found.json"
    if not file.is_file():
        return None
    try:
        plain = json.loads(file.read_text())
        same = plain["form"] == FORM and plain["quick"] == quick
        same = same and plain["made_by"] == made_by(figure.repeat) and plain["verdict"] != "skipped"
        same = (
            same and plain.get("missing", []) == figure.missing()
        )  # data that came later are used
        if not same:
            return None
        return Outcome(
            id=figure.id,
            verdict=plain["verdict"],
            cpu_s=plain["cpu_s"],
            folder=file.parent,
            plain=plain,
            kept=True,
        )
    except (json.JSONDecodeError, KeyError, TypeError):
        return None


def repeat(figure: Figure, out: Path, quick: bool, stamp: Stamp | None = None) -> Outcome:
    """Compute one figure and write its folder. What is missing on this machine skips it."""
    stamp = Stamp.of(figure.repeat) if stamp is None else stamp
    folder = place(out, figure)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "found.json").unlink(missing_ok=True)
    about = {
        "form": FORM,
        "id": figure.id,
        "also": list(figure.also),
        "title": figure.title,
        "source": figure.document,
        "number": figure.number,
        "page": figure.page,
        "criterion": figure.criterion,
        "theory": list(figure.theory),
        "data": list(figure.data),
        "missing": figure.missing(),
        "quick": quick,
        "made_by": stamp.made_by,
        "made_at": made_at(stamp),
    }
    if words := figure.why_not():
        return _written(figure, folder, {**about, "verdict": "skipped", "cpu_s": 0.0, "why": words})
    begun = time.process_time()
    finding = figure.repeat(quick)
    cpu_s = time.process_time() - begun
    if not finding.rows:  # all was left out, for want of data
        words = f"needs one of {', '.join(figure.missing())} in the data folder (BRUIT_DATA)"
        return _written(figure, folder, {**about, "verdict": "skipped", "cpu_s": 0.0, "why": words})
    _write(folder, figure, finding)
    verdicts = [check.verdict for check in finding.checks]
    verdict = "as the source says"
    if not finding.good:
        verdict = "missed"
    elif "refuted" in verdicts:
        verdict = "refuted"
    checks = [
        {"words": check.words, "verdict": check.verdict, "why": check.refuted}
        for check in finding.checks
    ]
    about |= {
        "verdict": verdict,
        "cpu_s": round(cpu_s, 2),
        "instead_of_data": figure.instead if figure.missing() else "",
        "checks": checks,
        "settings": dict(finding.settings),
        "words": finding.words,
        "header": list(finding.header),
        "rows": [list(row) for row in finding.rows],
    }
    return _written(figure, folder, about)


def _written(figure: Figure, folder: Path, plain: dict[str, Any]) -> Outcome:
    _text(folder / "found.json", to_json(plain))
    return Outcome(
        id=figure.id, verdict=plain["verdict"], cpu_s=plain["cpu_s"], folder=folder, plain=plain
    )


def brought(outcome: Outcome, out: Path, files: Mapping[str, bytes]) -> Outcome:
    """An outcome from elsewhere, whose files are kept here, `found.json` last."""
    folder = out / outcome.id
    (folder / "found.json").unlink(missing_ok=True)
    for name in sorted(files, key="found.json".__eq__):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, partial(_put, files[name]))
    return replace(outcome, folder=folder)


def _put(content: bytes, stream: Any) -> None:
    stream.write(content)


def failed(figure: Figure, out: Path, words: str) -> Outcome:
    """A figure that raised; nothing of it is kept, so that the next call tries it again."""
    return Outcome(
        id=figure.id,
        verdict="failed",
        cpu_s=0.0,
        folder=place(out, figure),
        plain={"id": figure.id, "verdict": "failed", "why": words},
    )


def _write(folder: Path, figure: Figure, finding: Finding) -> None:
    stream = io.StringIO(newline="")
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(finding.header)
    table.writerows(finding.rows)
    _text(folder / "table.csv", stream.getvalue())
    picture = blank(7.0, 4.5)
    finding.draw(picture)
    if not picture.axes:
        raise ConfigError(f"{figure.id} draws nothing")
    for ending in ("svg", "png"):
        write_whole(folder / f"picture.{ending}", _saved(picture, ending))


def _saved(picture: Any, ending: str) -> Callable[[Any], object]:
    def save(stream: Any) -> None:
        # no date inside: the same numbers make the same file
        picture.savefig(
            stream, format=ending, dpi=110, metadata={"Date": None} if ending == "svg" else {}
        )

    return save


def _text(file: Path, text: str) -> None:
    write_whole(file, lambda stream: stream.write(text.encode()))
