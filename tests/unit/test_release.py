"""A release: one version, licences that somebody has looked at, a bill of materials, and the pages that go with it."""

import json
import re
import sys

import pytest

import bruit
from release import checklist, inventory, licences, sbom
from release.inventory import Component


def test_the_version_is_said_once_and_repeated_rightly(tmp_path):
    assert checklist.one_version(tmp_path) == bruit.__version__


def test_another_version_in_the_citation_is_found(tmp_path, monkeypatch):
    for name in ("CHANGELOG.md", "CITATION.cff", "bruit/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((checklist.ROOT / name).read_text())
    monkeypatch.setattr(checklist, "ROOT", tmp_path)
    assert checklist.one_version(tmp_path)
    (tmp_path / "CITATION.cff").write_text("version: 0.0.7\n")
    with pytest.raises(checklist.NotReady, match=r"0\.0\.7"):
        checklist.one_version(tmp_path)


def test_every_dependency_has_its_reason_and_its_licence_on_the_page():
    page = (checklist.ROOT / "docs/explanation/dependencies.md").read_text()
    (listed,) = re.findall(r"## Licences\n(.*)", page, re.DOTALL)
    rows = dict(re.findall(r"^\| ([\w-]+) \| ([^|]+) \|$", listed, re.MULTILINE))
    rows.pop("package")
    assert sorted(rows) == checklist.needed()
    assert [
        name for name, said in rows.items() if licences.strange(Component(name, "1", said, ()))
    ] == []


def test_the_inventory_follows_what_each_package_needs():
    found = {one.name: one for one in inventory.inventory(())}
    assert {"bruit", "numpy", "numba", "llvmlite", "cffi"} <= set(found)
    assert "llvmlite" in found["numba"].needs
    assert "pytest" not in found
    assert "fastapi" not in found
    assert inventory.missing() == []


@pytest.mark.parametrize(
    ("said", "new"),
    [
        ("MIT OR Apache-2.0", []),
        ("Apache-2.0 WITH LLVM-exception", []),
        ("MIT AND LGPL-3.0-or-later", []),
        ("(MIT OR GPL-3.0-only)", ["GPL-3.0-only"]),
        (inventory.UNTOLD, [inventory.UNTOLD]),
    ],
)
def test_a_licence_that_nobody_has_looked_at_is_named(said, new):
    assert licences.strange(Component("some", "1", said, ())) == new


def test_the_bill_names_every_component_once_and_who_needs_whom():
    parts = [
        Component("bruit", "1.0", "Apache-2.0", ("numpy", "torch")),
        Component("numpy", "2.4", "BSD-3-Clause AND 0BSD", ()),
        Component("torch", "2.13.0+cpu", inventory.UNTOLD, ("numpy",)),
    ]
    made = sbom.bill(parts)
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/bruit@1.0"
    assert [one["name"] for one in made["components"]] == ["numpy", "torch"]
    assert made["components"][0]["licenses"] == [{"expression": "BSD-3-Clause AND 0BSD"}]
    assert "licenses" not in made["components"][1]
    needs = {one["ref"]: one["dependsOn"] for one in made["dependencies"]}
    assert needs["pkg:pypi/torch@2.13.0%2Bcpu"] == ["pkg:pypi/numpy@2.4"]
    refs = {one["bom-ref"] for one in made["components"]} | {"pkg:pypi/bruit@1.0"}
    assert set(needs) == refs
    assert json.loads(json.dumps(made)) == made


def test_a_python_that_is_not_here_or_does_not_answer_is_not_taken(tmp_path, monkeypatch):
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert checklist.interpreter(here) == sys.executable
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checklist.interpreter("3.99") is None
    for wanted, answer in (("3.97", "exit 127"), ("3.98", "echo Python 3.9.1")):
        (tmp_path / f"python{wanted}").write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / f"python{wanted}").chmod(0o755)
        assert checklist.interpreter(wanted) is None
    (tmp_path / "python3.96").write_text("#!/bin/sh\necho Python 3.96.0\n")
    (tmp_path / "python3.96").chmod(0o755)
    assert checklist.interpreter("3.96") == "python3.96"
