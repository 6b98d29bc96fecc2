"""The live pages in a real browser: `bruit ui` is started, used with mouse and keyboard, and ended with Ctrl-C.

Needs Playwright and a Chromium: the one on the path, or the one that BRUIT_CHROMIUM names. The report's own pages are
tested in unit/dashboard/test_browser.py; here axe-core looks at all of them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bruit as br
from bruit.sites.founding import found
from bruit.testing import small_task

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")
CHROMIUM = os.environ.get("BRUIT_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
ROOT = Path(br.__file__).parents[1]
HOSTILE = "<img src=x onerror=alert(1)>"
SHORT = """graph = "torus:4x4"
steps = 8
references = false
[task]
kind = "mean"
[algorithm]
name = "averaging"
[privacy]
sigma = 2.0
"""


def serve(*words):
    """`bruit ui` in a process of its own, and the address it printed."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    process = subprocess.Popen([sys.executable, "-m", "bruit", "ui", *map(str, words), "--port", "0"], text=True,
                               stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    return process, process.stdout.readline().strip()


def end(process):
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(20)
    finally:
        process.kill()
        process.stdout.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("runs")
    run = br.run(br.Averaging(), "ring:6", small_task(6), privacy=br.Gaussian(clip=1.0, sigma=2.0), steps=2, watch=[0])
    run.save(made / f"{HOSTILE}.run")
    (made / "broken.run").mkdir()
    return made


@pytest.fixture(scope="module")
def address(folder):
    process, printed = serve(folder)
    yield printed
    assert end(process) == 0


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


def visit(browser, address, path="", **options):
    """A page, with everything it complained about and every request that went elsewhere."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.heard = []
    listen(page, address)
    page.goto(address + path)
    return page


def listen(page, address):
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith((address, "blob:")) else page.heard.append(one.url))


def until(page, condition, seconds=60):
    """Wait for something to hold in the page; its policy forbids Playwright's own way."""
    end_at = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end_at, f"never: {condition}"
        time.sleep(0.05)


def ready(page):
    """The form is filled, or the first answer is drawn."""
    until(page, """() => document.body.dataset.answered || document.getElementById("experiment")?.value.length > 9 ||
          document.getElementById("connected")?.textContent""")


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 10  # it did look
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("path", ["", "what-if"])
def test_pages_are_quiet_fit_and_can_be_read_by_everybody(browser, address, path, width, scheme):
    page = visit(browser, address, path, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    ready(page)
    assert page.heard == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []


def test_the_policy_lets_nothing_else_run(browser, address):
    page = visit(browser, address)
    ready(page)
    page.evaluate("""() => { const one = document.createElement("script"); one.textContent = "window.ran = true";
      document.body.append(one); }""")
    assert not page.evaluate("window.ran === true")
    assert any("Content Security Policy" in text for text in page.heard)


def test_wrong_fields_are_named_where_they_are(browser, address):
    page = visit(browser, address)
    ready(page)
    page.fill("#field-privacy-clip", "-1")
    until(page, "() => document.getElementById('field-privacy-clip-wrong').textContent.includes('greater than 0')")
    assert page.get_attribute("#field-privacy-clip", "aria-invalid") == "true"
    assert "clip = -1.0" in page.input_value("#experiment")
    page.click("#start")
    assert page.is_hidden("#live")
    assert "privacy.clip" in page.inner_text("#wrong")
    page.fill("#field-privacy-clip", "0.05")
    until(page, "() => document.getElementById('wrong').textContent === ''")
    page.fill("#experiment", "graph = ")
    until(page, "() => document.getElementById('wrong').textContent.includes('TOML')")
    page.fill("#experiment", SHORT)
    until(page, "() => document.getElementById('field-graph').value === 'torus:4x4'")
    assert page.input_value("#field-privacy-sigma") == "2"
    page.fill("#name", "../up")
    page.click("#start")
    until(page, "() => document.getElementById('wrong').textContent.includes('letters, digits')")
    noise = page.locator("#noisy")
    noise.uncheck()
    assert "[privacy]" not in page.input_value("#experiment")
    assert [text for text in page.heard if "400" not in text] == []


def test_a_run_started_from_the_page_ends_in_a_report(browser, address):
    page = visit(browser, address)
    ready(page)
    page.fill("#experiment", SHORT)
    page.fill("#name", "from-the-page")
    page.click("#start")
    page.wait_for_selector("#open-report", state="visible", timeout=60_000)
    assert "epsilon of the worst pair" in page.inner_text("#state")
    assert page.locator("#leaks tr").count() == 8
    assert page.locator("#curves svg").count() >= 1
    page.focus("#map")
    page.keyboard.press("Home")
    assert "looks on" in page.inner_text("#told")
    page.keyboard.press("PageDown")
    assert "Peer 0 could have learned about peer 1: epsilon" in page.inner_text("#told")
    page.keyboard.press("ArrowRight")
    assert "peer 1:" not in page.inner_text("#told")
    assert violations(page) == []
    with page.context.expect_page() as opened:
        page.click("#open-report")
    report = opened.value
    report.wait_for_load_state()
    assert report.inner_text("h1") == "Report of from-the-page.run"
    until(page, "() => document.getElementById('runs').textContent.includes('report of from-the-page')")
    assert page.heard == []


def test_a_run_is_stopped_from_the_page(browser, address, folder):
    page = visit(browser, address)
    ready(page)
    page.fill("#experiment", SHORT.replace("steps = 8", "steps = 5000000"))
    page.fill("#name", "too-long")
    page.click("#start")
    page.click("#stop")
    until(page, "() => document.getElementById('state').textContent.startsWith('stopped')")
    assert page.is_hidden("#stop")
    assert not (folder / "too-long.run").exists()
    assert page.heard == []


def test_hostile_names_are_text(browser, address):
    page = visit(browser, address)
    until(page, "() => document.getElementById('runs').children.length > 1")
    assert page.locator("img:not(.mark)").count() == 0
    assert HOSTILE in page.inner_text("#runs")
    assert "manifest is missing" in page.inner_text("#runs")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name=f"report of {HOSTILE}").click()
    opened.value.wait_for_load_state()
    assert opened.value.inner_text("h1") == f"Report of {HOSTILE}.run"
    assert opened.value.locator("img").count() == 0


def test_dragging_changes_the_answer(browser, address):
    page = visit(browser, address, "what-if")
    ready(page)
    first = page.inner_text("#sentence")
    assert "could compute the values of" in first
    box = page.locator("#noise").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    until(page, f"() => document.getElementById('sentence').textContent !== {json.dumps(first)}")
    second = page.inner_text("#sentence")
    page.focus("#steps")
    page.keyboard.press("ArrowRight")
    until(page, f"() => document.getElementById('sentence').textContent !== {json.dumps(second)}")
    page.focus("#peers")
    page.keyboard.press("End")
    until(page, "() => document.getElementById('sentence').textContent.includes('of 255 others')")
    page.select_option("#family", "star")
    until(page, "() => document.getElementById('distances').children.length === 1")
    assert page.heard == []


def test_observers_by_keyboard_and_mouse(browser, address):
    page = visit(browser, address, "what-if")
    ready(page)
    page.focus("#map")
    for key in ("Home", "ArrowDown", "Enter"):  # peer 0 is a corner of the torus
        page.keyboard.press(key)
    until(page, "() => document.getElementById('sentence').textContent.includes('these 2 peers together')")
    assert page.inner_text("#colluders-told") == "2"
    page.keyboard.press("Enter")
    until(page, "() => document.getElementById('sentence').textContent.includes('Without noise peer 0')")
    page.focus("#colluders")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    until(page, "() => document.getElementById('sentence').textContent.includes('these 3 peers together')")
    page.locator("#map").click(position={"x": 1, "y": 1})
    assert page.heard == []


def test_a_thousand_peers_and_five_thousand_links_stay_smooth(browser, address):
    page = visit(browser, address)
    ready(page)
    worst = page.evaluate("""async () => {
      const { PeerMap } = await import("/assets/draw.js");
      document.getElementById("live").hidden = document.getElementById("map-figure").hidden = false;
      const map = new PeerMap(document.getElementById("map")), n = 1000;
      const places = Array.from({ length: n }, (_, k) => [(k * 0.618034) % 1, k / n]);
      const edges = Array.from({ length: 5 * n }, (_, k) => [k % n, (k * 7 + 1 + Math.floor(k / n)) % n]);
      map.show(places, edges);
      const frame = () => new Promise((go) => requestAnimationFrame(go));
      await frame(); await frame();
      const spent = [];
      for (let k = 0; k < 30; k++) {
        map.pulse(null);
        map.color(places.map((_, peer) => ((peer + k) % n) / n), [0]);
        const begin = performance.now();
        map.key(new KeyboardEvent("keydown", { key: "ArrowDown" }));
        map.paint(begin);
        spent.push(performance.now() - begin);
        await frame();
      }
      return [spent.sort((a, b) => a - b)[15], map.pulses.length];
    }""")
    assert worst[0] < 100  # milliseconds for a key and a whole frame, on a busy machine without graphics
    assert worst[1] > 50


def test_whoever_wants_no_motion_gets_none(browser, address):
    page = visit(browser, address, "what-if", reduced_motion="reduce")
    ready(page)
    assert page.evaluate("""async () => { const { PeerMap } = await import("/assets/draw.js");
      const map = new PeerMap(document.createElement("canvas")); map.show([[0, 0], [1, 1]], [[0, 1]]); map.pulse(null);
      return map.pulses.length; }""") == 0


def test_an_operator_sees_one_peer(browser, tmp_path):
    (tmp_path / "agreed.toml").write_text(SHORT.replace("torus:4x4", "ring:4"))
    site = found(str(tmp_path / "agreed.toml"), 4, None, tmp_path / "network")[1]
    (site.parent / "state").mkdir()
    told = {"peer": 1, "step": 2, "steps": 8, "done": False, "neighbors": 2, "connected": 2, "sent": 4, "meetings": 0,
            "bytes_sent": 90, "bytes_received": 80, "refused": {}, "missed": 0, "epsilon": 2.5, "delta": 1e-6,
            "budget": 8.0}  # fmt: skip
    (site.parent / "state" / "status.json").write_text(json.dumps(told))
    process, address = serve("--site", site)
    try:
        page = visit(browser, address, bypass_csp=True)
        ready(page)
        assert "peer-1" in page.inner_text("h1")
        assert "5.5 left of a budget of 8" in " ".join(page.inner_text("#tiles").split())
        assert "peer 0: peer-0" in page.inner_text("#others")
        assert page.heard == []
        assert violations(page) == []
    finally:
        assert end(process) == 0


def test_reports_can_be_read_by_everybody(browser, folder, tmp_path):
    from bruit.dashboard import write_report

    written = write_report(folder / f"{HOSTILE}.run", tmp_path / "report.html")
    for scheme in ("light", "dark"):
        page = visit(browser, written.as_uri(), color_scheme=scheme, bypass_csp=True)
        assert page.heard == []
        assert violations(page) == []


def test_ctrl_c_ends_the_runs_too(browser, tmp_path):
    process, address = serve(tmp_path)
    page = visit(browser, address)
    ready(page)
    page.fill("#experiment", SHORT.replace("steps = 8", "steps = 5000000"))
    page.fill("#name", "left-alone")
    page.click("#start")
    until(page, "() => document.getElementById('state').textContent === 'running'")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = children.read_text().split() if children.exists() else []
    assert workers or not children.exists()
    assert end(process) == 0
    assert not [worker for worker in workers if Path(f"/proc/{worker}/cmdline").exists()]
    assert list(tmp_path.iterdir()) == []
