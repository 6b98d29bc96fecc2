"""The look that the report, the pages of `bruit ui` and the site share: one style, one mark, one
icon."""

from __future__ import annotations

import base64
from importlib.resources import files

from bruit.show.drawing.markup import Markup, tag


def asset(name: str) -> str:
    """A style, script or drawing that ships with the package."""
    return files("bruit.show.report").joinpath(name).read_text(encoding="utf-8")


def mark() -> Markup:
    """The mark, as an element of the page: noise on the link between two peers."""
    drawing = asset("mark.svg").strip().replace(' xmlns="http://www.w3.org/2000/svg"', "")
    return Markup(
        drawing.replace("<svg", '<svg class="mark" aria-hidden="true" focusable="false"', 1)
    )


def brand() -> Markup:
    """Mark and name, as they stand on top of every page."""
    return tag("p", mark(), "Bruit", class_="brand")


def icon() -> Markup:
    """The mark as the icon of a page that may load nothing."""
    drawn = base64.b64encode(asset("mark.svg").encode()).decode("ascii")
    return Markup(f'<link rel="icon" href="data:image/svg+xml;base64,{drawn}">')
