"""Arrows point down only; randomness has an address; nothing is pickled; importing bruit is light."""

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

# From top to bottom: a module imports its own part and lower lines only. The package's own __init__ stands above all.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("attacks_cli", "audit_cli", "dashboard_cli", "gopa_cli", "ldp_cli", "model_cli", "peers_cli", "planning_cli",
     "run_cli", "statistics_cli", "ui_cli"),
    ("average_cli", "lattice_cli", "linkage_cli", "membership_cli", "tables_cli", "two_party_cli"),
    ("ui",),
    ("help_screen", "sites", "sklearn", "stopping", "terminal"),
    ("asking", "audits", "dashboard", "listing", "personal", "planning", "sweep", "testing"),
    ("repeating", "replaying", "report", "run_places"),
    ("build", "settings"),
    ("entrance", "task_files"),
    ("communication", "config", "expected", "experiment"),
    ("attacks",),
    ("result",),
    ("model", "noise_keys"),
    ("fitted",),
    ("engines", "two_party"),
    ("network",),
    ("protocols",),
    ("algorithms",),
    ("fixed_points", "local_dp", "verification"),
    ("gopa",),
    ("mechanisms",),
    ("privacy",),
    ("discrete_normal",),
    ("randomness",),
    ("kernels",),
    ("graphs", "tasks", "trace"),
    ("statistics",),
    ("digests", "domains", "exact_coins", "notebook_table", "verdict", "whole_files"),
    ("arrays", "counted"),
    ("errors",),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Random graphs, data splits and values of examples are drawn by numpy from explicit seeds; all else has an address.
MAY_DRAW = {"graphs/random_families.py", "graphs/sequence.py", "tasks/split.py", "tasks/mean.py",
            "tasks/preparation.py"}  # fmt: skip
UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
HEAVY = ("numba", "llvmlite", "dp_accounting", "sklearn", "networkx", "typer")


def part_of(module: str) -> str:
    """bruit.privacy.events belongs to privacy."""
    return module.split(".")[1] if "." in module else ""


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


def upward(path: Path) -> list[str]:
    here = part_of(".".join(("bruit", *path.relative_to(ROOT).with_suffix("").parts)))
    found = []
    for line, module in imports(path):
        if module.split(".")[0] != "bruit":
            continue
        there = part_of(module)
        assert there in RANK, f"{name(path)}:{line} imports {module}, which has no layer: give it one in LAYERS"
        if there != here and RANK[there] <= RANK[here]:
            found.append(f"{name(path)}:{line} ({here}) imports {module} ({there})")
    return found


def test_arrows_point_down():
    for path in MODULES:
        if name(path) != "__init__.py":
            part = path.relative_to(ROOT).parts[0].removesuffix(".py")
            assert part in RANK, f"bruit.{part} has no layer: give it one in LAYERS"
            assert upward(path) == []


def test_the_check_sees_an_upward_import(tmp_path, monkeypatch):
    module = tmp_path / "graphs" / "bad.py"
    module.parent.mkdir()
    module.write_text("def f():\n    from bruit.engines import bulk\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert upward(module) == ["graphs/bad.py:2 (graphs) imports bruit.engines.bulk (engines)"]


def test_every_draw_has_an_address_or_a_place():
    for path in MODULES:
        check_draws(path)


def check_draws(path):
    tree = parsed(path)
    drawn = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "random"
             and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")]  # fmt: skip
    drawn += [line for line, module in imports(path) if module.split(".")[0] == "random"
              or module.startswith("numpy.random")]  # fmt: skip
    assert not drawn or name(path) in MAY_DRAW, f"{name(path)} draws at lines {drawn}"
    hidden = [line for line in path.read_text().splitlines() if "random.seed(" in line or "RandomState" in line]
    assert hidden == [], name(path)


def test_nothing_is_pickled():
    for path in MODULES:
        check_pickles(path)


def check_pickles(path):
    assert [module for _, module in imports(path) if module.split(".")[0] in UNSAFE] == [], name(path)
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
        assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed), name(path)
        if ast.unparse(node.func) in ("np.load", "numpy.load"):
            assert allowed, f"{name(path)}:{node.lineno} loads without saying allow_pickle=False"


@pytest.mark.parametrize("module", ["bruit", "bruit.protocols.peer"])
def test_importing_is_light(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert said.stdout.strip() == "[]"


def test_a_small_run_and_its_account_stay_light():
    code = (
        "import sys, bruit as br, numpy as np\n"
        "noise = br.Gaussian(clip=1.0, sigma=1.0)\n"
        "run = br.run(br.Averaging(), 'ring:6', br.tasks.Mean(np.zeros((6, 1))), privacy=noise, steps=3)\n"
        "run.epsilon()\n"
        "print([name for name in ('numba', 'dp_accounting', 'sklearn', 'networkx') if name in sys.modules])\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert said.stdout.strip() == "[]"
