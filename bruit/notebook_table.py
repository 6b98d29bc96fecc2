"""How a thing shows itself in a notebook: a title and a small table, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A caption and one row per fact; floats with four digits.

    >>> html_table("a<b", [("peers", 3), ("gap", 0.123456)])
    '<table><caption>a&lt;b</caption><tr><th>peers</th><td>3</td></tr><tr><th>gap</th><td>0.1235</td></tr></table>'
    """
    shown = (
        (name, f"{value:.4g}" if isinstance(value, float) else str(value)) for name, value in rows
    )
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in shown
    )
    return f"<table><caption>{escape(title)}</caption>{body}</table>"
