"""Notebooks are their pages, cell by cell: the pages are run and their outputs compared by
test_docs.py, and a notebook that differs from its page fails here.

No package of Jupyter is needed: format 4.5 is plain JSON, whose required keys are checked.
"""

from __future__ import annotations

import json
import re

import pytest

from docs import as_notebook
from docs.pages import blocks

NOTEBOOKS = {path.stem: path for path in as_notebook.notebooks()}


def test_there_are_five_that_are_listed():
    index = (as_notebook.FOLDER.parent / "index.md").read_text()
    assert set(re.findall(r"\(notebooks/([a-z-]+)\.md\)", index)) == set(NOTEBOOKS)
    assert set(as_notebook.FOLDER.glob("*.ipynb")) == set(NOTEBOOKS.values())
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_a_notebook_is_its_page(name):
    path = NOTEBOOKS[name]
    assert path.read_text() == as_notebook.notebooks()[path], "run python -m docs.as_notebook"
    made = json.loads(path.read_text())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    page = blocks(path.with_suffix(".md").read_text())
    assert ["".join(cell["source"]) + "\n" for cell in code] == [
        block.body for block in page if block.kind == "python"
    ]
    for cell in code:
        assert set(cell) == {"cell_type", "id", "metadata", "source", "outputs", "execution_count"}
        compile("".join(cell["source"]), name, "exec")
    for block in page:
        assert "..." not in block.body.split() or block.kind != "text"
    assert f"]({name}.ipynb)" in path.with_suffix(".md").read_text()


def test_blocks_that_no_cell_can_hold_are_refused(tmp_path):
    (tmp_path / "a.md").write_text("# a\n```sh\nbruit list\n```\n")
    with pytest.raises(ValueError, match=r"a\.md: a notebook has blocks of python"):
        as_notebook.as_notebook(tmp_path / "a.md")
