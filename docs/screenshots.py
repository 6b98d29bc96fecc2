"""Takes the images of report, live page and what-if from the pages themselves: `python -m
docs.screenshots`.

Needs the extra `ui`, Playwright and a Chromium: the one on the path, or the one that BRUIT_CHROMIUM
names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1200, 820
LARGEST = 250_000  # bytes
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
EXPERIMENT = """graph = "geometric:64,radius=0.2,seed=3"
steps = 8
seed = 1

[task]
kind = "mean"

[algorithm]
name = "averaging"

[privacy]
clip = 0.5
sigma = 2.0
"""


def until(page: Any, condition: str) -> None:
    """Wait for something to hold in the page."""
    last = time.monotonic() + 60
    while not page.evaluate(condition):
        if time.monotonic() > last:
            raise SystemExit(f"the page never got there: {condition}")
        time.sleep(0.02)


def live(page: Any, address: str) -> None:
    """A run, half way."""
    page.goto(address)
    until(page, "document.getElementById('experiment').value.length > 9")
    page.click("#change > summary")
    page.fill("#experiment", EXPERIMENT)
    page.fill("#name", "clinics")
    page.click("#start")
    page.wait_for_url("**/runs/clinics")
    until(
        page,
        "document.getElementById('leaks').children.length && "
        "document.getElementById('progress').value >= 4",
    )
    page.locator("#views").scroll_into_view_if_needed()
    time.sleep(0.1)  # messages are under way
    page.screenshot(path=FOLDER / "live-page.png")


def what_if(page: Any, address: str) -> None:
    """Two peers who look on."""
    page.goto(address + "what-if")
    page.select_option("#family", "geometric")
    page.focus("#colluders")
    page.keyboard.press("ArrowRight")
    until(
        page, "document.getElementById('sentence').textContent.includes('these 2 peers together')"
    )
    page.locator("#colluders").blur()
    time.sleep(0.5)
    page.screenshot(path=FOLDER / "what-if.png")


def report(page: Any, folder: str) -> None:
    """The top of a report."""
    run, written = Path(folder) / "first.run", Path(folder) / "report.html"
    for words in (
        ["run", "breast-cancer", "--quiet", "--out", str(run)],
        ["show", str(run), "--html", str(written)],
    ):
        subprocess.run(
            [sys.executable, "-m", "bruit", *words], check=True, stdout=subprocess.DEVNULL
        )
    page.goto(written.as_uri())
    page.screenshot(path=FOLDER / "report.png")


def main() -> None:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("BRUIT_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as runs, sync_playwright() as started:
        server = subprocess.Popen(
            [sys.executable, "-m", "bruit", "ui", runs, "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = server.stdout.readline().strip() if server.stdout is not None else ""
            browser = started.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
            )
            live(page, address)
            what_if(page, address)
            with tempfile.TemporaryDirectory() as folder:
                report(page, folder)
            browser.close()
        finally:
            server.terminate()
            server.wait()
    for name in ("live-page.png", "what-if.png", "report.png"):
        size = (FOLDER / name).stat().st_size
        if size > LARGEST:
            raise SystemExit(f"{name} has {size} bytes, more than {LARGEST}")
        print(f"{name}: {size} bytes")


if __name__ == "__main__":
    main()
