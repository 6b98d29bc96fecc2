"""The built wheel starts on every Python it allows, with the newest and with the oldest packages it
allows.

Interpreters are looked for on the path and where pyenv keeps them; what cannot be had is skipped
with a reason.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("bruit", "pyproject.toml", "README.md", "LICENSE")
EXTRAS = ("fastapi", "flint", "coincurve", "matplotlib", "plotly", "torch", "uvicorn")
IMPORTS = """
import importlib, pkgutil, bruit
for module in pkgutil.walk_packages(bruit.__path__, "bruit."):
    if module.name != "bruit.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in {extras!r}:
                raise
print(bruit.__file__)
"""

PARTS = """
import bruit as br
from bruit.peers.engine import Network
from bruit.graphs import ring
from bruit.privacy.events import DiscreteGaussianEvent
from bruit.privacy.ahead.gopa_binomial import gopa_binomial_guarantee
run = br.run(br.Averaging(), ring(4), br.tasks.Mean.uniform(4), privacy=br.Gaussian(clip=1.0, sigma=2.0), steps=2,
             engine=Network(), evaluate_every=0)
assert run.trace.missed == 0, "peers met nobody over TLS 1.3"
DiscreteGaussianEvent(2.0).to_dp_accounting()
gopa_binomial_guarantee(ring(4), 1, 6, 4.0, 0, 2)
"""
"""What leans on one package: TLS on grpcio, composition on dp-accounting, distances in a graph on
scipy."""


def called(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command without this checkout on its path."""
    away = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=away,
        capture_output=True,
        text=True,
        timeout=600,
    )


def interpreter(version: str) -> Path | None:
    """A Python of that version: this one, one on the path, or one of pyenv's."""
    places = [
        Path(sys.executable),
        *(Path(found) for found in [shutil.which(f"python{version}")] if found),
    ]
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places += sorted(home.glob(f"{version}.*/bin/python"), reverse=True)
    for place in places:
        ask = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        try:
            if called(place, "-c", ask, cwd=ROOT).stdout.strip() == version:
                return place
        except OSError:
            continue
    return None


def oldest() -> str:
    """The lower bounds of the project and of its extras, as constraints."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [
        about["dependencies"],
        *(about["optional-dependencies"][name] for name in ("ui", "attack", "verify")),
    ]
    bounds = [re.fullmatch(r"([\w.-]+)>=([\d.]+)", text) for texts in lists for text in texts]
    assert all(bounds), "a dependency without a plain lower bound"
    return "".join(f"{bound[1]}=={bound[2]}\n" for bound in bounds if bound)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that this folder stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, folder / name)
    pip = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    )
    made = called(*pip, "-w", folder / "dist", folder, cwd=folder)
    if made.returncode and "No matching distribution found for setuptools" in made.stderr:
        pytest.skip("no package index can be reached")
    assert made.returncode == 0, made.stderr
    return next((folder / "dist").glob("*.whl"))


def installed(
    wheel: Path, version: str, folder: Path, extras: str = "", constraints: str = ""
) -> Path:
    """The folder of programs of a new environment with the wheel in it."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on the path or below pyenv's versions")
    called(python, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    (folder / "constraints.txt").write_text(constraints)
    made = called(
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "env",
        "install",
        "--quiet",
        "--no-compile",
        "-c",
        folder / "constraints.txt",
        f"{wheel}{extras}",
        cwd=folder,
    )
    assert made.returncode == 0, made.stderr
    return folder / "env" / "bin"


def check_it_starts(programs: Path, folder: Path, missing: tuple[str, ...]) -> None:
    """Every module is imported, and the first command of the README runs."""
    found = called(programs / "python", "-c", IMPORTS.format(extras=missing), cwd=folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(str(folder)), "the installed package was meant"
    parts = called(programs / "python", "-c", PARTS, cwd=folder)
    assert parts.returncode == 0, parts.stderr
    version = called(programs / "bruit", "--version", cwd=folder)
    assert re.match(r"bruit \d+\.\d+\.\d+, Python 3\.\d+\.\d+", version.stdout), (
        version.stdout + version.stderr
    )
    run = called(programs / "bruit", "run", "breast-cancer", "--json", cwd=folder)
    assert run.returncode == 0, run.stderr
    learned = json.loads(run.stdout)
    assert learned["metrics"]["accuracy"] > 0.85
    assert learned["privacy"]["status"] == "proven"
    assert learned["privacy"]["local"]["epsilon"] <= 8.0
    shown = called(programs / "bruit", "--help", cwd=folder)
    assert "bruit run ten-clinics" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_wheel_starts_with_the_newest_packages(wheel, tmp_path, version):
    check_it_starts(installed(wheel, version, tmp_path), tmp_path, EXTRAS)


@pytest.mark.slow
def test_the_wheel_starts_with_the_oldest_packages_it_allows(wheel, tmp_path):
    programs = installed(wheel, "3.11", tmp_path, "[ui,attack,verify]", oldest())
    check_it_starts(programs, tmp_path, ("torch",))
    listed = called(
        programs / "python",
        "-c",
        "import numpy, scipy, typer; print(numpy.__version__)",
        cwd=tmp_path,
    )
    assert listed.stdout.startswith("1.26."), "the oldest numpy was meant"
