"""What the report shows, as plain data."""

from __future__ import annotations

import json
import re

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.printing.export import EXPORTS
from gmeql.report import content
from gmeql.report.numbers import plain_list
from report_pages import front_for, training


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "&amp;", "<script"])
def test_safe_json_reads_back_and_holds_no_markup(text):
    encoded = content.safe_json({"a": text})
    assert json.loads(encoded) == {"a": text} and not re.search("[<>&\u2028\u2029]", encoded)


def test_every_form_to_copy_is_a_form_that_exists():
    assert set(content.EXPORTS.values()) <= set(EXPORTS)
    texts = content.exports(front_for(training())[-1].expression)
    assert list(texts) == list(content.EXPORTS) and "sin" in texts["Python"]


def test_a_long_front_is_thinned_and_keeps_the_chosen_formula():
    assert content.shown_members(5, 2) == [0, 1, 2, 3, 4]
    for selected in (0, 333, 999):
        shown = content.shown_members(1000, selected)
        assert selected in shown and shown[0] == 0 and shown[-1] == 999 and len(shown) <= content.MAX_MEMBERS


def test_rows_are_sampled_evenly_and_always_the_same():
    np.testing.assert_array_equal(content.sample_rows(10), np.arange(10))
    rows = content.sample_rows(100_000)
    assert len(set(rows.tolist())) == content.MAX_POINTS and (np.diff(rows) > 0).all() and rows[-1] > 90_000
    np.testing.assert_array_equal(rows, content.sample_rows(100_000))


@pytest.mark.parametrize("offset", [0.0, 1.7e9, -4e6])
@pytest.mark.parametrize("spread", [1e-7, 1.0, 5e4])
def test_points_of_a_plot_keep_the_digits_by_which_they_differ(offset, spread):
    values = offset + spread * np.linspace(0, 1, 50)
    shown = np.array(plain_list(values))
    assert np.abs(shown - values).max() <= 1e-5 * spread + 1e-15 * abs(offset)
    assert plain_list(np.array([np.nan, 2.0, np.inf])) == [None, 2.0, None]


def test_errors_are_those_of_the_formula_and_not_of_rounded_values():
    """Differences of numbers with six digits would show a pattern where a formula is exact."""
    data = training()
    member = front_for(data)[-1]
    predicted = data.y - 1e-9 * np.cos(np.arange(len(data.y)))
    record = content.member_record(member, data, data.X, data.y, predicted, {0: 0}, 1)
    np.testing.assert_allclose(record["residuals"], data.y - predicted, rtol=1e-4, atol=1e-15)


def test_a_long_history_is_thinned_and_keeps_its_end():
    history = [{"elapsed": float(k), "best": {"loss": 1 / (k + 1)}} for k in range(5000)]
    points = content.history_points([*history, {"elapsed": 1.0, "best": None}], 0.5)
    assert len(points["loss"]) <= content.MAX_HISTORY + 1
    assert points["elapsed"][0] == 0.0 and points["elapsed"][-1] == 4999.0


def test_the_course_of_a_search_ends_at_the_chosen_formula() -> None:
    """What is judged after the last record may be another formula than the best that the record names."""
    history = [{"elapsed": 1.0, "best": {"loss": 3.3}}, {"elapsed": 2.0, "best": {"loss": 3.5}, "done": True}]
    assert content.history_points(history, 3.4)["loss"] == [3.3, 3.4]


def test_a_category_stands_in_the_title_under_its_own_name() -> None:
    """As the user's table calls it, not as the columns of 0 and 1 that are made of it."""
    data = replace(training(), names=("kind=red", "kind=blue", "b=c"), table_names=("kind", "b=c", "y"))
    assert content.given_columns(data, data.names) == ["kind", "b=c"]
    assert content.given_columns(replace(data, table_names=None), data.names) == ["kind=red", "kind=blue", "b=c"]


def test_how_to_repeat_a_run_depends_on_its_budget():
    assert "repeat this run exactly" in content.repeat_line({"max_candidates": 5, "max_time": None})
    assert "budget is time" in content.repeat_line({"max_candidates": None, "max_time": 30.0})
    facts = dict(content.facts({"max_time": 30.0, "pin": ["a", "b"], "drop": [], "header": None}, {"numpy": "2"}))
    assert facts == {"max time": "30.0", "pin": "a, b", "numpy": "2"}


def test_a_category_is_read_from_its_cell_and_what_the_sheet_lacks_has_no_spreadsheet_formula() -> None:
    """Its column of 0 and 1 is ours; the user's sheet holds the word."""
    from gmeql.formula.expression import Expression
    from gmeql.formula.nodes import Variable
    from gmeql.report.content import EXPORTS, cells_line, exports

    expression = Expression(Variable(0), ("kind=red",))
    spreadsheet = next(label for label, name in EXPORTS.items() if name == "spreadsheet")
    assert "A2 is kind" in cells_line(expression, ["kind", "y"])
    assert exports(expression, ["kind", "y"])[spreadsheet] == '=N(A2="red")'
    assert cells_line(expression, ["sort", "y"]) == ""
    assert spreadsheet not in exports(expression, ["sort", "y"]) and exports(expression, ["sort", "y"])


def test_losses_stand_on_the_page_under_their_own_name() -> None:
    data = training()
    front = front_for(data)
    for loss, name in (("squared", "RMSE"), ("robust", "RMSE"), ("absolute", "mean absolute error")):
        page = content.assemble(front, 0, data, [], {"loss": loss}, {}, "2026-01-01", "gmeql fit")
        assert page.payload["measure"] == page.view["members"][0]["measure"] == name
    assert page.view["members"][0]["loss"] == content.four_digits(front[0].loss)


def test_chances_have_axes_and_words_of_their_own():
    data = training()
    data = replace(data, y=(data.y > np.median(data.y)).astype(float))
    for loss, line in (("logistic", "Rows of other classes"), ("squared", "On the dashed line")):
        page = content.assemble(front_for(data), 0, data, [], {"loss": loss}, {}, "", "")
        assert page.view["parity_line"].startswith(line) and ("logit" in page.view["reading"]) == (loss == "logistic")
        assert page.payload["axes"][1] == ("predicted chance" if loss == "logistic" else "predicted " + data.target)


def test_formulas_break_after_operators_and_stay_text():
    from gmeql.report import environment

    broken = environment().get_template("parts.html.j2").module.broken
    assert broken("2*x**3*f(<b>)") == "2*<wbr>x**3*<wbr>f(<wbr>&lt;b&gt;)"


def test_a_curve_of_losses_that_rises_is_explained():
    """It was called the best loss, which cannot rise; what leads is the formula that is chosen so far."""
    history = [{"elapsed": t, "best": {"loss": 1.001}, "candidates": 9, "done": t == 2.0} for t in (1.0, 2.0)]
    rising = content.history_points(history, 1.015)["loss"]
    assert "Where the curve rises, a formula that promises more" in content.search_line(history, {}, rising)
    assert "rises" not in content.search_line(history, {}, content.history_points(history, 1.0)["loss"])
