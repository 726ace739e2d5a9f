"""The site in a real browser, wide and on a phone. CI builds it after the other tests and runs these once more."""

import itertools
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
WIDTHS = (1280, 390)


def test_pages_fit_their_width_and_raise_no_errors():
    from playwright.sync_api import sync_playwright

    wrong = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for width, name in itertools.product(WIDTHS, PAGES):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.goto((SITE / name).as_uri())
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                wrong.append(f"{name} is wider than {width}")
            wrong.extend(
                page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
            )
            page.close()
        browser.close()
    assert wrong == []
