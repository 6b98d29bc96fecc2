"""Writes the reference from docstrings and catalogs: `python -m docs.generate`.

Prose that no docstring holds lies in reference/algorithms/notes/NAME.md (one section for each
heading that needs it) and in bruit/runs/keys.toml (one sentence for each key of an experiment file,
which the pages show too). A test compares the committed pages with what is written here.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
import typing
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel

from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.algorithms.gossip.muffliato import presets
from bruit.commands import cli
from bruit.commands.listing import listing
from bruit.graphs.names import families
from bruit.graphs.names import graph as named_graph
from bruit.mechanisms.mechanism import of_files
from bruit.runs import file as config
from bruit.runs.build import FROM_TASK
from bruit.tasks.kinds.kind import kinds
from bruit.tasks.kinds.section import TaskSection
from docs import theorems

FOLDER = Path(__file__).parent / "reference"
HEADINGS = ("What it does", "Who sees what", "Guarantee", "When not to use it", "Example", "Paper")
HEADER = "<!-- Written by `python -m docs.generate`; edit the docstring or the notes instead. -->\n"
EXAMPLES = {
    "randomized-muffliato": "ring:6",
    "butterfly-muffliato": "butterfly:8",
    "muffliato": "ring:6",
}


def pages() -> dict[Path, str]:
    """Every page of the reference and its text."""
    found = {
        FOLDER / "command-line.md": command_line(),
        FOLDER / "graphs.md": graphs_page(),
        FOLDER / "experiment-file.md": experiment_file(),
        FOLDER / "theorems.md": theorems_page(),
    }
    for name, text in algorithm_pages().items():
        found[FOLDER / "algorithms" / f"{name}.md"] = text
    return found


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return (
        "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"
    )


def _cell(text: str) -> str:
    """Nothing in it ends a cell, or reads as a link by reference."""
    return text.replace("|", "\\|").replace("][", "]\\[")


def flowed(text: str) -> str:
    """Paragraphs on one line each; indented formulas stay as they are."""
    parts = re.split(r"\n\s*\n", text.strip("\n"))
    shown = [
        f"```text\n{inspect.cleandoc(part)}\n```"
        if part.startswith("    ")
        else " ".join(part.split())
        for part in parts
    ]
    return "\n\n".join(shown)


# Algorithms


def algorithm_pages() -> dict[str, str]:
    known: dict[str, Any] = {**catalog(), **presets()}
    pages = {name: algorithm_page(name, thing) for name, thing in known.items()}
    rows = [(f"[{name}]({name}.md)", text) for name, text in listing("algorithms").items()]
    intro = "Every page has the same six headings. `bruit list algorithms` prints this list.\n"
    return {
        **pages,
        "index": f"{HEADER}\n# Algorithms\n\n{intro}\n" + table(("name", "what it is"), rows),
    }


def algorithm_page(name: str, thing: Any) -> str:
    notes = read_notes(name)
    body = ""
    for heading in HEADINGS:
        said = [part for part in (derived(heading, name, thing), notes.get(heading, "")) if part]
        if not said:
            raise ValueError(
                f"notes/{name}.md must have a section '## {heading}': no docstring says it"
            )
        body += f"\n## {heading}\n\n" + "\n\n".join(said) + "\n"
    return f"{HEADER}\n# {name}\n{body}"


def read_notes(name: str) -> dict[str, str]:
    """The sections of an algorithm's notes, by heading."""
    path = FOLDER / "algorithms" / "notes" / f"{name}.md"
    if not path.is_file():
        raise ValueError(f"{name} has no notes: write {path.relative_to(FOLDER.parent)}")
    sections = re.split(r"^## (.*)\n", path.read_text(), flags=re.MULTILINE)[1:]
    found = {title: text.strip() for title, text in zip(sections[::2], sections[1::2], strict=True)}
    unknown = set(found) - set(HEADINGS)
    if unknown:
        raise ValueError(f"notes/{name}.md has an unknown section {sorted(unknown)[0]!r}")
    return found


def derived(heading: str, name: str, thing: Any) -> str:
    """What the docstrings already say under a heading."""
    says = sentences(thing)
    if heading == "What it does":
        learns = f"Learns: {says['Learns']}" if "Learns" in says else ""
        return "\n\n".join(
            part for part in (flowed(says["about"]), parameters(thing), learns) if part
        )
    if heading == "Who sees what":
        return f"Shows: {says['Shows']}" if "Shows" in says else ""
    if heading == "Guarantee":
        return guarantees(name, thing)
    if heading == "Paper":
        return linked(says.get("Spec", says.get("Paper", "")))
    return ""


def sentences(thing: Any) -> dict[str, str]:
    """A module docstring of the form '... Learns: ... Shows: ... Spec: ...' in its parts; a
    preset's own first."""
    module = inspect.getdoc(inspect.getmodule(thing)) or ""
    about, *rest = re.split(r"\b(Learns|Shows|Spec|Paper):\s", module)
    found = {key: " ".join(text.split()) for key, text in zip(rest[::2], rest[1::2], strict=True)}
    own = inspect.getdoc(thing) or ""
    return {"about": own if inspect.isfunction(thing) else about.rstrip(), **found}


def parameters(thing: Any) -> str:
    """The parameters and their defaults."""
    if inspect.isfunction(thing):
        fields = [
            (key, part.default, part.annotation)
            for key, part in inspect.signature(thing).parameters.items()
            if part.default is not inspect.Parameter.empty
        ]
    else:
        fields = [(field.name, field.default, field.type) for field in dataclasses.fields(thing)]
    if not fields:
        return "It has no parameters."
    rows = [(f"`{key}`", f"`{default}`", f"`{type_name(kind)}`") for key, default, kind in fields]
    return table(("parameter", "default", "type"), rows).rstrip()


def type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def guarantees(name: str, thing: Any) -> str:
    """The theorems of the algorithm (of a preset: of the algorithm it chooses)."""
    algorithm: Algorithm[Any]
    algorithm = (
        thing(named_graph(EXAMPLES[name]), 1.0).algorithm if inspect.isfunction(thing) else thing()
    )
    rows = [
        (theorem.title, f"`{theorem.spec}`", theorems.status_of(theorem))
        for theorem in algorithm.guarantees()
    ]
    rows.append(("local DP, when nothing above holds", "`gossip:DP-8`", "proven"))
    unit = algorithm.schedule.unit
    return table(("theorem", "spec", "status"), rows) + f"\nIts `steps` count {unit}."


def linked(text: str) -> str:
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)


# Command line


def command_line() -> str:
    text = f"{HEADER}\n# Command line\n\n{flowed((cli.__doc__ or '').split(chr(10), 2)[2])}\n"
    for command in cli.app.registered_commands:
        if command.callback is not None:
            text += command_section(command.name or command.callback.__name__, command.callback)
    for group in cli.app.registered_groups:
        for command in (
            group.typer_instance.registered_commands if group.typer_instance is not None else ()
        ):
            if command.callback is not None and not command.hidden:
                text += command_section(f"{group.name} {command.name}", command.callback)
    return text


def command_section(name: str, call: Callable[..., Any]) -> str:
    about, _, example = (inspect.getdoc(call) or "").partition("Example: ")
    rows = []
    hints = get_type_hints(call, include_extras=True)
    for key, part in inspect.signature(call).parameters.items():
        kind, about_option = typing.get_args(hints[key])[:2]
        is_option = type(about_option).__name__ == "OptionInfo"
        shown = option_name(key, about_option) if is_option else key.upper()
        default = (
            ""
            if part.default in (None, False, [], inspect.Parameter.empty)
            else f"`{part.default}`"
        )
        rows.append((f"`{shown}`", value_name(kind), default, str(about_option.help or "")))
    options = table(("argument", "value", "default", "meaning"), rows)
    said, shown = (" ".join(text.split()) for text in (about, example))
    return f"\n## bruit {name}\n\n{said}\n\nExample: `{shown}`\n\n{options}"


def option_name(key: str, about: Any) -> str:
    """Its name on the command line; within Annotated, typer keeps a given name as the default."""
    given = [text for text in (about.default, *(about.param_decls or ())) if isinstance(text, str)]
    return given[0] if given else f"--{key.replace('_', '-')}"


def value_name(kind: Any) -> str:
    """The type of an option as a reader would say it."""
    words = {bool: "flag", int: "whole number", float: "number", Path: "path", str: "text"}
    options = [part for part in typing.get_args(kind) if part is not type(None)]
    if typing.get_origin(kind) is list:
        return f"{words[options[0]]}, several times"
    return value_name(options[0]) if options else words[kind]


# Graphs


def graphs_page() -> str:
    rows = []
    for name, text in families().items():
        what, _, example = text.rpartition(", as ")
        rows.append((f"`{name}`", what, f"`{example}`"))
    rule = flowed((inspect.getdoc(named_graph) or "").split("\n", 2)[2])
    more = "How to choose one: [choose a graph](../how-to/choose-graph.md). `bruit graph NAME` prints the facts of one."
    return f"{HEADER}\n# Graphs\n\nA graph is named by one string. {rule}\n\n{more}\n\n" + table(
        ("family", "what it is", "as"), rows
    )


# Theorems


def theorems_page() -> str:
    text = f"""{HEADER}
# Theorems

One theorem, one file. A guarantee is `proven` (for what is sent), `quoted` (a named source's theorem, whose proof is
not repeated), `ideal` (for real numbers only), `published` (printed somewhere, shown on request, never chosen) or
`heuristic`; a file that has several says so. What the words mean, and which theorem answers for which protocol:
[guarantees](../explanation/guarantees.md). The same algorithms' own lists: [algorithms](algorithms/index.md).
"""
    known = theorems.modules()
    for part, title in theorems.PARTS.items():
        rows = [
            (f"`{m.name}`", m.title, f"`{m.spec.replace('`', '')}`", ", ".join(m.statuses))
            for m in known
            if m.part == part and not m.printed
        ]
        if not rows:
            continue
        shown = table(("file", "what it says", "spec", "status"), rows)
        place = theorems.folder(part).relative_to(FOLDER.parent.parent).as_posix()
        text += f"\n## {title}\n\nIn `{place}/`:\n\n{shown}"
    text += "\n## Printed formulas, and what refutes them\n\nKept to reproduce and to compare, never to promise.\n"
    for module in (m for m in known if m.printed):
        text += f"\n### {module.name}\n\n{linked(flowed(module.about))}\n"
    return text


# Experiment files


def experiment_file() -> str:
    said = tomllib.loads(files("bruit.runs").joinpath("keys.toml").read_text(encoding="utf-8"))
    text = f"{HEADER}\n# Experiment file\n\n{said['intro']}\n\n## Top of the file\n\n"
    text += keys_table(config.ExperimentFile, "", said)
    for section, model in sections().items():
        text += f"\n## [{section}]\n\n{inspect.getdoc(model)}\n\n" + keys_table(
            model, section, said
        )
    for what in ("tasks", "data", "mechanisms"):
        rows = [(f"`{name}`", line) for name, line in listing(what).items()]
        text += f"\n## Known {what}\n\n" + table(("name", "what it is"), rows)
    return text


def sections() -> dict[str, type[BaseModel]]:
    return {
        "task": TaskSection,
        "algorithm": config.AlgorithmSection,
        "privacy": config.PrivacySection,
        "engine": config.EngineSection,
    }


def keys_table(model: type[BaseModel], section: str, said: dict[str, Any]) -> str:
    rows = []
    for key, field in model.model_fields.items():
        if key in sections() and not section:
            continue
        name = f"{section}.{key}" if section else key
        if name not in said["keys"]:
            raise ValueError(f"bruit/runs/keys.toml does not explain the key {name!r}")
        default = (
            "required"
            if field.is_required()
            else ""
            if field.default is None
            else f"`{field.default}`"
        )
        rows.append((f"`{key}`", default, said["keys"][name]))
    if model is TaskSection:
        own = dict.fromkeys(key for kind in kinds().values() for key in kind.own_keys)
        rows += [(f"`{key}`", "", said["keys"][f"task.{key}"]) for key in own]
    if model is config.PrivacySection:
        rows += mechanism_rows(set(model.model_fields), said)
    return table(("key", "default", "meaning"), rows)


def mechanism_rows(shown: set[str], said: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The keys that only some mechanism reads."""
    found = {}
    records: dict[str, Any] = {**of_files()}
    for record in records.values():
        for field in dataclasses.fields(record):
            if field.name in (*record.keys, *record.sizes) and field.name not in shown:
                found[field.name] = (
                    f"`{field.name}`",
                    "" if field.name in FROM_TASK else f"`{field.default}`",
                    said["keys"][f"privacy.{field.name}"],
                )
    return list(found.values())


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
