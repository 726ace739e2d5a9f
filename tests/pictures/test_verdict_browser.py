"""The pages of gates, tests and explanations in a real browser: on a desk and a phone, dark and on paper."""

import contextlib
import sys

import numpy as np
import pandas as pd
import pytest

from pictures.test_report_browser import CHROMIUM, browser, contrast, keep  # noqa: F401  # a fixture

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs chromium at {CHROMIUM}: apt-get install chromium"),
]

LONG = "a_batch_of_customers_from_the_northern_region_with_a_name_that_has_well_over_ninety_characters.csv"
KINDS = ("gate", "saved", "unknown", "test", "explain")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a folder of tables, one of each kind."""
    from sotdd.commands import main

    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    for name, n, shift in [("train.csv", 150, 0), ("same.csv", 60, 0), (LONG, 70, 3), ("few.csv", 4, 0)]:
        x = rng.normal(size=(n, 3)) * [1, 10, 100] + np.array([shift, 0, 0])
        frame = pd.DataFrame(x, columns=["age", "<b>income</b>", "height"])
        kinds = [f"class number {k}" for k in range(12)] + ["<img src=x onerror=alert(1)>"]
        frame.assign(kind=rng.choice(kinds, n)).to_csv(folder / name, index=False)
    few = ["--label", "kind", "--n-projections", "64"]
    shuffled = ["--n-permutations", "39"]
    lines = {
        "gate": ["check", "train.csv", "same.csv", LONG, "few.csv", "missing.csv", *few, *shuffled],
        "unknown": ["check", "train.csv", "missing.csv", *few, *shuffled],
        "test": ["test", "train.csv", LONG, *few, *shuffled],
        "explain": ["explain", "train.csv", LONG, *few],
        "reference": ["reference", "train.csv", "-o", "train.ref", *few],
        "log": ["check", "train.ref", *(["same.csv"] * 12), *shuffled, "--log", "gate.log"],
        "saved": ["check", "train.ref", "same.csv", LONG, *shuffled, "--fail-above", "0.4", "--log", "gate.log"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, line in lines.items():
            report = ["--report", f"{kind}.html"] if kind in KINDS else []
            patch.setattr(sys, "argv", ["sotdd", *line, *report, "-q"])
            with contextlib.suppress(SystemExit):
                main()
    return folder


@pytest.fixture
def opened(browser, pages):  # noqa: F811
    contexts, said = [], []

    def open_page(kind, width=1280, scheme="light", media="screen"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        address = (pages / f"{kind}.html").as_uri()
        page.on("console", lambda message: said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: said.append(f"request: {request.url}") if request.url != address else None)
        page.emulate_media(media=media, color_scheme=scheme)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


BEYOND = """(limit) => Array.from(document.querySelectorAll("body *")).filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > limit + 1 && !e.closest(".scroll, pre, .skip");
}).map((e) => e.tagName + " " + e.className + " " + e.textContent.slice(0, 40))"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off(opened, kind, width):
    page = opened(kind, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND, width) == []
    shown = page.locator("#verdict h2")
    assert shown.is_visible()
    assert "csv" in shown.inner_text()
    assert LONG not in page.locator("main").inner_text().replace(page.locator("#settings").inner_text(), "")
    assert page.locator("img").count() == 0
    keep(page, f"verdict-{kind}-{width}")


@pytest.mark.parametrize("kind", KINDS)
def test_cards_fill_their_width(opened, kind):
    page = opened(kind)
    widths = page.evaluate("Array.from(document.querySelectorAll('main > section')).map((e) => e.offsetWidth)")
    assert len(set(widths)) == 1
    inside = page.evaluate(
        """Array.from(document.querySelectorAll("main > section")).map((card) => {
            const style = getComputedStyle(card);
            const room = card.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            const wide = Array.from(card.querySelectorAll("table, svg, pre, .two, dl, p, h2"))
                .map((e) => e.getBoundingClientRect().width);
            return Math.max(...wide) / room;
        })"""
    )
    assert min(inside) > 0.97


@pytest.mark.parametrize("kind", ["gate", "test"])
def test_dark_is_readable(opened, kind):
    page = opened(kind, scheme="dark")
    for selector in ("h1", ".subtitle", ".note", "#verdict h2", ".mark", "thead th", "dt", "pre code"):
        assert contrast(page, selector) >= 4.5, selector
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in paper.removeprefix("rgb(").removesuffix(")").split(",")) < 60
    keep(page, f"verdict-{kind}-dark")


@pytest.mark.parametrize("kind", KINDS)
def test_paper_is_light_and_loses_no_name(opened, kind):
    page = opened(kind, width=794, scheme="dark", media="print")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(252, 252, 251)"
    hidden = page.evaluate(
        """Array.from(document.querySelectorAll(".scroll")).filter((e) => e.offsetWidth > 0 &&
            (e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible"))
            .map((e) => e.getAttribute("aria-label"))"""
    )
    assert hidden == []
    assert page.evaluate(BEYOND, 794) == []
    assert len(page.pdf()) > 10_000


def test_the_line_over_time_has_every_batch_and_the_limit(opened):
    for width, kind in ((1280, "wide"), (700, "middle"), (390, "narrow")):
        page = opened("saved", width)
        charts = page.locator(f".{kind} svg[aria-label^='Distances of the batches']")
        assert charts.count() == 1
        assert charts.first.is_visible()
        assert page.locator(".chart-svg:visible").count() == 1
        assert charts.first.locator("circle, path").count() == 14  # twelve from the log
        assert charts.first.locator(".bad-dot").count() == 1
        assert "limit 0.4" in charts.first.text_content()
        size = charts.first.evaluate(
            "(svg) => parseFloat(getComputedStyle(svg).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width"
        )
        assert 9 <= size <= 16
    assert "verdict" in page.locator(".stack td").first.evaluate("(e) => getComputedStyle(e, '::before').content")


def test_everything_that_takes_the_focus_has_a_name(opened):
    for kind in KINDS:
        page = opened(kind)
        nameless = page.evaluate(
            """Array.from(document.querySelectorAll("[tabindex='0'], [role], section")).filter((e) =>
                !(e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby")))
            ).map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert nameless == []
