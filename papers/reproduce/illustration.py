"""Figures of the sources that show no numbers: nothing is computed for them, and why."""

from __future__ import annotations

from dataclasses import dataclass

from papers.reproduce.figure import DOCUMENTS


@dataclass(frozen=True, kw_only=True)
class Illustration:
    """A printed figure without data behind it."""

    id: str
    number: str
    why: str  # what it shows, and where this repository says the same

    @property
    def document(self) -> str:
        """The source, in words."""
        return DOCUMENTS[self.id.split("-")[0]]
