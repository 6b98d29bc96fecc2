"""The form that starts a run, made of the schema that checks experiment files: one description, two
uses."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from bruit.errors import ConfigError
from bruit.files import plain
from bruit.runs.file import ExperimentFile, parse
from bruit.show.live.named_files import file_problems

SECTIONS = ("task", "algorithm", "privacy", "engine")


def form() -> dict[str, Any]:
    """Sections of fields (name, kind, default, choices, bounds), every algorithm's parameters,
    bundled experiments."""
    from bruit.algorithms.algorithm import catalog
    from bruit.algorithms.gossip.muffliato import presets
    from bruit.graphs.names import families
    from bruit.runs.file import bundled

    schema, words = ExperimentFile.model_json_schema(), key_sentences()
    parts = {
        name: _fields(_section(schema, name), words, name + ".")
        for name in SECTIONS
        if name != "algorithm"
    }
    top = _fields(
        {
            "properties": {
                key: value for key, value in schema["properties"].items() if key not in SECTIONS
            },
            "required": schema.get("required", []),
        },
        words,
        "",
    )
    parts["privacy"] += _of_mechanisms({field["name"] for field in parts["privacy"]}, words)
    kinds: dict[str, Any] = dict(catalog())
    about = {
        name: " ".join((inspect.getdoc(inspect.getmodule(kind)) or "").split("\n\n")[0].split())
        for name, kind in kinds.items()
    }
    algorithms = {
        name: [_parameter(field) for field in dataclasses.fields(kind) if field.name != "schedule"]
        for name, kind in kinds.items()
    }
    spread = {"name": "spread", "kind": "number", "choices": None, "needed": False, "default": 0.25}
    algorithms |= {name: [spread] for name in presets()}
    examples = {name: path.read_text(encoding="utf-8") for name, path in bundled().items()}
    return {
        "top": top,
        "sections": parts,
        "algorithms": algorithms,
        "about": about,
        "graphs": families(),
        "examples": examples,
    }


def _of_mechanisms(shown: set[str], words: dict[str, str]) -> list[dict[str, Any]]:
    """The keys that only some mechanism reads, but those that are shown already."""
    from bruit.mechanisms.mechanism import of_files
    from bruit.runs.build import FROM_TASK

    found: dict[str, dict[str, Any]] = {}
    for kind in of_files().values():
        types = get_type_hints(kind)
        for field in dataclasses.fields(cast(Any, kind)):
            if field.name in (*kind.keys, *kind.sizes) and field.name not in shown:
                said = types[field.name]  # `Literal` names its values, other types their parts
                choices = list(get_args(said)) if get_origin(said) is Literal else None
                about = {"choices": choices, "help": words.get(f"privacy.{field.name}", "")}
                about |= {"default": None} if field.name in FROM_TASK else {}
                found.setdefault(field.name, _parameter(field) | about)
    return list(found.values())


def key_sentences() -> dict[str, str]:
    """One sentence for every key of an experiment file, as plain text."""
    found: dict[str, str] = tomllib.loads(
        files("bruit.runs").joinpath("keys.toml").read_text(encoding="utf-8")
    )["keys"]
    return {
        key: re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("`", "")
        for key, text in found.items()
    }


def check(text: str, folder: Path) -> dict[str, Any]:
    """What an experiment says, field by field, and what is wrong with it: key and line where they
    are known.

    It may name files of that folder only."""
    try:
        file = parse(text)
    except ConfigError as error:
        return {
            "values": _values(text),
            "problems": [_problem(line) for line in str(error).splitlines()],
        }
    return {
        "values": _values(text),
        "problems": [*_unknown(file, text), *file_problems(text, folder)],
    }


def _unknown(file: ExperimentFile, text: str) -> list[dict[str, Any]]:
    """Algorithms and families of graphs that do not exist; all else is found when the run is
    built."""
    from difflib import get_close_matches

    from bruit.algorithms.algorithm import catalog
    from bruit.algorithms.gossip.muffliato import presets
    from bruit.graphs.names import families
    from bruit.runs.file import line_of

    asked = (
        ("algorithm.name", "algorithm", file.algorithm.name, [*catalog(), *presets()]),
        ("graph", "family of graphs", re.split("[:,]", file.graph.strip())[0], list(families())),
    )
    found = []
    for key, what, name, known in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            line = line_of(text, tuple(key.split(".")))
            found.append({"key": key, "line": line, "text": f"there is no {what} {name!r}; {hint}"})
    return found


def _values(text: str) -> dict[str, Any]:
    """The tables of the text as JSON knows them; nothing when it is no TOML."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(plain(tomllib.loads(text)), default=str))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return found


def _problem(line: str) -> dict[str, Any]:
    """A sentence of the checker taken apart: `experiment:7: privacy.sigma = -1: ...`."""
    words = re.match(r"experiment(?::(\d+))?: (.*)", line)
    rest = words[2] if words else line
    key = re.match(r"(?:unknown key )?'?([A-Za-z0-9_.-]+)'?(?: =|;| is missing)", rest)
    number = int(words[1]) if words and words[1] else None
    return {"key": key[1] if key else None, "line": number, "text": rest}


def _section(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The schema of one table of the file, behind its reference."""
    part = schema["properties"][name]
    options = [part, *part.get("anyOf", []), *part.get("allOf", [])]
    place = next(option["$ref"] for option in options if "$ref" in option).rsplit("/", 1)[1]
    found: dict[str, Any] = schema["$defs"][place]
    return found


def _fields(section: dict[str, Any], words: dict[str, str], prefix: str) -> list[dict[str, Any]]:
    needed = section.get("required", [])
    return [
        {**_field(name, about, name in needed), "help": words.get(prefix + name, "")}
        for name, about in section["properties"].items()
    ]


def _field(name: str, about: dict[str, Any], needed: bool) -> dict[str, Any]:
    """One field; of several types the first that is not null counts."""
    kind = next((one for one in about.get("anyOf", []) if one.get("type") != "null"), about)
    bounds = {
        key: kind[key]
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        if key in kind
    }
    return {
        "name": name,
        "kind": kind.get("type", "string"),
        "choices": kind.get("enum"),
        "needed": needed,
        "default": about.get("default"),
        **bounds,
    }


def _parameter(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """A parameter of an algorithm, told by the type of its default or its annotation."""
    default = None if field.default is dataclasses.MISSING else field.default
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kind = kinds.get(type(default))
    if kind is None:
        words = str(field.type)
        kind = next(
            (
                name
                for word, name in (("int", "integer"), ("float", "number"), ("bool", "boolean"))
                if word in words
            ),
            "string",
        )
    plain = default if isinstance(default, bool | int | float | str) else None
    return {
        "name": field.name,
        "kind": kind,
        "choices": None,
        "needed": field.default is dataclasses.MISSING,
        "default": plain,
    }
