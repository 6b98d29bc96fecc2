"""Experiments as TOML: read, checked, and explained when wrong.

An unknown key, a wrong type or an impossible value is named with its line and the nearest valid
one. Strings name graphs, data sets and algorithms the same way everywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Self, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import InitErrorDetails, PydanticCustomError

from bruit.errors import ConfigError
from bruit.mechanisms import GaussianPerPeer, RecordSums
from bruit.mechanisms.mechanism import of_files
from bruit.privacy.profile import USUAL_DELTA
from bruit.sections import Section, check_own_keys, one_of
from bruit.tasks.data.formats.tables import is_table
from bruit.tasks.kinds.kind import kinds
from bruit.tasks.kinds.section import TaskSection


class AlgorithmSection(BaseModel):
    """A name of `bruit list algorithms` and that algorithm's own parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    name: str


class PrivacySection(Section):
    """Noise by its size (sigma), or by what it must achieve (epsilon, delta) in the local view.

    A mechanism with keys that no other has (`Mechanism.keys`, `Mechanism.sizes`) reads them here
    too."""

    model_config = ConfigDict(extra="allow")
    mechanism: str = "gaussian"
    clip: float = Field(1.0, gt=0)
    sigma: float | None = Field(None, gt=0)
    scale: float | None = Field(None, gt=0)
    gamma: float | None = Field(None, gt=0, lt=1)
    epsilon: float | None = Field(None, gt=0)
    delta: float = Field(USUAL_DELTA, gt=0, lt=1)
    arithmetic: Literal["grid", "ideal"] = "grid"
    level: Literal["user", "record"] = "user"
    _single: bool = PrivateAttr(False)  # whether a release is clipped as a whole, as one record

    @property
    def kind(self) -> str:
        """The mechanism that is meant: with `sigmas`, noise of each peer's own size; what hides one
        record of many is noise on sums of clipped records."""
        if self.mechanism == "gaussian" and self.unequal:
            return GaussianPerPeer.kind
        summed = self.level == "record" and self.mechanism == "gaussian" and not self._single
        return RecordSums.kind if summed else self.mechanism

    @property
    def unequal(self) -> bool:
        """Whether the file says the noise of every peer."""
        return "sigmas" in (self.model_extra or {})

    @field_validator("mechanism")
    @classmethod
    def _known(cls, found: str) -> str:
        return one_of(found, of_files())

    @model_validator(mode="wrap")
    @classmethod
    def _keys_of_its_mechanism(cls, content: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        section = check(content)
        _check_level(section)
        kind = of_files()[section.kind]
        types = get_type_hints(kind)
        own = {key: types[key] for key in (*kind.keys, *kind.sizes) if key in types}
        check_own_keys(section, own)
        return section


def _check_level(section: PrivacySection) -> None:
    """Refuse a level that the noise does not have, and keys that are about records where what is
    hidden is everything that a peer holds: neither is left out in silence."""
    own, kind = section.model_extra or {}, of_files()[section.kind]
    summed = section.kind == RecordSums.kind
    key, why = "", ""
    if section.level == "record" and section.unequal:
        key, why = "level", "noise of each peer's own size hides all that it holds; leave it out"
    elif section.mechanism == RecordSums.kind and section.level != "record":
        key, why = "level", 'sums of clipped records hide one record; write level = "record"'
    elif section.level == "record" and not summed and "level" not in kind.keys:
        key, why = "level", f"records are hidden by gaussian noise, found {section.mechanism}"
    elif not summed and (about := [name for name in own if name in RecordSums.keys]):
        key, why = about[0], 'it is about single records; write level = "record", or leave it out'
    if why:
        value = own.get(key, section.level)
        raise _wrong(section, key, value, why)


def _wrong(section: BaseModel, key: str, value: Any, why: str) -> ValidationError:
    """One sentence about one key of a section."""
    problem = PydanticCustomError("level", "{why}", {"why": why})
    details = InitErrorDetails(type=problem, loc=(key,), input=value)
    return ValidationError.from_exception_data(type(section).__name__, [details])


GONE = {
    "privacy.lattice": "noise lies on a grid that follows from its size; leave the line out, or "
    "write"
    ' arithmetic = "ideal" for real numbers, which is for simulations only',
    "engine.debug": "errors always name peer and step, and save what an algorithm was given; leave "
    "the line out",
}
"""Keys of older files, and what to write instead."""


class EngineSection(Section):
    """bulk (instantaneous) or events (latency, loss, churn)."""

    name: Literal["bulk", "events"] = "bulk"
    fused: bool | None = None
    latency: float = Field(0.0, ge=0)
    loss: float = Field(0.0, ge=0, lt=1)
    churn: float = Field(0.0, ge=0, lt=1)
    timeout: float = Field(1.0, gt=0)

    @model_validator(mode="wrap")
    @classmethod
    def _keys_of_its_engine(cls, content: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse faults that the engine does not have: they would be left out in silence."""
        section = check(content)
        for key in ("latency", "loss", "churn", "timeout"):
            value = getattr(section, key)
            if section.name == "bulk" and value != cls.model_fields[key].default:
                raise _wrong(section, key, value, 'it is of engine.name = "events", found bulk')
        return section


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

    @property
    def delta(self) -> float:
        """At which epsilons are told."""
        return USUAL_DELTA if self.privacy is None else self.privacy.delta

    @model_validator(mode="after")
    def _whose_record(self) -> Self:
        if self.privacy is not None:
            self.privacy._single = not kinds()[self.task.kind].summed
            about = [key for key in self.privacy.model_extra or {} if key in RecordSums.keys]
            if self.privacy._single and about:
                raise PydanticCustomError(
                    "level",
                    "what a peer of a {kind} task answers is clipped as a whole, like one record, so"
                    " privacy.{key} means nothing; leave it out",
                    {"kind": self.task.kind, "key": about[0]},
                )
        return self


def read(path: str | Path) -> tuple[ExperimentFile, str]:
    """The experiment in a file, or one that ships with bruit, and its text, with paths written out
    (`located`)."""
    file, text = read_text(path)
    text = located(text, file.parent)
    return parse(text, str(path)), text


def read_text(path: str | Path) -> tuple[Path, str]:
    """Where an experiment lies, a file or one that ships with bruit, and its text as it stands
    there."""
    file = Path(path)
    if not file.is_file():
        shipped = bundled()
        if str(path) in shipped:
            file = shipped[str(path)]
        else:
            near = get_close_matches(str(path), shipped, 1)
            hint = (
                f" (did you mean the bundled {near[0]!r}?)"
                if near
                else f" (bundled: {', '.join(shipped)});"
            )
            raise ConfigError(f"there is no experiment file {path}{hint} `bruit init` writes one")
    if is_table(file) or file.suffix == ".npz":
        how = f"`bruit init own.toml --data {path} --label COLUMN` writes one"
        if file.suffix == ".npz":
            how = f'`bruit init` writes one, in which you say data = "{file.name}"'
        raise ConfigError(f"{path} holds records, and an experiment is asked for: {how}")
    try:
        return file, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the experiment {path}: {error}") from None


def located(text: str, folder: Path) -> str:
    """The same experiment with the paths of its files written out, so that it can be built again
    from anywhere.

    Paths are relative to the folder of the experiment; a file that is not there is looked for in
    the working directory. One that is in neither place is left as it is: whoever needs it says so.
    """
    for key, value, name in _files_in(text):
        found = next((place for place in (folder / name, Path(name)) if place.is_file()), None)
        if found is not None:
            start = value.index(name, value.find(":") + 1 if key == "graph" else 0)
            text = rewritten(
                text, key, value, value[:start] + str(found.resolve()) + value[start + len(name) :]
            )
    return text


def _files_in(text: str) -> list[tuple[str, str, str]]:
    """Keys whose values name files by relative paths: the key, its value, and the path in it."""
    from bruit.graphs.names import edge_file
    from bruit.tasks.data.agreed_columns import columns_name
    from bruit.tasks.data.catalog import catalog

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []  # whoever parses it says what is wrong
    task, graph, found = content.get("task"), content.get("graph"), []
    data = task.get("data") if isinstance(task, dict) else None
    if isinstance(data, str) and data and data not in catalog():
        found.append(("task.data", data, data))
    columns = task.get("columns_file") if isinstance(task, dict) else None
    if isinstance(columns, str) and (name := columns_name(columns)):
        found.append(("task.columns_file", columns, name))
    if isinstance(graph, str) and (edges := edge_file(graph)):
        found.append(("graph", graph, edges))
    return [one for one in found if not Path(one[2]).is_absolute()]


def rewritten(text: str, key: str, old: str, new: str) -> str:
    """The same experiment with another string as the value of one key; all else stays word for
    word."""
    lines, number = text.splitlines(keepends=True), line_of(text, tuple(key.split(".")))
    for literal in (json.dumps(old, ensure_ascii=False), f"'{old}'"):
        if number is not None and literal in lines[number - 1]:
            lines[number - 1] = lines[number - 1].replace(
                literal, json.dumps(new, ensure_ascii=False), 1
            )
            return "".join(lines)
    raise ConfigError(
        f"the value of {key} is not written as one plain string on the line of its key; write it as"
        f" {key.rpartition('.')[2]} = {json.dumps(old, ensure_ascii=False)}"
    )


def identity(file: ExperimentFile, **options: object) -> str:
    """A name of an experiment and all that it depends on: its keys, options, columns file, and this
    bruit. Of files of data and of graphs only size and time of change are in it: a digest of private rows
    could be compared with guesses."""
    from bruit.tasks.data.agreed_columns import columns_digest

    graph = file.graph.partition(",")[0]
    files = [Path(name) for name in (file.task.data or "", graph.removeprefix("file:"))]
    stamps = [
        (found.stat().st_size, found.stat().st_mtime_ns) for found in files if found.is_file()
    ]
    try:
        made_by = version("bruit")
    except PackageNotFoundError:
        made_by = ""
    content = json.dumps(
        [file.model_dump(), options, stamps, columns_digest(file.task.columns_file), made_by],
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()


def bundled() -> dict[str, Path]:
    """Experiments that ship with bruit, by name."""
    folder = Path(__file__).parent / "experiments"
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def parse(text: str, where: str = "experiment") -> ExperimentFile:
    """Check the text of an experiment; errors name file, line, what was found and what was
    expected."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from None
    return from_dict(content, text, where)


def from_dict(content: dict[str, Any], text: str = "", where: str = "experiment") -> ExperimentFile:
    try:
        return ExperimentFile.model_validate(content)
    except ValidationError as error:
        raise ConfigError(
            "\n".join(_explain(dict(problem), text, where) for problem in error.errors())
        ) from None


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
    if problem["type"] == "level":
        what = f"{key} = {problem['input']!r}: " if path else ""
        return f"{place}: {what}{problem['msg']}"
    found, message = problem.get("input"), str(problem["msg"]).lower()
    near = get_close_matches(str(found), re.findall(r"'([^']+)'", message), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{place}: {key} = {found!r}: {message}{hint}"


def known_keys(path: tuple[str, ...]) -> list[str]:
    """The keys of a section of an experiment file; those of the file itself for an empty path."""
    model: type[BaseModel] = ExperimentFile
    sections: dict[str, type[BaseModel]] = {
        "task": TaskSection,
        "algorithm": AlgorithmSection,
        "privacy": PrivacySection,
        "engine": EngineSection,
    }
    if path:
        model = sections.get(path[0], ExperimentFile)
    own: dict[type[BaseModel], list[str]] = {
        TaskSection: [key for kind in kinds().values() for key in kind.own_keys],
        PrivacySection: [key for kind in of_files().values() for key in (*kind.keys, *kind.sizes)],
    }
    return list(dict.fromkeys((*model.model_fields, *own.get(model, []))))


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
