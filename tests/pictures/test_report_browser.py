"""The page of a report in a real browser: Debian's chromium, driven by Playwright.

Screenshots are kept in ``build/screenshots``.
"""

from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.pictures.short_names import short_names

CHROMIUM = Path("/usr/bin/chromium")
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
HOSTILE = "<script>document.title='taken'</script>"

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs chromium at {CHROMIUM}: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def datasets():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(3, 5))

    def blobs(labels, shift=0.0):
        which = rng.integers(3, size=90)
        return rng.normal(size=(90, 5)) + centres[which] + shift, np.array(labels)[which]

    return {
        "ours": blobs(["cat", "dog", "owl"]),
        "theirs": blobs(["chat", "chien", "<img src=x onerror=alert(1)>"]),
        HOSTILE: blobs([1, 2, 3], 2),
        "a dataset with a name that is really rather long, as paths often are": blobs(["x", "y", "$z$"], 6),
    }


@pytest.fixture(scope="module")
def matrix(datasets):
    return sotdd.pairwise(datasets, n_projections=200)


@pytest.fixture(scope="module")
def names(matrix):
    """The datasets as the page calls them."""
    return short_names(matrix.names)


@pytest.fixture(scope="module")
def address(datasets, matrix, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return sotdd.report(matrix, path, datasets=datasets, title="Ours & <theirs>").as_uri()


@pytest.fixture
def opened(browser, address):
    """Open the page; what it says on the console, fails with or asks for is collected, and must be nothing."""
    contexts, said = [], []

    def open_page(width=1280, height=900, scheme="light", at=address):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: said.append(f"request: {request.url}") if request.url != at else None)
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.goto(at)
        page.wait_for_selector("#heat .heatmaplayer image", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def keep(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
    assert (SCREENSHOTS / f"{name}.png").stat().st_size > 20_000


def cell(page, row, column):
    """Where the middle of a cell of the heat map is on the screen."""
    return page.evaluate(
        """([row, column]) => {
            const chart = document.getElementById("heat");
            chart.scrollIntoView({block: "center", behavior: "instant"});
            const box = chart.getBoundingClientRect(), {xaxis, yaxis} = chart._fullLayout;
            return [box.left + xaxis._offset + xaxis.d2p(column), box.top + yaxis._offset + yaxis.d2p(row)];
        }""",
        [row, column],
    )


def chosen(page):
    return page.locator("#first").input_value(), page.locator("#second").input_value()


def order_of(page):
    return page.evaluate("JSON.parse(document.getElementById('data').textContent).order")


def test_the_page_is_drawn_and_names_are_text(opened, matrix):
    page = opened()
    for chart in ("heat", "class-heat", "rank", "map", "tree"):
        assert page.locator(f"#{chart} .main-svg").first.is_visible()
    assert page.title() == "Ours & <theirs>"
    assert page.locator("h1").inner_text() == "Ours & <theirs>"
    assert HOSTILE in page.locator("#first").inner_text()
    assert page.locator("img").count() == 0
    assert matrix["ours", "theirs"].fingerprint in page.locator("dl").inner_text()
    assert page.locator("#tree").inner_text().count("<scr") == 1  # shortened, and text
    keep(page, "report-light")


def test_hovering_tells_a_distance(opened, matrix, names):
    page = opened()
    order = order_of(page)
    page.mouse.move(*cell(page, 0, 1))
    page.wait_for_selector("#heat .hoverlayer .hovertext")
    told = page.locator("#heat .hoverlayer").text_content()
    distance = matrix[tuple(matrix.names[order[place]] for place in (0, 1))]
    one, other = (names[order[place]] for place in (0, 1))
    assert repr(distance).split(" (")[0] in told
    assert f"{one} and {other}" in told.replace("\xa0", " ")


def test_clicking_a_cell_compares_two_datasets(opened, matrix, names):
    page = opened()
    order = order_of(page)
    before = page.locator("#shares-title").inner_text()
    page.mouse.click(*cell(page, 3, 1))
    assert chosen(page) == (str(order[3]), str(order[1]))
    one, other = matrix.names[order[3]], matrix.names[order[1]]
    told = page.locator("#pair-distance").inner_text()
    assert told.startswith(repr(matrix[one, other]).split(" (")[0])
    after = page.locator("#shares-title").inner_text()
    assert after != before
    assert names[order[3]] in after
    assert page.locator("#class-tables table").count() == 2


def test_class_matrices_are_those_of_the_explanation(opened, datasets, matrix):
    page = opened()
    why = sotdd.explain(datasets["ours"], datasets["theirs"], projections=matrix.projections)
    for i, j, expected in ((0, 1, why.class_distances), (1, 0, why.class_distances.T)):
        page.select_option("#first", str(i))
        page.select_option("#second", str(j))
        if chosen(page) != (str(i), str(j)):
            page.select_option("#first", str(i))
        assert chosen(page) == (str(i), str(j))
        drawn = page.evaluate("Array.from(document.getElementById('class-heat').data[0].z)")
        np.testing.assert_allclose(np.array(drawn), expected, rtol=1e-4)
    assert "Features" in page.locator("#parts-said").inner_text()
    names = page.locator("#class-heat .xtick text, #class-heat .ytick text")
    assert names.count() == 6
    assert all(name.is_visible() for name in names.all())


def test_the_keyboard_is_enough(opened, names):
    page = opened()
    order = order_of(page)
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached[:5] == ["", "theme", "heat", "first", "second"]
    page.locator("#heat").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    one, other = names[order[2]], names[order[0]]
    assert page.locator("#heat-said").inner_text().startswith(f"{one} and {other}: ")
    page.keyboard.press("Enter")
    assert chosen(page) == (str(order[2]), str(order[0]))
    for _ in range(6):
        page.keyboard.press("ArrowRight")  # stops at the edge
    assert page.locator("#heat-said").inner_text().startswith(f"{one} and {names[order[3]]}: ")
    page.locator("#from").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#from").input_value() == "0"
    assert page.evaluate("document.getElementById('rank').data[0].x.length") == 3


def test_everything_that_takes_the_focus_has_a_name(opened):
    page = opened()
    nameless = page.evaluate(
        """Array.from(document.querySelectorAll("button, select, [tabindex='0'], [role]")).filter((e) =>
            !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() ||
              e.labels?.length)
        ).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []


@pytest.mark.parametrize("width", [320, 360, 768])
def test_a_phone_needs_no_sideways_scrolling(opened, width):
    page = opened(width=width, height=740)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in ("heat", "class-heat", "rank", "map", "tree"):
        box = page.locator(f"#{chart} .main-svg").first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    if width == 360:
        keep(page, "report-phone")


def contrast(page, selector):
    """WCAG's contrast of an element's text on what is behind it."""
    return page.evaluate(
        """(selector) => {
            const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
            const light = (colour) => numbers(colour).slice(0, 3).map((v) => v / 255)
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            let behind = document.querySelector(selector);
            const ink = light(getComputedStyle(behind).color);
            while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
            const paper = light(getComputedStyle(behind).backgroundColor);
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        }""",
        selector,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable_and_can_be_switched(opened, scheme):
    page = opened(scheme=scheme)
    other = {"light": "dark", "dark": "light"}[scheme]
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == scheme
    for selector in ("h1", ".subtitle", ".note", "summary", "thead th", "dt", "#theme", "#pair-distance span"):
        assert contrast(page, selector) >= 4.5, selector
    ink = page.evaluate("document.getElementById('tree')._fullLayout.font.color")
    if scheme == "dark":
        keep(page, "report-dark")
    page.locator("#theme").click()
    assert page.evaluate(theme) == other
    assert page.evaluate("document.getElementById('tree')._fullLayout.font.color") != ink
    assert contrast(page, ".note") >= 4.5


def test_a_turned_phone_is_drawn_anew(opened):
    page = opened(width=360, height=740)
    page.set_viewport_size({"width": 740, "height": 360})
    for _ in range(100):
        page.wait_for_timeout(50)
        if page.evaluate("document.getElementById('rank')._fullLayout.width") > 500:
            break
    assert page.evaluate("document.getElementById('rank')._fullLayout.width") > 500
    assert page.evaluate("document.getElementById('rank')._fullLayout.width") <= 740
    assert page.evaluate("document.documentElement.scrollWidth") <= 740


def test_matrices_without_classes_or_errors(opened, datasets, tmp_path):
    plain = {name: features for name, (features, _) in datasets.items()}
    at = sotdd.report(sotdd.pairwise(plain, method="mmd"), tmp_path / "peer.html").as_uri()
    page = opened(at=at)
    assert page.locator("#no-classes").is_visible()
    assert not page.locator("#shares").is_visible()
    assert "95 %" not in page.locator("#rank-note").inner_text()


def test_without_scripts_the_tables_are_there(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("summary").first.is_visible()
    assert not page.locator("#heat").is_visible()
    assert "JavaScript" in page.locator("noscript").inner_text()
    context.close()
