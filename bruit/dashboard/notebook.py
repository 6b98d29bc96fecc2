"""The whole report inside a notebook, in a frame of its own that may run its script and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from bruit.dashboard.markup import tag
from bruit.dashboard.page import Source, render


@dataclass(frozen=True)
class Framed:
    """A report to display: a notebook asks for `_repr_html_`."""

    html: str
    height: int = 720

    def _repr_html_(self) -> str:
        return tag("iframe", srcdoc=self.html, sandbox="allow-scripts", width="100%", height=self.height,
                   title="report of a run")  # fmt: skip


def framed(source: Source | list[Source], delta: float = 1e-6, height: int = 720) -> Framed:
    """The report of a run (or of several) for the last line of a notebook cell."""
    return Framed(render(source, delta), height)
