"""The whole report inside a notebook, in a frame of its own that may run its script and nothing
else."""

from __future__ import annotations

from dataclasses import dataclass

from bruit.show.drawing.markup import tag
from bruit.show.report.page import Source, render


@dataclass(frozen=True)
class Framed:
    """A report to display: a notebook asks for `_repr_html_`."""

    html: str
    height: int = 720

    def _repr_html_(self) -> str:
        return tag(
            "iframe",
            srcdoc=self.html,
            sandbox="allow-scripts",
            width="100%",
            height=self.height,
            title="report of a run",
        )


def framed(source: Source | list[Source], delta: float | None = None, height: int = 720) -> Framed:
    """The report of a run (or of several) for the last line of a notebook cell."""
    return Framed(render(source, delta), height)
