"""Formulas that fit only with digits nobody prints."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.printable import is_printable
from gmeql.search.polish.scoring import JudgedRows

CANCELLING = "19999.371*x - 20001.137*sin(x) - 3333.4172*x**3/(1 + 0.05*x**2)"


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
