"""Every module has a door: what no command, public name, estimator or check reaches has no place in
the package, and belongs in papers/ or nowhere.

A module is reached when a module that is reached imports it, or a name that a package hands on from
it. What is found by looking counts where the finder looks: algorithms that are in the catalog,
options of the planner, statements that can be asked. Names that only a package's `__init__` lists
are no door, except in the packages that the pages show to people (`PUBLIC`).
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import bruit
from bruit.algorithms.algorithm import catalog
from bruit.mechanisms.mechanism import catalog as mechanisms
from bruit.planning.plan import protocols
from bruit.privacy.ahead.statements import statements
from bruit.tasks.kinds.kind import kinds
from docs.pages import PAGES
from tests.unit import test_house

ROOT = Path(bruit.__file__).parent
PUBLIC = (
    "bruit",
    "bruit.adversary.attacks",
    "bruit.graphs",
    "bruit.personal",
    "bruit.sklearn",
    "bruit.statistics.average.board",
    "bruit.statistics.holders",
    "bruit.statistics.local",
    "bruit.tasks",
    "bruit.testing",
)
DOORS = ("bruit.__main__", "bruit.commands.cli", *PUBLIC)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def parsed(module: str) -> ast.Module:
    return test_house.parsed(FILES[module])


def is_package(module: str) -> bool:
    return FILES[module].name == "__init__.py"


@cache
def handed_on(package: str) -> dict[str, tuple[str, str]]:
    """The names that a package takes from its files, and from where."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in parsed(package).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def defined_in(module: str, name: str) -> str | None:
    """The module behind `from module import name`; None outside of the package."""
    if f"{module}.{name}" in FILES:
        return f"{module}.{name}"
    if module in FILES and is_package(module) and name in handed_on(module):
        return defined_in(*handed_on(module)[name])
    return module if module in FILES else None


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those inside `if TYPE_CHECKING:`: an annotation is no door."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            waiting += ast.iter_child_nodes(node)


@cache
def imported(module: str) -> tuple[str, ...]:
    """All modules of the package that a module imports, inside functions too, or names in full."""
    return tuple(_imported(module))


def _imported(module: str) -> Iterator[str]:
    for node in runtime_nodes(parsed(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found = defined_in(node.module or "", alias.name)
                if found is not None:
                    yield found
        elif isinstance(node, ast.Constant) and node.value in FILES:
            yield node.value


def found_by_looking() -> set[str]:
    things = (
        *catalog().values(),
        *mechanisms().values(),
        *kinds().values(),
        *protocols().values(),
        *statements().values(),
    )
    return {thing.__module__ for thing in things}


def reached(doors: set[str]) -> set[str]:
    """All modules behind these doors; a package that is no door itself hands on single names only."""
    seen: set[str] = set()
    waiting = list(doors)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            if module in doors or not is_package(module):
                waiting += imported(module)
    return seen


def test_every_module_has_a_door():
    behind = reached({*DOORS, *found_by_looking()})
    outside = [name for name in FILES if name not in behind and not is_package(name)]
    assert outside == [], "give it a door, or move it to papers/"


def test_a_module_without_a_door_is_found():
    """Without what is found by looking, the planner's options stand outside."""
    behind = reached(set(DOORS))
    assert "bruit.planning.ring" not in behind
    assert "bruit.privacy.ahead.masked_consensus" not in behind
    assert "bruit.planning.plan" in behind


def test_a_package_hands_on_single_names():
    assert defined_in("bruit.statistics.holders", "ask") == "bruit.statistics.holders.session"
    assert defined_in("bruit.graphs", "ring") == "bruit.graphs.families"
    assert defined_in("numpy", "array") is None


@pytest.mark.parametrize("package", [name for name in PUBLIC if name != "bruit"])
def test_a_public_package_is_shown_on_a_page(package):
    short = package.replace("bruit.", "br.", 1)
    shown = re.compile(
        rf"^from {re.escape(package)} import |\b{re.escape(short)}\.\w", re.MULTILINE
    )
    assert any(shown.search(page.read_text()) for page in PAGES)


def test_papers_stay_out_of_the_wheel():
    with (ROOT.parent / "pyproject.toml").open("rb") as stream:
        packages = tomllib.load(stream)["tool"]["setuptools"]["packages"]["find"]
    assert packages == {"include": ["bruit*"]}
