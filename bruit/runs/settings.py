"""`--set key=value`: an experiment with some of its keys changed, as data and as the text that a
run folder keeps.

Keys are dotted as in the file (`privacy.epsilon`), values are read as TOML, and what is no TOML is
a string; `key=` without a value leaves the key out. Comments of the file stay. The new text is read
again and compared with the data.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from bruit.errors import ConfigError
from bruit.runs.file import ExperimentFile, from_dict, known_keys, line_of


class Changed(NamedTuple):
    """The experiment after the changes: checked, as text, and what was changed in words."""

    file: ExperimentFile
    text: str
    sentences: tuple[str, ...]


def parse_settings(texts: Sequence[str]) -> list[tuple[str, Any]]:
    """Dotted keys and their values, None for a key to be left out; one that is given twice is
    refused.

    >>> parse_settings(["privacy.sigma=2", "graph=ring:6", "algorithm.rate = 0.5"])
    [('privacy.sigma', 2), ('graph', 'ring:6'), ('algorithm.rate', 0.5)]
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not key:
            raise ConfigError(f"--set {text!r} is not of the form key=value")
        if key in found:
            raise ConfigError(
                f"{key} is given twice: {found[key]!r} and {value!r}; keep one of them"
            )
        found[key] = read_value(value) if value else None
    return list(found.items())


def read_value(text: str) -> Any:
    """A value as TOML would read it; anything else is a string."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def with_key(content: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of nested tables in which a dotted key has this value."""
    head, _, rest = key.partition(".")
    if not rest:
        return {**content, head: value}
    inner = content.get(head)
    return {**content, head: with_key(inner if isinstance(inner, dict) else {}, rest, value)}


def without_key(content: dict[str, Any], key: str) -> dict[str, Any]:
    """A copy of nested tables in which a dotted key is not."""
    head, _, rest = key.partition(".")
    inner = content.get(head)
    if rest and isinstance(inner, dict):
        return {**content, head: without_key(inner, rest)}
    return {name: value for name, value in content.items() if name != head or rest}


def change(text: str, settings: Sequence[str], where: str = "experiment") -> Changed:
    """The experiment of this text with these settings, given as on the command line."""
    content, sentences = tomllib.loads(text), []
    for key, value in parse_settings(settings):
        _check_key(key)
        before = _value_of(content, key)
        content = without_key(content, key) if value is None else with_key(content, key, value)
        text = _rewritten(text, content, key, value)
        was = "" if before is None else f" instead of {to_toml(before)}"
        sentences.append(f"no {key}{was}" if value is None else f"{key} = {to_toml(value)}{was}")
    return Changed(
        from_dict(content, where="--set" if sentences else where), text, tuple(sentences)
    )


def _check_key(key: str) -> None:
    """Refuse a key that no experiment has, and say which one may be meant; algorithms check their
    own parameters."""
    head, *rest = key.split(".")
    sections = {name: known_keys((name,)) for name in ("task", "algorithm", "privacy", "engine")}
    every = [
        *known_keys(()),
        *(f"{name}.{part}" for name, parts in sections.items() for part in parts),
    ]
    if (rest and head == "algorithm") or key in every or ".".join((head, *rest[:1])) in every:
        return
    homes = [full for full in every if full.endswith(f".{key}")]
    alike = get_close_matches(
        key.rpartition(".")[2], [full.rpartition(".")[2] for full in every], 1
    )
    near = (
        homes
        or get_close_matches(key, every, 1)
        or [full for full in every if full.rpartition(".")[2] in alike]
    )
    hints = [f"did you mean {' or '.join(repr(one) for one in near)}?"] if near else []
    hints += (
        [f"a parameter of the algorithm is set by 'algorithm.{key}'"]
        if not rest and not homes
        else []
    )
    raise ConfigError(
        f"--set: unknown key {key!r}; {', or: '.join(hints) or 'known here: ' + ', '.join(every)}"
    )


def _value_of(content: dict[str, Any], key: str) -> Any:
    """The value behind a dotted key, or None."""
    here: Any = content
    for part in key.split("."):
        if not isinstance(here, dict) or part not in here:
            return None
        here = here[part]
    return here


def to_toml(value: Any) -> str:
    """One value on one line.

    >>> to_toml({"a": [1, 2.5], "b": "ring:6", "c": True})
    '{ a = [1, 2.5], b = "ring:6", c = true }'
    """
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(str(key))} = {to_toml(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(to_toml(one) for one in value)}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text, ensure_ascii=False)


def document(content: dict[str, Any]) -> str:
    """A whole experiment: what stands alone first, then one table a section."""
    alone = [
        f"{_key(key)} = {to_toml(value)}"
        for key, value in content.items()
        if not isinstance(value, dict)
    ]
    tables = [
        "\n".join(
            (
                f"\n[{_key(name)}]",
                *(f"{_key(key)} = {to_toml(value)}" for key, value in table.items()),
            )
        )
        for name, table in content.items()
        if isinstance(table, dict)
    ]
    return "\n".join((*alone, *tables)) + "\n"


def _rewritten(text: str, content: dict[str, Any], key: str, value: Any) -> str:
    """The text with one key changed: on its own line, else on a new one of its section, else all of
    it anew."""
    *section, last = key.split(".")
    lines, new, number = (
        text.splitlines(),
        f"{_key(last)} = {to_toml(value)}",
        line_of(text, (*section, last)),
    )
    ways = []
    if number is not None:
        name = lines[number - 1].partition("=")[0].rstrip()
        ways.append(
            [
                *lines[: number - 1],
                *([] if value is None else [f"{name} = {to_toml(value)}"]),
                *lines[number:],
            ]
        )
    headers = [
        k + 1
        for k, line in enumerate(lines)
        if line.strip().partition("]")[0] == f"[{'.'.join(section)}"
    ]
    alone = [
        k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")
    ][:1]
    ways += [[*lines[:place], new, *lines[place:]] for place in (headers[:1] if section else alone)]
    ways += [[*lines, "", f"[{'.'.join(section)}]", new]] if section and not headers else []
    return next(
        (found for way in ways if (found := _same(way, content)) is not None), document(content)
    )


def _same(lines: list[str], content: dict[str, Any]) -> str | None:
    """The text of these lines if it says exactly that."""
    text = "\n".join(lines) + "\n"
    try:
        return text if tomllib.loads(text) == content else None
    except tomllib.TOMLDecodeError:
        return None
