"""Figures as inline SVG: lines, bands and points on two axes. Colors are classes, so light, dark and paper differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.dashboard.axes import Axis, axis
from bruit.dashboard.markup import Markup, join, number, tag

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44
COLORS = 6


@dataclass(frozen=True, eq=False)
class Line:
    """One curve; color 0 is ink, 1 to 6 are those of the legend."""

    name: str
    x: Array
    y: Array
    color: int = 1
    dashed: bool = False
    step: bool = False
    thin: bool = False


@dataclass(frozen=True, eq=False)
class Band:
    """Everything between two curves."""

    name: str
    x: Array
    low: Array
    high: Array
    color: int = 1


@dataclass(frozen=True)
class Point:
    """One dot; `text` is what pointing at it says."""

    x: float
    y: float
    text: str
    color: int = 1
    small: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """What one figure shows; `label` says it in a sentence for those who cannot see it."""

    label: str
    x_title: str
    y_title: str
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    points: Sequence[Point] = ()
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False

    def axes(self) -> tuple[Axis, Axis]:
        xs = [line.x for line in self.lines] + [band.x for band in self.bands] + [np.array([p.x for p in self.points])]
        ys = [line.y for line in self.lines] + [np.concatenate([b.low, b.high]) for b in self.bands]
        ys.append(np.array([point.y for point in self.points]))
        return (axis(np.concatenate(xs), LEFT, WIDTH - RIGHT, self.log_x, self.whole_x),
                axis(np.concatenate(ys), HEIGHT - BOTTOM, TOP, self.log_y))  # fmt: skip


def draw(chart: Chart) -> Markup:
    """The figure and its legend."""
    x, y = chart.axes()
    inside = [_frame(x, y, chart.x_title, chart.y_title)]
    inside += [_band(band, x, y) for band in chart.bands]
    inside += [_line(line, x, y) for line in chart.lines]
    inside += [_point(point, x, y) for point in chart.points]
    whole = tag("svg", *inside, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=chart.label, class_="chart")
    return join([whole, _legend(chart)])


def _frame(x: Axis, y: Axis, x_title: str, y_title: str) -> Markup:
    parts = []
    for tick, place in zip(y.ticks(), y.at(np.array(y.ticks())).tolist(), strict=True):
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{place:.1f}", y2=f"{place:.1f}", class_="grid"))
        parts.append(tag("text", number(tick), x=LEFT - 6, y=f"{place + 4:.1f}", text_anchor="end"))
    for tick, place in zip(x.ticks(), x.at(np.array(x.ticks())).tolist(), strict=True):
        parts.append(tag("text", number(tick), x=f"{place:.1f}", y=HEIGHT - BOTTOM + 17, text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM, class_="axis"))
    parts.append(tag("text", x_title, x=middle, y=HEIGHT - 8, text_anchor="middle", class_="title"))
    place = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(tag("text", y_title, transform=f"rotate(-90 13 {place:g})", x=13, y=f"{place:g}",
                     text_anchor="middle", class_="title"))  # fmt: skip
    return tag("g", *parts, aria_hidden="true")


def _places(x: Array, y: Array, across: Axis, up: Axis) -> list[tuple[float, float]]:
    finite = np.isfinite(x) & np.isfinite(y)
    return list(zip(across.at(x[finite]).tolist(), up.at(y[finite]).tolist(), strict=True))


def _line(line: Line, x: Axis, y: Axis) -> Markup:
    places = _places(line.x, line.y, x, y)
    if not places:
        return Markup("")
    drawn = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for across, up in places[1:]:
        drawn += f"H{across:.1f}V{up:.1f}" if line.step else f"L{across:.1f} {up:.1f}"
    kind = f"line s{line.color}" + (" dashed" if line.dashed else "") + (" thin" if line.thin else "")
    drawing = tag("path", tag("title", line.name), d=drawn, class_=kind)
    if len(places) > 1:
        return drawing
    return tag("circle", tag("title", line.name), cx=f"{places[0][0]:.1f}", cy=f"{places[0][1]:.1f}", r=4,
               class_=f"dot s{line.color}")  # fmt: skip


def _band(band: Band, x: Axis, y: Axis) -> Markup:
    there, back = _places(band.x, band.high, x, y), _places(band.x, band.low, x, y)[::-1]
    outline = "L".join(f"{across:.1f} {up:.1f}" for across, up in there + back)
    return tag("path", tag("title", band.name), d=f"M{outline}Z", class_=f"band s{band.color}")


def _point(point: Point, x: Axis, y: Axis) -> Markup:
    places = _places(np.array([point.x]), np.array([point.y]), x, y)
    return join(
        tag("circle", tag("title", point.text), cx=f"{across:.1f}", cy=f"{up:.1f}", r=2.5 if point.small else 5,
            class_=f"dot s{point.color}")
        for across, up in places
    )  # fmt: skip


def _legend(chart: Chart) -> Markup:
    shown = [(band.name, f"swatch wide-swatch b{band.color}") for band in chart.bands if band.name]
    shown += [(line.name, f"swatch b{line.color}" + (" dashed" if line.dashed else ""))
              for line in chart.lines if line.name and not line.thin]  # fmt: skip
    items = [tag("li", tag("span", class_=kind, aria_hidden="true"), name) for name, kind in shown]
    return tag("ul", *items, class_="legend") if items else Markup("")
