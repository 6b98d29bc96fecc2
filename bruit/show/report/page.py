"""The page: one file that needs nothing else, and may load nothing else.

Everything that comes from a run folder passes through `markup.escape`. A content-security policy
allows exactly the page's own style and script, by their hashes, and no request of any kind.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from bruit.errors import ConfigError
from bruit.files import check_place, write_whole
from bruit.how_many import how_many
from bruit.on import Workplace, chosen, place_for
from bruit.privacy.guarantee import REALLY
from bruit.runs.both_levels import PROMISE
from bruit.runs.result import Run
from bruit.show.drawing.markup import Markup, join, number, tag
from bruit.show.report.attempts import attempts
from bruit.show.report.budget import budget
from bruit.show.report.communication import communication
from bruit.show.report.compare import Configuration, compare, of_story, of_sweep
from bruit.show.report.findings import findings
from bruit.show.report.look import asset, brand, icon
from bruit.show.report.model import model
from bruit.show.report.pictures.curves import curves
from bruit.show.report.pictures.distance import distance
from bruit.show.report.pictures.graph_map import graph_map, stages
from bruit.show.report.pictures.heat_map import heat_map
from bruit.show.report.repeat import repeat
from bruit.show.report.statement import statement
from bruit.show.report.story import Progress, Story, open_story
from bruit.show.report.verdict import price, verdict
from bruit.show.report.words import observers, reading, words
from bruit.show.summary import with_own_part

Source = Run | str | Path


def _hash(text: str) -> str:
    return (
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"
    )


def policy(style: str, script: str) -> str:
    """Nothing may be loaded, sent or framed; only this style and this script may run, and the icon
    is in the page."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def page(title: str, body: Iterable[object]) -> str:
    """A whole document around the content."""
    style, script = asset("look.css") + asset("page.css"), asset("page.js")
    head = [
        Markup('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        icon(),
        Markup(f"<style>{style}</style>"),
    ]
    content = [
        tag("a", "To the content", href="#main", class_="skip"),
        *body,
        Markup(f"<script>{script}</script>"),
    ]
    whole = tag("html", tag("head", *head), tag("body", *content), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


MEANING = {
    "proven": "by a theorem, for what is sent",
    "quoted": "from a named source, not proven again",
    "ideal": REALLY,
    "published": "a printed formula, not a guarantee",
    "heuristic": "an estimate, not a guarantee",
}


def _tiles(story: Story) -> Markup:
    """The numbers one remembers, each with all that belongs to it."""
    run, summary = story.run, story.summary
    shown: list[tuple[object, str]] = []
    if story.metric is not None:
        beside = [
            f"{text} {number(run.references[key])}"
            for key, text in (("alone", "alone"), ("central", "all data"))
            if key in run.references
        ]
        judged = run.verdict()
        beside_it = f" ({', '.join(beside)})" if beside else ""
        shown.append(
            (
                number(run.metrics.last(story.metric) if judged is None else judged.together),
                f"{story.metric} at the end, {with_own_part(run) or 'together'}{beside_it}",
            )
        )
    if run.privacy is None and math.isinf(summary.local_epsilon):
        shown.append(
            (
                number(math.inf),
                "epsilon: no noise was added, so what was sent can be read by whoever got it",
            )
        )
    else:
        shown += _epsilons(story)
    tiles = [
        tag("li", tag("strong", value), " ", tag("span", text), class_="first" if k == 0 else None)
        for k, (value, text) in enumerate(shown)
    ]
    return tag("ul", *tiles, class_="tiles six" if len(tiles) == 6 else "tiles")


def _epsilons(story: Story) -> list[tuple[object, str]]:
    """Worst pair, typical pair, local DP, and what the numbers are worth."""
    summary = story.summary
    return [
        (
            number(summary.epsilons[0]),
            f"epsilon, {'any' if summary.alike else 'worst'} pair: one peer about another"
            f" ({story.terms})",
        ),
        *_typical(story),
        (
            number(summary.local_epsilon),
            f"epsilon, {_last(story)} ({story.terms})",
        ),
        *_beside(story),
        (tag("em", summary.status, class_=f"badge {summary.status}"), MEANING[summary.status]),
    ]


def _typical(story: Story) -> list[tuple[object, str]]:
    """The median where pairs differ; where they do not, what was promised, if that is more."""
    made = story.attempts
    if made is not None:
        all_of_them = f"for all {how_many(made.limit, 'attempt')}"
        text = f"epsilon, promised: {all_of_them}, with {made.most} charged"
        return [(number(made.promised), f"{text} ({story.terms})")]
    return [
        (number(story.summary.epsilons[1]), f"epsilon, typical pair: the median ({story.terms})")
    ]


def _last(story: Story) -> str:
    if story.summary.masked:
        return "if all masks were opened: against whoever sees it all"
    return "local DP alone: against whoever sees it all"


def _beside(story: Story) -> list[tuple[object, str]]:
    """The other level, for a run at record level."""
    levels = story.levels
    if levels is None:
        return []
    protected = math.isfinite(levels.whole) and levels.whole <= PROMISE
    says = "a peer as a whole" if protected else "a peer as a whole: not protected"
    terms = f"delta = {levels.delta:g}, user level, {levels.moved()}"
    return [(number(levels.whole), f"epsilon, {says} ({terms})")]


LINKS = {
    "curves": "Utility",
    "words": "What was run",
    "map-section": "You",
    "pairs": "Every pair",
    "stages": "Who talks when",
    "model": "Model",
    "distance": "Distance",
    "communication": "Communication",
    "budget": "Budget",
    "attempts": "Rounds",
    "observers": "Who sees what",
    "reading": "How to read it",
    "statement": "Guarantee",
    "attack": "Attack",
    "audit": "Audit",
    "repeat": "Repeat",
}


def story_page(story: Story) -> str:
    """The report of one run."""
    parts = join(
        [
            curves(story),
            words(story),
            model(story),
            graph_map(story),
            heat_map(story),
            stages(story),
            distance(story),
            budget(story),
            attempts(story),
            communication(story),
            observers(story),
            reading(story),
            statement(story),
            findings(story),
            repeat(story),
        ]
    )
    linked = [(name, text) for name, text in LINKS.items() if f'<section id="{name}"' in parts]
    links = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", text, href=f"#{name}")) for name, text in linked)),
        aria_label="Sections",
    )
    found = verdict(story)
    header = tag(
        "header",
        tag("div", brand(), links, class_="bar"),
        tag("h1", f"Report of {story.name}{_stopped(story)}", class_="kicker"),
        tag(
            "p",
            f"{found.headline}.",
            class_="headline worse" if found.better is False else "headline",
        ),
        _helps(found.helps),
        tag("p", price(story), class_="dek"),
        _tiles(story),
    )
    return page(f"{story.name} - bruit", [header, tag("main", parts, id="main")])


def _stopped(story: Story) -> str:
    return f", {story.run.stopped_words()}" if story.run.interrupted is not None else ""


def _helps(advice: Sequence[str]) -> Markup:
    """What would make a run better that was worse than staying alone."""
    if not advice:
        return Markup("")
    return tag(
        "div",
        tag("p", "What would help:"),
        tag("ul", *(tag("li", text) for text in advice)),
        class_="helps",
    )


def comparison_page(found: Sequence[Configuration]) -> str:
    """The report of several runs or a sweep."""
    header = tag(
        "header",
        tag("div", brand(), class_="bar"),
        tag("h1", f"{len(found)} configurations compared"),
    )
    return page("comparison - bruit", [header, tag("main", compare(found), id="main")])


def render(
    sources: Source | Sequence[Source], delta: float | None = None, progress: Progress | None = None
) -> str:
    """The page of one run, or the comparison of several runs and sweeps (CSV files), as HTML."""
    chosen = [sources] if isinstance(sources, Run | str | Path) else list(sources)
    if not chosen:
        raise ConfigError("there is nothing to report on; name at least one run folder")
    sweeps = [
        isinstance(source, str | Path) and Path(source).suffix.lower() == ".csv"
        for source in chosen
    ]
    if len(chosen) == 1 and not sweeps[0]:
        return story_page(open_story(chosen[0], delta, progress))
    found: list[Configuration] = []
    for source, is_sweep in zip(chosen, sweeps, strict=True):
        if is_sweep and not isinstance(source, Run):
            found += of_sweep(Path(source))
        else:
            found.append(of_story(open_story(source, delta, progress)))
    return comparison_page(found)


def write_report(
    sources: Source | Sequence[Source],
    path: str | Path,
    delta: float | None = None,
    progress: Progress | None = None,
    on: Workplace | str | None = None,
) -> Path:
    """Write one self-contained HTML file about a run (or its folder), or comparing several runs and
    sweeps. All pairs are accounted for `on` another place, if one is given."""
    target = Path(path)
    check_place(target)
    with chosen(place_for(1, on)):
        content = render(sources, delta, progress).encode()
    write_whole(target, lambda stream: stream.write(content))
    return target
