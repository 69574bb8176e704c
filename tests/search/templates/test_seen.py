"""What a free function must be: exact where the outer form is linear in it, and seen there by direct methods."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.templates import read_template
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.table import Effort
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.templates.seen import needed, seen
from gmeql.search.templates.solutions import Solution, refit_solutions

NAMES = ("t", "z")


def rows(target: str) -> JudgedRows:
    X = np.random.default_rng(0).uniform(0.2, 6.0, (120, 2))
    return JudgedRows.of(X, Expression(parse_tree(target, NAMES), NAMES)(X), None, NAMES)


def solution(template: str, inner: tuple[str, ...], values: tuple[float, ...]) -> Solution:
    read = read_template(template, NAMES)
    arities = read.functions.values()
    trees = [parse_tree(text, [f"x{k}" for k in range(n)]) for text, n in zip(inner, arities, strict=True)]
    return Solution(read, tuple(trees), values)


@pytest.mark.parametrize(
    ("template", "values", "law"),
    [
        ("f(t)*cos(w*t + p)", (2.3, 0.4), "1.7*exp(-0.3*t)*cos(2.3*t + 0.4)"),
        ("f(t)*z + z**2", (), "1.7*exp(-0.3*t)*z + z**2"),
    ],
)
def test_needed_values_are_exact_where_the_form_is_linear(template: str, values: tuple[float, ...], law: str) -> None:
    data = rows(law)
    table = needed(solution(template, ("0.1*x0 + 2",), values), 0, data)
    assert table is not None
    np.testing.assert_allclose(table.y, 1.7 * np.exp(-0.3 * table.X[:, 0]), rtol=1e-7)


def test_direct_methods_see_the_function_at_once() -> None:
    data = rows("1.7*exp(-0.3*t)*cos(2.3*t + 0.4)")
    start = solution("f(t)*cos(w*t + p)", ("0.1*x0 + 2",), (2.3, 0.4))
    rng = np.random.default_rng(0)
    tries = list(seen(start, 0, data, FunctionSet(list(DEFAULT_FUNCTIONS)), Effort(0.3), rng))
    best = min(refit_solutions(tries, data, max_steps=40), key=lambda found: found.loss)
    assert data.is_exact(best.loss) and "exp" in str(Expression(best.root, NAMES))


def test_a_function_in_several_places_is_left_to_the_islands() -> None:
    data = rows("t**2 + z**2")
    assert needed(solution("f(t) + f(z)", ("2*x0",), ()), 0, data) is None
    assert needed(solution("0*f(t) + z", ("2*x0",), ()), 0, data) is None  # nothing depends on it
