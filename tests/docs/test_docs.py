"""The documentation is true: code runs, commands succeed, output is what the page shows, links lead
somewhere.

The conventions of the pages are told in docs/pages.py; `python -m docs.pages` renews what they
show.
"""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from bruit.commands import cli
from docs import generate, network_pictures, picture, protocol_map, scale_picture
from docs.pages import FENCE, PAGES, ROOT, WIDTH, Block, outputs, renewed, shows


def check_shown(output: str, block: Block, where: str) -> None:
    """Every line of the block occurs in the output, in order."""
    missing = shows(output, block)
    if missing is not None:
        raise AssertionError(
            f"{where}: the page shows {missing!r}, but the real output is\n{output}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", WIDTH)
    for block, output in outputs(path):
        check_shown(output, block, f"{path.relative_to(ROOT)}:{block.line}")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{path.relative_to(ROOT)} links to {target}, which is not there"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            slugs += re.findall(r'^<a id="([^"]+)"></a>$', found.read_text(), re.MULTILINE)
            assert anchor in slugs, (
                f"{path.relative_to(ROOT)} links to {target}, but that page has no such heading"
            )


def test_every_page_can_be_reached() -> None:
    """From the README, by following links."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
            if "://" not in target and target.partition("#")[0]:
                waiting.append((page.parent / target.partition("#")[0]).resolve())
    alone = sorted(path.relative_to(ROOT).as_posix() for path in set(PAGES) - seen)
    assert not alone, f"no page links to {', '.join(alone)}"


def test_reference_is_generated() -> None:
    """The committed reference is what the generator writes; `python -m docs.generate` renews it."""
    for path, text in generate.pages().items():
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing; run python -m docs.generate"
        assert path.read_text() == text, (
            f"{path.relative_to(ROOT)} is out of date; run python -m docs.generate"
        )
    strays = set((ROOT / "docs" / "reference").rglob("*.md")) - set(generate.pages())
    by_hand = {
        path
        for path in strays
        if path.parent.name in ("notes", "errors") or path.stem == "glossary"
    }
    assert strays == by_hand, "reference pages are all generated, but for errors and glossary"


def test_reference_has_the_six_headings() -> None:
    for path in (ROOT / "docs" / "reference" / "algorithms").glob("*.md"):
        if path.stem != "index":
            titles = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
            assert titles == list(generate.HEADINGS), path.name


def test_picture_is_drawn_from_the_accountant() -> None:
    assert picture.PATH.read_text() == picture.draw(), "run python -m docs.picture"


@pytest.mark.slow
@pytest.mark.parametrize("name", network_pictures.PICTURES)
def test_pictures_of_networks_are_drawn_from_accountant_and_planner(name: str) -> None:
    kept = (network_pictures.FOLDER / name).read_text()
    assert kept == network_pictures.PICTURES[name](), "run python -m docs.network_pictures"


def test_picture_of_the_cost_model_is_drawn_from_what_was_measured() -> None:
    assert scale_picture.PATH.read_text() == scale_picture.draw(), (
        "run python -m docs.scale_picture"
    )


def test_the_map_of_protocols_is_drawn_and_ends_in_commands_of_the_page() -> None:
    assert protocol_map.PATH.read_text() == protocol_map.draw(), "run python -m docs.protocol_map"
    page = (ROOT / "docs" / "how-to" / "which-network.md").read_text()
    assert [case[-1] for case in protocol_map.CASES if case[-1] not in page] == []


def test_architecture_page_names_every_part() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    for part in (ROOT / "bruit").iterdir():
        name = part.name if part.suffix == ".py" else f"{part.name}/"
        if part.suffix in ("", ".py") and part.name != "__pycache__":
            assert name in page, f"the architecture page does not name {name}"


def test_the_readme_quotes_the_sweep() -> None:
    """The means in the README's prose are those of the sweep page, whose output is compared with
    the real one."""
    sweep = (ROOT / "docs" / "how-to" / "sweep.md").read_text()
    readme = (ROOT / "README.md").read_text()
    (means,) = re.findall(r"^│ mean (.*)$", sweep, re.MULTILINE)
    together, _, _, alone, central, *_ = re.findall(r"[\w.-]+", means)
    (spread,), (count,) = (
        re.findall(r"deviation ([\d.]+)", sweep),
        re.findall(r"(\d+) of 20 seeds", sweep),
    )
    for quoted in (together, alone, central, f"standard deviation {spread}", f"{count} of the 20"):
        assert quoted in readme, f"the README does not say {quoted}"


def test_the_readme_quotes_the_hospitals() -> None:
    """The first table of the README is of the page whose numbers `python -m benchmarks.silos heart`
    makes: at epsilon 1, one record replaced."""
    silos = " ".join((ROOT / "docs" / "explanation" / "silos.md").read_text().split())
    (together,) = re.findall(
        r"noise made together, one colluder [^|]*\| [^|]*\| \*\*([\d.]+) /", silos
    )
    pooled, elsewhere = (
        re.findall(rf"{words} ([\d.]+)", silos)[0]
        for words in ("one pooled model", "own patients and")
    )
    published, truth = re.findall(
        r"([\d.]+) at a nominal epsilon of 1 that is really up to ([\d.]+),", silos
    )[0]
    readme = (ROOT / "README.md").read_text().split("## The first ten minutes")[0]
    shown = re.findall(r"\| \**(0\.\d+)\** \|$", readme, re.MULTILINE)
    assert shown == [elsewhere, together, pooled, published]
    assert f"really up to {truth} " in readme


@pytest.mark.parametrize("name", ["what-was-wrong.md", "threat-models.md"])
def test_pages_about_defects_and_attacks_name_tests_that_exist(name: str) -> None:
    page = (ROOT / "docs" / "explanation" / name).read_text()
    files = list((ROOT / "tests").rglob("*.py"))
    known = {path.stem for path in files}
    for path in files:
        known.update(re.findall(r"\bdef (test_[a-z0-9_]+)\(", path.read_text()))
    named = set(re.findall(r"\btest_[a-z0-9_]+\b", page))  # or how the name begins
    assert len(named) > 20
    assert [one for one in named if not any(test.startswith(one) for test in known)] == []


def test_every_attack_on_real_peers_names_a_test_or_says_that_there_is_none() -> None:
    page = (ROOT / "docs" / "explanation" / "threat-models.md").read_text()
    (attacks,) = re.findall(r"## Real peers, attack by attack\n(.*)\n## Counted", page, re.DOTALL)
    lines = re.findall(r"^\| (.*) \|$", attacks, re.MULTILINE)
    shown = [line.rsplit(" | ", 1)[1] for line in lines]
    # a stranger, a neighbor, a relay, others at a relay, a new key, a book, an organizer, a disk
    assert shown.count("test") == 8
    assert len(shown) > 25
    assert [last for last in shown if not last.startswith(("test", "`test_", "none"))] == []
    known = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    named = {name for last in shown for name in re.findall(r"`(test_\w+)`", last)}
    assert [name for name in named if f"def {name}(" not in known and name not in files] == []


def examples() -> dict[str, list[str]]:
    """The modules with examples in their docstrings, by room."""
    rooms: dict[str, list[str]] = {}
    for path in sorted([*(ROOT / "bruit").rglob("*.py"), *(ROOT / "papers").rglob("*.py")]):
        if ">>>" in path.read_text():
            parts = path.relative_to(ROOT).with_suffix("").parts
            room = "papers" if parts[0] == "papers" else parts[1]
            rooms.setdefault(room, []).append(".".join(parts))
    return rooms


@pytest.mark.parametrize("room", examples())
def test_doctests_of_the_package(room: str) -> None:
    for name in examples()[room]:
        failed, _ = doctest.testmod(importlib.import_module(name))
        assert not failed, name


def test_there_are_examples_in_the_package() -> None:
    assert sum(map(len, examples().values())) > 10


def test_a_page_that_lies_is_caught() -> None:
    """The checker itself: a shown line that is not printed, or printed in another order, fails."""
    truth = "first 1\nsecond 2\n"
    check_shown(truth, Block("text", "", "first   1\n...\nsecond 2\n", 1, 0), "page:1")
    for lie in ("first 2\n", "second 2\nfirst 1\n"):
        with pytest.raises(AssertionError, match="the page shows"):
            check_shown(truth, Block("text", "", lie, 1, 0), "page:1")


def test_a_page_is_renewed() -> None:
    truth = "begin\nloss 0.25\nother words\nepsilon 3.1\n"
    block = Block("text", "", "loss 0.75\n...\nepsilon 2.9\n", 1, 0)
    assert renewed(block, truth) == "loss 0.25\n...\nepsilon 3.1\n"


def test_every_sharp_edge_says_how_sharp_it_is_and_is_listed_by_that() -> None:
    text = (ROOT / "docs" / "sharp-edges.md").read_text()
    top, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert sections.pop().startswith("What is not there yet\n")
    lists = {
        name.lower(): re.findall(r"^- \[(.*)\]\(#", part, re.MULTILINE)
        for name, part in re.findall(r"^\*\*([^*]+)\*\*: (.*?)(?=^\*\*|\Z)", top, re.M | re.DOTALL)
    }
    assert len(lists) == 3
    for section in sections:
        title, told = section.splitlines()[:2]
        (severity,) = re.findall(r"^\*Severity: (.*)\.\*$", told)
        assert [name for name, titles in lists.items() if title in titles] == [severity], title
    assert sum(map(len, lists.values())) == len(sections)
