"""What `bruit --help` looks like: commands in groups, whole sentences, an example and a place to
begin."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

RUNS, ASK, ATTACK, REAL, TABLES = (
    "Run and compare",
    "Plan and ask",
    "Attack and audit",
    "Real peers",
    "Statistics of tables",
)
OTHERS = "Commands"

BEGIN = """\b
Begin here:
  bruit run ten-clinics           they learn together, every patient protected
  bruit init my.toml              an experiment of your own to edit
  bruit COMMAND --help            options, and an example of each command
"""


def first_sentence(text: str | None) -> str:
    """The first sentence of a command's help, on one line.

    >>> first_sentence("Facts of a graph: peers,\\nlinks. And more.")
    'Facts of a graph: peers, links.'
    """
    flat = " ".join((text or "").split("\n\n")[0].split())
    ends = [place + 1 for mark in (". ", "? ") if (place := flat.find(mark)) >= 0]
    return flat[: min(ends)] if ends else flat


class Commands(TyperGroup):
    """A group whose help names every command with a whole sentence, below the heading of its
    kind."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None)
            row = (name, first_sentence(command.help))
            headings.setdefault(heading if isinstance(heading, str) else OTHERS, []).append(row)
        widest = max((len(name) for rows in headings.values() for name, _ in rows), default=0)
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
