"""The site in a real browser, wide and on a phone. CI builds it after the other tests and runs these once more."""

import itertools
import re
from collections import Counter
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
EVERY_TEXT = "all => all.map(one => one.innerText.trim())"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def look(browser):
    """Open a page of the site in a window of some width."""
    opened = []

    def look(name, width=1280):
        opened.append(browser.new_page(viewport={"width": width, "height": 900}))
        opened[-1].goto((SITE / name).as_uri())
        return opened[-1]

    yield look
    for page in opened:
        page.close()


def test_pages_fit_their_width_and_raise_no_errors(browser):
    wrong = []
    for width, name in itertools.product(WIDTHS, PAGES):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((SITE / name).as_uri())
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wrong.append(f"{name} is wider than {width}")
        wrong.extend(page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"))
        page.close()
    assert wrong == []


def test_no_code_is_cut_on_a_wide_screen(look):
    page, cut = look("index.html"), []
    for path in sorted(SITE.rglob("*.html")):
        if "_static" not in path.parts:
            page.goto(path.as_uri())
            if page.evaluate("[...document.querySelectorAll('article pre')].some(p => p.scrollWidth > p.clientWidth)"):
                cut.append(path.name)
    assert cut == []


def test_verdicts_are_in_sight_on_a_phone(look):
    page = look("reproduction.html", 390)
    ends = page.eval_on_selector_all(
        "table.verdicts td:last-child", "cells => cells.map(c => c.getBoundingClientRect().right)"
    )
    assert len(ends) > 20
    assert max(ends) <= 390


def test_what_is_copied_has_no_prompts_and_no_output(look):
    def copy(name):
        """What the buttons of a page put on the clipboard."""
        page = look(name)
        page.evaluate("copied = []; document.addEventListener('copy', () => copied.push(document.activeElement.value))")
        page.evaluate("document.querySelectorAll('.copybtn').forEach(button => button.click())")
        return page.evaluate("copied")

    install, session, *_ = copy("index.html")
    assert install.startswith("pip install")
    assert session.startswith("import sotdd\nfrom sotdd.demo")
    assert not re.search(r">>>|±", session)
    commands = "\n".join(copy("command-line.html"))
    assert "sotdd distance" in commands
    assert "$ sotdd" not in commands


def test_the_head_of_a_page_leads_to_the_repository_and_to_how_it_works(look):
    page = look("index.html")
    items = page.eval_on_selector_all(".bd-header .navbar-nav .nav-link", EVERY_TEXT)
    assert {"How it works", "Settings", "Inference", "API"} <= set(items)
    assert page.get_attribute(".bd-header a:has(.fa-github)", "href") == "https://github.com/sotdd/sotdd"
    assert page.locator(".bd-header img.logo__image").count() == 2  # light and dark
    assert page.get_attribute("link[rel='icon']", "href").endswith("logo.svg")
    assert "@inproceedings{" in page.inner_text("article")


def test_nothing_is_listed_twice(look):
    for name in ("api.html", "more.html", "guides/index.html"):
        page = look(name)
        for listed in (
            ".bd-header .navbar-nav .nav-link",
            ".bd-sidebar-primary .nav a",
            "article .autosummary td:first-child a",
        ):
            found = Counter(filter(None, page.eval_on_selector_all(listed, EVERY_TEXT)))
            assert [text for text, times in found.items() if times > 1] == [], (name, listed)


def test_result_classes_show_their_fields_and_no_constructor(look):
    results = sorted((SITE / "generated").glob("sotdd.results.*.html"))
    assert len(results) > 15
    page = look("index.html")
    for path in results:
        page.goto(path.as_uri())
        assert "(" not in page.inner_text("dt.sig"), path.name
        assert page.locator("dl.field-list dt strong").count(), f"{path.name} has no fields"


def test_the_gallery_asks_ten_questions(look):
    titles = look("gallery/index.html").eval_on_selector_all(".sphx-glr-thumbnail-title", EVERY_TEXT)
    assert len(titles) == 10
    assert [title for title in titles if not title.endswith("?")] == []
