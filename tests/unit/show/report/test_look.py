"""The shared look: text that can be read on every ground, light, dark and on paper; a scale whose
order survives."""

import re

import numpy as np
import pytest

from bruit.show.report.look import asset, brand, icon, mark
from tests.unit.show.report.pages import Page

# How eyes without one kind of cone see linear RGB (Vienot, Brettel and Mollon 1999).
BLIND = {
    "red": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "green": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
    "none": np.eye(3),
}
GROUNDS = ("paper", "raised", "sunk", "wash")
TEXTS = ("ink", "soft", "link", "good", "care", "wrong", "s1", "s2", "s3", "s4", "s5", "s6")


def palettes():
    """The tokens of light, dark (by the system), dark (by choice) and paper."""
    blocks = re.findall(r":root[^{]*\{([^{}]*--paper[^{}]*)\}", asset("look.css"))
    assert len(blocks) == 4
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def linear(color):
    channels = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(light):
    return float(np.dot([0.2126, 0.7152, 0.0722], light))


def contrast(a, b):
    high, low = sorted((luminance(linear(a)), luminance(linear(b))), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("number", range(4))
def test_text_can_be_read_on_every_ground(number):
    tokens = palettes()[number]
    found = {
        (text, ground): contrast(tokens[text], tokens[ground])
        for text in TEXTS
        for ground in GROUNDS[:2]
    }
    found |= {
        (text, ground): contrast(tokens[text], tokens[ground])
        for text in ("ink", "soft")
        for ground in GROUNDS
    }
    found["button"] = contrast(tokens["on-accent"], tokens["accent"])
    assert {key: round(value, 2) for key, value in found.items() if value < 4.5} == {}
    assert contrast(tokens["s0"], tokens["paper"]) >= 3  # borders of fields, rims of peers


def test_the_choice_of_dark_is_the_systems_dark():
    assert palettes()[1] == palettes()[2]


@pytest.mark.parametrize("eyes", BLIND)
@pytest.mark.parametrize("number", range(4))
def test_the_scale_of_losses_is_ordered_for_all_eyes(number, eyes):
    """From little to much, lightness goes one way, in steps of similar size (CIE L* of what these
    eyes see)."""
    tokens = palettes()[number]
    seen = [luminance(np.clip(BLIND[eyes] @ linear(tokens[f"c{k}"]), 0, 1)) for k in range(16)]
    lightness = 116 * np.cbrt(np.array(seen)) - 16
    steps = np.diff(lightness) * (1 if number in (1, 2) else -1)
    assert steps.min() > 1.5
    assert steps.max() < 4 * np.median(steps)


def test_the_mark_is_one_drawing():
    page = Page(f"<body>{icon()}{brand()}</body>")
    assert page.all("svg")[0].attributes["aria-hidden"] == "true"
    assert len(page.all("circle")) == 2
    assert "http" not in mark()
