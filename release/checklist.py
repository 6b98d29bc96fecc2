"""The checklist of a release, as a script: each step is done, and says what it found.

The archive of the last commit is what is built, so nothing that lies about can slip in. What the checklist makes
(wheel, sdist, bill of materials) is in `dist/` afterwards; nothing is uploaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from release import inventory, licences, sbom

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
SMALL = ("tests/unit/graphs", "tests/unit/test_release.py")
"""Tests that are run from the unpacked sdist, to see that it is whole; `make test` sees that it is right."""


class NotReady(Exception):
    """A step found what has to be mended first."""


@dataclass(frozen=True)
class Step:
    what: str
    check: Callable[[Path], str]


def called(*words: object, cwd: Path = ROOT) -> str:
    """What a command prints, without this checkout on its path; NotReady with its last lines."""
    away = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    made = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=away, capture_output=True, text=True
    )
    if made.returncode:
        last = "\n".join((made.stdout + made.stderr).strip().splitlines()[-15:])
        raise NotReady(f"{' '.join(map(str, words))} failed:\n{last}")
    return made.stdout


def version() -> str:
    """The one place where it stands."""
    found = re.search(r'^__version__ = "(.*)"$', (ROOT / "bruit/__init__.py").read_text(), re.M)
    if found is None:
        raise NotReady("bruit/__init__.py says no __version__")
    return found[1]


def one_version(_: Path) -> str:
    """CITATION.cff and the newest heading of CHANGELOG.md repeat it."""
    said = version()
    places = {
        "CITATION.cff": re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M),
        "CHANGELOG.md": re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M),
    }
    other = {
        name: found and found[1] for name, found in places.items() if not found or found[1] != said
    }
    if other:
        raise NotReady(f"bruit/__init__.py says {said}, but {other}")
    return said


def clean_tree(_: Path) -> str:
    if left := called("git", "status", "--porcelain").strip():
        raise NotReady(f"not committed:\n{left}")
    return called("git", "log", "-1", "--format=%h %s").strip()


def reference(_: Path) -> str:
    from docs import generate

    old = [path.name for path, text in generate.pages().items() if path.read_text() != text]
    if old:
        raise NotReady(f"run python -m docs.generate: {', '.join(old)}")
    return f"{len(generate.pages())} pages are what the code says"


def build(folder: Path) -> str:
    """The sdist from the archive of the last commit, the wheel from the sdist."""
    archive = folder / "archive.tar"
    called("git", "archive", "--format=tar", "-o", archive, "HEAD")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "archive", filter="data")
    called(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "archive")
    return ", ".join(f"{path.name} ({path.stat().st_size // 1000} kB)" for path in _built(folder))


def wheel(folder: Path) -> str:
    """All that the package folder holds is in it, and nothing else; its metadata say what pyproject.toml says."""
    path = next(path for path in _built(folder) if path.suffix == ".whl")
    with zipfile.ZipFile(path) as packed:
        held = set(packed.namelist())
        (about,) = (name for name in held if name.endswith(".dist-info/METADATA"))
        meta = message_from_bytes(packed.read(about))
    wanted = set(called("git", "ls-files", "bruit").split())
    inside = {name for name in held if ".dist-info/" not in name}
    if wanted != inside:
        raise NotReady(f"missing: {sorted(wanted - inside)}; too much: {sorted(inside - wanted)}")
    if not path.name.endswith("-py3-none-any.whl"):
        raise NotReady(f"{path.name} is no pure Python wheel")
    classes = meta.get_all("Classifier") or []
    absent = [one for one in PYTHONS if f"Programming Language :: Python :: {one}" not in classes]
    if absent or meta["Version"] != version() or meta["Requires-Python"] != ">=3.11":
        raise NotReady(f"metadata: {meta['Version']}, {meta['Requires-Python']}, no {absent}")
    return f"{len(inside)} files, Python {', '.join(PYTHONS)}, {meta['License-Expression']}"


def clean_environments(folder: Path) -> str:
    """For each Python that is here, a new environment with the wheel and what it needs, and nothing else: the first
    command of the README runs. A Python that is not here is told."""
    path = next(path for path in _built(folder) if path.suffix == ".whl")
    said = []
    for wanted in PYTHONS:
        program = interpreter(wanted)
        if program is None:
            said.append(f"NOT TRIED: Python {wanted}, which is not on the path")
            continue
        called(program, "-m", "venv", folder / wanted)
        programs = folder / wanted / "bin"
        called(programs / "python", "-m", "pip", "install", "--quiet", path, cwd=folder)
        told = called(programs / "bruit", "--version", cwd=folder).strip()
        words = ("run", "ten-clinics", "--json", "--out", f"{wanted}.run")
        ran = json.loads(called(programs / "bruit", *words, cwd=folder))
        said.append(f"{told}; ten-clinics: accuracy {ran['metrics']['accuracy']:.4f}")
    return "\n    ".join(said)


def interpreter(wanted: str) -> str | None:
    """This Python if it is the one wanted, or one of this version on the path; None if there is none that answers."""
    if wanted == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    try:
        told = called(f"python{wanted}", "--version")
    except (NotReady, OSError):
        return None
    return f"python{wanted}" if told.startswith(f"Python {wanted}.") else None


def sdist(folder: Path) -> str:
    """What is committed is in it, and tests run from it."""
    path = next(path for path in _built(folder) if path.suffix == ".gz")
    with tarfile.open(path) as packed:
        packed.extractall(folder / "sdist", filter="data")
    (root,) = (folder / "sdist").iterdir()
    held = {one.relative_to(root).as_posix() for one in root.rglob("*") if one.is_file()}
    absent = set(called("git", "ls-files").split()) - held - {".gitignore"}
    if absent:
        raise NotReady(f"the sdist lacks {sorted(absent)}")
    ran = called(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *SMALL, cwd=root)
    return f"{len(held)} files; {ran.strip().splitlines()[-1]}"


def bill(folder: Path) -> str:
    """Licences that somebody has looked at, and the bill of materials beside the wheel."""
    found = inventory.inventory()
    if absent := inventory.missing():
        raise NotReady(f"not installed here: {', '.join(absent)}")
    unknown = {one.name: licences.strange(one) for one in found if licences.strange(one)}
    if unknown:
        raise NotReady(f"licences to look at: {unknown}")
    path = folder / "dist" / f"bruit-{version()}.cdx.json"
    path.write_text(json.dumps(sbom.bill(found), indent=1) + "\n")
    return f"{len(found)} components in {path.name}, all licences looked at"


def documentation(folder: Path) -> str:
    """The site is built strictly; its copy for machines without a network lies beside the wheel."""
    words = ("-m", "website", "--into", folder / "site", "--zip", folder / "dist")
    return called(sys.executable, *words).strip().splitlines()[-1].rpartition("/")[2]


def _built(folder: Path) -> list[Path]:
    return sorted([*(folder / "dist").glob("*.whl"), *(folder / "dist").glob("*.tar.gz")])


STEPS = (
    Step("the version is said once, and repeated rightly", one_version),
    Step("all is committed", clean_tree),
    Step("the reference is what the code says", reference),
    Step("sdist and wheel are built", build),
    Step("the wheel holds the package, and its metadata are right", wheel),
    Step("it runs in environments with only the wheel", clean_environments),
    Step("the sdist holds everything, and its tests run", sdist),
    Step("licences and bill of materials", bill),
    Step("the documentation is built, and packed for `bruit docs`", documentation),
)
"""In order: later ones read what earlier ones made."""
BY_HAND = (
    "make test has passed on this commit",
    "CHANGELOG.md says what changed for users, and what they have to do",
    "the newest version of a protocol between peers still speaks with the one before (docs/how-to/operate-a-peer.md)",
    "git tag vVERSION; upload dist/; make site on the tag, beside the older versions",
)


def needed() -> list[str]:
    """Dependencies as pyproject.toml names them, extras of users included."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [
        about["dependencies"],
        *(about["optional-dependencies"][name] for name in inventory.EXTRAS),
    ]
    return sorted({re.split(r"[<>=\[]", text)[0] for texts in lists for text in texts})
