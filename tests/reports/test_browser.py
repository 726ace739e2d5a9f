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
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});  // reads all colours
    const painted = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return Array.from(canvas.getImageData(0, 0, 1, 1).data);
    };
    const light = (colour) => painted(colour).slice(0, 3).map((v) => v / 255)
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
    names = shorten_names(matrix.names)
    for chart in ("table.heat", ".map", ".tree", ".range"):
        assert page.locator(chart).first.is_visible()
    assert page.title() == page.locator("h1").inner_text() == "Ours & <theirs>"
    assert HOSTILE in page.locator("main").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate(NAMELESS) == []
    # One pair is shown, the nearest at first; a click on a cell chooses another, and so do keys.
    shown = page.locator(".pair:visible h2")
    assert shown.all_inner_texts() == ["ours and theirs"]
    for cell in page.locator("td:has(.meter):visible").all():  # bars are as long as their shares, of 40 pixels
        width = cell.evaluate("cell => cell.firstChild.getBoundingClientRect().width")
        assert width == pytest.approx(0.4 * float(cell.inner_text().rstrip("%")), abs=0.3)
    rows = page.locator(".pair:visible table.heat tbody tr").all()
    drawn = [[float(cell.inner_text()) for cell in row.locator("td").all()] for row in rows]
    np.testing.assert_allclose(np.array(drawn), why.by_class.distances, rtol=6e-3)
    page.locator("table.heat a[href='#pair-1-3']").first.click()
    assert shown.all_inner_texts() == [f"{names[1]} and {names[3]}"]
    distance = matrix[matrix.names[1], matrix.names[3]]
    assert page.locator(".pair:visible .figure").inner_text().startswith(repr(distance).split(" (")[0])
    page.locator("table a[href='#pair-0-2']").last.focus()
    page.keyboard.press("Enter")
    assert shown.all_inner_texts() == [f"{names[0]} and {names[2]}"]


def test_a_report_on_a_phone_dark_and_without_scripts(opened, report):
    page = opened(report[2], width=360, scheme="dark", java_script_enabled=False)
    for summary in page.locator("summary").all():
        summary.click()
    page = opened(report[2], width=360, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for selector in ("h1", ".subtitle", ".note", "summary", "thead th", "dt", ".figure span", "td.near", "td.far"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_a_page_of_many_datasets_fits_and_its_names_do_not_meet(opened, tmp_path):
    rng = np.random.default_rng(0)
    for count, fits in ((16, True), (24, True), (30, False)):
        near = {
            f"2026/region-{i:02d}/customers_{i:02d}.csv": rng.normal(i / 9, 1, size=(30, 2)) for i in range(1, count)
        }
        matrix = sotdd.pairwise({**near, "outlier.csv": rng.normal(90, 1, size=(30, 2))}, n_projections=16)
        path = sotdd.report(matrix, tmp_path / f"{count}.html")
        page = opened(path, 1200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        region = page.locator(".scroll:has(.heat)").first
        assert region.evaluate("one => one.scrollWidth <= one.clientWidth") is fits
        for width in (1200, 390):
            page.set_viewport_size({"width": width, "height": 900})
            boxes = [name.bounding_box() for name in page.locator(".map .names span").all()]
            for i, one in enumerate(boxes):
                for other in boxes[:i]:
                    beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
                    assert beside or abs(one["y"] - other["y"]) >= 0.9 * one["height"], (width, count)


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


def test_a_column_is_found_by_typing_without_a_script(opened, pages):
    page = opened(pages / "gate.html", java_script_enabled=False)
    choice = page.locator("select").first
    assert page.locator(".column:visible").count() == 0
    choice.focus()
    page.keyboard.type("heig")
    assert page.locator(".column:visible h3").all_inner_texts() == ["height"]
    choice.select_option(label="<b>income</b>")
    assert page.locator(".column:visible h3").all_inner_texts() == ["<b>income</b>"]
    assert page.locator(".column:visible .overlay").is_visible()


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_page(opened, pages, kind):
    path = pages / f"{kind}.html"
    for width in (1280, 390):
        page = opened(path, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(BEYOND, width) == []
        assert "csv" in page.locator("#verdict h2").inner_text()
        code = "".join(page.locator("pre").all_inner_texts())
        assert LONG not in page.locator("main").inner_text().replace(code, "")
        assert page.locator("img").count() == 0
        assert page.evaluate(NAMELESS) == []
    dark = opened(path, scheme="dark")
    for selector in ("h1", ".subtitle", "#verdict h2", ".mark", "dt"):
        assert dark.evaluate(CONTRAST, selector) >= 4.5, selector
    paper = opened(path, width=794, scheme="dark", media="print")
    assert paper.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 251)"
    assert paper.evaluate(BEYOND, 794) == []
    if kind == "saved":  # twelve batches from the log, two more, and the limit, at any width
        for width in (1280, 700, 390):
            chart = opened(path, width).locator(".history")
            assert chart.locator("b").count() == 14
            assert chart.locator(".drift").count() == 1
            assert "limit 0.4" in chart.inner_text()
