"""The theory is in the repository: every code resolves, every file and test it names exists, and
statuses agree.

A code is `part:FAMILY-NUMBER`, `gossip:MUF-9` say. Codes after a comma inherit the part, bare
numbers the family too: `gossip:MUF-8, 10` are MUF-8 and MUF-10. A part has the page
docs/theory/PART.md and perhaps a folder of pages; a statement there begins with an anchor of its
code and a heading, and ends where the next anchor begins.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from bruit.privacy import theorems as network
from bruit.privacy.guarantee import STATUSES
from bruit.privacy.theorem import Theorem
from docs import theorems
from docs.pages import ROOT
from website import codes as codes_of_the_site

PARTS = {
    "gossip": "gossip",
    "walk": "walk",
    "perso": "perso",
    "silo": "silo",
    "fp": "finite-precision",
}
COMPLETE = set(PARTS)

CODE = r"[A-Z]+-[A-Z]?\d+"
MORE = rf"(?:,|,? and| to|\.\.)\s+(?:#\s+)?`?(?:{CODE}\b|[A-Z]?\d+(?=[,.;:)`|\"]|$))"
CITED = re.compile(rf"\b([a-z]+):({CODE})((?:(?: `?[a-zA-Z_]\w*`?)?{MORE})*)", re.MULTILINE)
ANCHOR = re.compile(rf'^<a id="([^"]+)"></a>\n#+ ({CODE}): (.+)$', re.MULTILINE)
FILE = re.compile(
    r"\b((?:bruit|tests|docs|benchmarks|papers)/[\w/.-]+\.py)(?:::(?:Test\w+::)?(\w+))?"
)


@dataclass(frozen=True)
class Statement:
    """One statement of a page."""

    part: str
    code: str
    anchor: str
    page: Path
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}, {self.code}"

    @property
    def statuses(self) -> set[str]:
        """The words of its line `Status:`, without what stands in parentheses."""
        found = re.search(r"^Status: (.*?)^(?:Code|Test):", self.text, re.MULTILINE | re.DOTALL)
        said, before = found[1] if found else "", ""
        while said != before:
            said, before = re.sub(r"\([^()]*\)", "", said), said
        return set(re.findall(r"\w+", said))


def pages(part: str) -> list[Path]:
    """The page of a part, and those of its folder."""
    folder = ROOT / "docs" / "theory"
    return [
        path
        for path in (folder / f"{PARTS[part]}.md", *sorted((folder / PARTS[part]).glob("*.md")))
        if path.is_file()
    ]


@cache
def statements() -> dict[tuple[str, str], Statement]:
    """All statements of the complete parts, by part and code."""
    found: dict[tuple[str, str], Statement] = {}
    for part in sorted(COMPLETE):
        for page in pages(part):
            text = page.read_text()
            heads = list(ANCHOR.finditer(text))
            ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
            for head, end in zip(heads, ends, strict=True):
                key = (part, head[2])
                assert key not in found, f"{part}:{head[2]} is stated twice"
                found[key] = Statement(part, head[2], head[1], page, text[head.start() : end])
    return found


def codes(text: str) -> Iterator[tuple[str, str]]:
    """All codes a text cites, with their parts."""
    for part, first, more in CITED.findall(text):
        if part not in PARTS:
            continue
        family = first.partition("-")[0]
        yield part, first
        for other, number in re.findall(r"(?:([A-Z]+)-)?\b([A-Z]?\d+)\b", more):
            family = other or family
            yield part, f"{family}-{number}"


def texts() -> Iterator[Path]:
    """Everything of the repository that may cite a code."""
    for folder in ("bruit", "papers", "tests", "docs", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".toml"):
                yield path


@cache
def cited() -> dict[tuple[str, str], set[str]]:
    """Who cites which code."""
    found = defaultdict(set)
    for path in [*texts(), ROOT / "README.md"]:
        if path != Path(__file__).resolve():
            for key in codes(path.read_text()):
                found[key].add(path.relative_to(ROOT).as_posix())
    return dict(found)


def theorem_kinds() -> list[type[Theorem]]:
    """Every theorem of the package."""
    for module in pkgutil.iter_modules(network.__path__, f"{network.__name__}."):
        importlib.import_module(module.name)
    waiting, found = [Theorem], []
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        found += [kind for kind in kinds if kind.__module__.startswith("bruit.")]
    return sorted(found, key=lambda kind: kind.__name__)


def literal_guarantees() -> Iterator[tuple[str, str, str]]:
    """(file, spec, status) of every guarantee whose call says both in so many words."""
    for path in sorted([*(ROOT / "bruit").rglob("*.py"), *(ROOT / "papers").rglob("*.py")]):
        text = path.read_text()
        if "Guarantee(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Guarantee"
            ):
                named = {keyword.arg: keyword.value for keyword in node.keywords}
                spec = named.get("spec", node.args[1] if len(node.args) > 1 else None)
                status = named.get("status", node.args[2] if len(node.args) > 2 else None)
                for said in words(spec):
                    yield from (
                        (path.relative_to(ROOT).as_posix(), said, word) for word in words(status)
                    )


def words(node: ast.expr | None) -> list[str]:
    """The strings an expression can be; none if it takes more than reading to know."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return words(node.body) + words(node.orelse)
    return []


def status_of(kind: type[Theorem]) -> str:
    """What a statement by this theorem is called: without an account of rounding it is about real
    numbers."""
    return "ideal" if kind.status == "proven" and kind.rounding is Theorem.rounding else kind.status


def said_exactly() -> Iterator[tuple[str, str, str]]:
    """(where, spec, status) as theorems and guarantees of the package say them."""
    for kind in theorem_kinds():
        yield kind.__name__, kind.spec, status_of(kind)
    yield from literal_guarantees()
    yield "local DP", "gossip:DP-8", "proven"


def resolves(key: tuple[str, str]) -> bool:
    return key[0] not in COMPLETE or key in statements()


def test_every_code_that_is_cited_has_a_statement() -> None:
    missing = {
        f"{part}:{code}": sorted(by)
        for (part, code), by in cited().items()
        if not resolves((part, code))
    }
    assert missing == {}, "codes without a statement in docs/theory"


def test_codes_without_their_part_resolve_too() -> None:
    """In tables and sentences the part is often left out; a family that one part alone has is
    enough to tell."""
    parts = defaultdict(set)
    for part, code in cited():
        parts[code.partition("-")[0]].add(part)
    alone = {
        family: min(found)
        for family, found in parts.items()
        if len(found) == 1 and found <= COMPLETE
    }
    bare = re.compile(rf"\b({'|'.join(sorted(alone))})-([A-Z]?\d+)\b")
    for path in texts():
        for family, number in bare.findall(path.read_text()):
            key = (alone[family], f"{family}-{number}")
            assert key in statements(), (
                f"{path.relative_to(ROOT)} cites {key[1]}, which has no statement"
            )


def test_every_page_of_theory_belongs_to_a_complete_part() -> None:
    """A part whose page is there is asked for: nobody forgets to name it above."""
    assert {part for part in PARTS if pages(part)} == COMPLETE
    known = {
        ROOT / "docs" / "theory" / "index.md",
        *(page for part in PARTS for page in pages(part)),
    }
    assert set((ROOT / "docs" / "theory").rglob("*.md")) == known


def test_an_anchor_is_its_code_in_lower_case() -> None:
    for found in statements().values():
        assert found.anchor == found.code.lower(), found.where
    for part in COMPLETE:
        for page in pages(part):
            text = page.read_text()
            alone = len(re.findall("<a id=", text)) - len(ANCHOR.findall(text))
            assert alone == 0, f"{page.name}: an anchor without the heading of a statement below it"


@pytest.mark.parametrize("part", sorted(COMPLETE))
def test_a_page_with_a_folder_lists_all_its_statements(part: str) -> None:
    first, *others = pages(part)
    text = first.read_text()
    for found in statements().values():
        if found.part == part and found.page in others:
            link = f"[{found.code}]({found.page.relative_to(first.parent)}#{found.anchor})"
            assert link in text, f"{first.name} does not list {link}"


def test_every_statement_names_its_code_or_its_test_and_they_exist() -> None:
    for found in statements().values():
        assert re.search("^(Code|Test): ", found.text, re.MULTILINE), (
            f"{found.where} names neither code nor test"
        )
        for path, name in FILE.findall(found.text):
            assert (ROOT / path).is_file(), f"{found.where} names {path}, which is not there"
            if name:
                written = (ROOT / path).read_text()
                assert re.search(rf"^ *def {name}\(", written, re.MULTILINE), (
                    f"{found.where}: {path} has no {name}"
                )


def test_a_privacy_statement_that_is_proven_names_a_test() -> None:
    for found in statements().values():
        if "proven" in found.statuses:
            assert "::test_" in found.text, found.where


def test_status_words_are_those_of_the_package() -> None:
    for found in statements().values():
        assert found.statuses <= set(STATUSES), f"{found.where} says {found.statuses}"


def test_every_theorem_and_guarantee_cites_a_statement_of_its_status() -> None:
    for where, spec, status in said_exactly():
        keys = list(codes(spec))
        assert keys, f"{where} cites {spec!r}, which is no code"
        for key in keys:
            assert resolves(key), f"{where} cites {key}, which has no statement"
            words = statements()[key].statuses if key in statements() else set()
            assert not words or status in words, (
                f"{where} is {status}; {statements()[key].where} says {sorted(words)}"
            )


def test_no_page_says_a_status_that_the_code_does_not() -> None:
    """Where modules say one: a page may not call proven what the code calls ideal."""
    said = defaultdict(set)
    for _, spec, status in said_exactly():
        for key in codes(spec):
            said[key].add(status)
    for module in theorems.modules():
        for key in codes(module.spec):
            said[key] |= set(module.statuses)
    for key, found in statements().items():
        if key in said:
            assert found.statuses <= said[key], f"{found.where}: the code says {sorted(said[key])}"


def test_every_module_with_a_guarantee_cites_a_statement() -> None:
    for module in theorems.modules():
        keys = list(codes(module.spec)) or [
            key
            for kind in theorem_kinds()
            for key in codes(kind.spec)
            if kind.__module__.endswith(f".{module.name}")
        ]
        assert keys, f"{module.name} cites no statement"
        assert all(resolves(key) for key in keys), module.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gossip:MUF-9 `consensus`, MUF-X2).", ["gossip:MUF-9", "gossip:MUF-X2"]),
        ("(gossip:MUF-8, 10, 11)", ["gossip:MUF-8", "gossip:MUF-10", "gossip:MUF-11"]),
        (
            "gossip:RING-1, RING-4, walk:RW-1, RW-6",
            ["gossip:RING-1", "gossip:RING-4", "walk:RW-1", "walk:RW-6"],
        ),
        ("gossip:MUF-13, EXP-12: hypercube", ["gossip:MUF-13", "gossip:EXP-12"]),
        ("gossip:EXP-1 to EXP-7 and EXP-9 (x)", ["gossip:EXP-1", "gossip:EXP-7", "gossip:EXP-9"]),
        ("gossip:MUF-3, 5 times as much; arXiv:2206.05091", ["gossip:MUF-3"]),
    ],
)
def test_the_reader_of_codes(text: str, expected: list[str]) -> None:
    assert [f"{part}:{code}" for part, code in codes(text)] == expected


def test_a_status_line_is_read_without_its_parentheses() -> None:
    text = "Status: proven (on the grid, by [FP-0](x.md#fp-0)), ideal\n(published elsewhere).\nCode: bruit/a.py.\n"
    assert Statement("gossip", "X-1", "x-1", ROOT / "README.md", text).statuses == {
        "proven",
        "ideal",
    }


def test_no_section_of_a_document_elsewhere_is_cited() -> None:
    """A statement has a code; a section number would point out of the repository."""
    part = "|".join(sorted(COMPLETE))
    outside = re.compile(
        rf"\b(?:{part})(?::{CODE}[^\n;]{{0,30}}?)?\s+(?:and )?section \d|\bsection \d+, (?:item|V)"
    )
    assert [
        path.as_posix()
        for path in texts()
        if path.suffix == ".py"
        and path != Path(__file__).resolve()
        and outside.search(path.read_text())
    ] == []


def test_the_site_knows_where_every_statement_stands() -> None:
    assert set(codes_of_the_site.places()) == set(statements())
    unknown = "gossip:" + "MUF" + "-99"  # taken apart, since no file may cite what nobody states
    page = codes_of_the_site.linked(
        f'<p>by <code>gossip:MUF-2</code>, {unknown} <a href="x">gossip:MUF-2</a></p>'
        "<pre>gossip:MUF-2</pre>",
        "how-to/plan.html",
    )
    to = '<a class="spec" href="../theory/gossip/exact-loss.html#muf-2">gossip:MUF-2</a>'
    assert page == (
        f'<p>by <code>{to}</code>, {unknown} <a href="x">gossip:MUF-2</a></p>'
        "<pre>gossip:MUF-2</pre>"
    )
