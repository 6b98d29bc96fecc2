"""A bill of materials in the CycloneDX format, version 1.6: `python -m release.sbom > bruit.cdx.json`.

What is installed here, with versions, licences, and who needs whom; `--extras ui,verify` limits it to these extras. It
holds no time and no serial number, so that the same environment gives the same file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

from release.inventory import EXTRAS, UNTOLD, Component, inventory

SPDX = re.compile(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*")


def bill(components: Sequence[Component]) -> dict[str, Any]:
    """The document; bruit is what it is about, the others are its components."""
    known = {one.name: one for one in components}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _entry(known["bruit"], "application")},
        "components": [_entry(one, "library") for one in components if one.name != "bruit"],
        "dependencies": [
            {"ref": _address(one), "dependsOn": [_address(known[name]) for name in one.needs]}
            for one in components
        ],
    }


def _address(component: Component) -> str:
    """Its package URL; + of local versions is written as the format wants it."""
    return f"pkg:pypi/{component.name}@{component.version.replace('+', '%2B')}"


def _entry(component: Component, kind: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": kind,
        "bom-ref": _address(component),
        "name": component.name,
        "version": component.version,
        "purl": _address(component),
    }
    if component.licence != UNTOLD:
        spdx = SPDX.fullmatch(component.licence) and component.licence != "UNKNOWN"
        entry["licenses"] = [
            {"expression": component.licence} if spdx else {"license": {"name": component.licence}}
        ]
    return entry


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m release.sbom", description=__doc__)
    asked.add_argument("--extras", default=",".join(EXTRAS), help="separated by commas")
    extras = [name for name in asked.parse_args().extras.split(",") if name]
    print(json.dumps(bill(inventory(extras)), indent=1))


if __name__ == "__main__":
    main()
