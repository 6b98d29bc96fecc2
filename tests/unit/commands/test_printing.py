"""One printer: with --json every command prints one JSON document and nothing else, with --quiet no
details."""

import ast
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.table import Table

import bruit
from bruit.commands import cli
from bruit.commands.printing import Beside, Detail, Exactly, Printer, Reply
from bruit.graphs import complete
from bruit.statistics.average.board import verified_run
from tests.unit.commands.test_options import commands

COMMANDS = Path(bruit.__file__).parent / "commands"
MEAN = """\
graph = "ring:6"
steps = 4
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "averaging"

[privacy]
sigma = 1.5
"""
LEARNING = """\
graph = "ring:4"
steps = 4
seed = 3

[task]
kind = "logistic"
data = "breast_cancer"

[algorithm]
name = "gossip-sgd"
"""
OWN = LEARNING.replace('data = "breast_cancer"', 'label = "y"\nclasses = ["0", "1"]')

AGREED = """\
[label]
name = "y"
classes = { no = ["0"], yes = ["1"] }

[columns.s]
kind = "number"
center = 0.5
scale = 0.3
hole = "leave out"
"""

CALLS = {
    "run": "run mean.toml --seed 8 --out new.run",
    "sweep": "sweep mean.toml --seeds 2",
    "replay": "replay mean.run",
    "epsilon": "epsilon mean.run --why",
    "graph": "graph torus:4x4",
    "list": "list mechanisms",
    "show": "show mean.run",
    "init": "init new.toml",
    "predict": "predict mean.run",
    "reproduce": "reproduce th-4.1 --out figures",
    "plan": "plan --graph complete:20 --save planned.toml",
    "audit": "audit mean.toml --of 0 --seen-by 3 --trials 200 --seed 1",
    "attack reconstruct": "attack reconstruct mean.run --seen-by 0",
    "attack invert": "attack invert learning.run --seen-by 0",
    "attack membership": "attack membership learning.toml --seen-by 0 --shadows 4 --runs 1",
    "attack linkage": "attack linkage --users 9",
    "attack lattice": "attack lattice mean.toml --seen-by 0 --trials 2",
    "network init": "network init --peers 3 --graph ring --out net",
    "network join": "network join a/public.toml b/public.toml --out new-book.toml",
    "network revise": "network revise village/peer-0/book.toml --quorum 3 --from-run x --out later.toml",
    "network sign": "network sign village/peer-0/book2.toml --identity village/peer-0",
    "network book": "network book village/peer-0/book.toml",
    "peer key": "peer key carol --out c",
    "peer data": "peer data table.csv --experiment own.toml --out records.npz",
    "peer backup": "peer backup village/peer-0/site.toml --out backup.zip",
    "columns init": "columns init table.csv --label y --out columns.toml",
    "columns suggest": "columns suggest --public table.csv --label y --out suggested.toml",
    "columns check": "columns check agreed.toml table.csv",
    "auc": "auc table.csv --score s --label y --epsilon 8",
    "mean": "mean table.csv --column s --low 0 --high 1 --epsilon 8",
    "ldp report": "ldp report table.csv --column y --domain 0,1 --out new-reports.csv",
    "ldp estimate": "ldp estimate reports.csv",
    "gopa verify": "gopa verify board.db",
    "budget": "budget table.csv",
    "log verify": "log verify table.csv.account.jsonl",
    "statement": "statement mean.run --out papers",
    "key rotate": "key rotate village/peer-0/site.toml",
    "relay key": "relay key --host localhost --out relay",
    "gopa rehearse": "gopa rehearse table.csv --column s --cuts 0.25,0.5,0.75",
}
"""One cheap call of every command that prints JSON."""
ANSWER_IS_NO = {"key rotate"}  # nobody has heard of the new key yet
ELSEWHERE = {
    "peer run": "it waits for other processes: tests/e2e/test_network_cli.py reads its JSON",
    "peer report": "it reads what a run left: tests/unit/peers/test_signed_report.py reads its JSON",
    "network doctor": "it calls others: tests/unit/peers/test_doctor.py reads its JSON",
    "relay run": "it serves until SIGTERM: tests/e2e/test_shipped.py",
    "network demo": "it starts processes: tests/e2e/test_network_cli.py reads its JSON",
    "pairwise": "two holders answer each other: tests/e2e/test_two_holders.py reads its JSON",
}
WITHOUT = {
    "ui": "it serves a page until Ctrl-C, and says where",
    "docs": "it opens a page, and says where that is",
    "network nursery": "a demonstration starts it, hidden: its output is a log",
}


def call(words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["bruit", *words.split()])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a run of each kind, a table, reports, keys, sites and a board."""
    home = tmp_path_factory.mktemp("commands")
    rows = random.Random(1)
    table = [f"{rows.random():.3f},{rows.randint(0, 1)}\n" for _ in range(200)]
    (home / "table.csv").write_text("s,y\n" + "".join(table))
    for name, text in (("mean", MEAN), ("learning", LEARNING), ("own", OWN), ("agreed", AGREED)):
        (home / f"{name}.toml").write_text(text)
    verified_run(np.full(3, 0.5), complete(3), home / "board.db", noise_bits=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for words in (
            "run mean.toml --out mean.run --quiet",
            "run learning.toml --out learning.run --quiet",
            "ldp report table.csv --column y --domain 0,1 --out reports.csv",
            "peer key alice --out a",
            "peer key bob --port 7401 --out b",
            "network init --peers 3 --graph ring --out village",
            "network revise village/peer-0/book.toml --quorum 3 --from-run x --out "
            "village/peer-0/book2.toml",
            "budget table.csv --limit 99",
        ):
            assert call(words, patch) == 0, words
    return home


def with_json() -> set[str]:
    return {name for name, function in commands(cli.app) if "as_json" in function.__annotations__}


def test_every_command_is_called_here_or_says_why_not():
    assert with_json() == set(CALLS) | set(ELSEWHERE)
    assert {name for name, _ in commands(cli.app)} - with_json() == set(WITHOUT)


@pytest.mark.parametrize("name", CALLS)
def test_json_is_one_document_and_nothing_else(name, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert call(f"{CALLS[name]} --json", monkeypatch) == int(name in ANSWER_IS_NO)
    said = capsys.readouterr()
    document = json.loads(said.out, parse_constant=lambda token: pytest.fail(f"{token} is no JSON"))
    assert isinstance(document, dict | list)
    assert said.out == json.dumps(document, indent=1) + "\n"
    assert said.err == ""


ANSWER = Reply(
    {"found": 1},
    ["first", Detail("more"), Detail(Table("drawn")), Exactly("a,b\n"), Beside("about it"), "last"],
)


def test_people_read_all_lines_in_order(capsys):
    Printer().answer(ANSWER)
    said = capsys.readouterr()
    places = [said.out.index(word) for word in ("first", "more", "drawn", "a,b", "last")]
    assert places == sorted(places)
    assert said.err == "about it\n"


def test_quiet_leaves_details_and_everything_beside_out(capsys):
    printer = Printer(quiet=True)
    printer.say("on the way")
    printer.note("on the way")
    printer.answer(ANSWER)
    assert capsys.readouterr() == ("first\na,b\nlast\n", "")


@pytest.mark.parametrize("quiet", [False, True])
def test_programs_read_json_whatever_else_there_is_to_say(quiet, capsys):
    printer = Printer(json=True, quiet=quiet)
    printer.say("on the way")
    printer.note("on the way")
    printer.answer(ANSWER)
    assert capsys.readouterr() == ('{\n "found": 1\n}\n', "")


def test_lines_are_made_only_when_they_are_printed():
    def lines():
        raise AssertionError("nobody reads them")
        yield ""

    Printer(json=True).answer(Reply({}, lines()))


def test_nobody_but_the_printer_prints():
    """And nobody but the printer asks what --json and --quiet said: options go into a Printer."""
    for path in sorted(COMMANDS.rglob("*.py")):
        if path.name == "printing.py":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            where = f"{path.relative_to(COMMANDS)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                printing = ("print", "to_json", "emit_json", "json.dumps", "typer.echo")
                assert called not in printing, f"{where} prints; give the printer an answer"
                written = called.endswith((".print", "stdout.write", "stderr.write"))
                assert not written, f"{where} prints; give the printer an answer"
        asked = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        given = [
            keyword.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Printer"
            for keyword in node.keywords
        ]
        names = ("as_json",) if path.name == "terminal.py" else ("as_json", "quiet")
        asking = [node.lineno for node in asked if node.id in names and node not in given]
        assert asking == [], f"{path.relative_to(COMMANDS)} asks at lines {asking}"


def test_what_steers_a_terminal_is_spelled_out(capsys):
    """Words may be somebody else's. Lines and columns stay; what cannot be written does not raise."""
    Printer().answer(Reply({}, ["one\n\ttwo \x1b[2J\r\x9b1A \u202e \ud800"]))
    assert capsys.readouterr().out == "one\n        two \\x1b[2J\\r\\x9b1A \\u202e \\ud800\n"
