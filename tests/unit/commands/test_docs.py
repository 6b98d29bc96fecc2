"""`bruit docs` opens a copy on this machine, takes one from a zip file, and else says how to get one."""

import sys
import webbrowser
import zipfile

import pytest

from bruit import __version__
from bruit.commands import cli, docs


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """The command, on a machine without any copy."""
    kept = tmp_path / "share" / __version__
    monkeypatch.setattr(docs, "places", lambda _: [kept, tmp_path / "built"])
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    def called(*words):
        monkeypatch.setattr(sys, "argv", ["bruit", "docs", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err, opened

    return called


def copy(path, names):
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, "<p>pages</p>")
    return path


def test_without_a_copy_it_says_where_one_is(call):
    code, _, said, opened = call()
    assert code == 2
    assert "make site" in said
    assert f"--copy bruit-{__version__}-docs.zip" in said
    assert opened == []


def test_a_copy_is_unpacked_once_and_opened_ever_after(call, tmp_path):
    made = copy(tmp_path / "docs.zip", [f"{__version__}/index.html", "other/x.html"])
    code, said, _, opened = call("--copy", made)
    assert (code, opened) == (0, [said.strip()])
    made.unlink()
    assert call("--no-browser")[:2] == (0, said)
    assert len(opened) == 1
    assert [one.name for one in (tmp_path / "share").iterdir()] == [__version__]


def test_what_was_built_here_is_opened_too(call, tmp_path):
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "index.html").write_text("")
    assert "built/index.html" in call("--no-browser")[1]


@pytest.mark.parametrize("names", [["0.0.1/index.html"], [f"{__version__}/other.html"]])
def test_a_copy_of_something_else_is_refused(call, tmp_path, names):
    code, _, said, _ = call("--copy", copy(tmp_path / "docs.zip", names))
    assert code == 2
    assert f"holds no {__version__}/index.html" in said


def test_what_is_no_zip_file_or_not_there_is_refused(call, tmp_path):
    (tmp_path / "docs.zip").write_text("no")
    assert "is no zip file" in call("--copy", tmp_path / "docs.zip")[2]
    code, _, said, _ = call("--copy", tmp_path / "none.zip")
    assert code == 2
    assert f"there is no file {tmp_path / 'none.zip'}" in said
    (tmp_path / "share").write_text("a file where a folder should be")
    code, _, said, _ = call("--copy", copy(tmp_path / "docs.zip", [f"{__version__}/index.html"]))
    assert (code, said.startswith("error: not a directory: ")) == (2, True)


def test_nothing_is_written_outside_of_its_folder(call, tmp_path):
    wicked = f"{__version__}/../../escaped.html"
    call(
        "--copy", copy(tmp_path / "docs.zip", [f"{__version__}/index.html", wicked]), "--no-browser"
    )
    assert not (tmp_path / "escaped.html").exists()
    assert not (tmp_path.parent / "escaped.html").exists()
