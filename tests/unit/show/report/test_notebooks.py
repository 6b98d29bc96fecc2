"""What notebooks show: small tables, framed reports, figures with the numbers behind them."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

import bruit as br
from bruit.graphs import from_edges
from bruit.show.report import Plots
from bruit.show.report.notebook import framed
from tests.unit.show.report.pages import Page


def test_small_tables(averaging):
    shown = averaging._repr_html_()
    assert "<td>24</td>" in shown
    assert f"{averaging.metrics.last('mse'):.4g}" in shown
    guarantee = averaging.guarantee(of=1, seen_by=0)
    assert f"{float(guarantee.epsilon(1e-6)):.4g}" in guarantee._repr_html_()
    assert "<th>assumed</th>" in guarantee._repr_html_()
    view = averaging.view(0)
    assert f"<td>{len(view.messages)}</td>" in view._repr_html_()
    for text in (shown, guarantee._repr_html_(), view._repr_html_(), averaging.graph._repr_html_()):
        assert Page(text).elements[0].tag == "table"


def test_a_hostile_name_is_text():
    graph = from_edges(2, np.array([[0, 1]]), name="<script>alert(1)</script>")
    assert "<script" not in graph._repr_html_()


def test_a_report_in_a_frame(averaging):
    (frame,) = Page(framed(averaging)._repr_html_()).elements
    assert frame.tag == "iframe"
    assert frame.attributes["sandbox"] == "allow-scripts"
    assert frame.attributes["srcdoc"].startswith("<!DOCTYPE html>")
    assert averaging.plot.report(height=100).height == 100


def test_csv_behind_figures(averaging, tmp_path):
    text = Plots(averaging).csv("utility", tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text().splitlines() == text.splitlines()
    assert text.splitlines()[0].startswith("step,mse")
    with pytest.raises(br.ConfigError, match="no figure 'pie'"):
        averaging.plot.csv("pie")


def test_plotly_figures(averaging):
    pytest.importorskip("plotly", reason="plotly is not installed (extra ui)")
    plot = averaging.plot
    assert list(plot.utility().data[0].y) == averaging.metrics.column("mse").tolist()
    assert plot.losses().data[0].customdata[2][3] == averaging.losses()[2, 3]
    assert len(plot.graph(of=3).data[1].x) == 24
    assert plot.distance().layout.yaxis.type == "log"
    assert plot.budget().data[-1].y[-1] == averaging.summary().local_epsilon
    with pytest.raises(br.ConfigError, match="there is no peer 99"):
        plot.graph(of=99)


def test_pdf_for_papers(averaging, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra ui)")
    written = averaging.plot.pdf(tmp_path / "x.pdf")
    assert written.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("module", "make"), [("plotly", "utility"), ("matplotlib", "pdf")])
def test_a_missing_extra_is_named(averaging, monkeypatch, tmp_path, module, make):
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    real = importlib.import_module

    def without(name, *rest):
        if name.split(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("bruit.show.report.plots.import_module", without)
    with pytest.raises(br.ConfigError, match=r"pip install 'bruit\[ui\]'"):
        getattr(Plots(averaging), make)(*([tmp_path / "x.pdf"] if make == "pdf" else []))


def test_plots_are_loaded_when_somebody_wants_a_figure():
    code = (
        "import sys, bruit as br, numpy as np\nrun = br.run(br.Averaging(), 'ring:4',"
        " br.tasks.Mean(np.zeros((4, 1))), steps=1)\nbefore = 'bruit.show.report.plots' in"
        " sys.modules\nprint(before, type(run.plot).__name__)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "Plots"]
