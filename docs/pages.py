"""The pages of the documentation as programs: their blocks, what they print, and what they show of
it.

    python -m docs.pages [PAGE ...]       run pages, and put the lines they print now in place of those they show

Conventions of the pages:
- the ```python blocks of a page share one namespace and one empty folder;
- in ```sh blocks, lines that start with `bruit ` are run; other lines (make, git) are for people; a
  command must succeed, or end as its comment `# exit code 1` says;
- a ```toml block whose first line is `# name.toml` is written to that file;
- a ```text block right after a python or sh block shows its output: every line must occur in it, in
  order, up to blanks; a line `...` leaves something out. Numbers in the prose around a block are
  not touched: read what changed.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import sys
import tempfile
import unittest.mock
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bruit.commands import cli
from bruit.errors import BruitError

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for path in [
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
        *(ROOT / "docs").rglob("*.md"),
    ]
    if "notes" not in path.relative_to(ROOT).parts  # included in generated pages, and run there
)
FENCE = re.compile(
    r"^```(?P<kind>[a-z]*)[ ]*(?P<mark>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
WIDTH = 100
os.environ["BRUIT_REGISTER"] = ""  # the records of pages are made anew in every folder: no copies


@dataclass(frozen=True)
class Block:
    kind: str
    mark: str
    body: str
    line: int
    follows: int  # number of text lines between the previous block and this one


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, end = [], 0
    for fence in FENCE.finditer(text):
        between = text[end : fence.start()].strip()
        found.append(
            Block(
                fence["kind"],
                fence["mark"].strip(),
                fence["body"],
                text.count("\n", 0, fence.start()) + 1,
                len(between.splitlines()),
            )
        )
        end = fence.end()
    return found


def command(line: str) -> str:
    """What a bruit command prints, errors too; it must exit with 0, or with the code that its
    comment names."""
    wanted = re.search(r"# exit code (\d+)", line)
    arguments = shlex.split(line, comments=True)[1:]
    shown = io.StringIO()
    with (
        contextlib.redirect_stdout(shown),
        unittest.mock.patch.object(sys, "argv", ["bruit", *arguments]),
    ):
        try:
            code = cli.app(arguments, prog_name="bruit", standalone_mode=False)
        except BruitError as error:
            if wanted is None:
                raise
            print(f"error: {error}")
            code = error.exit_code
    assert int(code or 0) == (int(wanted[1]) if wanted else 0), f"{line}: exit code {code}"
    return shown.getvalue()


def python(body: str, page: ModuleType, where: str) -> str:
    """What a block prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(body, where, "exec"), page.__dict__)
    return shown.getvalue()


def squeezed(text: str) -> list[str]:
    """Lines that are not blank, with single blanks."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def shows(output: str, block: Block) -> str | None:
    """The first line of the block that does not occur in the output, in order; None if all do."""
    lines = iter(squeezed(output))
    for wanted in squeezed(block.body):
        if wanted != "..." and wanted not in lines:
            return wanted
    return None


@contextlib.contextmanager
def one_page(path: Path) -> Iterator[ModuleType]:
    """A module of its own for the page's Python, so that its classes have a home."""
    name = "page_" + re.sub(r"\W", "_", path.relative_to(ROOT).as_posix())
    page = sys.modules[name] = ModuleType(name)
    try:
        yield page
    finally:
        del sys.modules[name]


def outputs(path: Path) -> Iterator[tuple[Block, str]]:
    """Run a page in the current folder: its blocks that show output, each with what was printed."""
    output = ""
    with one_page(path) as page:
        for block in blocks(path.read_text()):
            where = f"{path.relative_to(ROOT)}:{block.line}"
            if block.kind == "python":
                assert not block.mark, f"{where}: every Python block of the documentation runs"
                output = python("\n" * block.line + block.body, page, where)
            elif block.kind == "sh":
                wanted = [line for line in block.body.splitlines() if line.startswith("bruit ")]
                output = "\n".join(command(line) for line in wanted)
            elif block.kind == "toml" and (named := re.match(r"# (\S+\.toml)\n", block.body)):
                Path(named[1]).write_text(block.body)
            elif block.kind == "text" and block.follows == 0 and output:
                yield block, output


def renewed(block: Block, output: str) -> str:
    """The block with every line replaced by the most similar line of the output, in order."""
    lines = [line.rstrip() for line in output.splitlines()]
    shown = block.body.splitlines()
    wanted = [k for k, line in enumerate(shown) if line.strip() and line.strip() != "..."]
    score = [[_alike(shown[k], line) for line in lines] for k in wanted]
    best = [[0.0] * (len(lines) + 1) for _ in range(len(wanted) + 1)]
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(lines) - 1, -1, -1):
            best[i][j] = max(best[i][j + 1], score[i][j] + best[i + 1][j + 1])
    place = 0
    for i, k in enumerate(wanted):
        while place < len(lines) and best[i][place] == best[i][place + 1]:
            place += 1
        if place < len(lines):
            shown[k] = lines[place]
            place += 1
    return "\n".join(shown) + "\n"


def _alike(one: str, other: str) -> float:
    """1 for equal lines; numbers count little."""
    if one.split() == other.split():
        return 1.0 + 1e-6
    first, second = (re.sub(r"[\d.]+", "0", " ".join(text.split())) for text in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() ** 4


def main(names: list[str]) -> None:
    """Renew the pages named, all of them by default, and say which changed."""
    cli.out.width = WIDTH
    for path in [Path(name).resolve() for name in names] or PAGES:
        text, folder = path.read_text(), os.getcwd()
        notes = path.parent / "notes" / path.name  # what a generated page shows is written here
        written = notes.read_text() if path.parent.name == "algorithms" and notes.is_file() else ""
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
            try:
                for block, output in outputs(path):
                    if shows(output, block) is not None:
                        old, new = (
                            f"```text\n{body}```" for body in (block.body, renewed(block, output))
                        )
                        text, written = text.replace(old, new, 1), written.replace(old, new, 1)
            except Exception as error:
                print(f"{path.relative_to(ROOT)}: {type(error).__name__}: {error}")
            finally:
                os.chdir(folder)
        if text != path.read_text():
            path.write_text(text)
            if written:
                notes.write_text(written)
            print(f"{path.relative_to(ROOT)}: renewed")


if __name__ == "__main__":
    main(sys.argv[1:])
