"""Any peer's view of a run that is still going on: what that peer will have learned by which step,
without any data."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.show.live.saved import plain
from bruit.show.live.worker import leaks_ahead


def view_ahead(draft: Path, peer: int) -> dict[str, Any]:
    """Epsilon of every peer in this one's view, by step, from rehearsals of the same protocol."""
    found: dict[str, Any] = _view_ahead(str(draft), draft.read_text(encoding="utf-8"), peer)
    return found


@lru_cache(maxsize=64)
def _view_ahead(where: str, text: str, peer: int) -> dict[str, Any]:
    from bruit.runs.build import build
    from bruit.runs.file import parse

    file = parse(text, where)
    built = build(file, text, Path(where).name)
    if not 0 <= peer < built.graph.n:
        raise ConfigError(f"there is no peer {peer}: the peers are 0..{built.graph.n - 1}")
    if built.algorithm.schedule.timed:
        raise ConfigError(
            "who has heard what depends on who met whom; other peers' views are shown when the run"
            " has ended"
        )
    leaks = leaks_ahead(built, file.delta, peer)
    if not leaks:
        raise ConfigError(
            "nothing can be said ahead of this run; other peers' views are shown when it has ended"
        )
    return {"seen_by": peer, "ahead": plain(sorted(leaks.items())), "final": False}
