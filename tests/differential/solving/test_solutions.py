"""What is said about solutions."""

from __future__ import annotations

import pytest
import sympy

from gmeql.differential.solving.solutions import Solution, Solutions
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree


def solution(text: str, *, residual: float, proven: bool, complexity: int) -> Solution:
    expression = Expression(parse_tree(text, ["x"]), ("x",))
    verdict = "proven: equation and conditions vanish identically" if proven else "approximation: misses"
    return Solution(("y",), (expression,), (expression.sympy(),), complexity, residual, 0.0, proven, verdict)


def front(*members: Solution) -> Solutions:
    return Solutions(members, "y(x)", "0 <= x <= 1", 10, 1.0, "time is over")


SHORT = solution("x", residual=0.1, proven=False, complexity=1)
LONG = solution("x - x**3/6", residual=0.01, proven=False, complexity=9)
TRUE = solution("sin(x)", residual=0.0, proven=True, complexity=3)


def test_the_best_is_the_proven_one_or_the_one_that_misses_least() -> None:
    assert front(SHORT, TRUE, LONG).best is TRUE and front(SHORT, TRUE).proven
    assert front(SHORT, LONG).best is LONG and not front(SHORT, LONG).proven


def test_a_clear_no_with_the_best_approximation_and_its_residual() -> None:
    text = str(front(SHORT, LONG))
    assert text.startswith("no closed form was found (10 formulas tried")
    assert "best approximation on 0 <= x <= 1: y = x - x**3/6" in text and "largest residual 1.0e-02" in text


def test_forms() -> None:
    found = front(SHORT, TRUE)
    assert str(found).startswith("y = sin(x)\n  proven")
    assert found.sympy() == sympy.sin(sympy.Symbol("x"))
    assert found.latex() == r"y = \sin{\left(x \right)}"
    assert found.to_frame()["proven"].to_list() == [False, True]
    assert len(found) == 2 and found[1] is TRUE and list(found) == [SHORT, TRUE]
    assert TRUE([[0.5]])[0] == pytest.approx(0.479425538604203)
    assert "yes" in repr(found).splitlines()[-1]
