"""The page's tables: nothing empty, nothing said twice, every text escaped."""

import html

from gmeql.evaluation.paper.figures import Figure, Finding
from gmeql.evaluation.paper.page import VERDICTS, page_of, table_of

FACTS = dict(
    note="a budget", rule="Solved.", level=0.05, enough=5, failures=[], done=1, wanted=2, checksum="ab", written="today",
    versions={"gmeql": "1"},
)  # fmt: skip


def figure(**changes):
    given = dict(name="fig", title="A figure", paper_says="less is <b>more</b>", cells=None, measure=None, draw=None)
    return Figure(**(given | changes))


def test_columns_that_are_empty_or_said_above_are_left_out():
    rows = [
        {"problem": "b1", "method": "gmeql", "setting": "raced", "runs": 2, "p_value": None, "not_shown": 3},
        {
            "problem": "b1",
            "method": "eql",
            "setting": "raced_no_elites",
            "runs": 2,
            "p_value": None,
            "median_test_mae": 0.12345,
        },
        {"problem": "b1", "method": "gp", "runs": 0},
    ]
    headings, cells = table_of(rows)
    assert [heading["text"] for heading in headings] == ["method", "setting", "runs", "test MAE"]
    assert [heading["number"] for heading in headings] == [False, False, True, True]
    assert cells == [
        ["GMEQL", "the best setting found", "2", "–"],
        ["EQL", "without the elite repository", "2", "0.123"],
    ]
    assert table_of([]) == ([], []) and table_of(rows[2:]) == ([], [])


def test_a_figure_is_shown_as_picture_and_a_table_as_table():
    finding = Finding([{"problem": "b1", "expression": "x**2*y", "rows": 300}], ["one <i>word</i>"], "too few runs")
    page = page_of([(figure(), finding, "UElD")], **FACTS)
    assert 'src="data:image/svg+xml;base64,UElD"' in page and "<summary>Numbers</summary>" in page
    table = page_of([(figure(is_table=True), finding, "UElD")], **FACTS)
    assert "<img" not in table and "<summary>Numbers" not in table and "<td>x^2 y</td>" in table
    for text in (page, table):
        assert "less is &lt;b&gt;more" in text and "one &lt;i&gt;word" in text
        assert 'class="verdict too-few-runs">Too few runs to judge.' in text


def test_every_agreement_has_its_sentence():
    for agreement, sentence in VERDICTS.items():
        assert sentence in html.unescape(page_of([(figure(), Finding([], [], agreement), "")], **FACTS))
