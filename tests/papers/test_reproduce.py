"""`bruit reproduce`: every figure of the catalog in its short form, and how the command behaves."""

import dataclasses
import json
import pickle
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from papers.reproduce import catalog, gallery, shelf, sources, work
from papers.reproduce.figure import Check, Figure, Finding

pytest.importorskip("matplotlib")
FIGURES = catalog.figures()


def drawn(figure):
    figure.subplots().plot([0, 1], [0, 1])


def made(id="th-4.1", holds=True, refuted="", **more):
    """A figure that takes no time."""

    def repeat(quick):
        return Finding(
            header=("a", "b"),
            rows=[(1, 0.5 if quick else 0.25)],
            checks=(Check("a is b", holds, refuted),),
            draw=drawn,
        )

    given = {
        "id": id,
        "title": "A figure",
        "number": "Figure 0",
        "page": "p. 0",
        "repeat": repeat,
        "criterion": "a is b",
        "cpu_s": 0.0,
    }
    return Figure(**given | more)


@pytest.fixture
def known(monkeypatch):
    """A catalog of made figures."""

    def put(*figures):
        found = {figure.id: figure for figure in figures}
        for module in (catalog, work):
            monkeypatch.setattr(module, "figures", lambda: found)
        return list(found.values())

    return put


@pytest.mark.slow
@pytest.mark.parametrize("id", FIGURES)
def test_the_short_form_of_every_figure(id, tmp_path):
    """A table, two pictures, and every check as expected; full sizes are `bruit reproduce --all`."""
    figure = FIGURES[id]
    if figure.missing() and not figure.instead:
        pytest.skip(f"needs {figure.missing()} in the data folder (BRUIT_DATA)")
    if figure.extra:
        pytest.importorskip(figure.extra)
    outcome = shelf.repeat(figure, tmp_path, quick=True)
    made_files = sorted(file.name for file in outcome.folder.iterdir())
    assert made_files == ["found.json", "picture.png", "picture.svg", "table.csv"]
    assert (outcome.folder / "picture.png").read_bytes()[:4] == b"\x89PNG"
    rows = (outcome.folder / "table.csv").read_text().splitlines()
    assert len(rows) == 1 + len(outcome.plain["rows"]) > 1
    assert outcome.good, outcome.plain["checks"]


def test_entries_say_what_a_reader_asks():
    for id, figure in FIGURES.items():
        assert id == figure.id
        assert figure.criterion
        assert figure.page
        assert figure.number
        assert figure.document
        assert figure.cpu_s > 0
        assert not figure.instead or figure.data
    assert sum(figure.cpu_s for figure in FIGURES.values()) < 60 * 60


def test_figures_are_chosen_by_id_chapter_and_document():
    assert [one.id for one in catalog.chosen(["th-A.1", "th-4.1"])] == ["th-4.1", "th-A.1"]
    chapter = catalog.chosen(["chapter-4"])
    assert {one.id for one in chapter} >= {"th-4.1", "th-4.2", "th-t4.1"}
    assert all(any(id.startswith(("th-4", "th-t4")) for id in one.ids) for one in chapter)
    assert len(catalog.chosen([], everything=True)) == len(FIGURES)
    with pytest.raises(ConfigError, match=r"no figure has the id 'th-4.9'; near it: th-4.1"):
        catalog.chosen(["th-4.9"])


def test_a_figure_is_found_by_what_else_it_shows():
    assert [one.id for one in catalog.chosen(["th-D.2"])] == ["th-7.3a"]
    assert "hdr-2.1" in {one.id for one in catalog.chosen(["rep"])}  # its Figures 2(c) and 3
    assert "th-7.2" in {one.id for one in catalog.chosen(["hdr"])}
    with pytest.raises(ConfigError, match=r"Figure 3.2\) has no numbers to repeat: draws the def"):
        catalog.chosen(["th-3.2"])
    shown = catalog.illustrations()
    assert not set(shown) & {id for figure in FIGURES.values() for id in figure.ids}


def test_a_figure_is_made_again_when_what_it_reaches_changed(tmp_path, monkeypatch):
    folder = tmp_path / "papers"
    for name, text in {
        "catalog/one.py": "from papers.figures import deep\ndef repeat(quick): ...\n",
        "figures/deep.py": "from papers.printed.formula import f\n",
        "printed/formula.py": "f = 1\n",
        "printed/other.py": "g = 1\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    first = folder / "catalog/one.py"
    reached = {file.name for file in sources.reached(first)}
    assert reached == {"one.py", "deep.py", "formula.py"}
    assert sources.made_by(FIGURES["th-4.1"].repeat) != sources.made_by(FIGURES["th-7.1a"].repeat)


def test_numbers_are_in_the_order_of_numbers():
    ids = list(FIGURES)
    assert ids.index("th-4.1") < ids.index("th-4.2") < ids.index("th-6.1a") < ids.index("th-7.1a")
    assert ids.index("hdr-2.1") < ids.index("th-4.1")


@pytest.mark.parametrize(
    ("holds", "refuted", "verdict", "good"),
    [
        (True, "", "as the source says", True),
        (False, "", "missed", False),
        (False, "because", "refuted", True),
        (True, "because", "missed", False),  # a refutation that was not seen is no success
    ],
)
def test_verdicts(holds, refuted, verdict, good, tmp_path):
    outcome = shelf.repeat(made(holds=holds, refuted=refuted), tmp_path, quick=False)
    assert (outcome.verdict, outcome.good) == (verdict, good)
    assert (outcome.folder / "table.csv").read_text() == "a,b\n1,0.25\n"


def test_what_is_there_is_kept_unless_it_was_asked_otherwise(known, tmp_path):
    figures = known(made())
    first, again = (work.work(figures, tmp_path)[0] for _ in range(2))
    assert (first.kept, again.kept) == (False, True)
    assert not work.work(figures, tmp_path, quick=True)[0].kept
    assert not work.work(figures, tmp_path)[0].kept  # the quick one is in its place
    assert not work.work(figures, tmp_path, anew=True)[0].kept
    (tmp_path / "th-4.1" / "found.json").write_text("{")
    assert not work.work(figures, tmp_path)[0].kept


def test_one_that_fails_stops_no_other_and_is_tried_again(known, tmp_path):
    def broken(quick):
        raise ZeroDivisionError("of nothing")

    figures = known(made(repeat=broken), made("th-4.2"))
    outcomes = work.work(figures, tmp_path)
    assert [one.verdict for one in outcomes] == ["failed", "as the source says"]
    assert "ZeroDivisionError at test_reproduce.py" in outcomes[0].plain["why"]
    assert [one.kept for one in work.work(figures, tmp_path)] == [False, True]


def test_a_figure_made_on_a_machine_that_was_only_sent_the_sources_is_kept_here(
    known, tmp_path, monkeypatch
):
    """It knows no release of bruit; and its files were once left there."""
    (figure,) = known(made())
    stamp = sources.Stamp.of(figure.repeat)
    monkeypatch.setattr(sources, "version", unknown_there)
    there = pickle.loads(pickle.dumps(work._one(("th-4.1", stamp), quick=False)))
    monkeypatch.undo()
    assert shelf.kept(tmp_path, figure, quick=False) is None
    here = shelf.brought(there.outcome, tmp_path, there.files)
    assert shelf.kept(tmp_path, figure, quick=False) == dataclasses.replace(here, kept=True)
    assert here.plain == shelf.repeat(figure, tmp_path / "other", quick=False).plain
    for file in (tmp_path / "other" / "th-4.1").iterdir():
        if file.suffix != ".svg":  # which has names of its own
            assert (tmp_path / "th-4.1" / file.name).read_bytes() == file.read_bytes()


def unknown_there(name):
    if name == "bruit":
        raise PackageNotFoundError(name)
    return version(name)


def test_a_picture_without_anything_in_it_is_a_failure(known, tmp_path):
    finding = made().repeat(False)
    empty = Finding(
        header=finding.header, rows=finding.rows, checks=finding.checks, draw=lambda _: None
    )
    (outcome,) = work.work(known(made(repeat=lambda _: empty)), tmp_path)
    assert outcome.verdict == "failed"
    assert "draws nothing" in outcome.plain["why"]


def test_data_that_are_not_here_skip_a_figure_or_are_replaced(known, tmp_path):
    one = made(data=("no_such_set",))
    other = made("th-4.2", data=("no_such_set",), instead="made-up rows")
    skipped, replaced = work.work(known(one, other), tmp_path)
    assert skipped.verdict == "skipped"
    assert "needs no_such_set in the data folder (BRUIT_DATA)" in skipped.plain["why"]
    assert replaced.plain["instead_of_data"] == "made-up rows"


def test_nothing_left_to_compute_is_no_success(known, tmp_path):
    """Where rows are left out for want of data, and all of them are."""
    nothing = dataclasses.replace(made().repeat(False), rows=[])
    one = made(repeat=lambda _: nothing, data=("no_such_set",), instead="left out")
    (outcome,) = work.work(known(one), tmp_path)
    assert outcome.verdict == "skipped"
    assert "needs one of no_such_set" in outcome.plain["why"]


def test_data_that_came_later_are_used(known, tmp_path, monkeypatch):
    """What was made with a stand-in is made again once the data are there."""
    figures = known(made(data=("some_set",), instead="made-up rows"))
    assert work.work(figures, tmp_path)[0].plain["instead_of_data"] == "made-up rows"
    assert work.work(figures, tmp_path)[0].kept
    (tmp_path / "data" / "some_set").mkdir(parents=True)
    monkeypatch.setenv("BRUIT_DATA", str(tmp_path / "data"))
    (later,) = work.work(figures, tmp_path)
    assert (later.kept, later.plain["instead_of_data"]) == (False, "")


def test_without_its_extra_a_figure_is_skipped_and_says_what_to_install(known, tmp_path):
    (outcome,) = work.work(known(made(extra="no_such_library")), tmp_path)
    assert outcome.verdict == "skipped"
    assert "pip install 'bruit[no_such_library]'" in outcome.plain["why"]
    listed = CliRunner().invoke(app, ["reproduce", "--list"]).output
    assert "skipped: needs no_such_library" in listed


def call(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_the_command_tells_the_table_the_checks_and_where_things_are(tmp_path):
    said = call("th-4.1", "--out", tmp_path)
    assert said.exit_code == 0
    assert "Two attackers, three iterations" in said.output
    assert "holds: peers 3 and 4 alone stay hidden" in said.output
    plain = json.loads((tmp_path / "th-4.1" / "found.json").read_text())
    assert plain["verdict"] == "as the source says"
    again = call("th-4.1", "--out", tmp_path, "--json")
    assert json.loads(again.stdout)[0]["kept"] is True


def test_the_command_ends_with_1_if_a_criterion_was_missed(known, tmp_path):
    known(made(holds=False))
    said = call("th-4.1", "--out", tmp_path)
    assert said.exit_code == 1
    assert "missed: a is b" in said.output


def test_the_list_names_everything_and_what_is_missing():
    said = call("--list")
    assert said.exit_code == 0
    assert all(id in said.output for id in FIGURES)
    assert "minutes of CPU" in said.output
    plain = json.loads(call("--list", "chapter-4", "--json").stdout)
    assert {"id", "source", "number", "page", "criterion", "cpu_s", "missing"} <= set(plain[0])


def test_nothing_asked_and_odd_folders_are_refused(tmp_path):
    said = call()
    assert isinstance(said.exception, ConfigError)
    assert "--list names them all" in str(said.exception)
    file = tmp_path / "file"
    file.write_text("")
    both = call("--all", "chapter-A", "--out", file)  # a command that goes on ends there
    assert "leave --all out" in str(both.exception)
    for place in (file, file / "below"):
        assert f"cannot write into {place}" in str(call("th-4.1", "--out", place).exception)


def test_an_installed_package_without_the_repository_says_so(tmp_path):
    code = (
        "import bruit, sys; from pathlib import Path; bruit.__file__ ="
        " '/nowhere/bruit/__init__.py'\nfrom bruit.commands.reproduce import reproduce\nfrom"
        " bruit.errors import ConfigError\ntry: reproduce(listed=True)\nexcept ConfigError as"
        " error: print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "call this from the root of a clone" in said.stdout


def test_the_gallery_is_written_from_results_alone(known, monkeypatch, tmp_path):
    """A page and a small picture a figure; no picture of records that are not ours; a failed figure
    publishes nothing, and what was there stays."""
    pytest.importorskip("PIL.Image")
    entries = known(
        made("th-4.1"),
        made("hdr-3.4", holds=False, refuted="a is not b"),
        made("th-4.4b", shows_records=True),
    )
    monkeypatch.setattr(gallery, "figures", catalog.figures)
    outcomes = [shelf.repeat(figure, tmp_path / "out", quick=False) for figure in entries]
    pages = tmp_path / "gallery"
    (pages / "thesis-9").mkdir(parents=True)
    (pages / "thesis-9" / "th-9.9.md").write_text("of a figure that is no more")
    first = gallery.publish(outcomes, list(catalog.illustrations().values()), pages)
    written = {str(file.relative_to(pages)) for file in pages.rglob("*") if file.is_file()}
    assert written == {
        "index.md",
        "made.json",
        "thesis-4/th-4.1.md",
        "thesis-4/th-4.1.png",
        "habilitation/hdr-3.4.md",
        "habilitation/hdr-3.4.png",
        "thesis-4/th-4.4b.md",
    }
    assert "1 in part refuted, 2 as the source says" in first.read_text() or (
        "2 as the source says, 1 in part refuted" in first.read_text()
    )
    assert "a is not b" in (pages / "habilitation" / "hdr-3.4.md").read_text().lower()
    assert "stays where it was made" in (pages / "thesis-4" / "th-4.4b.md").read_text()
    for verdict in ("failed", "skipped"):
        plain = {**outcomes[0].plain, "verdict": verdict, "why": "no data"}
        bad = dataclasses.replace(outcomes[0], verdict=verdict, plain=plain)
        with pytest.raises(ConfigError, match=rf"th-4\.1 {verdict}, so nothing is published: no"):
            gallery.publish([bad], [], pages)
    assert first.exists()


def test_one_figure_is_published_alone(known, monkeypatch, tmp_path):
    """The pages of all others, and their rows on the first page, stay as they are."""
    pytest.importorskip("PIL.Image")
    entries = known(made("th-4.1"), made("hdr-3.4"))
    monkeypatch.setattr(gallery, "figures", catalog.figures)
    outcomes = [shelf.repeat(figure, tmp_path / "out", quick=False) for figure in entries]
    pages = tmp_path / "gallery"
    first = gallery.publish(outcomes, [], pages)
    before = first.read_text()
    other = pages / "habilitation" / "hdr-3.4.md"
    other.write_text("as it was")
    missed = shelf.repeat(made("th-4.1", holds=False), tmp_path / "out", quick=False)
    gallery.publish([missed], [], pages)
    assert other.read_text() == "as it was"
    assert "**missed**" in first.read_text()
    assert [line for line in before.splitlines() if "hdr-3.4" in line] == [
        line for line in first.read_text().splitlines() if "hdr-3.4" in line
    ]
