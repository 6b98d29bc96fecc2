"""The gallery: pages of the documentation from results that are there, one page a figure, and a
dated page with all of them.

docs/gallery/index.md          when, on which machine, of which commit; a table with a thumbnail of each
docs/gallery/made.json         what that page says, so that one figure can be published alone
docs/gallery/thesis-6/...      a page and a small picture a figure

Nothing is computed here. A page shows what the command under its picture wrote.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.files import write_whole
from papers.reproduce.catalog import figures
from papers.reproduce.figure import DOCUMENTS, chapter
from papers.reproduce.illustration import Illustration
from papers.reproduce.shelf import Outcome
from papers.reproduce.sources import ROOT

GALLERY, THEORY = ROOT / "docs" / "gallery", ROOT / "docs" / "theory"
WIDTH, COLORS = 640, 64  # of the pictures in the repository: 5 to 30 kB each
MOST_ROWS = 40
NAMES = {"hdr": "habilitation", "rep": "report", "th": "thesis", "lec": "lecture"}
VERDICTS = {
    "as the source says": "as the source says",
    "refuted": "**refuted** in part",
    "missed": "**missed**",
}


def publish(
    outcomes: Sequence[Outcome], illustrations: Sequence[Illustration], folder: Path = GALLERY
) -> Path:
    """Write the pages of these figures; gives the first page. Those of others stay as they are, and
    pages of what the catalog has no more go."""
    for bad in outcomes:
        if bad.verdict in ("failed", "skipped"):
            raise ConfigError(
                f"{bad.id} {bad.verdict}, so nothing is published: {bad.plain['why']}"
            )
    shown = list(map(_Shown, outcomes))
    file = folder / "made.json"
    made = json.loads(file.read_text()) if file.is_file() else {}
    made |= {one.id: one.entry() for one in shown}
    made = {id: made[id] for id in figures() if id in made}
    for one in shown:
        at = folder / room(one.id)
        at.mkdir(parents=True, exist_ok=True)
        _text(at / f"{one.id}.md", "\n".join(one.page()))
        if one.picture is not None:
            _small(one.picture, at / f"{one.id}.png")
    for old in folder.glob("*/*"):
        if old.stem not in made or (old.suffix == ".png" and not made[old.stem]["picture"]):
            old.unlink()
    _text(file, json.dumps(made, indent=1) + "\n")
    _text(folder / "index.md", "\n".join(_index(made, illustrations)))
    return folder / "index.md"


def room(id: str) -> str:
    """The folder of a page: thesis-6, habilitation."""
    name = NAMES[id.split("-")[0]]
    return f"{name}-{chapter(id)}" if name == "thesis" else name


class _Shown:
    """One figure on its page."""

    def __init__(self, outcome: Outcome) -> None:
        self.id, self.plain = outcome.id, outcome.plain
        known = figures().get(self.id)
        self.kept_home = known is not None and known.shows_records
        file = outcome.folder / "picture.png"
        self.picture = file if file.is_file() and not self.kept_home else None

    def entry(self) -> dict[str, Any]:
        """What the first page says of it."""
        said = ("title", "number", "page", "verdict", "cpu_s", "made_at")
        return {name: self.plain[name] for name in said} | {"picture": self.picture is not None}

    @property
    def where(self) -> str:
        plain = self.plain
        return f"{plain['source']}, {plain['number']}, {plain['page']}"

    def page(self) -> Iterator[str]:
        plain = self.plain
        yield f"# {self.id}: {plain['title']}"
        yield ""
        if self.picture is not None:
            yield f"![{plain['title']}]({self.id}.png)"
            yield ""
        if self.kept_home:
            yield "Its picture shows records that are not ours to pass on: it stays where it was made."
            yield ""
        yield f"`bruit reproduce {self.id}` draws it, and writes the table."
        yield ""
        yield f"Source: {self.where}. [All figures](../index.md)."
        if plain["also"]:
            yield f"The same numbers show {', '.join(plain['also'])}."
        yield ""
        yield "## What was checked"
        yield ""
        for check in plain["checks"]:
            why = f". {check['why'][0].upper()}{check['why'][1:]}." if check["why"] else ""
            yield f"- **{check['verdict']}**: {_cell(check['words'])}{_cell(why)}"
        yield ""
        for words in (plain["words"], plain["instead_of_data"]):
            if words:
                yield f"{_cell(words[0].upper() + words[1:])}."
                yield ""
        yield from _table(plain)
        yield from _made(plain)


def _table(plain: dict[str, Any]) -> Iterator[str]:
    yield "## Numbers"
    yield ""
    yield f"| {' | '.join(_cell(name) for name in plain['header'])} |"
    yield f"|{'---|' * len(plain['header'])}"
    for row in plain["rows"][:MOST_ROWS]:
        yield f"| {' | '.join(_cell(one) for one in row)} |"
    left = len(plain["rows"]) - MOST_ROWS
    yield ""
    if left > 0:
        yield f"{left} more rows are in the table that the command writes."
        yield ""


def _made(plain: dict[str, Any]) -> Iterator[str]:
    if plain["settings"]:
        said = ", ".join(f"{key} = {value}" for key, value in plain["settings"].items())
        yield f"Settings: {_cell(said)}."
        yield ""
    if plain["data"]:
        yield f"Data: {', '.join(plain['data'])}."
        yield ""
    made = plain["made_at"]
    yield f"{plain['cpu_s']:.0f} s of CPU, {made['day']}, commit {made['commit']}."
    codes = [_linked(code) for code in plain["theory"]]
    if codes:
        yield ""
        yield f"Theory: {', '.join(codes)}."
    yield ""


def _linked(code: str) -> str:
    """A statement of the theory, as a link to where it stands."""
    part, name = code.split(":")
    for page in sorted((THEORY / part).glob("*.md")):
        if f'<a id="{name.lower()}"></a>' in page.read_text():
            return f"[{code}](../../theory/{part}/{page.name}#{name.lower()})"
    return code


def _index(made: dict[str, dict[str, Any]], illustrations: Sequence[Illustration]) -> Iterator[str]:
    verdicts = [one["verdict"] for one in made.values()]
    minutes = sum(one["cpu_s"] for one in made.values()) / 60
    days = sorted({one["made_at"]["day"] for one in made.values()})
    yield "# Figures of the papers, repeated"
    yield ""
    yield (
        f"{len(made)} figures and tables, repeated by this package on {' to '.join(days)}:"
        f" {', '.join(f'{verdicts.count(one)} {words}' for one, words in _counted(verdicts))}."
    )
    yield "[What the verdicts mean](../how-to/reproduce.md#what-the-verdicts-mean)."
    yield ""
    yield (
        "`bruit reproduce --publish` makes them again, where their scripts changed, and writes these pages;"
        " with ids, their pages only."
    )
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| CPU | {minutes:.0f} minutes in all |"
    for what in ("machine", "versions", "commit"):
        values = dict.fromkeys(one["made_at"][what] for one in made.values())
        yield f"| {what} | {'; '.join(filter(None, values)) or 'unknown'} |"
    yield ""
    for name in dict.fromkeys(map(room, made)):
        yield f"## {_titled(name)}"
        yield ""
        yield "| | figure | source | result | CPU |"
        yield "|---|---|---|---|---|"
        for id, one in made.items():
            if room(id) != name:
                continue
            path = f"{name}/{id}"
            picture = f'<img src="{path}.png" width="180" alt="">' if one["picture"] else ""
            title = f"[{id}]({path}.md): {_cell(one['title'])}"
            verdict = VERDICTS[one["verdict"]]
            where = f"{one['number']}, {one['page']}"
            yield f"| {picture} | {title} | {where} | {verdict} | {one['cpu_s']:.0f} s |"
        yield ""
    yield "## Without numbers"
    yield ""
    yield "Printed figures that nothing is computed for, and why."
    yield ""
    yield "| figure | source | |"
    yield "|---|---|---|"
    for drawing in illustrations:
        yield f"| {drawing.id} | {drawing.document}, {drawing.number} | {drawing.why} |"
    yield ""


def _counted(verdicts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for one in dict.fromkeys(verdicts):
        yield one, "in part refuted" if one == "refuted" else one


def _titled(name: str) -> str:
    short = {long: DOCUMENTS[key] for key, long in NAMES.items()}
    document, _, number = name.partition("-")
    place = f", {'appendix' if number.isalpha() else 'chapter'} {number}" if number else ""
    return f"{short[document][0].upper()}{short[document][1:]}{place}"


def _cell(value: Any) -> str:
    """Text for Markdown: numbers to four digits, and nothing that would end a cell or open a tag."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return re.sub(r"([|<>*_`])", r"\\\1", text)


def _small(picture: Path, file: Path) -> None:
    """The picture as it is kept in the repository: narrower, and in few colors."""
    image = import_module("PIL.Image")
    with image.open(picture) as opened:
        plain = opened.convert("RGB")
    size = (WIDTH, round(plain.height * WIDTH / plain.width))
    reduced = plain.resize(size, image.Resampling.LANCZOS).quantize(
        COLORS,
        kmeans=COLORS,  # else thin lines lose their colors to the grays of the background
        dither=image.Dither.NONE,
    )
    stream = io.BytesIO()
    reduced.save(stream, format="PNG", optimize=True)
    write_whole(file, lambda target: target.write(stream.getvalue()))


def _text(file: Path, text: str) -> None:
    write_whole(file, lambda stream: stream.write(text.encode()))
