"""The pages in a real browser: Debian's chromium, driven by Playwright; on a desk, on a phone, dark, and on paper."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.reports.page import shorten_names

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "<script>document.title='taken'</script>"
LONG = "a_batch_of_customers_from_the_northern_region_with_a_name_that_has_well_over_ninety_characters.csv"
KINDS = ("gate", "saved", "undecided", "test", "explain")

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs chromium at {CHROMIUM}: apt-get install chromium"),
]

BEYOND = """(limit) => Array.from(document.querySelectorAll("body *")).filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > limit + 1 && !e.closest(".scroll, pre, .skip");
}).map((e) => e.tagName + " " + e.className + " " + e.textContent.slice(0, 40))"""

NAMELESS = """Array.from(document.querySelectorAll("button, select, section, [tabindex='0'], [role]")).filter((e) =>
    !(e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby")) ||
      e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))"""

# WCAG's contrast of an element's text on what is behind it.
CONTRAST = """(selector) => {
    const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
    const light = (colour) => numbers(colour).slice(0, 3).map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    let behind = document.querySelector(selector);
    const ink = light(getComputedStyle(behind).color);
    while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const paper = light(getComputedStyle(behind).backgroundColor);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}"""


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Open a page; what it says on the console, fails with or asks for is collected, and must be nothing."""
    contexts, said = [], []

    def open_page(path, width=1280, scheme="light", media="screen", **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda one: said.append(f"request: {one.url}") if one.url != path.as_uri() else None)
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.emulate_media(media=media, color_scheme=scheme)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


# --------------------------------------------------------------------------- the report of a matrix


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A matrix of datasets with hostile and long names, an explanation of two, and the page."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(3, 5))

    def blobs(labels, shift=0.0):
        which = rng.integers(3, size=90)
        return rng.normal(size=(90, 5)) + centres[which] + shift, np.array(labels)[which]

    datasets = {
        "ours": blobs(["cat", "dog", "owl"]),
        "theirs": blobs(["chat", "chien", "<img src=x onerror=alert(1)>"]),
        HOSTILE: blobs([1, 2, 3], 2),
        "a dataset with a name that is really rather long, as paths often are": blobs(["x", "y", "$z$"], 6),
    }
    matrix = sotdd.pairwise(datasets, n_projections=200)
    why = sotdd.explain(datasets["ours"], datasets["theirs"], projections=matrix.projections)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return matrix, why, sotdd.report(matrix, path, datasets=datasets, title="Ours & <theirs>")


def test_a_report_by_mouse_and_by_keyboard(opened, report):
    matrix, why, path = report
    page = opened(path)
    page.wait_for_selector("#heat .heatmaplayer image", state="attached")
    names, order = (
        shorten_names(matrix.names),
        page.evaluate("JSON.parse(document.getElementById('data').textContent).order"),
    )
    for chart in ("heat", "class-heat", "rank", "map", "tree"):
        assert page.locator(f"#{chart} .main-svg").first.is_visible()
    assert page.title() == page.locator("h1").inner_text() == "Ours & <theirs>"
    assert HOSTILE in page.locator("#first").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate(NAMELESS) == []
    # A click on a cell compares two datasets.
    at = page.evaluate(
        """() => {
            const chart = document.getElementById("heat");
            chart.scrollIntoView({block: "center", behavior: "instant"});
            const box = chart.getBoundingClientRect(), {xaxis, yaxis} = chart._fullLayout;
            return [box.left + xaxis._offset + xaxis.d2p(1), box.top + yaxis._offset + yaxis.d2p(3)];
        }"""
    )
    page.mouse.click(*at)
    chosen = lambda: (page.locator("#first").input_value(), page.locator("#second").input_value())  # noqa: E731
    assert chosen() == (str(order[3]), str(order[1]))
    distance = matrix[matrix.names[order[3]], matrix.names[order[1]]]
    assert page.locator("#pair-distance").inner_text().startswith(repr(distance).split(" (")[0])
    assert names[order[3]] in page.locator("#shares-title").inner_text()
    page.select_option("#first", "0")
    page.select_option("#second", "1")
    page.select_option("#first", "0")
    drawn = page.evaluate("Array.from(document.getElementById('class-heat').data[0].z)")
    np.testing.assert_allclose(np.array(drawn), why.by_class.distances, rtol=1e-4)
    # And so do keys.
    page.locator("#heat").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator("#heat-said").inner_text().startswith(f"{names[order[2]]} and {names[order[0]]}: ")
    page.keyboard.press("Enter")
    assert chosen() == (str(order[2]), str(order[0]))
    page.locator("#from").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.getElementById('rank').data[0].x.length") == 3


def test_a_report_on_a_phone_dark_and_without_scripts(opened, report):
    page = opened(report[2], width=360, scheme="dark")
    page.wait_for_selector("#heat .heatmaplayer image", state="attached")
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for selector in ("h1", ".subtitle", ".note", "summary", "thead th", "dt", "#theme", "#pair-distance span"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(CONTRAST, ".note") >= 4.5
    page = opened(report[2], java_script_enabled=False)
    assert page.locator("summary").first.is_visible()
    assert not page.locator("#heat").is_visible()


# --------------------------------------------------------------------------- pages that begin with a verdict


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a folder of tables, one of each kind."""
    from sotdd.cli import main

    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    for name, n, shift in [("train.csv", 150, 0), ("same.csv", 60, 0), (LONG, 70, 3), ("few.csv", 4, 0)]:
        x = rng.normal(size=(n, 3)) * [1, 10, 100] + np.array([shift, 0, 0])
        frame = pd.DataFrame(x, columns=["age", "<b>income</b>", "height"])
        kinds = [f"class number {k}" for k in range(12)] + ["<img src=x onerror=alert(1)>"]
        frame.assign(kind=rng.choice(kinds, n)).to_csv(folder / name, index=False)
    few = ["--label", "kind", "--n-projections", "64"]
    permuted = ["--n-permutations", "39"]
    lines = {
        "gate": ["check", "train.csv", "same.csv", LONG, "few.csv", "missing.csv", *few, *permuted],
        "undecided": ["check", "train.csv", "missing.csv", *few, *permuted],
        "test": ["test", "train.csv", LONG, *few, *permuted],
        "explain": ["explain", "train.csv", LONG, *few],
        "reference": ["reference", "train.csv", "-o", "train.ref", *few],
        "log": ["check", "train.ref", *(["same.csv"] * 12), *permuted, "--log", "gate.log"],
        "saved": ["check", "train.ref", "same.csv", LONG, *permuted, "--fail-above", "0.4", "--log", "gate.log"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, line in lines.items():
            written = ["--report", f"{kind}.html"] if kind in KINDS else []
            patch.setattr(sys, "argv", ["sotdd", *line, *written, "-q"])
            with contextlib.suppress(SystemExit):
                main()
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_page(opened, pages, kind):
    path = pages / f"{kind}.html"
    for width in (1280, 390):
        page = opened(path, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(BEYOND, width) == []
        assert "csv" in page.locator("#verdict h2").inner_text()
        assert LONG not in page.locator("main").inner_text().replace(page.locator("#settings").inner_text(), "")
        assert page.locator("img").count() == 0
        assert page.evaluate(NAMELESS) == []
    dark = opened(path, scheme="dark")
    for selector in ("h1", ".subtitle", "#verdict h2", ".mark", "dt"):
        assert dark.evaluate(CONTRAST, selector) >= 4.5, selector
    paper = opened(path, width=794, scheme="dark", media="print")
    assert paper.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 251)"
    assert paper.evaluate(BEYOND, 794) == []
    if kind == "saved":  # twelve batches from the log, two more, and the limit, at any width
        for width, size in ((1280, "wide"), (700, "middle"), (390, "narrow")):
            page = opened(path, width)
            chart = page.locator(f".{size} svg[aria-label^='Distances of the batches']")
            assert chart.is_visible()
            assert page.locator(".chart-svg:visible").count() == 1
            assert chart.locator("circle, path").count() == 14
            assert chart.locator(".bad-dot").count() == 1
            assert "limit 0.4" in chart.text_content()
