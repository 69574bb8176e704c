"""Reports in a real browser."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from browsing import HOSTILE, LINE

from gmeql import cli
from gmeql.formula.bounds import Bounds
from gmeql.report.numbers import four_digits
from gmeql.report.unseen import unseen_text
from gmeql.search.judging.outlook import Outlook

pytestmark = pytest.mark.browser


def fit(folder: Path, text: str, target: str, *arguments: str) -> Path:
    (folder / "table.csv").write_text(text)
    with pytest.raises(SystemExit, match="0"):
        cli.main(["fit", str(folder / "table.csv"), "-t", target, "--out", str(folder / "run"), "-q", *arguments])
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit(tmp_path_factory.mktemp("report"), LINE, "y", "--max-candidates", "800")


def test_a_click_on_the_front_switches_every_panel(page, run):
    page.goto((run / "report.html").as_uri())
    chosen = page.locator(".formula:visible").get_attribute("aria-label")
    dots = page.locator("#front-plot .member")
    assert dots.count() >= 2

    def panels() -> dict[str, str]:
        return {name: page.locator(name).inner_html() for name in ("#parity", "#residuals", "#codes", "#responses")} | {
            "formula": page.locator(".formula:visible").get_attribute("aria-label"),
            "judgement": page.locator(".judgement:visible").inner_text(),
            "drawing": page.locator(".drawing:visible").inner_html(),
        }

    before = panels()
    dots.nth(0).click()
    after = panels()
    assert {name for name in before if before[name] == after[name]} == set()
    assert page.locator(".formula:visible").count() == 1
    assert page.locator('tr.pick[aria-selected="true"]').get_attribute("data-pick") == "0"
    page.locator("tr.pick").last.click()
    assert page.locator(".formula:visible").get_attribute("aria-label") != after["formula"]
    page.goto((run / "report.html").as_uri() + "#formula-0")
    page.reload()
    assert page.locator(".formula:visible").get_attribute("aria-label") == after["formula"] != chosen


def test_the_front_can_be_walked_with_the_keyboard(page, run):
    page.goto((run / "report.html").as_uri())
    page.locator("#front-plot .member").nth(0).focus()
    page.keyboard.press("Enter")
    assert page.locator('tr.pick[aria-selected="true"]').get_attribute("data-pick") == "0"
    page.keyboard.press("ArrowRight")
    assert page.locator('tr.pick[aria-selected="true"]').get_attribute("data-pick") == "1"
    assert page.evaluate("document.activeElement.getAttribute('data-k')") == "1"


def test_copy_buttons_copy_the_shown_formula(page, run):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto((run / "report.html").as_uri())
    page.get_by_label("Copy as LaTeX").click()
    page.get_by_text("Copied").wait_for()
    latex = page.evaluate("navigator.clipboard.readText()")
    page.locator("#front-plot .member").nth(0).click()
    page.get_by_label("Copy as LaTeX").click()
    page.wait_for_function("async (old) => (await navigator.clipboard.readText()) !== old", arg=latex)
    for name in ("Text", "Python", "SymPy", "C", "Spreadsheet", "MathML", "JSON"):
        assert page.get_by_label(f"Copy as {name}", exact=True).is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark"), (1280, "light")])
def test_the_report_fits_phone_and_desk_in_light_and_dark(page, run, width, scheme):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto((run / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    contrast = page.evaluate(CONTRAST)
    assert min(contrast.values()) >= 4.5, contrast
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_formula_of_long_names_in_a_sentence_breaks_on_a_phone(page, run):
    """A factor of two names has no blank, and the whole page could be pushed aside by it."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((run / "report.html").as_uri())
    long_name = "7.2*inlet_pressure_upper_chamber*flow_rate_litres_per_minute"
    page.evaluate("(text) => { for (const p of document.querySelectorAll('p')) p.append(' ' + text); }", long_name)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


TICKS = """(kind) => {
  const found = [], read = (text) => Number(text.replaceAll("−", "-"));
  const lows = [1e-12, 3e-4, 0.45, 1, 7, 990, 123456, 8e7], ratios = [1.001, 1.07, 1.3, 2.6, 9, 60, 4e3, 1e9];
  for (const low of lows) for (const ratio of ratios) for (const count of [2, 5, 7]) {
    const ticks = Charts[kind](low, low * ratio, count);
    found.push({ low, high: low * ratio, ticks: ticks.map(([value, text]) => [value, read(text), text]) });
  }
  return found;
}"""


def test_figures_are_those_that_python_writes(page, run):
    """The page of a running search showed 1.42e5 where the report says 141700."""
    page.goto((run / "report.html").as_uri())
    errors = [141_734.0, 0.0, 14513.2, 0.50487, 1.2e-7, 999_960.0, 2.345e6, 0.00012345, 9.9996e-5, -3.14159, 5e20, 1.0]
    assert page.evaluate("(values) => values.map(Charts.show)", errors) == [four_digits(error) for error in errors]
    spreads = [(141_734.0, 1234.0), (0.5, 0.00234), (2.345e6, 45_600.0), (1.2e-7, 3e-9), (3.5, 0.0), (0.12, 7.5)]
    outlooks = [Outlook(*spread, pole=False, support=1.0, bounds=Bounds(0.0, 1.0, True)) for spread in spreads]
    given = [{"outlook": {"error": error, "standard_error": spread}} for error, spread in spreads]
    assert page.evaluate("(all) => all.map(Charts.unseenText)", given) == [unseen_text(outlook) for outlook in outlooks]


@pytest.mark.parametrize("kind", ["linearTicks", "logTicks"])
def test_labels_of_ticks_say_their_value(page, run, kind):
    page.goto((run / "report.html").as_uri())
    for axis in page.evaluate(TICKS, kind):
        values = [value for value, _, _ in axis["ticks"]]
        room = 1e-6 * (axis["high"] - axis["low"])
        assert len(values) >= 2 and axis["low"] - room <= min(values) and max(values) <= axis["high"] + room, axis
        for value, said, text in axis["ticks"]:
            assert abs(said - value) <= 1e-12 * abs(value), axis
        steps = [b - a for a, b in itertools.pairwise(values)]
        if kind == "linearTicks" and steps:
            assert re.match("[125]", f"{steps[0]:.6e}") and max(steps) - min(steps) < 1e-6 * max(steps), axis


NO_OVERLAP = """() => [...document.querySelectorAll(".plot svg")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text")].map((node) => [node.textContent, node.getBoundingClientRect()]);
  const found = [], meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([two, b]) => { if (meet(a, b)) found.push(one + " / " + two); }));
  return found;
})"""


@pytest.fixture(scope="module")
def wide_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target of five digits and columns of long names, so that formulas are wider than a phone."""
    lines = [
        f"{i / 4},{i * i % 7},{25310.5 * i / 4 + 30300 * (i * i % 7) + (i * 7919 % 101) * 90 - 60000}"
        for i in range(1, 60)
    ]
    header = "temperature_of_the_first_inlet,pressure_in_the_second_vessel,y\n"
    return fit(tmp_path_factory.mktemp("wide"), header + "\n".join(lines), "y", "--max-candidates", "3000")


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_a_plot_stands_on_another(page, run, wide_run, width):
    page.set_viewport_size({"width": width, "height": 844})
    for folder in (run, wide_run):
        page.goto((folder / "report.html").as_uri())
        assert page.evaluate(NO_OVERLAP) == []


def test_a_column_of_words_is_one_plot_over_its_kinds(page, tmp_path):
    kinds = ("north of the river", "south", "west")
    rows = "".join(f"{i / 3},{kinds[i % 3]},{2 * i / 3 + (0, 5, 9)[i % 3]}\n" for i in range(40))
    run = fit(tmp_path, "t,site,y\n" + rows, "y", "--max-candidates", "200")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto((run / "report.html").as_uri())
        (site,) = [plot for plot in page.locator("#responses .plot").all() if "site" in plot.text_content()]
        shown = site.locator("text.tick").all_text_contents()
        assert {"south", "west"} <= set(shown) and any(text[:5] == "north" for text in shown)
        assert site.locator("circle.dot").count() == 40 and page.evaluate(NO_OVERLAP) == []


def test_the_chosen_formula_keeps_its_ring_and_the_list_follows(page, wide_run):
    page.goto((wide_run / "report.html").as_uri())
    ring, dots = page.locator("#front-plot circle.chosen"), page.locator("#front-plot .member")
    place = (ring.get_attribute("cx"), ring.get_attribute("cy"))
    for k in (0, dots.count() - 1):
        page.locator(f'#front-plot .member[data-k="{k}"]').dispatch_event("click")
        assert (ring.get_attribute("cx"), ring.get_attribute("cy")) == place
        assert page.evaluate("""() => {
          const shown = document.querySelector('tr.pick[aria-selected="true"]'), row = shown.getBoundingClientRect();
          const list = shown.closest(".scroll").getBoundingClientRect();
          return row.top >= list.top - 1 && row.bottom <= list.bottom + 1;
        }""")  # fmt: skip
    assert page.locator("tr.pick .badge").count() == 1


def test_a_list_that_hides_rows_says_where(page, wide_run):
    page.goto((wide_run / "report.html").as_uri())
    page.add_style_tag(content=".scroll { max-height: 140px !important; }")
    shown = page.locator(".scroll:has(tr.pick)")
    for place, hidden, other in (("0", "below", "above"), ("list.scrollHeight", "above", "below")):
        shown.evaluate(f"(list) => {{ list.scrollTop = {place}; }}")
        page.locator(f".scroll.more-{hidden}:not(.more-{other}):has(tr.pick)").wait_for()


def test_a_row_that_is_taller_than_the_list_shows_its_head(page, run):
    page.goto((run / "report.html").as_uri())
    page.evaluate(
        "() => { [...document.querySelectorAll('tr.pick td.code')].at(-1).textContent = 'sin(x) + '.repeat(400); }"
    )
    page.locator("tr.pick").first.click()
    page.locator("tr.pick").last.dispatch_event("click")
    hidden = page.evaluate("""() => {
      const row = document.querySelector('tr.pick[aria-selected="true"]'), head = row.closest("table").querySelector("th");
      return head.getBoundingClientRect().bottom - row.getBoundingClientRect().top;
    }""")  # fmt: skip
    assert page.locator('tr.pick[aria-selected="true"]').evaluate("(row) => row.offsetHeight") > 330
    assert abs(hidden) <= 1.5


def test_a_command_breaks_between_its_words(page, run):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((run / "report.html").as_uri())
    words = page.locator("#command .word")
    heights = words.evaluate_all(
        "(nodes) => nodes.filter((n) => n.textContent.startsWith('--')).map((n) => n.offsetHeight)"
    )
    assert len(heights) >= 2 and len(set(heights)) == 1
    assert page.locator("#command").inner_text().startswith("gmeql fit ")


@pytest.fixture(scope="module")
def motion_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report about laws of motion, two states over the years."""
    from motions import hunters_model

    from gmeql.report.motion import build

    model = hunters_model(["hare", "lynx"], begin=1900)
    path = tmp_path_factory.mktemp("motion") / "report.html"
    path.write_text(build(model, command="gmeql dynamics table.csv --time year", time="year"))
    return path


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_page_about_motion_fits_and_its_labels_say_their_value(page, motion_page, width, scheme):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto(motion_page.as_uri())
    assert page.locator("#courses svg").count() == 2 and page.locator("#phase .flow").count() > 20
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(NO_OVERLAP) == []
    below = """(row) => {
      const list = row.closest(".scroll");
      return row.offsetTop + row.offsetHeight - list.scrollTop - list.clientHeight;
    }"""
    assert page.locator("tr[aria-selected=true]").evaluate(below) <= 1  # the chosen system is in view
    labels = page.locator("#courses text").evaluate_all("(nodes) => nodes.map((node) => node.textContent)")
    assert labels.count("year") == 2 and {"hare", "lynx"} <= set(labels)
    years = [float(text) for text in labels if text.startswith("19")]
    assert years and all(abs(5 * year - round(5 * year)) < 1e-9 for year in years)
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_constant_and_its_row_mark_each_other(page, run):
    page.goto((run / "report.html").as_uri())
    row, place = page.locator("tr[data-constant]:visible").first, page.locator("math [data-constant]:visible").first
    assert row.get_attribute("data-constant") == place.get_attribute("data-constant")
    place.hover()
    assert "marked" in row.get_attribute("class")
    page.mouse.move(0, 0)
    assert "marked" not in (row.get_attribute("class") or "")
    row.locator("button").focus()
    assert "marked" in place.get_attribute("class")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "kept" in place.get_attribute("class") and row.locator("button").get_attribute("aria-pressed") == "true"
    place.click()
    assert "kept" not in row.get_attribute("class")


def longest_on_a_phone(page, run):
    """The front's longest formula, picked on a page as wide as a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((run / "report.html").as_uri())
    page.locator("tr.pick").last.click()
    return page.locator(".formula:visible")


def test_a_sum_goes_on_in_the_next_line(page, wide_run):
    formula = longest_on_a_phone(page, wide_run)
    terms = formula.get_attribute("aria-label").replace(" - ", " + ").split(" + ")
    parts = formula.locator("math")
    assert len(terms) > 1 and parts.count() == 1 + len(terms)  # the left side is a part too
    signs = [text[0] for text in parts.all_text_contents()[2:]]
    assert set(signs) <= {"+", "\u2212"}
    tops = parts.evaluate_all("(nodes) => nodes.map((node) => Math.round(node.getBoundingClientRect().top / 30))")
    assert len(set(tops)) > 1


def test_what_is_wider_than_its_place_says_so(page, wide_run):
    formula = longest_on_a_phone(page, wide_run)
    formula.evaluate("(node) => { node.style.flexWrap = 'nowrap'; }")  # as a formula of one long term
    frame = page.locator(".frame", has=formula)
    assert formula.evaluate("(node) => node.scrollWidth > node.clientWidth")
    page.wait_for_function("(node) => node.className === 'frame more-right'", arg=frame.element_handle())
    formula.evaluate("(node) => { node.scrollLeft = node.scrollWidth; }")
    page.wait_for_function("(node) => node.className === 'frame more-left'", arg=frame.element_handle())
    drawn = page.locator("#network svg").evaluate(
        "(svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    )
    assert drawn > 0.99  # its labels keep their size


def test_an_exact_formula_does_not_stretch_the_axis(page, run):
    page.goto((run / "report.html").as_uri())
    labels = page.locator("#front-plot text").evaluate_all("(nodes) => nodes.map((node) => node.textContent)")
    assert "exact" in labels and not [text for text in labels if "e−" in text]


CONTRAST = """() => {
  const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (n) => { for (; n; n = n.parentElement) { const c = getComputedStyle(n).backgroundColor; if (!c.endsWith(", 0)")) return c; } return "rgb(255, 255, 255)"; };
  const found = {};
  for (const name of ["h1", ".meta", ".judgement", ".chips li", "button", "summary", "th", "td", "footer", "p.soft"]) {
    const node = document.querySelector(name); if (!node) continue;
    const a = light(getComputedStyle(node).color), b = light(ground(node));
    found[name] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }
  return found;
}"""  # noqa: E501


def test_hostile_names_do_nothing_in_the_report(page, tmp_path):
    quoted = HOSTILE.replace('"', '""')
    text = LINE.replace("a,b,y", f'"{quoted}",b,"</script>{quoted}y"')
    run = fit(tmp_path, text, f"</script>{HOSTILE}y", "--max-candidates", "400")
    page.goto((run / "report.html").as_uri())
    page.locator("#front-plot .member").nth(0).click()
    page.locator("#front-plot .member").last.click()
    page.locator("#parity .dot").first.hover()
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    assert HOSTILE in page.locator("h1").inner_text()


def test_the_page_about_the_paper_fits_a_phone(page, tmp_path):
    pytest.importorskip("matplotlib")
    from fake_records import SMOKE, all_cells, fake_record

    from gmeql.evaluation.paper import figures, records, report

    some = figures.chosen(["table1", "fig2a", "success"])
    records.append(tmp_path, [fake_record(cell) for cell in all_cells()])
    report.write(tmp_path, SMOKE, some, records.load(tmp_path))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((tmp_path / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    hints = page.locator(".scroll").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).backgroundAttachment)"
    )
    assert hints and all("local" in hint and "scroll" in hint for hint in hints)  # an edge that hides more is shaded
    summary = page.locator(".hero .scroll").first
    assert summary.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0
