"""An agreed columns file: how every column is read, decided from public knowledge before anybody
looks at the rows (silo:SILO-7).

    number     size * (cut(x, low, high) - center) / scale        low, high: center -+ cut * scale unless given
    date       the same of days; center, low and high are dates, scale is a number of days
    category   one feature a value, but for the base: 0 and 1, or -1/2 and 1/2 (halves)
    two        a category of two values in halves: -1/2, 1/2
    intercept  a column of one constant

Centers, scales, ranges and values from the rows themselves would tell something about them that no
epsilon knows of. The file has a digest, which everybody who agreed on it has in common.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from bruit.errors import ConfigError
from bruit.tasks.data.agreed_keys import (
    form_of,
    in_days,
    known_keys,
    number_of,
    table_of,
    text_of,
    texts_of,
)
from bruit.tasks.data.columns import MISSING, nearest, spelled
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column

REFUSE, LEAVE_OUT, INDICATOR = "refuse", "leave out", "indicator"
CODINGS = {"0/1": (0.0, 1.0), "halves": (-0.5, 0.5)}
SHIPPED = Path(__file__).parent / "columns_files"
TOP = ("suggested_by", "intercept", "cut", "size", "owner", "drop", "label", "columns")
LABEL = ("name", "classes", "center", "scale", "low", "high")
HOLES = ("missing", "instead", "hole")
KEYS = {
    "number": ("kind", "center", "scale", "low", "high", *HOLES),
    "date": ("kind", "form", "center", "scale", "low", "high", *HOLES),
    "category": ("kind", "values", "base", "other", "coding", *HOLES),
    "two": ("kind", "values", *HOLES),
}


@dataclass(frozen=True, kw_only=True)
class AgreedLabel:
    """What is learned: a class by its spellings, or a number with center, scale and range."""

    name: str
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    center: float = 0.0
    scale: float = 1.0
    low: float = -inf
    high: float = inf


@dataclass(frozen=True, kw_only=True)
class AgreedColumns:
    """All that was agreed on about columns.

    columns: the features in order, with the public center and scale of each (`constants`). dropped:
    columns that tables have and nobody uses. leave_out: columns whose holes leave out their row.
    intercept: the constant of the intercept column. owner: the column that says whose a row is, in
    tables that hold the rows of many. suggested_by: the table of public rows that it was drafted
    from, if it was. file, digest: which file this is, to the last byte.
    """

    columns: tuple[Column, ...]
    constants: Mapping[str, tuple[float, float]]
    label: AgreedLabel
    intercept: float = 1.0
    owner: str | None = None
    dropped: tuple[str, ...] = ()
    leave_out: frozenset[str] = frozenset()
    suggested_by: str = ""
    file: str = "the agreed columns"
    digest: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in order; none if a number is learned."""
        return tuple(self.label.classes)

    def off_these(self, table: str) -> str:
        """That a table of the same name suggested this file, in words: what was to be private may
        have been read for it. Nothing for other tables."""
        if not self.suggested_by or table != self.suggested_by:
            return ""
        return (
            f"{self.file} was suggested by the rows of {table}: where these are the same rows, its "
            "centers, scales, values and classes are covered by no epsilon"
        )

    def refuse(self, task: str, classifies: bool) -> None:
        """Refuse a task that learns something else than what was agreed on."""
        if bool(self.classes) == classifies:
            return
        has = "classes" if self.classes else "no classes"
        wants = "a class" if classifies else "a number"
        raise ConfigError(
            f"{task} learns {wants}, but {self.file} agrees on {has} of {self.label.name!r}; "
            + ("write them in label.classes" if classifies else "leave label.classes out")
        )

    def recipe(self, rows: str = "none") -> Recipe:
        """What is done to every row, of training and new ones alike."""
        centers, scales = [], []
        for column in self.columns:
            center, scale = self.constants.get(column.name, (0.0, 1.0))
            own = len(column.features) - int(column.indicator)
            centers += [center] * own + [0.0] * int(column.indicator)
            scales += [scale] * own + [1.0] * int(column.indicator)
        return Recipe(
            columns=self.columns,
            centers=np.array(centers),
            scales=np.array(scales),
            limits=np.full(len(centers), inf),
            rows=rows,
            label=self.label.name,
            center=self.label.center,
            unit=self.label.scale,
            classes=self.classes,
            constant=self.intercept,
            spellings=self.label.classes,
        )


def shipped() -> dict[str, Path]:
    """Columns files that come with bruit, by name."""
    return {file.stem: file for file in sorted(SHIPPED.glob("*.toml"))}


def columns_path(text: str) -> tuple[Path, str | None]:
    """The file that `columns_file` names, and the digest it must have: "FILE.toml",
    "FILE.toml,sha256=DIGEST", or the name of one that comes with bruit."""
    name, comma, option = text.partition(",")
    key, _, digest = option.partition("=")
    if comma and (key.strip() != "sha256" or not digest.strip()):
        raise ConfigError(
            f"columns_file = {text!r}: after the comma stands sha256=DIGEST, found {option.strip()!r}"
        )
    return shipped().get(name.strip(), Path(name.strip())), digest.strip() or None


def columns_name(text: str) -> str | None:
    """The path in `columns_file`, if it is one: not the name of a file that comes with bruit."""
    name = text.partition(",")[0].strip()
    return None if not name or name in shipped() else name


def columns_digest(text: str | None) -> str:
    """The digest of the columns file that an experiment names: public, so that everybody can
    compare it; nothing if there is no such file."""
    path = None if text is None else columns_path(text)[0]
    return (
        "" if path is None or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()
    )


def read_agreed(text: str | Path) -> AgreedColumns:
    """The agreed columns of a file, or of one that comes with bruit; one with another digest than
    was agreed on is refused."""
    path, expected = columns_path(str(text))
    if not path.is_file():
        known = f" (with bruit come: {', '.join(shipped())})" if shipped() else ""
        raise ConfigError(
            f"there is no columns file {path}{known}; `bruit columns init TABLE.csv` writes a draft"
        )
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if expected is not None and digest != expected:
        raise ConfigError(
            f"{path} is not the columns file that was agreed on: its sha256 is {digest}, expected "
            f"{expected}; ask the others for theirs"
        )
    try:
        content = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    return parse_agreed(content, path.name, digest)


def agreed_columns(found: str | Path | AgreedColumns | None) -> AgreedColumns | None:
    """Agreed columns as they are, or read from their file."""
    return read_agreed(found) if isinstance(found, str | Path) else found


def parse_agreed(
    content: Mapping[str, Any], file: str = "the agreed columns", digest: str = ""
) -> AgreedColumns:
    """Agreed columns from plain data; whatever is wrong is said with its key."""
    known_keys(file, "", content, TOP)
    size = number_of(file, "size", content, 1.0, above=0.0)
    cut = number_of(file, "cut", content, inf, above=0.0)
    sections = content.get("columns")
    if not isinstance(sections, Mapping) or not sections:
        raise ConfigError(f"{file} names no column; write a section [columns.NAME] for each")
    columns, constants, leave_out = [], {}, set()
    for name, section in sections.items():
        if not isinstance(section, Mapping):
            raise ConfigError(f"{file}: columns.{name} is a section of keys, found {section!r}")
        column, pair, leaves = _column(file, str(name), section, cut, size)
        columns.append(column)
        if pair is not None:
            constants[column.name] = pair
        if leaves:
            leave_out.add(column.name)
    label = _label(file, content.get("label"))
    owner = content.get("owner")
    if owner is not None and not isinstance(owner, str):
        raise ConfigError(f"{file}: owner is the name of a column, found {owner!r}")
    suggested = content.get("suggested_by", "")
    if not isinstance(suggested, str):
        raise ConfigError(f"{file}: suggested_by is the name of a table, found {suggested!r}")
    dropped = texts_of(file, "drop", content.get("drop", []))
    found = AgreedColumns(
        columns=tuple(columns),
        constants=constants,
        label=label,
        intercept=number_of(file, "intercept", content, 1.0, above=0.0),
        owner=owner,
        dropped=dropped,
        leave_out=frozenset(leave_out),
        suggested_by=suggested,
        file=file,
        digest=digest,
    )
    for role, name in (("label", label.name), ("owner", owner)):
        if name in found.names:
            raise ConfigError(
                f"{file}: the {role} {name!r} is a column too; leave that section out"
            )
    twice = next((name for name in dropped if name in (*found.names, label.name, owner)), None)
    if twice is not None:
        raise ConfigError(f"{file}: {twice!r} is in drop and is used; name it in one place")
    return found


def _column(
    file: str, name: str, section: Mapping[str, Any], cut: float, size: float
) -> tuple[Column, tuple[float, float] | None, bool]:
    """A column, its center and scale if it holds numbers, and whether its holes leave out rows."""
    where, kind = f"columns.{name}", section.get("kind")
    if kind not in KEYS:
        raise ConfigError(
            f"{file}: {where}.kind is one of {', '.join(KEYS)}, found "
            f"{'nothing' if kind is None else repr(kind)}"
        )
    known_keys(file, f"{where}.", section, KEYS[str(kind)])
    missing = tuple(
        spelled(text) for text in texts_of(file, f"{where}.missing", section.get("missing", []))
    )
    instead = tuple(
        (spelled(text_of(old)), text_of(new))
        for old, new in table_of(file, f"{where}.instead", section).items()
    )
    dates = form_of(file, f"{where}.form", section) if kind == "date" else ""
    if dates:
        section = {
            key: in_days(file, f"{where}.{key}", key, value, dates)
            for key, value in section.items()
        }
    hole = section.get("hole", REFUSE)
    fill = "" if hole in (REFUSE, LEAVE_OUT, INDICATOR) else text_of(hole)
    holes: dict[str, Any] = {
        "missing": missing,
        "instead": instead,
        "indicator": hole == INDICATOR,
        "fill": fill,
    }
    if kind in ("number", "date"):
        center = number_of(file, f"{where}.center", section)
        scale = number_of(file, f"{where}.scale", section, above=0.0)
        low = number_of(file, f"{where}.low", section, center - cut * scale)
        high = number_of(file, f"{where}.high", section, center + cut * scale)
        column = Column(name, low=low, high=high, dates=dates, **holes)
        if not low < high:
            raise ConfigError(
                f"{file}: {where} has the range {column.in_words(low)} to {column.in_words(high)}; "
                "low is below high"
            )
        pair: tuple[float, float] | None = (center, scale / size)
    else:
        column, pair = _category(file, where, name, section, holes), None
    _check_stand_ins(file, where, column)
    return column, pair, hole == LEAVE_OUT


def _category(
    file: str, where: str, name: str, section: Mapping[str, Any], holes: Mapping[str, Any]
) -> Column:
    values = tuple(
        spelled(text) for text in texts_of(file, f"{where}.values", section.get("values", []))
    )
    if len(values) < 2 or len(set(values)) < len(values):
        raise ConfigError(
            f"{file}: {where}.values are at least two different values, found "
            f"{', '.join(values) or 'none'}"
        )
    reserved = next((text for text in values if text in (REFUSE, LEAVE_OUT, INDICATOR)), None)
    if reserved is not None or "" in values:
        raise ConfigError(
            f"{file}: {where}.values holds {reserved or ''!r}, which means something else in `hole`; "
            "rename it, or read another value instead of it"
        )
    two = section["kind"] == "two"
    if two and len(values) != 2:
        raise ConfigError(
            f"{file}: {where} is of kind two and has {len(values)} values; use category"
        )
    base = values[0] if two else section.get("base", "")
    coding = "halves" if two else section.get("coding", "0/1")
    if coding not in CODINGS:
        raise ConfigError(
            f"{file}: {where}.coding is one of {', '.join(CODINGS)}, found {coding!r}"
        )
    for key, found in (("base", base), ("other", section.get("other", ""))):
        if found != "" and spelled(text_of(found)) not in values:
            raise ConfigError(
                f"{file}: {where}.{key} is {found!r}, which is none of its values"
                f"{nearest(text_of(found), values)}"
            )
    both = next((text for text in values if text in holes["missing"]), None)
    if both is not None:
        raise ConfigError(f"{file}: {where} has {both!r} among its values and in missing; choose")
    off, on = CODINGS[coding]
    other = spelled(text_of(section.get("other", "")))
    return Column(name, values, base=spelled(text_of(base)), other=other, off=off, on=on, **holes)


def _check_stand_ins(file: str, where: str, column: Column) -> None:
    """What stands in holes, or is read instead of a cell, must itself be readable."""
    stand_ins = [("hole", column.fill)] if column.fill else []
    stand_ins += [("instead", new) for _, new in column.instead]
    for key, text in stand_ins:
        if key == "instead" and (text.lower() in MISSING or spelled(text) in column.missing):
            continue
        right = (
            spelled(text) in column.values
            if column.values
            else column.low <= column.number_of(text) <= column.high
        )
        if not right:
            allowed = (
                f"one of its values ({', '.join(column.values)})"
                if column.values
                else f"a {'date' if column.dates else 'number'} between "
                f"{column.in_words(column.low)} and {column.in_words(column.high)}"
            )
            words = (
                f', "{REFUSE}", "{LEAVE_OUT}" or "{INDICATOR}"' if key == "hole" else ", or a hole"
            )
            raise ConfigError(f"{file}: {where}.{key} is {allowed}{words}, found {text!r}")


def _label(file: str, section: Any) -> AgreedLabel:
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        raise ConfigError(f"{file} does not say what is learned; write [label] with its name")
    known_keys(file, "label.", section, LABEL)
    name, written = section["name"], section.get("classes")
    numeric = [key for key in ("center", "scale", "low", "high") if key in section]
    if written is None:
        scale = number_of(file, "label.scale", section, 1.0, above=0.0)
        low, high = (
            number_of(file, f"label.{key}", section, usual)
            for key, usual in (("low", -inf), ("high", inf))
        )
        if not low < high:
            raise ConfigError(f"{file}: label has the range {low:g} to {high:g}; low is below high")
        center = number_of(file, "label.center", section, 0.0)
        return AgreedLabel(name=name, center=center, scale=scale, low=low, high=high)
    if numeric:
        raise ConfigError(
            f"{file}: a label with classes is no number; leave label.{numeric[0]} out"
        )
    if isinstance(written, Mapping):
        classes = {
            str(one): tuple(spelled(text) for text in texts_of(file, f"label.classes.{one}", texts))
            for one, texts in written.items()
        }
    else:
        classes = {text: (spelled(text),) for text in texts_of(file, "label.classes", written)}
    spellings = [text for texts in classes.values() for text in texts]
    if len(classes) < 2 or not all(classes.values()) or len(set(spellings)) < len(spellings):
        raise ConfigError(
            f"{file}: label.classes are at least two, and no spelling means two of them; found "
            f"{', '.join(spellings) or 'none'}"
        )
    return AgreedLabel(name=name, classes=classes)
