"""The site of the documentation: it is built strictly, nothing in it leads nowhere or asks another
host, and it can be read and searched in a real browser, from a folder, too.

What `python -m website` builds is looked at once; axe-core looks at some pages of each kind.
"""

import functools
import html
import http.server
import json
import os
import re
import shutil
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bruit import __version__

builder = pytest.importorskip("website.__main__", reason="the extra `site` is not installed")
CHROMIUM = os.environ.get("BRUIT_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.slow
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
TAG = re.compile(r"<(\w+)((?:\s+[\w:-]+(?:=(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)\s*/?>")
WORDS = re.compile(r"([\w:-]+)=(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))")
LOADS = {"src", "srcset", "poster", "data"}  # what a browser fetches without being asked


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    into = tmp_path_factory.mktemp("site")
    (into / "0.0.1").mkdir()  # an older version that was built before
    built = builder.site(into)
    assert built.name == __version__
    shutil.copytree(built, into / "0.0.1", dirs_exist_ok=True)
    return into


def parts(path):
    """Tags of a page with their attributes; what stands in scripts is no tag."""
    text = re.sub(r"(<script[^>]*>).*?(?=</script>)", r"\1", path.read_text(), flags=re.DOTALL)
    for tag in TAG.finditer(text):
        words = {
            word[1]: html.unescape(word[2] or word[3] or word[4] or "")
            for word in WORDS.finditer(tag[2])
        }
        yield tag[1], words


def test_nothing_is_loaded_from_elsewhere_and_no_link_leads_nowhere(site):
    built = site / __version__
    pages = {path: list(parts(path)) for path in built.rglob("*.html")}
    names = {path: {words.get("id") for _, words in found} for path, found in pages.items()}
    assert len(pages) > 100
    astray = []
    for path, found in pages.items():
        for tag, words in found:
            for key in {"href", *LOADS} & set(words):
                to = urlsplit(words[key])
                loads = key in LOADS or tag == "link"
                if to.scheme in ("http", "https", "mailto", "data", "javascript") or to.netloc:
                    if loads and to.scheme != "data":
                        astray.append((path, words[key]))
                    continue
                there = (path.parent / unquote(to.path)).resolve() if to.path else path
                there = there / "index.html" if there.is_dir() else there
                if not there.is_relative_to(built):
                    continue  # the banner of old versions, to the newest one
                if not there.is_file() or (
                    to.fragment
                    and there in names
                    and unquote(to.fragment) not in names[there]
                    and not to.fragment.startswith("__")
                ):
                    astray.append((path, words[key]))
    assert [(str(path.relative_to(built)), to) for path, to in astray] == []


def test_styles_and_scripts_load_nothing_from_elsewhere(site):
    for path in (site / __version__).rglob("*.css"):
        for to in re.findall(r"url\(([^)]*)\)|@import\s+[\"']([^\"']*)", path.read_text()):
            assert not re.match(r"[\"']?(https?:)?//", "".join(to)), (path.name, to)
    for path in (site / __version__).rglob("*.html"):
        assert "default-src 'self'" in path.read_text()[:2000], path  # browsers hold scripts to it


def test_versions_are_listed_and_the_first_page_opens_the_newest(site):
    listed = json.loads((site / "versions.json").read_text())
    assert [one["version"] for one in listed] == [__version__, "0.0.1"]
    assert [one["aliases"] for one in listed] == [["latest"], []]
    assert f"url={__version__}/index.html" in (site / "index.html").read_text()


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Silent, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


def visit(browser, address, path, **options):
    """A page, with everything it complained about and every request that went elsewhere."""
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on(
        "request",
        lambda one: (
            None if one.url.startswith((address, "blob:", "data:")) else page.heard.append(one.url)
        ),
    )
    page.goto(address + path)
    return page


LOOKED_AT = [  # a page of each kind, and each look; axe-core takes its time
    ("light", 1280, ["what-if/index.html", "reference/api/mechanisms.html"]),
    ("dark", 1280, ["index.html", "theory/gossip/attacks.html"]),
    ("light", 390, ["index.html", "how-to/which-network.html"]),
    ("dark", 390, ["reference/errors/exit-3.html", "reference/api/errors.html"]),
]


@in_browser
@pytest.mark.parametrize(("scheme", "width", "paths"), LOOKED_AT)
def test_pages_have_no_violations_and_fit(browser, address, scheme, width, paths):
    from axe_playwright_python.sync_playwright import Axe

    window = {"width": width, "height": 800}
    for path in paths:
        here = f"{address}{__version__}/"
        page = visit(browser, here, path, color_scheme=scheme, viewport=window)
        page.wait_for_selector("nav.md-code__nav[role=none], main:not(:has(pre))", state="attached")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert [said for said in page.heard if "versions.json" not in said] == [], path
        page.context.close()


@in_browser
def test_words_are_large_enough_and_lines_of_code_fit(browser, address):
    """The map of protocols was shrunk on phones until nobody could read it; lines were cut at 80."""
    phone = {"width": 390, "height": 800}
    page = visit(browser, address, f"{__version__}/how-to/which-network.html", viewport=phone)
    shown = page.locator("img[src$='which-protocol.svg']")
    assert shown.evaluate("one => one.clientWidth") >= 600
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()
    page = visit(
        browser,
        address,
        f"{__version__}/theory/gossip/attacks.html",
        viewport={"width": 1280, "height": 800},
    )
    lines = page.locator("pre > code").first
    assert "whoever sees all messages" in lines.inner_text()
    assert lines.evaluate("one => one.scrollWidth <= one.clientWidth")
    page.context.close()


@in_browser
def test_search_finds_an_exit_code_online_and_from_a_folder(browser, site, address):
    for place in (address, f"{site.as_uri()}/"):
        page = visit(browser, place, f"{__version__}/index.html")
        box = page.get_by_role("textbox", name="Search")
        box.click()
        page.get_by_text("Type to start searching").wait_for()  # the index is there
        page.keyboard.type("exit code 3")  # keys are what it listens to
        first = page.locator(
            ".md-search-result__list > li:first-child a[href*='exit-3.html']"
        ).first
        first.wait_for()  # while one types, others come first
        page.context.close()


@in_browser
def test_old_versions_say_so_and_the_newest_does_not(browser, address):
    for version, old in ((__version__, False), ("0.0.1", True)):
        page = visit(browser, address, f"{version}/how-to/plan.html")
        page.locator(".md-version__current").wait_for()
        banner = page.get_by_text("This page is about an old version.")
        banner.wait_for(state="visible" if old else "hidden")
        if old:
            page.get_by_role("link", name="Go to the newest one.").click()
            page.wait_for_url(f"**/{__version__}/index.html")
        page.context.close()


@in_browser
def test_names_in_code_lead_to_the_reference_of_them(browser, address):
    page = visit(browser, address, f"{__version__}/explanation/guarantees.html")
    page.locator("a.api", has_text="Gaussian").first.click()
    page.wait_for_url("**/reference/api/mechanisms.html#bruit.Gaussian")
    assert page.locator("#bruit\\.Gaussian").is_visible()
    page.context.close()


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    """With the settings of the site, on a page of its own."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    (tmp_path / "docs").mkdir()
    words = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site")}
    for text, fine in (
        ("# One\n\n[two](#one)\n", True),
        ("[two](two.md)", False),
        ("[x](#y)", False),
    ):
        (tmp_path / "docs" / "index.md").write_text(text)
        settings = str(Path(builder.__file__).with_name("mkdocs.yml"))
        config = load_config(settings, **words, hooks=[], plugins=[], nav=None)
        if fine:
            build(config)
        else:
            with pytest.raises(Abort):
                build(config)


@in_browser
def test_epsilons_of_the_what_if_page_are_never_below_those_of_the_package(browser, site):
    from bruit.privacy.toolbox.gaussian import epsilon_of
    from bruit.show.live.what_if import WhatIf, answer

    page = visit(browser, f"{site.as_uri()}/", f"{__version__}/what-if/index.html")
    page.locator("#command", has_text="bruit epsilon --graph torus:8x8").wait_for()
    pairs = [
        (mu, delta) for mu in (1e-4, 0.01, 0.3, 1.0, 3.0, 10.0) for delta in (1e-2, 1e-6, 1e-10)
    ]
    for mu, delta in pairs:
        exact, found = epsilon_of(mu, delta), page.evaluate(f"epsilonOf({mu}, {delta})")
        assert exact - 1e-12 <= found <= exact * (1 + 1e-7) + 1e-9, (mu, delta)
    for words in (
        "family=torus&peers=64&steps=4&noise=3",
        "family=hubs&peers=40&steps=9&noise=0.5",
    ):
        ask = f"answerOf(new URLSearchParams('{words}&observers=0&accelerated=0&delta=1e-6'))"
        told = page.evaluate(ask)
        asked = dict(part.split("=") for part in words.split("&"))
        numbers = {"peers": int(asked["peers"]), "steps": int(asked["steps"])}
        live = answer(WhatIf(family=asked["family"], noise=float(asked["noise"]), **numbers))
        assert told["distances"] == live["distances"]
        assert told["computable"] == live["computable"]
        for shown, exact in zip(told["epsilons"], live["epsilons"], strict=True):
            assert (shown is None) == (exact is None)
            assert shown is None or exact <= shown <= 1.02 * exact + 1e-9
        assert [row["peers"] for row in told["by_distance"]] == [
            row["peers"] for row in live["by_distance"]
        ]
    page.context.close()


def test_the_packed_copy_is_what_bruit_docs_opens(site, tmp_path):
    from bruit.commands.docs import unpack

    copy = builder.packed(site / __version__, tmp_path)
    assert copy.name == f"bruit-{__version__}-docs.zip"
    assert copy.stat().st_size < 8e6  # some 3 MB of it are the pages, the rest pictures
    assert copy.read_bytes() == builder.packed(site / __version__, tmp_path / "again").read_bytes()
    unpack(copy, tmp_path / "share" / __version__, __version__)
    kept = {one.name for one in (tmp_path / "share" / __version__).rglob("*") if one.is_file()}
    there = {one.name for one in (site / __version__).rglob("*") if one.is_file()}
    assert there - kept == {"search_index.json"}
