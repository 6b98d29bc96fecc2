"""One word, one meaning: an option reads the same wherever it occurs, and every help screen is
whole at 80 columns."""

import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from bruit.commands.cli import app, main

OWN_WORDS = {
    "--algorithm": "a plan compares protocols, an attack knows two algorithms, and the help lists "
    "them",
    "--book": "among holders a book makes the group; a report is held against one",
    "--confidence": "an interval informs at 0.95; a refutation accuses somebody, and is surer",
    "--adjacency": "an epsilon is of one adjacency; a plan takes the usual one where none is named",
    "--delta": "what is asked about an experiment is said at its own delta, all else at 1e-6",
    "--level": "an epsilon has a level; a plan takes the one that fits what it is told",
    "--sample-rate": "an epsilon is of a rate; a plan looks for one",
    "--experiment": "real peers begin with a bundled one; a folder holds the one that was agreed on",
    "--graph": "a network is given its size by --peers, so that the name of a family will do",
    "--high": "a score has a range by default, a number of a table has none",
    "--host": "the address of what the command starts: a page for oneself, or a peer for others",
    "--identity": "among holders a key is for a question; with it a member signs a book",
    "--label": "the label of a task that is learned may be left to the experiment",
    "--levels": "one holder chooses bins from the counts; several agree on them beforehand",
    "--limit": "an account is given a limit once for all; a question keeps to one of its own",
    "--low": "as --high",
    "--of": "an epsilon is of sets too; what is done when nobody is named differs",
    "--out": "what is written differs: a run folder, a table, keys, reports",
    "--peers": "a demonstration has a usual size; a plan may take the number from a graph",
    "--port": "the port of what the command starts: a page, or a peer",
    "--positive": "several holders agree on it beforehand; one holder's labels tell it",
    "--relay": "a network is made with a relay of its own; a key names one that is there",
    "--rows-per-person": "a statement tells some numbers of rows unasked; an account none",
    "--public": "rows that everybody may see: a columns file is made of them; a peer may have none",
    "--protocol": "protocols for values of a domain, for numbers, and for simulated users",
    "--seed": "runs are drawn from a seed; on a real table a seed takes the privacy away, and the "
    "help says so",
    "--seen-by": "an attack needs peers with a view; an epsilon is also asked for everybody "
    "together",
    "--site": "one's own site: to be shown, or to sign with",
    "--trials": "an audit compares many runs, an attack on digits needs few",
    "--open/--no-browser": "pages to read are opened, which is all that the command is for; a server says where it is",
}
"""Options whose sentence or default differs between commands, with the reason; their type never
does."""


class Occurrence(NamedTuple):
    command: str
    type: str
    help: str
    default: str


def commands(group: typer.Typer, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for one in group.registered_commands:
        yield " ".join((*before, one.name or one.callback.__name__.replace("_", "-"))), one.callback
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*before, inner.name))


def bare(annotation: Any) -> str:
    """What one types: a path is text, and `None` says only that the option may be left out."""
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    union = type(None) in typing.get_args(annotation)
    kind = parts[0] if union and len(parts) == 1 else annotation
    return str(str if kind is Path else kind)


def options() -> dict[str, list[Occurrence]]:
    found: dict[str, list[Occurrence]] = {}
    for command, call in commands(app):
        hints = typing.get_type_hints(call, include_extras=True)
        for key, parameter in inspect.signature(call).parameters.items():
            kind, about = hints[key].__origin__, hints[key].__metadata__[0]
            if not isinstance(about, typer.models.OptionInfo):
                continue
            given = [
                text
                for text in (about.default, *(about.param_decls or ()))
                if isinstance(text, str)
            ]
            for name in (given or [f"--{key.replace('_', '-')}"])[:1]:
                missing = parameter.default is inspect.Parameter.empty
                default = "needed" if missing else repr(parameter.default)
                found.setdefault(name, []).append(
                    Occurrence(command, bare(kind), about.help, default)
                )
    return found


FOUND = options()


@pytest.mark.parametrize("name", FOUND)
def test_an_option_has_one_meaning(name):
    places = FOUND[name]
    assert len({one.type for one in places}) == 1, f"{name} has several types: {places}"
    if name not in OWN_WORDS:
        assert len({(one.help, one.default) for one in places}) == 1, (
            f"{name} has several meanings: {places}"
        )


@pytest.mark.parametrize("name", FOUND)
def test_the_same_is_said_in_the_same_words(name):
    """What holds unasked is "by default", what may be given twice "May be repeated."; helps are
    sentences."""
    for one in FOUND[name]:
        assert one.help.endswith((".", "?")), f"{one.command} {name}: {one.help}"
        assert not re.search("left out|not named|several are|several times", one.help), one
        assert ("May be repeated" in one.help) == one.type.startswith("list["), one


def test_the_table_of_differences_is_not_longer_than_it_must_be():
    """Every entry still occurs, with more than one sentence or default."""
    same = [
        name
        for name in OWN_WORDS
        if len({(one.help, one.default) for one in FOUND.get(name, [])}) < 2
    ]
    assert same == []


ABOUT_EXPERIMENTS = {
    "run",
    "sweep",
    "epsilon",
    "show",
    "statement",
}  # told at the delta of the experiment


def test_the_words_of_the_budget():
    """The four that once differed by command: epsilon, delta, sensitivity and the number of
    peers."""
    for name in ("--epsilon", "--sensitivity"):
        assert len({(one.help, one.default) for one in FOUND[name]}) == 1
        assert len(FOUND[name]) > 1
    assert {(one.command in ABOUT_EXPERIMENTS, one.default) for one in FOUND["--delta"]} == {
        (True, "None"),
        (False, "1e-06"),
    }
    assert {one.type for one in FOUND["--peers"]} == {"<class 'int'>"}
    assert {one.type for one in FOUND["--clip"]} == {"<class 'float'>"}


def screens() -> list[tuple[str, ...]]:
    groups = [(inner.name,) for inner in app.registered_groups]
    return [(), *groups, *(tuple(command.split()) for command, _ in commands(app))]


@pytest.mark.parametrize("words", screens(), ids=lambda words: " ".join(words) or "bruit")
def test_help_is_whole_at_80_columns(words, monkeypatch):
    """No sentence is cut, no line is wider than the terminal, and every command shows an
    example."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    said = CliRunner().invoke(app, [*words, "--help"], prog_name="bruit")
    assert said.exit_code == 0
    lines = said.output.splitlines()
    assert not [line for line in lines if len(line) > 80]
    assert not [
        line for line in lines if line.rstrip().endswith(("...", "…")) and "[OPTIONS]" not in line
    ]
    if words in [tuple(command.split()) for command, _ in commands(app)]:
        assert f"Example: bruit {' '.join(words)}" in " ".join(said.output.split())
        before, example = said.output.split("Example:")  # one example, a paragraph of its own
        assert before.endswith("\n\n  ")
        assert "Exit code" not in example.split("\n\n")[0]


def test_the_first_screen_has_groups_an_example_and_a_place_to_begin():
    said = CliRunner().invoke(app, ["--help"], prog_name="bruit").output
    for heading in (
        "Run and compare:",
        "Plan and ask:",
        "Attack and audit:",
        "Real peers:",
        "Statistics of tables:",
    ):
        assert heading in said
    assert "Begin here:\n    bruit run ten-clinics" in said
    assert "--install-completion" in said
    assert "\n  list" in said


def test_the_version_names_what_matters():
    said = CliRunner().invoke(app, ["--version"])
    assert said.exit_code == 0
    assert re.fullmatch(
        r"bruit \d+\.\d+\.\d+, Python \S+, numpy \S+, scipy \S+, numba \S+\n", said.output
    )


def test_a_shell_completes_commands_and_options():
    """What the script that `--show-completion bash` prints asks bruit when the tabulator is
    pressed."""
    asked = {"_BRUIT_COMPLETE": "complete_bash", "COMP_WORDS": "bruit pl", "COMP_CWORD": "1"}
    assert "plan" in CliRunner().invoke(app, [], prog_name="bruit", env=asked).output
    asked = {"_BRUIT_COMPLETE": "complete_bash", "COMP_WORDS": "bruit run --se", "COMP_CWORD": "2"}
    assert set(CliRunner().invoke(app, [], prog_name="bruit", env=asked).output.split()) == {
        "--set",
        "--seed",
    }
    script = (
        CliRunner()
        .invoke(app, [], prog_name="bruit", env={"_BRUIT_COMPLETE": "source_bash"})
        .output
    )
    assert "_BRUIT_COMPLETE=complete_bash" in script


def test_the_module_calls_itself_bruit(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["somewhere/bruit/__main__.py", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("Usage: bruit [OPTIONS]")
