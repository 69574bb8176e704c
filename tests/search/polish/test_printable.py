"""Formulas that fit only with digits nobody prints."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.printable import as_printed, is_printable
from gmeql.search.polish.scoring import JudgedRows

CANCELLING = "19999.371234567*x - 20001.137234567*sin(x) - 3333.4172345678*x**3/(1 + 0.05*x**2)"


def printable(text: str, noise: float) -> bool:
    rng = np.random.default_rng(3)
    X = rng.uniform(0.2, 1.5, (80, 1))
    values = Expression(parse_tree(text, ("x",)), ("x",))(X)
    y = values + noise * values.std() * rng.standard_normal(80)
    return is_printable(parse_tree(text, ("x",)), float(np.mean((values - y) ** 2)), JudgedRows.of(X, y, None, ("x",)))


def test_terms_that_cancel_are_no_formula_that_people_can_use() -> None:
    assert not printable(CANCELLING, noise=0.01)


def test_a_law_known_to_more_digits_than_are_printed_stays() -> None:
    assert printable("2.3456789*x + 1.2345678", noise=1e-9)
    assert printable("sin(12345.678*x)", noise=0.01)  # a wave needs its digits, and loses none to another term


@pytest.mark.parametrize(("origin", "span"), [(2000.0, 30.0), (1e4, 10.0), (2458000.0, 100.0), (1.7e9, 1e5)])
def test_a_slope_over_a_column_far_from_zero_is_printed_so_that_it_fits(origin: float, span: float) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([origin + span * rng.uniform(size=200), rng.uniform(1, 2, 200)])
    slope = 2.0137846294 / span
    text = f"{slope!r}*date + 1.0037846239871*x - {slope * origin - 0.731846!r}"
    names = ("date", "x")
    root = parse_tree(text, names)
    y = Expression(root, names)(X) + 0.01 * rng.standard_normal(200)
    rows = JudgedRows.of(X, y, None, names)
    loss = float(np.mean((Expression(root, names)(X) - y) ** 2))
    assert is_printable(root, loss, rows)
    shown = Expression(as_printed(root, loss, rows), names)
    read = Expression(parse_tree(str(shown), names), names)
    assert np.mean((read(X) - y) ** 2) <= 1.04 * loss
    assert len(str(shown)) < len(text)
    assert "1.0038*x" in str(shown)  # what needs no more digits has no more
