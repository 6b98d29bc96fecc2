"""How to repeat it: commands, seed, the experiment file and the manifest."""

from __future__ import annotations

import shlex

from bruit.files import to_json
from bruit.show.drawing.markup import Markup, join, section, tag
from bruit.show.report.story import Story


def commands(story: Story) -> list[str]:
    """What to type: run again, compare, ask about the worst pair."""
    folder = shlex.quote(story.name if story.folder is not None else "RUN")
    typed = []
    if story.run.experiment:
        typed += [
            f"bruit run experiment.toml --seed {story.run.seed} --out again.run",
            f"bruit replay {folder}",
        ]
    of, seen_by = story.worst if story.worst is not None else (0, None)
    to = "everybody" if seen_by is None else str(seen_by)
    typed.append(f"bruit epsilon {folder} --of {of} --seen-by {to} --delta {story.delta:g}")
    typed.append(f"bruit show {folder} --html report.html --csv numbers")
    return typed


def repeat(story: Story) -> Markup:
    """The section."""
    run = story.run
    words = f"Everything that was drawn follows from the seed {run.seed}: the same file and seed give the same run."
    parts: list[object] = [tag("p", words), tag("pre", "\n".join(commands(story)), tabindex="0")]
    if run.experiment:
        parts.append(
            tag(
                "details",
                tag("summary", "experiment.toml"),
                tag("pre", run.experiment, tabindex="0"),
            )
        )
    else:
        parts.append(
            tag(
                "p",
                "It was started from Python, without an experiment file; its manifest says with "
                "what.",
            )
        )
    manifest = tag("pre", to_json(run.manifest()), tabindex="0")
    parts.append(tag("details", tag("summary", "The manifest"), manifest))
    return section("repeat", "How to repeat it", join(parts))
