"""What the site has besides the pages of docs/: pages of the project, the API from docstrings, the
menu, and links from code to the API. mkdocs calls these functions by their names.

docs/index.md is the one list of pages: its headings are the menu. A page of a folder that the list
does not name (algorithms, theory) stands below the `index.md` or the page of the same name.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

from website import api, codes, what_if

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PROJECT = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "LICENSE": "project/license.md",
}
OWN = Path(__file__).parent / "assets"
MARK = ROOT / "bruit" / "show" / "report" / "mark.svg"
LINK = re.compile(r"(?P<mark>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
BUTTON = (
    '<p><a class="md-button md-button--primary" href="../what-if/index.html">Open the page</a></p>'
)
INNER_MENU = re.compile(
    r'(<nav class="md-nav" data-md-level="2") aria-labelledby="[^"]*"'
    r'([^>]*>\s*<label class="md-nav__title"[^>]*>\s*<span[^>]*></span>\s*)([^<]*?)(?=\s*</label>)'
)
PATH = re.compile(
    r"(?<=[\s,>])(?:bruit|tests|papers|benchmarks)/[\w/.:]+(?=[\s,.<])"
)  # no tag: may break
IMAGES = (".svg", ".png")


def on_config(config: Any) -> Any:
    """The menu: headings of docs/index.md and the pages they name, then API and project."""
    menu: list[dict[str, Any]] = [{"Home": "index.md"}]
    for heading, pages in listed((DOCS / "index.md").read_text()):
        menu.append({heading: [_with_folder(page) for page in pages]})
    menu.append({"API": [{title: place} for place, (title, _) in api.pages().items()]})
    menu.append({"Project": list(PROJECT.values())})
    config.nav = menu
    return config


def listed(text: str) -> list[tuple[str, list[str]]]:
    """Second headings, each with the pages that its list names first.

    >>> listed("## How to\\n- [run](how-to/run.md): see [too](x.md)\\n- [plan](how-to/plan.md)\\n")
    [('How to', ['how-to/run.md', 'how-to/plan.md'])]
    """
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        elif found and (link := re.match(r"- .*?\[[^\]]*\]\(([^)#\s]+\.md)\)", line)):
            found[-1][1].append(link[1])
    return [(heading, pages) for heading, pages in found if pages]


def _with_folder(page: str) -> Any:
    """A page; with those below it, if a folder belongs to it."""
    path = Path(page)
    folder = path.parent if path.name == "index.md" and path.parent.name else path.with_suffix("")
    if not (DOCS / folder).is_dir() or folder == Path("theory"):
        return page
    below = sorted(
        one.relative_to(DOCS).as_posix()
        for one in (DOCS / folder).glob("*.md")
        if one != DOCS / page
    )
    return {_title(DOCS / page): [page, *below]}


def _title(page: Path) -> str:
    found = re.search(r"^# (.*)$", page.read_text(), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


def on_nav(nav: Any, **_: Any) -> Any:
    """A section opens the page that its name is of."""
    waiting = list(nav.items)
    while waiting:
        one = waiting.pop()
        if one.is_section:
            waiting += one.children
            first = one.children[0]
            if first.is_page and first.title == one.title:
                first.file.name = "index"
    return nav


def on_files(files: Files, config: Any) -> Files:
    """Adds pages of the project, of the API, and what the pages need to look as they do."""
    for source, place in PROJECT.items():
        files.append(File.generated(config, place, content=_project_page(ROOT / source)))
    for place, (_, text) in api.pages().items():
        files.append(File.generated(config, place, content=text))
    for name, content in what_if.parts().items():
        files.append(File.generated(config, f"what-if/{name}", content=content))
    for asset in sorted({*OWN.iterdir(), MARK} - {what_if.ANSWERS}):
        files.append(File.generated(config, f"site/{asset.name}", abs_src_path=os.fspath(asset)))
    return files


def _project_page(source: Path) -> str:
    text = source.read_text()
    return text if source.suffix == ".md" else f"# Licence\n\n```text\n{text}```\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between docs/ and the rest of the repository lead to their pages of the site; what is
    not on the site keeps its name only."""
    place = page.file.src_uri
    source = next((name for name, at in PROJECT.items() if at == place), f"docs/{place}")
    if place in api.pages():
        return markdown
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda link: _led(link, source, place), part) for part in parts[::2]]
    return "".join(parts)


def _led(link: re.Match[str], source: str, place: str) -> str:
    target, _, anchor = link["target"].partition("#")
    if "://" in target or not target:
        return link[0]
    real = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if real in PROJECT:
        there = PROJECT[real]
    elif real.startswith("docs/") and (real.endswith((".md", ".ipynb", *IMAGES))):
        there = real.removeprefix("docs/")
    else:
        return link["text"]
    relative = posixpath.relpath(there, posixpath.dirname(place) or ".")
    return f"{link['mark']}[{link['text']}]({relative}{'#' + anchor if anchor else ''})"


def on_page_context(context: Any, page: Any, **_: Any) -> Any:
    """The first page is its own menu."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    return context


def on_post_page(output: str, **_: Any) -> str:
    """The theme's search has no name for screen readers, and parts of its menu have one twice."""
    output = output.replace('class="md-search" ', 'class="md-search" aria-label="Search" ')
    return INNER_MENU.sub(r'\1 aria-label="\3"\2\3', output)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """`br.NAME` in Python code links to what the API says of it, a code such as gossip:MUF-2 to its
    statement; a path of a file may break behind its parts; a column without a name has no heading; the
    page about what-if has a button that opens it."""

    def linked(found: re.Match[str]) -> str:
        place = api.page_of(found["name"])
        if place is None or place == page.file.src_uri:
            return found[0]
        url = page.file.url
        there = posixpath.relpath(
            place.removesuffix(".md") + ".html", posixpath.dirname(url) or "."
        )
        return f'{found["before"]}<a class="api" href="{there}#bruit.{found["name"]}">{found["part"]}</a>'

    html = re.sub(
        r'(?P<before><span class="n">br</span><span class="o">\.</span>)'
        r'(?P<part><span class="n">(?P<name>\w+)</span>)',
        linked,
        html,
    )
    html = codes.linked(html, page.file.url)
    html = PATH.sub(lambda path: re.sub(r"(/|::|_)", r"\1<wbr>", path[0]), html)
    html = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)
    if page.file.src_uri == "how-to/what-if.md":
        return html.replace("</p>", f"</p>\n{BUTTON}", 1)
    return html


@event_priority(-100)
def on_post_build(config: Any) -> None:
    """Takes out what no page of ours uses: maps for who debugs the theme, and other languages."""
    built = Path(config.site_dir)
    for unused in [*built.rglob("*.map"), *built.glob("sitemap*")]:
        unused.unlink()
    shutil.rmtree(built / "assets" / "javascripts" / "lunr", ignore_errors=True)
