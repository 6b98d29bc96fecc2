"""The page of all theorems, from the modules' docstrings: what each says, its spec ids, its status, what refutes it.

A module of `bruit.privacy.network` or `bruit.privacy.accountants` is listed when it states a guarantee, defines a
theorem, or reproduces printed formulas (its name then begins with `published`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bruit import privacy
from bruit.privacy.guarantee import STATUSES, Status
from bruit.privacy.network.theorem import Theorem

FOLDER = Path(privacy.__file__).parent
PARTS = {"network": "Views in a network", "accountants": "The toolbox"}
IDS = re.compile(r"\b(?:gossip|walk|perso):[A-Z]+-[A-Z]?\d+(?:(?: `?\w+`?)?, (?:[A-Z]+-)?[A-Z]?\d+\b)*")


@dataclass(frozen=True)
class Module:
    """What one file says about itself."""

    part: str
    name: str
    about: str
    statuses: tuple[str, ...]

    @property
    def printed(self) -> bool:
        return self.name.startswith("published")

    @property
    def title(self) -> str:
        """The first line, without spec ids and warnings."""
        line = re.sub(r" ?\([^()]*(?:gossip|walk|perso):[^()]*\)", "", self.about.split("\n", 1)[0])
        return re.split(r"\. NOT A GUARANTEE|: for comparison|\.$", line)[0]

    @property
    def spec(self) -> str:
        """The ids of the first line; if it has none, of the whole docstring."""
        found = IDS.findall(self.about.split("\n", 1)[0]) or IDS.findall(self.about)
        return ", ".join(dict.fromkeys(found))


def modules() -> list[Module]:
    """Every module that states a guarantee or reproduces a printed one, by part and name."""
    found = []
    for part in PARTS:
        for path in sorted((FOLDER / part).glob("*.py")):
            tree = ast.parse(path.read_text())
            if path.stem.startswith("published") or any(_states(node) for node in ast.walk(tree)):
                statuses = ("published",) if path.stem.startswith("published") else tuple(_statuses(tree))
                found.append(Module(part, path.stem, ast.get_docstring(tree) or "", statuses))
    return found


def _states(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Guarantee"
    return isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "Theorem"
                                                  for base in node.bases)  # fmt: skip


def _statuses(tree: ast.Module) -> Iterator[str]:
    """Those its guarantees name, and those of its theorems: a theorem that names none is proven, or ideal."""
    sentences = {id(part) for node in ast.walk(tree) if isinstance(node, ast.BinOp) for part in ast.walk(node)}
    kinds = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _states(node)]
    inside = {id(part) for kind in kinds for part in ast.walk(kind)}
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in STATUSES
             and id(node) not in sentences | inside}  # fmt: skip
    named |= {_status(kind) for kind in kinds}
    yield from (status for status in STATUSES if status in named)


def _status(theorem: ast.ClassDef) -> str:
    """The class variable `status` of a theorem; without `rounding` it is about real numbers."""
    for node in theorem.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "status":
            return str(ast.literal_eval(node.value)) if node.value is not None else "proven"
    named = {node.name for node in theorem.body if isinstance(node, ast.FunctionDef)}
    return "proven" if "rounding" in named else "ideal"


def status_of(theorem: Theorem) -> Status:
    """What a statement by this theorem is called."""
    real = type(theorem).rounding is Theorem.rounding
    return "ideal" if theorem.status == "proven" and real else theorem.status
