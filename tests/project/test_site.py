"""The site in a real browser, wide and on a phone. CI builds it after the other tests and runs these once more."""

from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")

SITE = Path(__file__).parents[2] / "build" / "docs"
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs chromium at {CHROMIUM}: apt-get install chromium"),
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="needs the site: see CONTRIBUTING.md, sphinx-build docs build/docs"
    ),
]
PAGES = ("index.html", "command-line.html", "gallery/index.html", "generated/sotdd.distance.html", "reproduction.html")
WIDTHS = {"wide": 1280, "phone": 390}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture(params=WIDTHS)
def page(browser, request):
    opened = browser.new_page(viewport={"width": WIDTHS[request.param], "height": 900})
    opened.errors = []
    opened.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_their_width_and_raise_no_errors(page, name):
    page.goto((SITE / name).as_uri())
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0
    missing = page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    assert missing == []
    assert page.errors == []
