"""Everything that an installation of bruit brings with it, read from the metadata of what is installed here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

EXTRAS = ("attack", "export", "parquet", "ray", "torch", "ui", "verify")
"""What users may ask for; `dev` is for those who work on bruit."""
UNTOLD = "not told"


@dataclass(frozen=True)
class Component:
    """One installed distribution."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]  # names of components


def inventory(extras: Sequence[str] = EXTRAS) -> list[Component]:
    """bruit, and all it needs with these extras, by name. What an extra would bring and is not installed is left out;
    of what bruit itself needs nothing may be missing."""
    found: dict[str, Component] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [("bruit", tuple(extras))]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        needs = list(_requirements(package, wanted))
        waiting += [(_plain(need.name), tuple(sorted(need.extras))) for need in needs]
        known = found[name].needs if name in found else ()
        names = {_plain(need.name) for need in needs} | set(known)
        found[name] = Component(name, package.version, licence(package), tuple(sorted(names)))
    return [
        Component(one.name, one.version, one.licence, tuple(n for n in one.needs if n in found))
        for one in sorted(found.values(), key=lambda one: one.name)
    ]


def missing() -> list[str]:
    """What bruit needs without any extra, and is not installed."""
    return [
        need.name for need in _requirements(distribution("bruit"), ()) if not _installed(need.name)
    ]


def licence(package: Distribution) -> str:
    """As the package says it: an SPDX expression, else its classifiers, else the first line of its field."""
    about = package.metadata
    if said := about.get_all("License-Expression"):
        return str(said[0])
    classified = [
        text.rpartition("::")[2].strip()
        for text in about.get_all("Classifier") or []
        if text.startswith("License ::") and not text.endswith("OSI Approved")
    ]
    if classified:
        return " OR ".join(classified)
    lines = "".join(about.get_all("License") or []).strip().splitlines()
    return lines[0][:80] if lines else UNTOLD


def _requirements(package: Distribution, extras: Sequence[str]) -> Iterator[Requirement]:
    for text in package.requires or []:
        need = Requirement(text)
        if need.marker is None or any(
            need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield need


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
