"""The last step of polishing: customary forms, their constants rounded, nothing lost."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.recognition import all_recognised
from gmeql.search.polish.scoring import JudgedRows, refit
from gmeql.search.polish.writing import written, written_and_rounded
from judged_rows import NAMES, rows, show


def fitted(formula: str, data: JudgedRows):
    (scored,) = refit([parse_tree(formula, NAMES)], data, keep_recognised=False)
    return scored


def test_saturation_is_written_as_people_do_and_rounded_in_that_form() -> None:
    data = rows(lambda X: 4.19 * X[:, 0] / (X[:, 0] + 1.28), noise=0.05)
    final = written_and_rounded(fitted("3.27/(1/x + 0.78)", data), data)
    saturation = parse_tree("4*x/(x + 1)", NAMES)
    assert Expression(final.root, NAMES).with_constants([1.0, 1.0]) == Expression(saturation, NAMES).with_constants(
        [1.0, 1.0]
    )
    assert all_recognised(final.root)
    np.testing.assert_allclose(Expression(final.root, NAMES).constants, [4.19, 1.28], rtol=0.1)


def test_exact_data_keep_the_form_whose_constants_are_short() -> None:
    data = rows(lambda X: 3.27 / (1 / X[:, 0] + 0.78))
    final = written_and_rounded(refit([parse_tree("3.27/(1/x + 0.78)", NAMES)], data)[0], data)
    assert show(final.root) == "3.27/(1/x + 0.78)"
    data = rows(lambda X: 4.19 * X[:, 0] / (X[:, 0] + 1.28))
    final = written_and_rounded(fitted("3.27/(1/x + 0.78)", data), data)
    assert show(final.root) == "4.19*x/(x + 1.28)"


def test_a_form_has_the_loss_of_the_formula() -> None:
    data = rows(lambda X: 4.19 * X[:, 0] / (X[:, 0] + 1.28), noise=0.05)
    raw = fitted("3.27/(1/x + 0.78)", data)
    form = written(raw, data)
    assert show(form.root) != show(raw.root) and form.complexity <= raw.complexity + 1
    assert form.loss == pytest.approx(raw.loss, rel=1e-9)
    plain = fitted("2*x + 1", data)
    assert written(plain, data) is plain and written_and_rounded(plain, data) is plain


@pytest.mark.parametrize(
    ("truth", "start", "expected"),
    [
        ("4.19*x/(x + 1.28)", "3.27/(1/x + 0.78)", "4.19*x/(x + 1.28)"),
        ("1826*x/(5586 - x)", "-1800/(1 - 5500/x)", "1826*x/(5586 - x)"),
        ("2*sin(3*x + 0.7)", "2*sin(3*x + 19.5)", "2*sin(3*x + 0.7)"),
        ("2*sin(3*x + 0.7)", "-2*sin(3*x + 3.8)", "2*sin(3*x + 0.7)"),
        ("5/(2*exp(-3*x) + 1)", "2.5/(exp(-2.9*x) + 0.5)", "5/(2*exp(-3*x) + 1)"),
    ],
)
def test_polish_writes_what_people_write(truth: str, start: str, expected: str) -> None:
    target = Expression(parse_tree(truth, NAMES), NAMES)
    final = polish(parse_tree(start, NAMES), rows(target))[0]
    assert show(final.root) == expected


def test_powers_of_yes_and_no_and_frozen_functions_leave_a_formula() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 100), rng.uniform(0.5, 3.0, (100, 2)).T[0], rng.uniform(0, 1, 100)])
    target = 2.5 * X[:, 0] + 1.5 * X[:, 1] + 0.1 * rng.standard_normal(100)
    data = JudgedRows.of(X, target, None, ("green", "t", "u"))
    start = parse_tree("2*green**6 + 1.5*t*tanh(6.2551e+14*t)", data.names)
    shown = str(Expression(polish(start, data)[0].root, data.names))
    assert "tanh" not in shown and "**" not in shown and "green" in shown
