"""HTML that cannot be broken by what it shows: text is escaped unless it is markup that this
package made."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from bruit.files import plain

VOID = {"meta", "input", "br", "line", "circle", "rect", "path"}


class Markup(str):
    """HTML made by `tag`, `join` or `data_block`; any other string is text and gets escaped."""

    __slots__ = ()


def escape(content: object) -> Markup:
    """Markup as it is, anything else as text; characters that HTML forbids become the replacement
    character."""
    if isinstance(content, Markup):
        return content
    shown = "".join(c if c in "\n\t" or ord(c) >= 32 else "\ufffd" for c in str(content))
    return Markup(html.escape(shown.encode("utf-8", "replace").decode("utf-8")))


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(escape(part) for part in parts))


def tag(element: str, *children: object, **attributes: object) -> Markup:
    """One element; attributes are spelled class_, aria_label, viewBox; None and False leave one
    out, True is bare."""
    pairs = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            pairs.append(f" {name}")
        elif value is not None and value is not False:
            pairs.append(f' {name}="{escape(str(value))}"')
    if element in VOID and not children:
        return Markup(f"<{element}{''.join(pairs)}/>")
    return Markup(f"<{element}{''.join(pairs)}>{join(children)}</{element}>")


def data_block(name: str, content: Any) -> Markup:
    """Data for the page's script: JSON in which no character can end the element it stands in."""
    text = json.dumps(plain(content), allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def number(value: float) -> str:
    """Four digits, as in the terminal; an infinite number is a sign."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}"


def cell(value: object) -> str:
    """What a table shows of a value."""
    return number(value) if isinstance(value, float) else str(value)


def table(caption: str, names: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """A table with a caption; numbers stand at the right, whole precision is in the cell's
    data-value."""
    rows = list(rows)
    numeric = [any(_is_number(row[k]) for row in rows if k < len(row)) for k in range(len(names))]
    head = tag(
        "tr",
        *(
            tag("th", name, scope="col", class_="number" if right else None)
            for name, right in zip(names, numeric, strict=True)
        ),
    )
    body = join(tag("tr", *(_table_cell(value) for value in row)) for row in rows)
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def _is_number(value: object) -> bool:
    """A number; or the sign that there is none."""
    return isinstance(value, int | float) or value == "-"


def _table_cell(value: object) -> Markup:
    if isinstance(value, float):
        return tag("td", number(value), class_="number", data_value=repr(float(value)))
    return tag("td", value, class_="number" if _is_number(value) else None)


def numbers_behind(names: Sequence[object], rows: Iterable[Sequence[object]], what: str) -> Markup:
    """The table behind a figure, folded away."""
    return tag("details", tag("summary", f"The numbers: {what}"), table(what, names, rows))


def section(
    name: str, title: str, *content: object, half: bool = False, tall: bool = False
) -> Markup:
    """A part of the page; two halves stand side by side where there is room, a tall one beside two
    others."""
    inside, size = (
        [tag("h2", title, id=f"{name}-title"), *content],
        "half tall" if tall else "half" if half else None,
    )
    return tag("section", *inside, id=name, aria_labelledby=f"{name}-title", class_=size)


def found_figure(finding: str, drawing: object, words: object = "", source: str = "") -> Markup:
    """A figure under a title that says what was found, with how to read it and where it comes from
    below."""
    parts = [tag("p", finding, class_="finding"), drawing]
    parts += [tag("figcaption", words)] if words else []
    parts += [tag("p", source, class_="source")] if source else []
    return tag("figure", *parts)
