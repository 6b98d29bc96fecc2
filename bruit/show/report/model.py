"""The model itself: its numbers by the names of their columns, and how far peers disagree about
them."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array
from bruit.show.drawing.markup import Markup, found_figure, number, numbers_behind, section, tag
from bruit.show.report.story import Story

MOST_BARS = 24
WIDTH, HEIGHT = 300, 22  # of the drawing of one number


def model(story: Story) -> Markup:
    """The section."""
    title, estimates = "The model", np.asarray(story.run.estimates)
    if story.run.local:
        reason = (
            "What peers ended with holds raw data that was to stay at home, so it is not shown."
        )
        return section("model", title, tag("p", reason), half=True)
    if (
        estimates.ndim != 2
        or not estimates.size
        or not np.isfinite(estimates.astype(np.float64)).all()
    ):
        return section(
            "model", title, tag("p", "This run ended without a model of finite numbers."), half=True
        )
    values = estimates.astype(np.float64)
    names, named = names_of(story, values.shape[1])
    low, high, learned = values.min(axis=0), values.max(axis=0), story.run.learned
    if learned is not None:
        middle, whose = (
            values[learned.peer],
            f"the model of {story.label(learned.peer)}, the one in model.json",
        )
    else:
        middle, whose = np.mean(values, axis=0), "the mean over peers"
    order = np.argsort(-np.abs(middle), kind="stable")[:MOST_BARS]
    shown = order if named and len(middle) > MOST_BARS else np.sort(order)
    words = [f"Bars: {whose}; whiskers: from the least to the largest of any peer."]
    if len(middle) > MOST_BARS:
        words.append(f"The {MOST_BARS} largest of {len(middle)} numbers are drawn.")
    if not named:
        words.append("The run does not say what its numbers are called.")
    words.append(
        "Covered by the epsilons of this page."
        if story.run.privacy is not None
        else "It was computed without noise: no epsilon covers it."
    )
    drawn = _bars([names[k] for k in shown], middle[shown], low[shown], high[shown])
    rows = [
        (names[k], float(middle[k]), float(low[k]), float(high[k]))
        for k in range(min(len(middle), 400))
    ]
    verb = "is largest" if story.run.task.get("task") == "Mean" else "weighs most"
    figure = found_figure(
        _finding(names, middle, low, high, verb), drawn, " ".join(words), story.source
    )
    table = numbers_behind(("number", whose, "least", "largest"), rows, "the model")
    return section("model", title, figure, table, half=True)


def _finding(names: list[str], middle: Array, low: Array, high: Array, verb: str) -> str:
    largest = int(np.abs(middle).argmax())
    apart = float((high - low).max())
    agree = (
        "all peers agree"
        if apart <= 1e-3 * max(float(np.abs(middle).max()), 1e-12)
        else (f"peers differ by up to {number(apart)}")
    )
    if len(middle) == 1:
        return f"The result is {number(float(middle[0]))}; {agree}"
    return f"{names[largest][:1].upper()}{names[largest][1:]} {verb} ({number(float(middle[largest]))}); {agree}"


def names_of(story: Story, count: int) -> tuple[list[str], bool]:
    """The names of the numbers of the model, and whether they are known: those of its recipe, else
    of its task."""
    learned = story.run.learned
    recipe = None if learned is None else learned.recipe
    if learned is not None and learned.network is not None and learned.network.dim == count:
        return learned.network.names(), True
    if learned is not None and recipe is not None:
        inputs = [*recipe.inputs, *(["intercept"] if recipe.intercept else [])]
        if inputs and len(inputs) == count:
            return inputs, True
        if len(inputs) * len(recipe.classes) == count and inputs:
            return [f"{name}, {label}" for label in recipe.classes for name in inputs], True
        if not inputs and len(recipe.classes) == count:
            return list(recipe.classes), True
    if story.run.task.get("task") == "Mean":
        return [f"coordinate {k + 1}" if count > 1 else "mean" for k in range(count)], True
    return [f"number {k + 1}" for k in range(count)], False


def _bars(names: list[str], middle: Array, low: Array, high: Array) -> Markup:
    """A table whose middle column draws the numbers: a bar from zero, and a whisker over all
    peers."""
    least, most = min(0.0, float(low.min())), max(0.0, float(high.max()))
    span = (most - least) or 1.0

    def at(value: float) -> float:
        return (value - least) / span * WIDTH

    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", _bar(at(0.0), at(value), at(few), at(many), value >= 0)),
            tag("td", number(value), class_="number"),
        )
        for name, value, few, many in zip(
            names, middle.tolist(), low.tolist(), high.tolist(), strict=True
        )
    ]
    scale = f"from {number(least)} to {number(most)}"
    head = tag(
        "tr",
        tag("th", "number", scope="col"),
        tag("th", scale, scope="col"),
        tag("th", "value", scope="col", class_="number"),
    )
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="bars")


def _bar(zero: float, end: float, low: float, high: float, positive: bool) -> Markup:
    """One picture: a bar from zero to its end, and a whisker from low to high."""
    start, stop = sorted((zero, end))
    bar = tag(
        "rect",
        x=f"{start:.1f}",
        y=4,
        width=f"{max(stop - start, 0.5):.1f}",
        height=HEIGHT - 8,
        class_=f"amount {'s1' if positive else 's2'}",
    )
    whisker = tag(
        "line",
        x1=f"{low:.1f}",
        x2=f"{high:.1f}",
        y1=HEIGHT / 2,
        y2=HEIGHT / 2,
        class_="whisker",
    )
    axis = tag("line", x1=f"{zero:.1f}", x2=f"{zero:.1f}", y1=0, y2=HEIGHT, class_="axis")
    return tag(
        "svg",
        bar,
        whisker,
        axis,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        class_="amounts",
    )
