"""What attacks and audits found, when attack.json or audit.json lies in the run folder."""

from __future__ import annotations

from typing import Any

from bruit.show.drawing.markup import Markup, cell, join, section, tag
from bruit.show.report.story import FINDINGS, Story, finding

TITLES = {"attack": "What an attack found", "audit": "What an audit measured"}
MOST_ITEMS = 60  # of a list


def _attack_sentence(found: dict[str, Any]) -> str:
    exposed, n = found.get("reconstructible"), found.get("peers")
    if not isinstance(exposed, list):
        return ""
    return f"{_shown(found.get('seen_by'))} could compute {len(exposed)} of {n} values from what they saw."


def _audit_sentence(found: dict[str, Any]) -> str:
    if not {"verdict", "claimed", "lower"} <= found.keys():
        return ""
    return (
        f"{_shown(found['verdict'])}: epsilon = {_shown(found['claimed'])} was claimed at delta ="
        f" {_shown(found.get('delta'))}, and the trials prove at least {_shown(found['lower'])}."
    )


SENTENCES = {"attack": _attack_sentence, "audit": _audit_sentence}


def _shown(value: object) -> str:
    """A value on one line; long lists are cut and say so."""
    if isinstance(value, list):
        more = f" and {len(value) - MOST_ITEMS} more" if len(value) > MOST_ITEMS else ""
        return ", ".join(_shown(part) for part in value[:MOST_ITEMS]) + more or "nobody"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_shown(part)}" for key, part in list(value.items())[:MOST_ITEMS])
    return cell(value)


def _one(story: Story, kind: str) -> Markup:
    found = finding(story, kind)
    if found is None:
        return Markup("")
    if isinstance(found, str):
        return section(kind, TITLES[kind], tag("p", found))
    rows = join(
        join([tag("dt", str(key).replace("_", " ")), tag("dd", _shown(value))])
        for key, value in found.items()
    )
    sentence = SENTENCES[kind](found)
    return section(
        kind,
        TITLES[kind],
        tag("p", sentence) if sentence else "",
        tag("details", tag("summary", f"All of {kind}.json"), tag("dl", rows)),
    )


def findings(story: Story) -> Markup:
    """Both sections, or nothing."""
    return join(_one(story, kind) for kind in FINDINGS)
