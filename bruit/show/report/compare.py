"""Several runs, or a sweep, on one page: privacy against utility, one point per configuration."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bruit.errors import ConfigError
from bruit.files import to_json
from bruit.privacy.guarantee import REALLY, STATUSES, level_words
from bruit.show.drawing.charts import COLORS, Chart, Dot, draw_both
from bruit.show.drawing.markup import Markup, found_figure, join, number, section, table, tag
from bruit.show.report.story import Story
from bruit.show.summary import headline

AGAINST = {
    "epsilon_worst": "worst pair",
    "epsilon_typical": "typical pair (median)",
    "epsilon_local": "local DP alone",
}
NOT_SCORES = {
    *AGAINST,
    *("delta", "level", "status", "seed", "gain"),
    *("alone", "central", "alone_worst", "central_worst"),
}
MOST_ROWS = 20_000  # of a sweep's file
MOST_SCORES = 3
TOLD = (
    "task",
    "data",
    "split",
    "seed",
    "test",
    "records",
    "rows",
    "peers",
)  # what tells one task from another


@dataclass(kw_only=True)
class Configuration:
    """One setting: its scores and epsilons, one number per seed."""

    name: str
    about: str
    numbers: dict[str, list[float]] = field(default_factory=dict)
    delta: str = ""
    level: str = ""  # what its epsilons protect, in words; "" where a file does not say
    status: str = ""
    task: str = ""

    def value(self, name: str) -> float:
        """The mean of a score over seeds, but the largest epsilon: a mean would promise more than
        holds."""
        found = self.numbers.get(name, [])
        if not found:
            return math.nan
        return max(found) if name in AGAINST else sum(found) / len(found)

    def scores(self) -> list[str]:
        return [name for name in self.numbers if name not in NOT_SCORES]


def of_story(story: Story) -> Configuration:
    """A run as a configuration with one seed."""
    metrics, summary = story.run.metrics, story.summary
    numbers = {name: [metrics.last(name)] for name in metrics.names()}
    numbers |= dict(
        zip(
            AGAINST,
            ([summary.epsilons[0]], [summary.epsilons[1]], [summary.local_epsilon]),
            strict=True,
        )
    )
    return Configuration(
        name=story.name,
        about=headline(story.run),
        numbers=numbers,
        delta=f"{summary.delta:g}",
        level=level_words(summary.level, summary.adjacency),
        status=summary.status,
        task=to_json({key: story.run.task.get(key) for key in TOLD}),
    )


def of_sweep(path: Path) -> list[Configuration]:
    """The settings of a sweep's CSV file: rows that differ in nothing but the seed are one."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            names = list(reader.fieldnames or ())
            rows = [row for _, row in zip(range(MOST_ROWS + 1), reader, strict=False)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read the sweep {path}: {error}") from None
    if "seed" not in names or "epsilon_worst" not in names:
        raise ConfigError(
            f"{path} is not a sweep of bruit: it has no columns seed and epsilon_worst"
        )
    if not 0 < len(rows) <= MOST_ROWS:
        held = "more" if rows else "none"
        raise ConfigError(f"a comparison shows 1 to {MOST_ROWS} rows of a sweep; {path} has {held}")
    varied = names[: names.index("seed")]
    groups: dict[tuple[str, ...], Configuration] = {}
    for number_, row in enumerate(rows, start=2):
        if row.get("error"):
            continue  # a run that failed has nothing to compare
        values = tuple(row.get(name) or "" for name in varied)
        text = (
            ", ".join(f"{name} = {value}" for name, value in zip(varied, values, strict=True))
            or path.stem
        )
        new = Configuration(
            name=text,
            about=text,
            numbers={},
            delta=row.get("delta") or "",
            level=row.get("level") or "",
            status=row.get("status") or "",
        )
        group = groups.setdefault(values, new)
        group.status = max(group.status, new.status, key=_weakness)
        for name in names[len(varied) + 1 :]:
            if name not in ("delta", "level", "status", "error") and row.get(name):
                group.numbers.setdefault(name, []).append(_float(row[name], path, number_))
    return list(groups.values())


def _weakness(status: str) -> int:
    """How little a status says; one that is not known says least."""
    return STATUSES.index(status) if status in STATUSES else len(STATUSES)


def _float(text: str, path: Path, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{path}, line {line}: {text!r} is not a number") from None


def _known(delta: str) -> float | str:
    """A number where it is one, so that it stands with the numbers."""
    try:
        return float(delta)
    except ValueError:
        return delta


def shared_scores(found: Sequence[Configuration]) -> list[str]:
    """Scores that every configuration has, in order; else those that any has."""
    common = [name for name in found[0].scores() if all(name in other.numbers for other in found)]
    return (common or list(dict.fromkeys(name for one in found for name in one.scores())))[
        :MOST_SCORES
    ]


def trade_off(found: Sequence[Configuration], score: str, against: str) -> Chart:
    """One point per configuration, a small one for each of its seeds."""
    points = []
    for k, one in enumerate(found):
        color = k % COLORS + 1
        drawn = list(zip(one.numbers.get(against, []), one.numbers.get(score, []), strict=False))
        if len(drawn) > 1:
            points += [Dot(x, y, f"{one.name}, one seed", color, small=True) for x, y in drawn]
        text = (
            f"{one.name}: epsilon {number(one.value(against))}, {score} {number(one.value(score))}"
        )
        points.append(Dot(one.value(against), one.value(score), text, color))
    log = all(point.x > 0 for point in points)
    return Chart(
        label=f"{score} against the epsilon of the {AGAINST[against]}, {len(found)} configurations",
        x_title=f"epsilon, {AGAINST[against]}",
        y_title=score,
        points=points,
        log_x=log,
    )


def compare(found: Sequence[Configuration]) -> Markup:
    """The section: figures, what is not drawn, and the table."""
    scores = shared_scores(found)
    return section(
        "compare",
        "Privacy against utility",
        tag("p", " ".join(_cautions(found))),
        tag("div", *_figures(found, scores), class_="figures"),
        _all_configurations(found, scores),
    )


def _figures(found: Sequence[Configuration], scores: Sequence[str]) -> list[Markup]:
    """Each score against each epsilon, where both are known of some configuration."""
    drawn = []
    for score in scores:
        for against in ("epsilon_worst", "epsilon_local"):
            if any(
                math.isfinite(one.value(against)) and math.isfinite(one.value(score))
                for one in found
            ):
                chart = trade_off(found, score, against)
                drawn.append(
                    found_figure(f"{score} against epsilon, {AGAINST[against]}", draw_both(chart))
                )
    return drawn


def _cautions(found: Sequence[Configuration]) -> list[str]:
    """How to read the figures, what is not drawn, and what cannot be compared."""
    words = [
        "Further left is more private. One point per configuration; small points are single seeds."
    ]
    deltas = sorted({one.delta for one in found})
    words.append(
        f"delta = {deltas[0]}."
        if len(deltas) == 1
        else f"Careful: these epsilons have different deltas ({', '.join(deltas)})."
    )
    levels = sorted({one.level or "level not told" for one in found})
    words.append(
        f"Protected: {levels[0]}."
        if len(levels) == 1
        else f"Careful: these epsilons protect different things ({'; '.join(levels)}): they cannot be"
        " compared with each other."
    )
    hidden = [one.name for one in found if math.isinf(one.value("epsilon_worst"))]
    if hidden:
        words.append(f"Not drawn, because its epsilon is infinite: {'; '.join(hidden)}.")
    ideal = [one.name for one in found if one.status == "ideal"]
    if ideal:
        words.append(f"Ideal, {REALLY}: {'; '.join(ideal)}.")
    if len({one.task for one in found}) > 1:
        words.append(
            "Careful: these configurations have different tasks or data: scores of one name need"
            " not mean the same."
        )
    return words


def _all_configurations(found: Sequence[Configuration], scores: Sequence[str]) -> Markup:
    swatches = [
        join(
            [
                tag("span", class_=f"swatch wide-swatch b{k % COLORS + 1}", aria_hidden="true"),
                one.name,
            ]
        )
        for k, one in enumerate(found)
    ]
    rows = [
        (
            name,
            *(one.value(score) for score in scores),
            *(one.value(key) for key in AGAINST),
            _known(one.delta),
            one.level,
            one.status,
            max((len(values) for values in one.numbers.values()), default=0),
            one.about,
        )
        for name, one in zip(swatches, found, strict=True)
    ]
    names = (
        "configuration",
        *scores,
        *(f"epsilon, {text}" for text in AGAINST.values()),
        "delta",
        "level",
        "status",
        "seeds",
        "what",
    )
    return table("All configurations (mean scores and largest epsilons over seeds)", names, rows)
