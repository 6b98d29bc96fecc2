"""The documentation is true: code runs, commands succeed, output is what the page shows, links lead somewhere.

Conventions of the pages, all checked here:
- the ```python blocks of a page share one namespace and one empty folder;
- in ```sh blocks, lines that start with `bruit ` are run; other lines (make, git) are for people; a command must
  succeed, or end as its comment `# exit code 1` says;
- a ```toml block whose first line is `# name.toml` is written to that file;
- a ```text block right after a python or sh block shows its output: every line must occur in it, in order, up to
  blanks; a line `...` leaves something out.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from bruit import cli
from docs import generate, picture

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "notes" not in path.relative_to(ROOT).parts  # included in generated pages, and run there
)
FENCE = re.compile(r"^```(?P<kind>[a-z]*)[ ]*(?P<mark>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 100


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
        found.append(Block(fence["kind"], fence["mark"].strip(), fence["body"], text.count("\n", 0, fence.start()) + 1,
                           len(between.splitlines())))  # fmt: skip
        end = fence.end()
    return found


def command(line: str) -> str:
    """What a bruit command prints; it must exit with 0, or with the code that its comment names."""
    wanted = re.search(r"# exit code (\d+)", line)
    arguments = shlex.split(line, comments=True)[1:]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        code = cli.app(arguments, prog_name="bruit", standalone_mode=False)
    assert int(code or 0) == (int(wanted[1]) if wanted else 0), f"{line}: exit code {code}"
    return shown.getvalue()


def python(body: str, page: ModuleType, where: str) -> str:
    """What a block prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(body, where, "exec"), page.__dict__)
    return shown.getvalue()


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def check_shown(output: str, block: Block, where: str) -> None:
    """Every line of the block occurs in the output, in order."""
    lines = iter(squeezed(output))
    for wanted in squeezed(block.body):
        if wanted != "..." and wanted not in lines:
            raise AssertionError(f"{where}: the page shows {wanted!r}, but the real output is\n{output}")


@contextlib.contextmanager
def one_page(path: Path) -> Iterator[ModuleType]:
    """A module of its own for the page's Python, so that its classes have a home."""
    name = "page_" + re.sub(r"\W", "_", path.relative_to(ROOT).as_posix())
    page = sys.modules[name] = ModuleType(name)
    try:
        yield page
    finally:
        del sys.modules[name]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", WIDTH)
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
                check_shown(output, block, where)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{path.relative_to(ROOT)} links to {target}, which is not there"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in slugs, f"{path.relative_to(ROOT)} links to {target}, but that page has no such heading"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_page_can_be_reached(path: Path) -> None:
    """From the README, by following links."""
    start, seen = ROOT / "README.md", set()
    waiting = [start]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
            if "://" not in target and target.partition("#")[0]:
                waiting.append((page.parent / target.partition("#")[0]).resolve())
    assert path in seen, f"no page links to {path.relative_to(ROOT)}"


def test_reference_is_generated() -> None:
    """The committed reference is what the generator writes; `python -m docs.generate` renews it."""
    for path, text in generate.pages().items():
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing; run python -m docs.generate"
        assert path.read_text() == text, f"{path.relative_to(ROOT)} is out of date; run python -m docs.generate"
    strays = set((ROOT / "docs" / "reference").rglob("*.md")) - set(generate.pages())
    assert not {path for path in strays if path.parent.name != "notes"}, "reference pages are all generated"


def test_reference_has_the_six_headings() -> None:
    for path in (ROOT / "docs" / "reference" / "algorithms").glob("*.md"):
        if path.stem != "index":
            titles = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
            assert titles == list(generate.HEADINGS), path.name


def test_picture_is_drawn_from_the_accountant() -> None:
    assert picture.PATH.read_text() == picture.draw(), "run python -m docs.picture"


def test_architecture_page_names_every_part() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    for part in (ROOT / "bruit").iterdir():
        name = part.name if part.suffix == ".py" else f"{part.name}/"
        if part.suffix in ("", ".py") and part.name != "__pycache__":
            assert name in page, f"the architecture page does not name {name}"


def test_the_readme_quotes_the_sweep() -> None:
    """The means in the README's prose are those of the sweep page, whose output is compared with the real one."""
    sweep = (ROOT / "docs" / "how-to" / "sweep.md").read_text()
    readme = (ROOT / "README.md").read_text()
    (means,) = re.findall(r"^│ mean (.*)$", sweep, re.MULTILINE)
    together, _, _, alone, central, *_ = re.findall(r"[\w.-]+", means)
    (spread,), (count,) = re.findall(r"deviation ([\d.]+)", sweep), re.findall(r"(\d+) of 20 seeds", sweep)
    for quoted in (together, alone, central, f"standard deviation {spread}", f"{count} of the 20"):
        assert quoted in readme, f"the README does not say {quoted}"


def test_doctests_of_the_package() -> None:
    for path in sorted((ROOT / "bruit").rglob("*.py")):
        if ">>>" in path.read_text():
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            failed, _ = doctest.testmod(importlib.import_module(name))
            assert not failed, name


def test_a_page_that_lies_is_caught() -> None:
    """The checker itself: a shown line that is not printed, or printed in another order, fails."""
    truth = "first 1\nsecond 2\n"
    check_shown(truth, Block("text", "", "first   1\n...\nsecond 2\n", 1, 0), "page:1")
    for lie in ("first 2\n", "second 2\nfirst 1\n"):
        with pytest.raises(AssertionError, match="the page shows"):
            check_shown(truth, Block("text", "", lie, 1, 0), "page:1")
