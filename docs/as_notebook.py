"""Pages of docs/notebooks as notebooks: `python -m docs.as_notebook` writes NAME.ipynb beside NAME.md.

The page is the one source. Its ```python blocks are the cells, and the ```text blocks after them are
the stored outputs, which the tests of the pages compare with what the cells print. So a notebook
never holds an output that was not checked, and no package of Jupyter is needed to make one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docs.pages import FENCE

FOLDER = Path(__file__).parent / "notebooks"


def notebooks() -> dict[Path, str]:
    """Every notebook and its text."""
    return {page.with_suffix(".ipynb"): as_notebook(page) for page in sorted(FOLDER.glob("*.md"))}


def as_notebook(page: Path) -> str:
    """The notebook of a page, in format 4.5."""
    cells: list[dict[str, Any]] = []
    text, end = page.read_text(), 0
    for fence in FENCE.finditer(text):
        _say(cells, text[end : fence.start()])
        end = fence.end()
        if fence["kind"] == "python":
            cells.append({"cell_type": "code", **_cell(cells, fence["body"]), "outputs": []})
            cells[-1]["execution_count"] = None
        elif fence["kind"] == "text" and cells[-1]["cell_type"] == "code":
            printed = fence["body"].splitlines(keepends=True)
            cells[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed}]
        else:
            raise ValueError(f"{page.name}: a notebook has blocks of python and what they print")
    _say(cells, text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _say(cells: list[dict[str, Any]], text: str) -> None:
    """A cell of prose; links to pages keep their words only, since a notebook is taken elsewhere."""
    prose = re.sub(r"\s*\[Download[^]]*\]\([^)]*\)\.", "", text)
    prose = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"*\1*", prose).strip()
    if prose:
        cells.append({"cell_type": "markdown", **_cell(cells, prose)})


def _cell(cells: list[dict[str, Any]], text: str) -> dict[str, Any]:
    return {
        "id": f"cell-{len(cells)}",
        "metadata": {},
        "source": text.rstrip("\n").splitlines(keepends=True),
    }


def main() -> None:
    for path, text in notebooks().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
