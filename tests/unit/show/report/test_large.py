"""Networks too large to show every pair: blocks in the matrix, a few choices on the map, nothing
understated."""

import base64
import json

import numpy as np

from bruit.show.report.page import story_page
from bruit.show.report.story import tell
from tests.unit.show.report.pages import Page


def test_blocks_and_choices(averaging, monkeypatch):
    for module in ("pairs", "pictures.graph_map", "pictures.heat_map"):
        monkeypatch.setattr(f"bruit.show.report.{module}.MOST", 10)
    monkeypatch.setattr("bruit.show.report.pairs.CHOSEN", 4)
    story = tell(averaging)
    page = Page(story_page(story))
    data = json.loads(page.by_id("pair-data").text)
    assert data["block"] == 3
    assert set(story.worst) <= set(data["you"])
    assert len(data["you"]) < 24
    levels = np.array([float(text) for text in data["losses"]])
    losses = np.nan_to_num(story.losses, nan=-1)
    codes = np.frombuffer(base64.b64decode(data["codes"]), "<u2").reshape(8, 8)
    for i, j in ((0, 0), (2, 5), (7, 1)):
        largest = losses[3 * i : 3 * i + 3, 3 * j : 3 * j + 3].max()
        assert levels[codes[i, j]] >= largest * (1 - 1e-3)
    leaks = np.frombuffer(base64.b64decode(data["leaks"]), "<u2").reshape(len(data["you"]), 24)
    assert np.allclose(levels[leaks[0, 1:]], losses[data["you"][0], 1:], rtol=1e-3)
    assert len(page.all("option")) == len(data["you"])
