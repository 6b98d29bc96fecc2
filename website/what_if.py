"""The what-if page without a server: the live page's own form and drawings, with answers that were
computed before.

    python -m website.what_if       computes them again, into assets/what_if_data.js: a minute

Exact losses (gossip:MUF-2) need whole numbers of any size and much of the package, so they are not
computed in the browser: they were, for every graph, number of rounds and observers of the form. What
remains is one formula, epsilon of a Gaussian pair, in assets/what_if_answers.js, which tests compare
with the package's. All that could make an epsilon too small is rounded up: losses to four digits, R
of finite precision to that of the least noise and the most rounds (fp:FP-0), epsilons to three.
"""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from bruit.graphs import Graph
from bruit.show.live import what_if as live
from bruit.show.live.what_if import FAMILIES, RECORDS, WhatIf

ASSETS = Path(__file__).parent / "assets"
DATA, ANSWERS = ASSETS / "what_if_data.js", ASSETS / "what_if_answers.js"
SIZES, ROUNDS, WATCHERS = (16, 40, 64), range(1, 13), (1, 2, 3)
LEAST_NOISE, DIGITS = 0.1, 4
CHANGING = "butterfly"  # another graph in each round: its losses are no multiples of one number
MODULES = ("server", "chart", "draw", "stages", "what_if")
FACES = {  # what differs from the page of `bruit ui`
    'href="/assets/look.css"': 'href="look.css"',
    'href="/assets/page.css"': 'href="page.css"',
    'href="/assets/mark.svg"': 'href="mark.svg"',
    'src="/assets/mark.svg"': 'src="mark.svg"',
    '<script type="module" src="/assets/what_if.js"></script>': (
        '<script defer src="../site/what_if_data.js"></script>\n'
        '<script defer src="what_if.js"></script>'
    ),
    '<li><a href="/">Runs</a></li><li><a href="/what-if" aria-current="page">': (
        '<li><a href="../index.html">Documentation</a></li>'
        '<li><a href="index.html" aria-current="page">'
    ),
    'min="4" max="256" value="64"': 'min="16" max="64" step="24" value="64"',
    'min="0" max="50" value="4"': f'min="1" max="{ROUNDS[-1]}" value="4"',
    'min="-41" max="40" value="10"': 'min="-20" max="40" value="10"',
    'min="1" max="16" value="1"': f'min="1" max="{WATCHERS[-1]}" value="1"',
    '<a id="experiment" class="button main answer" href="/">Make an experiment of this</a>': (
        '<a id="experiment" hidden></a>'
    ),
    " Click a peer to let it look on.": "",
    "Arrow keys go from peer to peer, Enter makes one look on or look away.": (
        "Arrow keys go from peer to peer."
    ),
    '<p id="wrong"': '<p class="answer">Ask for yourself: <code id="command"></code></p>\n<p id="wrong"',
}


def parts() -> dict[str, str]:
    """The files of the page, but for the answers."""
    look = files("bruit.show.report")
    looks = {name: look.joinpath(name).read_text() for name in ("look.css", "mark.svg")}
    return {
        "index.html": page(),
        "what_if.js": script(),
        "page.css": _live("page.css"),
        **looks,
    }


def page() -> str:
    """The live page's form, with addresses of the site."""
    text = _live("what_if.html")
    policy = "default-src 'self' file: data: 'unsafe-inline'; object-src 'none'; base-uri 'none'"
    for old, new in FACES.items():
        if old not in text:
            raise ValueError(f"what_if.html has changed: there is no {old!r}")
        text = text.replace(old, new)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{head}')


def script() -> str:
    """The live page's modules as one plain script, since browsers load no modules from a folder;
    `ask` looks answers up, and who looks on is chosen by number only."""
    parts = [
        _as_plain(name, _live(f"{name}.js").replace(", choose: toggle", "")) for name in MODULES
    ]
    answers = ANSWERS.read_text()
    return f'"use strict";\n{parts[0]}\n{answers}\n' + "\n".join(parts[1:])


def _as_plain(name: str, text: str) -> str:
    names = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE)
    text = re.sub(
        r'^import \{([^}]*)\} from "/assets/(\w+)\.js";$', r"const {\1} = of_\2;", text, flags=re.M
    )
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f"const of_{name} = (() => {{\n{text}\nreturn {{ {', '.join(names)} }};\n}})();"


def _live(name: str) -> str:
    return files("bruit.show.live").joinpath(name).read_text()


def questions(family: str, peers: int) -> tuple[Graph, list[tuple[int, ...]]]:
    """The graph of this name and size, and who looks on: as many as asked, spread by number."""
    found = cast(Graph, WhatIf(family=family, peers=peers).graph())
    return found, [tuple(k * found.n // count for k in range(count)) for count in WATCHERS]


def known(family: str, peers: int) -> dict[str, Any]:
    """All that is asked of one graph."""
    found, groups = questions(family, peers)
    picture = live._picture(found.name, 1)
    edges = [list(map(int, edge)) for edge in found.edges()]
    least = WhatIf(
        family=family, peers=peers, steps=ROUNDS[-1], noise=LEAST_NOISE, accelerated=True
    )
    drawn = {
        **_short(picture),
        "edges": "all" if _short(picture["edges"]) == edges else picture["edges"],
    }
    return {
        "graph": found.name,
        "edges": edges,
        "picture": drawn,
        "rounding": live._rounding(found, least),
        "errors": [
            [_error(found, family, peers, steps, fast) for fast in (False, True)]
            for steps in ROUNDS
        ],
        "losses": [[losses(found, group, steps) for steps in ROUNDS] for group in groups],
    }


def losses(found: Graph, group: tuple[int, ...], steps: int) -> list[float]:
    """In local-DP units, rounded up; -1 of who looks on, and 1 if and only if the value could be
    computed without noise."""
    exact = live._charge(found.name, group, steps, 1.0).loss.tolist()
    certain = live._computable(found.name, group, steps)
    shown = [_up(value) if _up(value) < 1 else min(value, 1 - 2.0**-53) for value in exact]
    return [-1 if u in group else 1 if u in certain else value for u, value in enumerate(shown)]


def _error(found: Graph, family: str, peers: int, steps: int, fast: bool) -> list[float]:
    """|P|_F^2 and |P - J|_2, from the predicted error with noise 1 and 0 (gossip:MUF-4)."""
    asked = {"family": family, "peers": peers, "steps": steps, "accelerated": fast}
    noisy, plain = (
        live.predicted_error(found, WhatIf(**asked, noise=noise))  # type: ignore[arg-type]
        for noise in (1.0, 0.0)
    )
    return [_up(found.n * (noisy**2 - plain**2)), _up(plain / math.sqrt(live.SPREAD))]


def _up(value: float) -> float:
    """To four significant digits, never down; rounding errors far below what is shown are none."""
    if value < 1e-12:
        return 0
    if abs(value - round(value)) < 1e-9:
        return round(value)
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return float(f"{math.ceil(value / unit) * unit:.{DIGITS}g}")


def _short(value: Any) -> Any:
    """Places to a thousandth of the picture."""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, (list, tuple)) else value


def data() -> str:
    families = [family for family in FAMILIES if family != CHANGING]
    table = {
        "families": families,
        "sizes": SIZES,
        "records": RECORDS,
        "known": {f"{family}:{n}": known(family, n) for family in families for n in SIZES},
    }
    body = json.dumps(table, separators=(",", ":"))
    return f"// Written by `python -m website.what_if`.\nconst WHAT_IF = {body};\n"


if __name__ == "__main__":
    DATA.write_text(data())
