"""The report in a real browser: no errors, no requests, keyboard and choices work, contrast is
sufficient.

Needs Playwright and a Chromium: the one on the path, or the one that BRUIT_CHROMIUM names.
"""

import os
import shutil

import pytest

import bruit as br
from bruit.graphs import butterfly, erdos_renyi, torus
from bruit.show.report import write_report
from bruit.testing import small_task

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("BRUIT_CHROMIUM") or shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]

# Relative luminance and contrast ratio of WCAG 2 for all visible text against the nearest opaque
# background.
CONTRAST = """() => {
  const light = (c) => c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = (c) => { const [r, g, b] = light(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  let worst = 99;
  for (const e of document.querySelectorAll("body *")) {
    if (!e.innerText || e.closest("script,svg") || !e.offsetParent) continue;
    const a = luminance(rgb(getComputedStyle(e).color).slice(0, 3)), b = luminance(behind(e));
    worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return worst;
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(folder, tmp_path_factory):
    return write_report(folder, tmp_path_factory.mktemp("page") / "report.html")


def visit(browser, report, **options):
    """The page, with everything it complained about or asked for."""
    page = browser.new_context(**options).new_page()
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on(
        "request",
        lambda request: page.heard.append(request.url) if request.url != report.as_uri() else None,
    )
    page.goto(report.as_uri())
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_loads_quietly_and_fits(browser, report, scheme, width):
    page = visit(browser, report, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert page.heard == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRAST) >= 4.5


def violations(page):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 10  # it did look
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """A butterfly with references and names that are much too long, and a torus without."""
    folder = tmp_path_factory.mktemp("stories")
    noise = br.Gaussian(clip=1.0, sigma=2.0)
    first = br.run(br.Averaging(), butterfly(16), small_task(16), privacy=noise, steps=8, seed=1)
    first.references = {"alone": 3.0, "central": 0.0}
    first.task = {**first.task, "columns": ["long" * 30, "short", "x" * 90]}
    second = br.run(br.Averaging(), torus(5, 5), small_task(25), privacy=noise, steps=4, seed=1)
    return [
        write_report(first, folder / "butterfly.html"),
        write_report(second, folder / "torus.html"),
        write_report([first, second], folder / "both.html"),
    ]


# Text that sticks out of the page or of its own figure, and text of figures that is too small to
# read.
OUTSIDE = """() => {
  const out = [];
  for (const text of document.querySelectorAll("svg text, p, td, th, li, dd")) {
    const box = text.getBoundingClientRect();
    if (!box.width || text.closest(".wide, pre, nav, .skip, details:not([open])")) continue;
    const svg = text.closest("svg"), room = svg ? svg.getBoundingClientRect() : { left: 0, right: innerWidth };
    if (box.left < room.left - 1 || box.right > room.right + 1) out.push(text.textContent);
    if (svg && parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width /
        svg.viewBox.baseVal.width < 8.5) out.push("too small: " + text.textContent);
  }
  return out;
}"""
AXES = """() => Array.from(document.querySelectorAll("svg.chart, svg.stages"))
  .filter((svg) => svg.getBoundingClientRect().width)
  .map((svg) => Array.from(svg.querySelectorAll(".title")).map((text) => text.textContent))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_reports_fit_have_labelled_axes_and_can_be_read_by_everybody(
    browser, stories, width, scheme
):
    for report in stories:
        page = visit(
            browser,
            report,
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            bypass_csp=True,
        )
        assert page.heard == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OUTSIDE) == []
        axes = page.evaluate(AXES)
        assert axes
        assert all(len(titles) == 2 and all(titles) for titles in axes), axes
        assert violations(page) == []


def test_the_headline_and_the_stages_of_a_butterfly(browser, stories):
    page = visit(browser, stories[0], viewport={"width": 1440, "height": 900})
    assert page.inner_text(".headline").startswith("Working together paid: mse ")
    assert page.inner_text(".headline").endswith("against 3 alone.")
    shown = page.locator("#curves .if-wide .say").all_text_contents()
    assert [text.split()[0] for text in shown] == ["alone", "together", "all"]
    assert "After 4 rounds everybody may know something of what peer" in page.inner_text(
        "#spread-told"
    )
    page.select_option("#you", "5")
    assert page.inner_text("#spread-told").endswith("what peer 5 said")
    assert page.locator("#spread-spots").get_attribute("d").count("M") == 1 + 2 + 4 + 8 + 16
    assert page.locator("#map .met").count() == 4  # one partner a round
    half = page.locator("#map-section").bounding_box()["width"]
    assert 1440 / 3 < half < 1440 / 2  # two figures side by side


def test_links_that_go_around_are_marked_at_their_ends(browser, stories):
    page = visit(browser, stories[1])
    page.select_option("#you", "0")
    assert page.locator("#own").get_attribute("d").count("M") == 2
    assert page.locator("#map .met").count() == 2


def test_choosing_yourself(browser, report, averaging):
    page = visit(browser, report)
    page.select_option("#you", "3")
    losses = averaging.losses()
    assert f"(loss {losses[3][losses[3] == losses[3]].max():.4g})" in page.inner_text("#told")
    assert page.get_attribute("[data-peer='3']", "class").startswith("you")
    page.check("input[value=learns]")
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    assert (
        f"peer 3 could have learned about peer 0: epsilon {float(averaging.epsilon(0, 3)):.4g}"
        in (page.inner_text("#told"))
    )
    page.keyboard.press("Enter")
    assert page.input_value("#you") == "0"


def test_the_matrix_by_keyboard_and_mouse(browser, report, averaging):
    page = visit(browser, report)
    page.focus("#heat")
    before = page.evaluate("document.getElementById('heat').toDataURL()")
    page.keyboard.press("ArrowRight")
    assert (
        f"peer 1 could have learned about peer 0: epsilon {float(averaging.epsilon(0, 1)):.4g}"
        in (page.inner_text("#pair-told"))
    )
    page.keyboard.press("+")
    assert page.evaluate("document.getElementById('heat').toDataURL()") != before
    page.keyboard.press("0")
    box = page.locator("#heat").bounding_box()
    cell = box["width"] / 24
    page.locator("#heat").click(position={"x": 20.5 * cell, "y": 2.5 * cell})
    assert (
        f"peer 20 could have learned about peer 2: epsilon {float(averaging.epsilon(2, 20)):.4g}"
        in (page.inner_text("#pair-told"))
    )
    assert page.heard == []


def test_without_scripts_and_on_paper(browser, report):
    page = visit(browser, report, java_script_enabled=False)
    assert page.locator("#you").is_hidden()
    assert page.locator("#map circle").count() == 24
    assert len(visit(browser, report).pdf()) > 10_000


def test_a_thousand_peers_respond(browser, tmp_path):
    graph = erdos_renyi(1000, c=1.5, seed=1)
    run = br.run(
        br.Averaging(),
        graph,
        small_task(1000),
        privacy=br.Gaussian(clip=1.0, sigma=2.0),
        steps=1,
        seed=1,
    )
    page = visit(browser, write_report(run, tmp_path / "large.html"))
    taken = page.evaluate("""() => { const begin = performance.now(); const you = document.getElementById("you");
      you.value = "500"; you.dispatchEvent(new Event("change"));
      document.querySelector("[data-zoom=closer]").click(); return performance.now() - begin; }""")
    assert page.heard == []
    assert taken < 1000
