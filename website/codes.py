"""Codes of statements, `gossip:MUF-2`, lead to where they are stated, proven and tested."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

THEORY = Path(__file__).resolve().parents[1] / "docs" / "theory"
PARTS = {
    "gossip": "gossip",
    "walk": "walk",
    "perso": "perso",
    "silo": "silo",
    "fp": "finite-precision",
}
STATED = re.compile(r'^<a id="([^"]+)"></a>\n#+ ([A-Z]+-[A-Z]?\d+):', re.MULTILINE)
CITED = re.compile(rf"\b({'|'.join(PARTS)}):([A-Z]+-[A-Z]?\d+)\b")
TAG = re.compile(r"(<[^>]*>)")
QUIET = ("a", "pre", "h1", "h2", "h3", "h4", "script", "style", "title", "svg")


@cache
def places() -> dict[tuple[str, str], str]:
    """Page and anchor of every statement, by part and code."""
    found = {}
    for part, name in PARTS.items():
        for page in (THEORY / f"{name}.md", *sorted((THEORY / name).glob("*.md"))):
            address = f"theory/{page.relative_to(THEORY).with_suffix('.html').as_posix()}"
            for anchor, code in STATED.findall(page.read_text()):
                found[part, code] = f"{address}#{anchor}"
    return found


def linked(html: str, url: str) -> str:
    """The page with links from codes in its sentences; those in blocks of code, headings and links stay."""
    here, quiet, parts = posixpath.dirname(url) or ".", 0, TAG.split(html)

    def link(found: re.Match[str]) -> str:
        place = places().get((found[1], found[2]))
        if place is None:
            return found[0]
        return f'<a class="spec" href="{posixpath.relpath(place, here)}">{found[0]}</a>'

    for k, part in enumerate(parts):
        if k % 2 == 0:
            parts[k] = part if quiet else CITED.sub(link, part)
        elif (named := re.match(r"<(/?)(\w+)", part)) and named[2] in QUIET:
            quiet += -1 if named[1] else 1
    return "".join(parts)
