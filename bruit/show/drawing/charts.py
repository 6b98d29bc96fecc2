"""Figures as inline SVG: lines, bands and points on two axes. Colors are classes, so light, dark
and paper differ.

Lines carry their own names at their ends where they have one to say; otherwise a legend tells them
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bruit.arrays import Array
from bruit.show.drawing.axes import Axis, axis
from bruit.show.drawing.markup import Markup, join, number, tag

COLORS = 6
LETTER = 8.3  # width of a letter of the largest type that figures use, on phones
MOST_PLACES = 500  # of a curve; of more, evenly chosen ones


@dataclass(frozen=True, kw_only=True)
class FigureSize:
    """The size of a figure and of its margins; `one_line`: name and number stand side by side at
    the end of a line."""

    width: int = 440
    height: int = 286
    left: int = 52
    right: int = 14
    top: int = 34
    bottom: int = 46
    one_line: bool = False


NARROW, HALF, BROAD = (
    FigureSize(),
    FigureSize(width=620, height=320),
    FigureSize(width=860, height=430, one_line=True),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """One curve; color 0 is ink, 1 to 6 are those of the legend. `end` is what its end says beside
    its last number."""

    name: str
    x: Array
    y: Array
    color: int = 1
    dashed: bool = False
    step: bool = False
    thin: bool = False
    end: str = ""


@dataclass(frozen=True, eq=False)
class Band:
    """Everything between two curves."""

    name: str
    x: Array
    low: Array
    high: Array
    color: int = 1


@dataclass(frozen=True)
class Dot:
    """One dot; `text` is what pointing at it says."""

    x: float
    y: float
    text: str
    color: int = 1
    small: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Chart:
    """What one figure shows; `label` says it in a sentence for those who cannot see it."""

    label: str
    x_title: str
    y_title: str
    lines: Sequence[Curve] = ()
    bands: Sequence[Band] = ()
    points: Sequence[Dot] = ()
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False
    ends: Sequence[Curve] = field(init=False)

    def __post_init__(self) -> None:
        finite = [
            line
            for line in self.lines
            if line.end and np.isfinite(line.x).any() and np.isfinite(line.y).any()
        ]
        object.__setattr__(self, "ends", finite)

    def axes(self, box: FigureSize = NARROW) -> tuple[Axis, Axis]:
        xs = (
            [line.x for line in self.lines]
            + [band.x for band in self.bands]
            + [np.array([p.x for p in self.points])]
        )
        ys = [line.y for line in self.lines] + [np.concatenate([b.low, b.high]) for b in self.bands]
        ys.append(np.array([point.y for point in self.points]))
        return (
            axis(
                np.concatenate(xs),
                box.left,
                box.width - self.margin(box),
                self.log_x,
                self.whole_x,
                air=not (self.lines or self.bands),
            ),
            axis(np.concatenate(ys), box.height - box.bottom, box.top, self.log_y),
        )

    def margin(self, box: FigureSize) -> float:
        """Room at the right for what the ends of lines say."""
        texts = [
            f"{line.end} {_last(line)}" if box.one_line else max(line.end, _last(line), key=len)
            for line in self.ends
        ]
        return min(0.4 * box.width, 12 + LETTER * max(map(len, texts))) if texts else box.right


def draw(chart: Chart, box: FigureSize = NARROW) -> Markup:
    """The figure, and its legend if its lines do not name themselves."""
    x, y = chart.axes(box)
    inside = [_frame(x, y, chart, box)]
    inside += [_band(band, x, y) for band in chart.bands]
    inside += [_line(line, x, y) for line in chart.lines]
    inside += [_point(point, x, y) for point in chart.points]
    inside.append(_ends(chart, x, y, box))
    whole = tag(
        "svg",
        *inside,
        viewBox=f"0 0 {box.width} {box.height}",
        role="img",
        aria_label=chart.label,
        class_="chart",
    )
    return join([whole, _legend(chart)])


def draw_both(chart: Chart, box: FigureSize = HALF) -> Markup:
    """The same figure twice, for wide and for narrow screens; one of them is shown."""
    return join(
        [
            tag("div", draw(chart, box), class_="if-wide"),
            tag("div", draw(chart), class_="if-narrow"),
        ]
    )


def _last(line: Curve) -> str:
    return number(float(line.y[np.isfinite(line.y)][-1]))


def _frame(x: Axis, y: Axis, chart: Chart, box: FigureSize) -> Markup:
    parts, foot, right = [], box.height - box.bottom, x.stop
    for tick, place in zip(y.ticks(), y.at(np.array(y.ticks())).tolist(), strict=True):
        parts.append(
            tag(
                "line",
                x1=box.left,
                x2=f"{right:.1f}",
                y1=f"{place:.1f}",
                y2=f"{place:.1f}",
                class_="grid",
            )
        )
        parts.append(
            tag("text", number(tick), x=box.left - 7, y=f"{place + 4:.1f}", text_anchor="end")
        )
    for tick, place in zip(x.ticks(), x.at(np.array(x.ticks())).tolist(), strict=True):
        parts.append(
            tag("line", x1=f"{place:.1f}", x2=f"{place:.1f}", y1=foot, y2=foot + 4, class_="axis")
        )
        parts.append(tag("text", number(tick), x=f"{place:.1f}", y=foot + 19, text_anchor="middle"))
    parts.append(tag("line", x1=box.left, x2=f"{right:.1f}", y1=foot, y2=foot, class_="axis"))
    middle = (box.left + right) / 2
    parts.append(
        tag(
            "text",
            chart.x_title,
            x=f"{middle:.1f}",
            y=box.height - 7,
            text_anchor="middle",
            class_="title",
        )
    )
    parts.append(tag("text", chart.y_title, x=2, y=15, class_="title"))
    return tag("g", *parts, aria_hidden="true")


def _places(x: Array, y: Array, across: Axis, up: Axis) -> list[tuple[float, float]]:
    finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    some = finite[
        np.unique(np.linspace(0, len(finite) - 1, min(len(finite), MOST_PLACES)).astype(int))
    ]
    return list(zip(across.at(x[some]).tolist(), up.at(y[some]).tolist(), strict=True))


def _line(line: Curve, x: Axis, y: Axis) -> Markup:
    places = _places(line.x, line.y, x, y)
    if not places:
        return Markup("")
    drawn = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for across, up in places[1:]:
        drawn += f"H{across:.1f}V{up:.1f}" if line.step else f"L{across:.1f} {up:.1f}"
    kind = (
        f"line s{line.color}" + (" dashed" if line.dashed else "") + (" thin" if line.thin else "")
    )
    drawing = tag("path", tag("title", line.name), d=drawn, class_=kind)
    if len(places) > 1:
        return drawing
    return tag(
        "circle",
        tag("title", line.name),
        cx=f"{places[0][0]:.1f}",
        cy=f"{places[0][1]:.1f}",
        r=4,
        class_=f"dot s{line.color}",
    )


def _ends(chart: Chart, x: Axis, y: Axis, box: FigureSize) -> Markup:
    """What lines say at their ends, moved apart where they would overlap."""
    if not chart.ends:
        return Markup("")
    high = 17.0 if box.one_line else 31.0
    wanted = np.array([_places(line.x, line.y, x, y)[-1][1] for line in chart.ends])
    order = np.argsort(wanted, kind="stable")
    place = wanted[order]
    for k in range(1, len(place)):
        place[k] = max(place[k], place[k - 1] + high)
    place -= max(0.0, place[-1] - (box.height - box.bottom - (0 if box.one_line else 8)))
    for k in range(len(place) - 2, -1, -1):
        place[k] = min(place[k], place[k + 1] - high)
    labels, across = [], f"{x.stop + 8:.1f}"
    for k, at in zip(order.tolist(), place.tolist(), strict=True):
        line = chart.ends[k]
        kind = f"say s{line.color}"
        if box.one_line:
            labels.append(
                tag("text", f"{line.end} {_last(line)}", x=across, y=f"{at + 4:.1f}", class_=kind)
            )
        else:
            labels.append(
                tag(
                    "text",
                    tag("tspan", line.end, x=across, y=f"{at - 3:.1f}"),
                    tag("tspan", _last(line), x=across, y=f"{at + 12:.1f}"),
                    class_=kind,
                )
            )
    return tag("g", *labels, aria_hidden="true")


def _band(band: Band, x: Axis, y: Axis) -> Markup:
    there, back = _places(band.x, band.high, x, y), _places(band.x, band.low, x, y)[::-1]
    outline = "L".join(f"{across:.1f} {up:.1f}" for across, up in there + back)
    return tag("path", tag("title", band.name), d=f"M{outline}Z", class_=f"band s{band.color}")


def _point(point: Dot, x: Axis, y: Axis) -> Markup:
    places = _places(np.array([point.x]), np.array([point.y]), x, y)
    return join(
        tag(
            "circle",
            tag("title", point.text),
            cx=f"{across:.1f}",
            cy=f"{up:.1f}",
            r=2.5 if point.small else 5,
            class_=f"dot s{point.color}",
        )
        for across, up in places
    )


def _legend(chart: Chart) -> Markup:
    shown = [
        (band.name, f"swatch wide-swatch b{band.color}") for band in chart.bands if not chart.ends
    ]
    shown += [
        (line.name, f"swatch b{line.color}" + (" dashed" if line.dashed else ""))
        for line in chart.lines
        if line.name and not line.thin and not line.end
    ]
    items = [tag("li", tag("span", class_=kind, aria_hidden="true"), name) for name, kind in shown]
    return tag("ul", *items, class_="legend") if items else Markup("")
