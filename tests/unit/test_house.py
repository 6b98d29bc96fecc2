"""Randomness has an address; nothing is pickled; importing bruit is light; and what may only shrink.

That arrows between rooms point down is checked by import-linter (`make lint`, rules in pyproject.toml).
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import bruit

ROOT = Path(bruit.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
PAPERS = sorted((ROOT.parent / "papers").rglob("*.py"))

# Random graphs, data splits and values of examples are drawn by numpy from explicit seeds; all else
# has an address.
MAY_DRAW = {
    "graphs/random_families.py",
    "graphs/sequence.py",
    "planning/silos/problems.py",
    "tasks/data/split.py",
    "tasks/mean.py",
    "tasks/data/public_part.py",
}
UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
HEAVY = ("numba", "llvmlite", "dp_accounting", "sklearn", "networkx", "typer")


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those inside `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from runtime_nodes(node)


@cache
def parsed(path: Path) -> ast.Module:
    """Every file is read once."""
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported, inside functions too."""
    for node in runtime_nodes(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_draw_has_an_address_or_a_place():
    for path in MODULES:
        check_draws(path)


def check_draws(path):
    tree = parsed(path)
    drawn = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "random"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    ]
    drawn += [
        line
        for line, module in imports(path)
        if module.split(".")[0] == "random" or module.startswith("numpy.random")
    ]
    assert not drawn or name(path) in MAY_DRAW, f"{name(path)} draws at lines {drawn}"
    hidden = [
        line
        for line in path.read_text().splitlines()
        if "random.seed(" in line or "RandomState" in line
    ]
    assert hidden == [], name(path)


def test_nothing_is_pickled():
    for path in MODULES:
        check_pickles(path)


def check_pickles(path):
    assert [module for _, module in imports(path) if module.split(".")[0] in UNSAFE] == [], name(
        path
    )
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
        assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed), (
            name(path)
        )
        if ast.unparse(node.func) in ("np.load", "numpy.load"):
            assert allowed, f"{name(path)}:{node.lineno} loads without saying allow_pickle=False"


@pytest.mark.parametrize("module", ["bruit", "bruit.algorithms.schedules.peer"])
def test_importing_is_light(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert said.stdout.strip() == "[]"


def test_a_small_run_and_its_account_stay_light():
    code = (
        "import sys, bruit as br, numpy as np\nnoise = br.Gaussian(clip=1.0, sigma=1.0)\nrun ="
        " br.run(br.Averaging(), 'ring:6', br.tasks.Mean(np.zeros((6, 1))), privacy=noise,"
        " steps=3)\nrun.epsilon()\nprint([name for name in ('numba', 'dp_accounting', 'sklearn',"
        " 'networkx') if name in sys.modules])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert said.stdout.strip() == "[]"


# Ratchets: each number may only go down. Lower it here whenever it has.
SAME_NAME, ASKED_FOR_KIND, MOST_FILES = 0, 17, 21
NOT_BY_NAME, MANY_BY_PLACE = 0, 7
LONG_BODIES, LONG_FILES = 0, 46
BODY_LINES, FILE_LINES = 50, 350
NAMED_ALIKE = {"State", "Public"}  # what every algorithm calls its own records


def top_classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in parsed(path).body if isinstance(node, ast.ClassDef)]


def test_class_names_mean_one_thing():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for kind in top_classes(path):
            places.setdefault(kind.name.removeprefix("_"), []).append(name(path))
    twice = {
        kind: where for kind, where in places.items() if len(where) > 1 and kind not in NAMED_ALIKE
    }
    assert len(twice) <= SAME_NAME, twice


def test_few_ask_which_algorithm_or_schedule_it_is():
    """Outside its room an algorithm or schedule is spoken to by its methods, not by its kind."""
    rooms = [path for path in MODULES if name(path).startswith("algorithms/")]
    kinds = {
        kind.name
        for path in rooms
        for kind in top_classes(path)
        if any(
            word in ast.unparse(base) for base in kind.bases for word in ("Algorithm", "Schedule")
        )
    }
    asked = [
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        if path not in rooms
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)} & kinds
    ]
    assert len(asked) <= ASKED_FOR_KIND, asked


def test_no_folder_is_a_drawer():
    for folder in {path.parent for path in MODULES}:
        held = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(held) <= MOST_FILES, f"{folder.relative_to(ROOT)} holds {len(held)} files"


def test_records_are_spoken_by_name():
    """A dataclass of more than five fields takes at most two of them by place."""
    by_place = [
        f"{path.relative_to(ROOT.parent)}:{kind.name}"
        for path in MODULES + PAPERS
        for kind in ast.walk(parsed(path))
        if isinstance(kind, ast.ClassDef) and len(fields_by_place(kind)) > 2
    ]
    assert len(by_place) <= NOT_BY_NAME, by_place


def fields_by_place(kind: ast.ClassDef) -> list[str]:
    """Fields of a dataclass of more than five that are given by their place; else none."""
    how = [ast.unparse(line) for line in kind.decorator_list]
    fields = {
        ast.unparse(line.target): ast.unparse(line.annotation)
        for line in kind.body
        if isinstance(line, ast.AnnAssign)
    }
    listed = [name for name, kind in fields.items() if "ClassVar" not in kind]
    if not any(line.startswith("dataclass") for line in how) or len(listed) <= 5:
        return []
    if any("kw_only=True" in line for line in how):
        return []
    marks = [place for place, name in enumerate(listed) if fields[name] == "KW_ONLY"]
    return listed[: marks[0]] if marks else listed


def test_few_calls_have_nine_arguments_without_names():
    """Kernels that call kernels (`compiled`), one whose arguments are a record, and a list of things
    to digest may stay."""
    by_place = [
        f"{path.relative_to(ROOT.parent)}:{node.lineno}"
        for path in MODULES + PAPERS
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and len(node.args) >= 9
    ]
    assert len(by_place) <= MANY_BY_PLACE, by_place


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its signature and docstring."""
    documented = ast.get_docstring(function) is not None
    body = function.body[1:] if documented else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_bodies_are_short():
    """A list of parameters may be long, as that of a command with many options; what is done with
    them may not."""
    long = [
        f"{name(path)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and body_lines(node) > BODY_LINES
    ]
    assert len(long) <= LONG_BODIES, long


def test_few_files_are_long():
    """A long file usually holds two ideas."""
    long = [name(path) for path in MODULES if len(path.read_text().splitlines()) > FILE_LINES]
    assert len(long) <= LONG_FILES, long


def test_nothing_is_packed_by_hand():
    """The formatter has the last word about every line."""
    packed = [name(path) for path in MODULES if "# fmt: " in path.read_text()]
    assert packed == []
