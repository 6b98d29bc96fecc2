"""What users name is printed as they named it, by every console: no markup, no emojis, no cuts."""

import ast
from pathlib import Path

import pytest
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import bruit
from bruit.commands import terminal
from bruit.commands.printing import Detail, Printer, Reply, warn
from bruit.runs.many.sweep import to_table
from bruit.show.summary import styled

HOSTILE = "complete:100: [bold]x[/bold] [/] :smile: \\[red] [link=http://a]b"
ROOT = Path(bruit.__file__).parent


def printed(console: Console, *things: object) -> str:
    """What a console prints, in its own settings, on a wide screen."""
    with console.capture() as found:
        console.print(*things, width=200)
    return found.get()


@pytest.mark.parametrize("console", [terminal.out, terminal.err], ids=["out", "err"])
def test_text_cells_titles_and_panels_are_printed_as_they_are(console):
    table = Table(HOSTILE, title=HOSTILE, caption=HOSTILE)
    table.add_row(HOSTILE)
    for thing, times in ((HOSTILE, 1), (table, 4), (Panel(HOSTILE), 1)):
        assert printed(console, thing).count(HOSTILE) == times


def test_a_sweep_over_graphs_names_them():
    shown = printed(terminal.out, to_table([{"graph": HOSTILE, "seed": 0, "mse": 0.5}]))
    assert all(word in shown for word in HOSTILE.split())


def test_said_and_answered_text_is_not_changed():
    with terminal.out.capture() as found:
        Printer().say(HOSTILE)
        Printer().answer(Reply({}, [HOSTILE, Detail(HOSTILE)]))
    assert found.get() == 3 * (HOSTILE + "\n")


def test_warnings_are_not_changed():
    with terminal.err.capture() as found:
        warn(HOSTILE)
        Printer(quiet=True).note(HOSTILE)
    assert found.get() == HOSTILE + "\n"


def test_styled_lines_read_no_emojis():
    assert styled(["[bold]on complete:100: it is[/bold]"]).plain == "on complete:100: it is"


def test_there_are_two_consoles_and_both_read_no_markup():
    """A third console, or a string with styles that is not escaped, would bring the emojis back."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if not any(word in text for word in ("Console(", ".print(", "from_markup(")):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            settings = {key.arg: ast.unparse(key.value) for key in node.keywords}
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if called.endswith("Console"):
                assert path.name == "terminal.py", where
                assert settings["markup"] == settings["emoji"] == "False", where
            if called.endswith("from_markup"):
                assert settings.get("emoji") == "False", where
            if called.endswith(".print"):
                assert (
                    settings.get("markup", "False") == settings.get("emoji", "False") == "False"
                ), where
