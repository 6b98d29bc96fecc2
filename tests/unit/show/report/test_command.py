"""What `bruit show` calls for files."""

import pytest

import bruit as br
from bruit.commands.printing import Printer
from bruit.commands.show import show_csv, show_html, show_pdf

QUIET = Printer(quiet=True)


def test_files_are_written_and_told(folder, tmp_path, capsys):
    show_html([folder], tmp_path / "x.html", 1e-6, Printer())
    assert "x.html" in capsys.readouterr().out
    show_html([folder, folder], tmp_path / "y.html", 1e-6, QUIET)
    assert "configurations compared" in (tmp_path / "y.html").read_text()
    show_csv(folder, tmp_path / "numbers", 1e-6, QUIET)
    assert len(list((tmp_path / "numbers").iterdir())) == 4
    assert capsys.readouterr().out == ""


def test_a_file_is_no_folder(folder, tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(br.ConfigError, match="--csv needs a folder"):
        show_csv(folder, tmp_path / "x", 1e-6, QUIET)


def test_pdf(folder, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra ui)")
    written = show_pdf(folder, tmp_path / "x.pdf", 1e-6, QUIET)
    assert written.read_bytes().startswith(b"%PDF")
