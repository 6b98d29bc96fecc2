"""Several runs, or a sweep, on one page: privacy against utility, one point per configuration."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bruit.dashboard.charts import COLORS, Chart, Point, draw_both
from bruit.dashboard.markup import Markup, found_figure, join, number, section, table, tag
from bruit.dashboard.story import Story
from bruit.errors import ConfigError
from bruit.privacy.guarantee import REALLY, STATUSES
from bruit.report import headline
from bruit.whole_files import to_json

AGAINST = {"epsilon_worst": "worst pair", "epsilon_typical": "typical pair (median)", "epsilon_local": "local DP alone"}
NOT_SCORES = {*AGAINST, "delta", "status", "seed", "alone", "central", "gain"}
MOST_ROWS = 20_000  # of a sweep's file
MOST_SCORES = 3
TOLD = ("task", "data", "split", "seed", "test", "records", "rows", "peers")  # what tells one task from another


@dataclass
class Configuration:
    """One setting: its scores and epsilons, one number per seed."""

    name: str
    about: str
    numbers: dict[str, list[float]] = field(default_factory=dict)
    delta: str = ""
    status: str = ""
    task: str = ""

    def value(self, name: str) -> float:
        """The mean of a score over seeds, but the largest epsilon: a mean would promise more than holds."""
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
    numbers |= dict(zip(AGAINST, ([summary.epsilons[0]], [summary.epsilons[1]], [summary.local_epsilon]), strict=True))
    return Configuration(story.name, headline(story.run), numbers, f"{summary.delta:g}", summary.status,
                         to_json({key: story.run.task.get(key) for key in TOLD}))  # fmt: skip


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
        raise ConfigError(f"{path} is not a sweep of bruit: it has no columns seed and epsilon_worst")
    if not 0 < len(rows) <= MOST_ROWS:
        held = "more" if rows else "none"
        raise ConfigError(f"a comparison shows 1 to {MOST_ROWS} rows of a sweep; {path} has {held}")
    varied = names[: names.index("seed")]
    groups: dict[tuple[str, ...], Configuration] = {}
    for number_, row in enumerate(rows, start=2):
        if row.get("error"):
            continue  # a run that failed has nothing to compare
        values = tuple(row.get(name) or "" for name in varied)
        text = ", ".join(f"{name} = {value}" for name, value in zip(varied, values, strict=True)) or path.stem
        new = Configuration(text, text, {}, row.get("delta") or "", row.get("status") or "")
        group = groups.setdefault(values, new)
        group.status = max(group.status, new.status, key=_weakness)
        for name in names[len(varied) + 1:]:
            if name not in ("delta", "status", "error") and row.get(name):
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
    return (common or list(dict.fromkeys(name for one in found for name in one.scores())))[:MOST_SCORES]


def trade_off(found: Sequence[Configuration], score: str, against: str) -> Chart:
    """One point per configuration, a small one for each of its seeds."""
    points = []
    for k, one in enumerate(found):
        color = k % COLORS + 1
        drawn = list(zip(one.numbers.get(against, []), one.numbers.get(score, []), strict=False))
        if len(drawn) > 1:
            points += [Point(x, y, f"{one.name}, one seed", color, small=True) for x, y in drawn]
        text = f"{one.name}: epsilon {number(one.value(against))}, {score} {number(one.value(score))}"
        points.append(Point(one.value(against), one.value(score), text, color))
    log = all(point.x > 0 for point in points)
    return Chart(f"{score} against the epsilon of the {AGAINST[against]}, {len(found)} configurations",
                 f"epsilon, {AGAINST[against]}", score, points=points, log_x=log)  # fmt: skip


def compare(found: Sequence[Configuration]) -> Markup:
    """The section: figures, what is not drawn, and the table."""
    scores = shared_scores(found)
    drawn = []
    for score in scores:
        for against in ("epsilon_worst", "epsilon_local"):
            if any(math.isfinite(one.value(against)) and math.isfinite(one.value(score)) for one in found):
                chart = trade_off(found, score, against)
                drawn.append(found_figure(f"{score} against epsilon, {AGAINST[against]}", draw_both(chart)))
    words = ["Further left is more private. One point per configuration; small points are single seeds."]
    deltas = sorted({one.delta for one in found})
    words.append(f"delta = {deltas[0]}." if len(deltas) == 1 else
                 f"Careful: these epsilons have different deltas ({', '.join(deltas)}).")  # fmt: skip
    hidden = [one.name for one in found if math.isinf(one.value("epsilon_worst"))]
    if hidden:
        words.append(f"Not drawn, because its epsilon is infinite: {'; '.join(hidden)}.")
    ideal = [one.name for one in found if one.status == "ideal"]
    if ideal:
        words.append(f"Ideal, {REALLY}: {'; '.join(ideal)}.")
    if len({one.task for one in found}) > 1:
        words.append("Careful: these configurations have different tasks or data: scores of one name need not mean the"
                     " same.")  # fmt: skip
    swatches = [join([tag("span", class_=f"swatch wide-swatch b{k % COLORS + 1}", aria_hidden="true"), one.name])
                for k, one in enumerate(found)]  # fmt: skip
    rows = [(name, *(one.value(score) for score in scores), *(one.value(key) for key in AGAINST), _known(one.delta),
             one.status, max((len(values) for values in one.numbers.values()), default=0), one.about)
            for name, one in zip(swatches, found, strict=True)]  # fmt: skip
    names = ("configuration", *scores, *(f"epsilon, {text}" for text in AGAINST.values()), "delta", "status", "seeds",
             "what")  # fmt: skip
    return section("compare", "Privacy against utility", tag("p", " ".join(words)),
                   tag("div", *drawn, class_="figures"),
                   table("All configurations (mean scores and largest epsilons over seeds)", names, rows))  # fmt: skip
