"""Figures of a run for notebooks (plotly) and for papers (PDF through matplotlib), with the numbers
behind each.

    Plots(run).utility()        a plotly figure
    Plots(run).csv("utility")   its numbers
    Plots(run).pdf("out.pdf")   all of them, one a page
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.errors import ConfigError
from bruit.files import check_place, write_whole
from bruit.runs.result import Run
from bruit.show.drawing.charts import Chart
from bruit.show.report.budget import budget_chart
from bruit.show.report.numbers import FIGURES, distance, spending, to_csv, utility
from bruit.show.report.pictures.curves import score_chart
from bruit.show.report.pictures.distance import distance_chart
from bruit.show.report.story import Progress, Story, tell

if TYPE_CHECKING:
    from bruit.show.report.notebook import Framed

PALETTE = (
    "#6d7680",
    "#00695f",
    "#b34300",
    "#2f5fa8",
    "#7a3e9d",
    "#806000",
    "#a3195b",
)  # s0 to s6 of look.css
SCALE = "Magma_r"


def _plotly() -> Any:
    try:
        return import_module("plotly.graph_objects")
    except ImportError:
        raise ConfigError("figures need plotly; install it with: pip install 'bruit[ui]'") from None


def _matplotlib() -> tuple[Any, Any]:
    try:
        return import_module("matplotlib.figure").Figure, import_module(
            "matplotlib.backends.backend_pdf"
        ).PdfPages
    except ImportError:
        raise ConfigError(
            "PDF figures need matplotlib; install it with: pip install 'bruit[ui]'"
        ) from None


class Plots:
    """Figures of one run; the accounting is done once, when the first figure needs it."""

    def __init__(
        self, run: Run, delta: float | None = None, progress: Progress | None = None
    ) -> None:
        self._run, self._delta, self._progress = run, delta, progress

    @cached_property
    def story(self) -> Story:
        return tell(self._run, self._delta, self._progress)

    def report(self, height: int = 720) -> Framed:
        """The whole report in a frame, for the last line of a notebook cell."""
        from bruit.show.report.notebook import framed

        return framed(self._run, self._delta, height)

    def utility(self) -> Any:
        """The score the task cares about over time, beside its references."""
        return _figure(self._utility())

    def distance(self) -> Any:
        """Loss by hops: mean, least and largest."""
        return _figure(self._distance())

    def budget(self) -> Any:
        """Epsilon spent over time, by local DP."""
        return _figure(self._budget())

    def losses(self) -> Any:
        """The matrix of pairs: rows whose data, columns who sees it, colors by the logarithm of the
        loss."""
        go, m = _plotly(), self._matrix()
        with np.errstate(divide="ignore"):
            shown = np.log10(m)
        top = np.max(shown, where=np.isfinite(shown), initial=0.0)
        shown[np.isposinf(shown)] = top + 1  # no bound: above all that have one
        shown[np.isneginf(shown)] = np.nan
        says = "of %{y}, seen by %{x}: loss %{customdata:.4g}<extra></extra>"
        figure = go.Figure(
            go.Heatmap(
                z=shown,
                customdata=m,
                colorscale=SCALE,
                hovertemplate=says,
                colorbar={"title": "log10 of the loss"},
            )
        )
        figure.update_layout(xaxis_title="seen by", yaxis_title="of", template="plotly_white")
        figure.update_yaxes(autorange="reversed", scaleanchor="x")
        return figure

    def graph(self, of: int | None = None) -> Any:
        """The graph, colored by what `of` (the most exposed peer by default) leaks to each peer."""
        go, m = _plotly(), self._matrix()
        of = (self.story.worst or (0, 0))[0] if of is None else of
        if not 0 <= of < self._run.n:
            raise ConfigError(f"there is no peer {of}: the peers are 0..{self._run.n - 1}")
        picture = self.story.picture
        where = picture.places * [picture.aspect, -1.0]  # plotly's heights grow upwards
        drawn = np.concatenate([picture.places[picture.links], picture.stubs]) * [
            picture.aspect,
            -1.0,
        ]
        ends = np.full((len(drawn), 3, 2), np.nan)  # (segments, from to gap, 2)
        ends[:, :2] = drawn
        texts = [f"{self.story.label(v)}: loss {loss:.4g}" for v, loss in enumerate(m[of].tolist())]
        texts[of] = f"{self.story.label(of)}: you"
        lines = go.Scatter(
            x=ends[..., 0].ravel(),
            y=ends[..., 1].ravel(),
            mode="lines",
            hoverinfo="skip",
            line={"width": 0.5, "color": PALETTE[0]},
        )
        bounded = np.where(
            np.isinf(m[of]), 2 * np.max(m[of], where=np.isfinite(m[of]), initial=1.0), m[of]
        )
        color = {"color": bounded, "colorscale": SCALE, "size": 9, "colorbar": {"title": "loss"}}
        dots = go.Scatter(
            x=where[:, 0], y=where[:, 1], mode="markers", text=texts, hoverinfo="text", marker=color
        )
        you = go.Scatter(
            x=where[[of], 0],
            y=where[[of], 1],
            mode="markers",
            hoverinfo="skip",
            marker={"symbol": "circle-open", "size": 16, "color": "black"},
        )
        figure = go.Figure([lines, dots, you])
        figure.update_layout(
            showlegend=False, template="plotly_white", xaxis_visible=False, yaxis_visible=False
        )
        figure.update_yaxes(scaleanchor="x")
        return figure

    def csv(self, name: str, path: str | Path | None = None) -> str:
        """The numbers behind a figure (utility, distance, budget, losses) as CSV; also written when
        there is a path."""
        if name not in FIGURES:
            raise ConfigError(f"there is no figure {name!r} (there are: {', '.join(FIGURES)})")
        text = to_csv(FIGURES[name](self.story))
        if path is not None:
            write_whole(Path(path), lambda stream: stream.write(text.encode()))
        return text

    def pdf(self, path: str | Path) -> Path:
        """Utility, distance and budget as one PDF, one figure a page."""
        figure_class, pdf_pages = _matplotlib()
        target, stream = Path(path), io.BytesIO()
        check_place(target)
        with pdf_pages(stream, metadata={"CreationDate": None}) as pages:
            for make in self._charts():
                pages.savefig(_matplotlib_figure(figure_class, make()))
        write_whole(target, lambda file: file.write(stream.getvalue()))
        return target

    def _charts(self) -> list[Callable[[], Chart]]:
        found: list[Callable[[], Chart]] = [self._utility] if self._run.metrics.rows else []
        if any(row[0] >= 0 for row in distance(self.story).rows):
            found.append(self._distance)
        return [*found, self._budget] if len(self._run.ledger) else found

    def _matrix(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        if self.story.losses is None:
            raise ConfigError(f"pairs are not told apart in this run: {self.story.reason}")
        return self.story.losses

    def _utility(self) -> Chart:
        if self.story.metric is None:
            raise ConfigError("nothing was measured in this run; run it with evaluate_every >= 1")
        return score_chart(self.story, self.story.metric, utility(self.story))

    def _distance(self) -> Chart:
        self._matrix()
        return distance_chart(distance(self.story))

    def _budget(self) -> Chart:
        if not len(self._run.ledger):
            raise ConfigError("no peer released anything in this run: there is no budget to draw")
        return budget_chart(self.story, spending(self.story))


def _figure(chart: Chart) -> Any:
    """A chart of the report as a plotly figure."""
    figure = _plotly().Figure()
    for band in chart.bands:
        figure.add_scatter(
            x=np.append(band.x, band.x[::-1]),
            y=np.append(band.high, band.low[::-1]),
            fill="toself",
            line={"width": 0},
            fillcolor=PALETTE[band.color],
            opacity=0.2,
            name=band.name,
        )
    for line in chart.lines:
        figure.add_scatter(
            x=line.x,
            y=line.y,
            name=line.name,
            mode="lines",
            showlegend=not line.thin,
            opacity=0.4 if line.thin else 1,
            line={
                "color": PALETTE[line.color],
                "width": 1 if line.thin else 2,
                "dash": "dash" if line.dashed else "solid",
                "shape": "hv" if line.step else "linear",
            },
        )
    kinds = {False: "linear", True: "log"}
    figure.update_layout(
        xaxis_title=chart.x_title,
        yaxis_title=chart.y_title,
        template="plotly_white",
        xaxis_type=kinds[chart.log_x],
        yaxis_type=kinds[chart.log_y],
    )
    return figure


def _matplotlib_figure(figure_class: Any, chart: Chart) -> Any:
    """A chart of the report as a matplotlib figure."""
    figure = figure_class(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    for band in chart.bands:
        axes.fill_between(
            band.x, band.low, band.high, color=PALETTE[band.color], alpha=0.2, label=band.name
        )
    for line in chart.lines:
        axes.plot(
            line.x,
            line.y,
            color=PALETTE[line.color],
            linestyle="--" if line.dashed else "-",
            linewidth=0.5 if line.thin else 1.6,
            label=None if line.thin else line.name,
            drawstyle="steps-post" if line.step else "default",
        )
    axes.set(
        xlabel=chart.x_title,
        ylabel=chart.y_title,
        xscale="log" if chart.log_x else "linear",
        yscale="log" if chart.log_y else "linear",
    )
    axes.legend(frameon=False, fontsize=8)
    return figure
