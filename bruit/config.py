"""Experiments as TOML: read, checked, and explained when wrong.

An unknown key, a wrong type or an impossible value is named with its line and the nearest valid one. Strings name
graphs, data sets and algorithms the same way everywhere.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bruit.errors import ConfigError
from bruit.tasks.public import Agreed


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TaskSection(Section):
    """What the peers hold and want: mean | ridge | logistic | softmax | histogram | statistic | pairwise."""

    kind: Literal["mean", "ridge", "logistic", "softmax", "histogram", "statistic", "pairwise"]
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
    dim: int = Field(1, ge=1)
    kernel: str = "gini"
    columns: list[str] = []
    loss: str = "auc"
    bins: int | None = Field(None, ge=2)
    low: float = 0.0
    high: float = 1.0

    def agreed(self) -> Agreed:
        """What the file says about the data before anybody looks at it."""
        return Agreed(self.classes, self.vocabulary, self.scales, self.public)


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
    """The experiment in a file, or one that ships with bruit, and its text."""
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
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the experiment {path}: {error}") from None
    return parse(text, str(path)), text


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
        known = _keys(path[:-1])
        near = get_close_matches(path[-1], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"{place}: unknown key {key!r}; {hint}"
    if problem["type"] == "missing":
        return f"{place}: {key!r} is missing"
    found, message = problem.get("input"), str(problem["msg"]).lower()
    near = get_close_matches(str(found), re.findall(r"'([^']+)'", message), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{place}: {key} = {found!r}: {message}{hint}"


def _keys(path: tuple[str, ...]) -> list[str]:
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
