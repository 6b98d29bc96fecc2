"""Names and texts of a run folder may say anything: the page shows them as text."""

import json

import numpy as np
import pytest

import bruit as br
from bruit.graphs import from_edges
from bruit.show.drawing.markup import data_block, escape, tag
from bruit.show.report import render
from bruit.testing import small_task
from tests.unit.show.report.pages import Page

ATTACK = '</script></pre><script>alert(1)</script><img src=x onerror="alert(2)">\'"&\x00\u2028'


@pytest.fixture
def hostile():
    labels = (ATTACK, "b", "</svg><script>alert(3)</script>")
    graph = from_edges(3, np.array([[0, 1], [1, 2]]), name=f"mine {ATTACK}", labels=labels)
    run = br.run(
        br.Averaging(), graph, small_task(3), privacy=br.Gaussian(clip=1.0, sigma=1.0), steps=2
    )
    run.experiment = f"# {ATTACK}"
    run.task = {**run.task, "task": ATTACK, "data": {"name": ATTACK}, ATTACK: ATTACK}
    run.engine = {"name": ATTACK}
    run.metrics.rows = [{ATTACK: 1.0, **row} for row in run.metrics.rows]
    run.references = {"alone": 0.5, ATTACK: 0.5}
    return run


def elements(text):
    """What could act: scripts, images, frames, handlers."""
    page = Page(text)
    return [
        one
        for one in page.elements
        if one.tag in ("img", "iframe", "object", "embed", "form")
        or any(name.startswith("on") for name in one.attributes)
    ], page.all("script")


def test_nothing_of_a_run_becomes_markup(hostile):
    text = render(hostile)
    acting, scripts = elements(text)
    assert not acting
    assert len(scripts) == 2  # the data and the page's own
    assert "alert(1)" in text
    assert "<script>alert" not in text


def test_hostile_folders_and_findings(tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>.run"
    run = br.run(
        br.Averaging(),
        br.graphs.path(3),
        small_task(3),
        privacy=br.Gaussian(clip=1.0, sigma=1.0),
        steps=2,
    )
    run.experiment = ATTACK.replace("\x00", "")
    run.save(folder)
    attack = {ATTACK: [ATTACK, {ATTACK: 1}], "reconstructible": [1], "peers": ATTACK}
    (folder / "attack.json").write_text(json.dumps(attack))
    (folder / "audit.json").write_text(
        json.dumps({"verdict": ATTACK, "claimed": ATTACK, "lower": 0.5, "delta": 1e-6})
    )
    acting, scripts = elements(render(folder))
    assert not acting
    assert len(scripts) == 2
    assert not elements(render([folder, folder]))[0]


def test_a_sweep_with_hostile_values(tmp_path):
    path = tmp_path / "sweep.csv"
    path.write_text(
        "what,seed,mse,epsilon_worst,epsilon_typical,epsilon_local,delta,status\n"
        '"<script>alert(1)</script>",0,0.5,1.0,0.5,2.0,1e-6,"<b>"\n'
    )
    acting, scripts = elements(render(path))
    assert not acting
    assert len(scripts) == 1


@pytest.mark.parametrize("text", [ATTACK, "<", "a&b", "\ud800", "]]>", "<!--"])
def test_text_stays_text(text):
    assert not set("<>") & set(escape(text))
    (one,) = Page(tag("p", text, title=text)).elements
    assert one.tag == "p"


def test_data_cannot_end_its_element():
    page = Page(data_block("x", {"a": "</script><!--<script>", "b": float("inf")}))
    (one,) = page.elements
    assert json.loads(one.text) == {"a": "</script><!--<script>", "b": "inf"}
    assert "<" not in one.text
