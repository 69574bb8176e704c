"""Fitted formulas compared: one of each, without constants where that is as good, and no worse than what there is."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.direct.comparing import briefest, plain_length
from gmeql.search.direct.table import DirectTable
from gmeql.search.polish.scoring import JudgedRows, refit

NAMES = ("x0",)


def given(unexplained: float) -> tuple[DirectTable, JudgedRows]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 3.0, (400, 1))
    y = np.tanh(X[:, 0]) + 0.05 * rng.standard_normal(400)
    return DirectTable(X, y, np.ones(400), unexplained), JudgedRows.of(X, y, None, NAMES)


def fits(rows: JudgedRows, *texts: str) -> list:
    return refit([parse_tree(text, NAMES) for text in texts], rows, keep_recognised=False)


def test_a_form_without_constants_comes_first_and_once() -> None:
    table, rows = given(1.0)
    found = briefest(fits(rows, "1.3*x0/(x0 + 0.51)", "sqrt(tanh(x0)**2)", "tanh(x0)", "1.1*tanh(0.9*x0)"), table, rows)
    assert str(Expression(found[0], NAMES)) == "tanh(x0)"
    values = [table.values(root) for root in found]
    assert not any(np.allclose(values[0], other, rtol=1e-9) for other in values[1:])


def test_nothing_is_proposed_that_fits_worse_than_what_there_is() -> None:
    table, rows = given(0.01)
    assert briefest(fits(rows, "1.1*tanh(0.9*x0)"), table, rows) == []


def test_a_rounded_decimal_was_fitted_all_the_same() -> None:
    _, rows = given(1.0)
    plain, decimal = fits(rows, "tanh(x0)")[0], refit([parse_tree("1.5*tanh(x0)", NAMES)], rows)[0]
    decimal.loss, decimal.complexity = plain.loss, plain.complexity
    assert np.isclose(plain_length(decimal, rows) - plain_length(plain, rows), 0.5 * np.log(400))


def test_the_luckiest_of_many_is_not_proposed_for_noise() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(0.2, 3.0, (100, 1))
    y = 0.3 * X[:, 0] + rng.standard_normal(100)
    table, rows = DirectTable(X, y, np.ones(100), 1.0), JudgedRows.of(X, y, None, NAMES)
    lucky = fits(rows, "0.5*sin(x0)**2", "0.2*exp(0.5*x0)")
    assert briefest(lucky, table, rows, n_tried=1e6) == []
    table, rows = given(1.0)
    assert len(briefest(fits(rows, "tanh(x0)"), table, rows, n_tried=1e6)) == 1
