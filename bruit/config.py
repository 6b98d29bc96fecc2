"""Experiments as TOML: read, checked, and explained when wrong.

An unknown key, a wrong type or an impossible value is named with its line and the nearest valid one. Strings name
graphs, data sets and algorithms the same way everywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bruit.errors import ConfigError
from bruit.tasks.choice import Choice
from bruit.tasks.public import Agreed


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TaskSection(Section):
    """What the peers hold and want: mean | ridge | logistic | softmax | histogram | statistic | pairwise, or a model of
    one's own: personal | boosted."""

    kind: Literal["mean", "ridge", "logistic", "softmax", "histogram", "statistic", "pairwise", "personal", "boosted"]
    data: str | None = None
    split: str = "iid"
    standardize: Literal["public", "agreed", "none"] = "public"
    rows: Literal["unit", "none"] = "unit"
    test: float = Field(0.2, ge=0, lt=1)
    components: int | None = Field(None, ge=1)
    label: str | None = None
    owner: str | None = None
    public: list[str] = []
    classes: list[str] = []
    vocabulary: dict[str, list[str]] = {}
    scales: dict[str, list[float]] = {}
    l2: float = Field(0.0, ge=0)
    derivative_clip: float | None = Field(None, gt=0)
    columns: list[str] = []
    drop: list[str] = []
    fill: float | str | dict[str, float | str] | None = None
    holes: Literal["refuse", "drop"] = "refuse"
    dim: int = Field(1, ge=1)
    kernel: str = "gini"
    loss: str = "auc"
    bins: int | None = Field(None, ge=2)
    low: float = 0.0
    high: float = 1.0
    model: Literal["logistic", "ridge", "softmax"] = "logistic"
    ridge: float = Field(1.0, ge=0)
    own_test: float = Field(0.2, ge=0, lt=1)
    predictors: int | None = Field(None, ge=1)

    def agreed(self) -> Agreed:
        """What the file says about the data before anybody looks at it."""
        return Agreed(self.classes, self.vocabulary, self.scales, self.public)

    def choice(self) -> Choice:
        """Which columns the file wants to be used, and what becomes of holes."""
        return Choice(self.columns, self.drop, self.fill, self.holes)

    @field_validator("fill", mode="before")
    @classmethod
    def _one_fill(cls, found: object) -> object:
        """One sentence instead of one for each type it could have been."""
        parts = list(found.values()) if isinstance(found, dict) else [found]
        if any(isinstance(part, bool) or not isinstance(part, int | float | str | None) for part in parts):
            raise ValueError('fill is a number, "public", or a table of constants: { age = 50, color = "unknown" }')
        return found


class AlgorithmSection(BaseModel):
    """A name of `bruit list algorithms` and that algorithm's own parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    name: str


class PrivacySection(Section):
    """Noise by its size (sigma), or by what it must achieve (epsilon, delta) in the local view."""

    mechanism: Literal["gaussian", "laplace", "discrete-gaussian", "randomized-response"] = "gaussian"
    clip: float = Field(1.0, gt=0)
    sigma: float | None = Field(None, gt=0)
    scale: float | None = Field(None, gt=0)
    gamma: float | None = Field(None, gt=0, lt=1)
    epsilon: float | None = Field(None, gt=0)
    delta: float = Field(1e-6, gt=0, lt=1)
    arithmetic: Literal["grid", "ideal"] = "grid"


GONE = {
    "privacy.lattice": "noise lies on a grid that follows from its size; leave the line out, or write"
                       ' arithmetic = "ideal" for real numbers, which is for simulations only',
}  # fmt: skip
"""Keys of older files, and what to write instead."""


class EngineSection(Section):
    """bulk (instantaneous) or events (latency, loss, churn)."""

    name: Literal["bulk", "events"] = "bulk"
    fused: bool | None = None
    latency: float = Field(0.0, ge=0)
    loss: float = Field(0.0, ge=0, lt=1)
    churn: float = Field(0.0, ge=0, lt=1)
    timeout: float = Field(1.0, gt=0)
    debug: bool = False


class ExperimentFile(Section):
    """A whole experiment."""

    graph: str
    steps: int | None = Field(None, ge=0)
    seed: int = Field(0, ge=0)
    watch: list[int] = []
    references: bool = True  # fit each peer alone and all data in one place, to compare
    task: TaskSection
    algorithm: AlgorithmSection
    privacy: PrivacySection | None = None
    engine: EngineSection = Field(default_factory=lambda: EngineSection.model_validate({}))


def read(path: str | Path) -> tuple[ExperimentFile, str]:
    """The experiment in a file, or one that ships with bruit, and its text, with paths written out (`located`)."""
    file, text = read_text(path)
    text = located(text, file.parent)
    return parse(text, str(path)), text


def read_text(path: str | Path) -> tuple[Path, str]:
    """Where an experiment lies, a file or one that ships with bruit, and its text as it stands there."""
    file = Path(path)
    if not file.is_file():
        shipped = bundled()
        if str(path) in shipped:
            file = shipped[str(path)]
        else:
            near = get_close_matches(str(path), shipped, 1)
            hint = f"; did you mean the bundled {near[0]!r}?" if near else f" (bundled: {', '.join(shipped)})"
            raise ConfigError(f"there is no experiment file {path}{hint}; `bruit init` writes one")
    try:
        return file, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the experiment {path}: {error}") from None


def located(text: str, folder: Path) -> str:
    """The same experiment with the paths of its files written out, so that it can be built again from anywhere.

    Paths are relative to the folder of the experiment; a file that is not there is looked for in the working directory.
    One that is in neither place is left as it is: whoever needs it says so.
    """
    for key, value, name in _files_in(text):
        found = next((place for place in (folder / name, Path(name)) if place.is_file()), None)
        if found is not None:
            start = value.index(name, value.find(":") + 1 if key == "graph" else 0)
            text = rewritten(text, key, value, value[:start] + str(found.resolve()) + value[start + len(name) :])
    return text


def _files_in(text: str) -> list[tuple[str, str, str]]:
    """Keys whose values name files by relative paths: the key, its value, and the path in it."""
    from bruit.graphs.names import edge_file
    from bruit.tasks.catalog import catalog

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []  # whoever parses it says what is wrong
    task, graph, found = content.get("task"), content.get("graph"), []
    data = task.get("data") if isinstance(task, dict) else None
    if isinstance(data, str) and data and data not in catalog():
        found.append(("task.data", data, data))
    if isinstance(graph, str) and (edges := edge_file(graph)):
        found.append(("graph", graph, edges))
    return [one for one in found if not Path(one[2]).is_absolute()]


def rewritten(text: str, key: str, old: str, new: str) -> str:
    """The same experiment with another string as the value of one key; all else stays word for word."""
    lines, number = text.splitlines(keepends=True), line_of(text, tuple(key.split(".")))
    for literal in (json.dumps(old, ensure_ascii=False), f"'{old}'"):
        if number is not None and literal in lines[number - 1]:
            lines[number - 1] = lines[number - 1].replace(literal, json.dumps(new, ensure_ascii=False), 1)
            return "".join(lines)
    raise ConfigError(f"the value of {key} is not written as one plain string on the line of its key; write it as"
                      f" {key.rpartition('.')[2]} = {json.dumps(old, ensure_ascii=False)}")  # fmt: skip


def identity(file: ExperimentFile, **options: object) -> str:
    """A name of an experiment and all that it depends on: its keys, options, and this bruit. Of files of data and of
    graphs only size and time of change are in it: a digest of private rows could be compared with guesses."""
    graph = file.graph.partition(",")[0]
    files = [Path(name) for name in (file.task.data or "", graph.removeprefix("file:"))]
    stamps = [(found.stat().st_size, found.stat().st_mtime_ns) for found in files if found.is_file()]
    try:
        made_by = version("bruit")
    except PackageNotFoundError:
        made_by = ""
    content = json.dumps([file.model_dump(), options, stamps, made_by], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def bundled() -> dict[str, Path]:
    """Experiments that ship with bruit, by name."""
    folder = Path(__file__).parent / "experiments"
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def parse(text: str, where: str = "experiment") -> ExperimentFile:
    """Check the text of an experiment; errors name file, line, what was found and what was expected."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from None
    return from_dict(content, text, where)


def from_dict(content: dict[str, Any], text: str = "", where: str = "experiment") -> ExperimentFile:
    try:
        return ExperimentFile.model_validate(content)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(dict(problem), text, where) for problem in error.errors())) from None


def _explain(problem: dict[str, Any], text: str, where: str) -> str:
    path = tuple(str(part) for part in problem["loc"])
    line = line_of(text, path)
    place = f"{where}:{line}" if line else where
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        if key in GONE:
            return f"{place}: {key!r} is gone: {GONE[key]}"
        known = known_keys(path[:-1])
        near = get_close_matches(path[-1], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"{place}: unknown key {key!r}; {hint}"
    if problem["type"] == "missing":
        return f"{place}: {key!r} is missing"
    found, message = problem.get("input"), str(problem["msg"]).lower()
    near = get_close_matches(str(found), re.findall(r"'([^']+)'", message), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{place}: {key} = {found!r}: {message}{hint}"


def known_keys(path: tuple[str, ...]) -> list[str]:
    """The keys of a section of an experiment file; those of the file itself for an empty path."""
    model: type[BaseModel] = ExperimentFile
    sections: dict[str, type[BaseModel]] = {
        "task": TaskSection, "algorithm": AlgorithmSection, "privacy": PrivacySection, "engine": EngineSection,
    }  # fmt: skip
    if path:
        model = sections.get(path[0], ExperimentFile)
    return list(model.model_fields)


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line that sets a key, or else the line of what holds it; None when neither is written."""
    section: tuple[str, ...] = ()
    best, line_found = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\[\]]+?)\s*\]", line)
        key = re.match(r"\s*([A-Za-z0-9_.\-\"]+)\s*=", line)
        if header:
            section = written = _parts(header[1])
        elif key:
            written = (*section, *_parts(key[1]))
        else:
            continue
        if len(written) > best and written == path[: len(written)]:
            best, line_found = len(written), number
    return line_found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip('"') for part in dotted.split("."))
