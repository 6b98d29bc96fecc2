"""The page of all theorems, from the modules' docstrings: what each says, its spec ids, its status,
what refutes it.

A module of a room of `bruit.privacy`, or of `papers.theorems` and `papers.printed`, is listed when
it states a guarantee, defines a theorem, or reproduces printed formulas (then its name begins with
`published`, or its docstring says that it is NOT A GUARANTEE).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import papers
from bruit import privacy
from bruit.privacy.guarantee import STATUSES, Status
from bruit.privacy.theorem import Theorem

PRIVACY, PAPERS = Path(privacy.__file__).parent, Path(papers.__file__).parent
PARTS = {
    "theorems": "Views in a network",
    "ahead": "Before there is a run",
    "formulas": "Without a network",
    "toolbox": "The toolbox",
    "papers/theorems": "True, and needed by no run",
    "papers/printed": "As papers printed it",
}
IDS = re.compile(
    r"\b(?:gossip|walk|perso):[A-Z]+-[A-Z]?\d+(?:(?: `?\w+`?)?, (?:[A-Z]+-)?[A-Z]?\d+\b)*"
)


@dataclass(frozen=True)
class Module:
    """What one file says about itself."""

    part: str
    name: str
    about: str
    statuses: tuple[str, ...]

    @property
    def printed(self) -> bool:
        return self.statuses == ("published",)

    @property
    def dotted(self) -> str:
        """Where it is imported from."""
        return (
            f"papers.{self.name.replace('/', '.')}"
            if self.part.startswith("papers/")
            else f"bruit.privacy.{self.part}.{self.name}"
        )

    @property
    def _first(self) -> str:
        return " ".join(self.about.split("\n\n", 1)[0].split())

    @property
    def title(self) -> str:
        """The first line, without spec ids and warnings."""
        line = re.sub(r" ?\([^()]*(?:gossip|walk|perso):[^()]*\)", "", self._first)
        return re.split(r"\. NOT A GUARANTEE|: for comparison|\.$", line)[0]

    @property
    def spec(self) -> str:
        """The ids of the first line; if it has none, of the whole docstring."""
        found = IDS.findall(self._first) or IDS.findall(self.about)
        return ", ".join(dict.fromkeys(found))


def folder(part: str) -> Path:
    """Where the files of a part lie."""
    return PAPERS.parent / part if part.startswith("papers/") else PRIVACY / part


def modules() -> list[Module]:
    """Every module that states a guarantee or reproduces a printed one, by part and name."""
    found = []
    for part in PARTS:
        for path in sorted(folder(part).glob("[!_]*.py")):
            tree = ast.parse(path.read_text())
            about = ast.get_docstring(tree) or ""
            as_printed = path.stem.startswith("published") or (
                part == "papers/printed" and "NOT A GUARANTEE" in about
            )
            if as_printed or any(_states(node) for node in ast.walk(tree)):
                statuses = ("published",) if as_printed else tuple(_statuses(tree))
                name = f"{part}/{path.stem}".removeprefix("papers/") if "/" in part else path.stem
                found.append(Module(part, name, about, statuses))
    return found


def _states(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Guarantee"
    return isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id == "Theorem" for base in node.bases
    )


def _statuses(tree: ast.Module) -> Iterator[str]:
    """Those its guarantees name, and those of its theorems: a theorem that names none is proven, or
    ideal."""
    sentences = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        for part in ast.walk(node)
    }
    kinds = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _states(node)]
    inside = {id(part) for kind in kinds for part in ast.walk(kind)}
    named: set[str] = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in STATUSES
        and id(node) not in sentences | inside
    }
    named |= {_status(kind) for kind in kinds}
    yield from (status for status in STATUSES if status in named)


def _status(theorem: ast.ClassDef) -> str:
    """The class variable `status` of a theorem; without `rounding` it is about real numbers."""
    for node in theorem.body:
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "status"
        ):
            return str(ast.literal_eval(node.value)) if node.value is not None else "proven"
    named = {node.name for node in theorem.body if isinstance(node, ast.FunctionDef)}
    return "proven" if "rounding" in named else "ideal"


def status_of(theorem: Theorem) -> Status:
    """What a statement by this theorem is called."""
    real = type(theorem).rounding is Theorem.rounding
    return "ideal" if theorem.status == "proven" and real else theorem.status
