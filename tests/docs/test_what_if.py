"""The what-if page of the site: what it knows is what the accountant says, never less."""

import json

import numpy as np
import pytest

from bruit.show.live.what_if import WhatIf, answer

what_if = pytest.importorskip("website.what_if", reason="the extra `site` is not installed")
KNOWN = json.loads(what_if.DATA.read_text().split("const WHAT_IF = ")[1].rstrip(";\n"))


@pytest.mark.parametrize("name", ["ring:16", "star:16"])
def test_the_table_is_what_the_package_computes_now(name: str) -> None:
    family, _, peers = name.partition(":")
    kept, now = KNOWN["known"][name], what_if.known(family, int(peers))
    assert set(kept) == set(now)
    assert (kept["graph"], kept["edges"]) == (now["graph"], now["edges"])
    for key in ("losses", "errors", "rounding"):  # the last digit may differ between processors
        np.testing.assert_allclose(kept[key], now[key], rtol=2e-3, err_msg=key)


def test_the_table_is_whole() -> None:
    names = {f"{family}:{n}" for family in what_if.FAMILIES for n in what_if.SIZES}
    assert {name for name in names if not name.startswith(what_if.CHANGING)} == set(KNOWN["known"])
    for one in KNOWN["known"].values():
        peers = len(one["picture"]["places"])
        assert np.shape(one["losses"]) == (3, 12, peers)
        assert np.shape(one["errors"]) == (12, 2, 2)


@pytest.mark.parametrize(
    ("family", "steps", "count"), [("torus", 4, 1), ("random", 7, 2), ("hubs", 12, 3)]
)
def test_losses_are_rounded_up_and_hardly(family: str, steps: int, count: int) -> None:
    one = KNOWN["known"][f"{family}:40"]
    peers = len(one["picture"]["places"])
    group = tuple(k * peers // count for k in range(count))
    live = answer(WhatIf(family=family, peers=40, steps=steps, noise=2.0, observers=group))
    kept = one["losses"][count - 1][steps - 1]
    assert [u for u in range(peers) if kept[u] == 1] == sorted(live["computable"])
    for u, loss in enumerate(live["losses"]):
        assert kept[u] == -1 if loss is None else loss - 1e-12 <= kept[u] <= loss * 1.001 + 1e-12
    plain = one["errors"][steps - 1][0]
    error = np.sqrt(4.0 * plain[0] / peers + plain[1] ** 2 / 4)
    assert live["error"] <= error <= live["error"] * 1.001


def test_the_form_is_that_of_the_live_page() -> None:
    page, script = what_if.page(), what_if.script()
    assert "/assets/" not in page
    assert "import {" not in script
    assert "export " not in script
    assert "toggle }" not in script
