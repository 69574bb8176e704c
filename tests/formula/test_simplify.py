"""Algebra that keeps the value: random formulas, known forms, a second pass."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import assume, given

import random_trees
from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Node, Variable, tree_complexity
from gmeql.formula.parsing import parse_tree
from gmeql.formula import simplify as simplify_module
from gmeql.formula.simplify import simplify
from random_trees import call
from thinned import examples

X = random_trees.rows()
x, y, z = (Variable(i) for i in range(3))


def simplified(expression: Expression) -> Expression:
    try:
        return expression.with_root(simplify(expression.root))
    except ArithmeticError:
        assume(False)
        raise


@examples(200)
@given(random_trees.expressions())
def test_the_value_stays(expression: Expression) -> None:
    short = simplified(expression)
    rows = random_trees.comparable(expression, X) & random_trees.all_parts_finite(expression, X)
    rows &= random_trees.comparable(short, X)  # another order of sums may cancel
    np.testing.assert_allclose(short(X)[rows], expression(X)[rows], rtol=1e-8)


@examples(100)
@given(random_trees.expressions(constants=random_trees.plain_constants, protected=False))
def test_the_domain_does_not_shrink(expression: Expression) -> None:
    """Where every part of the formula is a number, so is its simpler form (it may be defined in more places)."""
    short = simplified(expression)
    rows = random_trees.comparable(expression, X) & random_trees.all_parts_finite(expression, X)
    assert np.isfinite(short(X)[rows]).all()


@examples(100)
@given(random_trees.expressions(protected=False))
def test_a_second_pass_changes_little(expression: Expression) -> None:
    once = simplified(expression)
    twice = simplified(once)
    assert tree_complexity(twice.root) <= tree_complexity(once.root)
    rows = random_trees.comparable(once, X) & random_trees.comparable(twice, X)
    rows &= random_trees.all_parts_finite(once, X)
    np.testing.assert_allclose(twice(X)[rows], once(X)[rows], rtol=1e-8)


def text(root: Node) -> str:
    return str(Expression(simplify(root), ("x", "y", "z")))


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (call("add", call("mul", 2.0, x), call("mul", x, 3.0), 0.0), "5*x"),
        (call("sub", x, x), "0"),
        (call("div", x, x), "1"),
        (call("mul", x, call("inv", x), y), "y"),
        (call("mul", 2.0, 3.0), "6"),
        (call("mul", 0.0, call("sin", x)), "0"),
        (call("mul", 1.0, x), "x"),
        (call("neg", call("neg", x)), "x"),
        (call("mul", x, x, x), "x**3"),
        (call("square", call("square", x)), "x**4"),
        (call("mul", call("square", x), call("pow", x, -1.0)), "x"),
        (call("square", call("sqrt", call("add", x, y))), "x + y"),
        (call("pow", call("div", 4.0, x), 1.5), "8/x**1.5"),
        (call("sqrt", call("inv", x)), "1/sqrt(x)"),
        (call("sqrt", call("pow", x, 3.0)), "x**1.5"),
        (call("sqrt", call("pow", x, 2.0)), "sqrt(x**2)"),
        (call("pow", call("pow", x, 3.0), 1 / 3), "(x**3)**0.33333"),
        (call("sin", call("mul", -2.0, x)), "-sin(2*x)"),
        (call("cos", call("mul", -2.0, x)), "cos(2*x)"),
        (call("abs", call("neg", x)), "abs(x)"),
        (call("exp", call("log", call("add", call("square", x), 1.0))), "x**2 + 1"),
        (call("log", call("exp", call("mul", 3.0, x))), "3*x"),
        (call("mul", call("exp", x), call("exp", y)), "exp(x + y)"),
        (call("sub", call("add", x, y), call("sub", y, x)), "2*x"),
        (call("square", call("mul", 3.0, x)), "9*x**2"),
        (call("sub", 1.0, call("sub", 1.0, x)), "x"),
    ],
    ids=str,
)
def test_known_forms(root: Node, expected: str) -> None:
    assert text(root) == expected


@pytest.mark.parametrize("name", random_trees.UNARY)
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_signs_move_out_only_of_odd_and_even_functions(name: str, shift: float) -> None:
    root = call(name, call("add", call("mul", -0.3, x), shift))
    signed = np.linspace(-2.9, 2.9, 30)[:, None] * np.ones(3)
    expected = Expression(root, random_trees.NAMES)(signed)
    finite = np.isfinite(expected)
    assert finite.any()
    np.testing.assert_allclose(
        Expression(simplify(root), random_trees.NAMES)(signed)[finite], expected[finite], rtol=1e-12
    )


def test_a_root_of_a_square_is_no_plain_variable() -> None:
    """sqrt(x**2) is |x|: the sign may only go where x is known to be positive."""
    root = simplify(call("sqrt", call("square", x)))
    negative = np.array([[-2.0, 1.0, 1.0]])
    assert Expression(root, random_trees.NAMES)(negative) == 2.0
    known = simplify(call("sqrt", call("square", x)), positive=lambda node: node == x)
    assert known == x


def test_roots_of_products_come_apart_only_where_signs_are_known() -> None:
    root = call("sqrt", call("mul", x, y))
    both_negative = np.array([[-2.0, -8.0, 1.0]])
    assert Expression(simplify(root), random_trees.NAMES)(both_negative) == pytest.approx(4.0)


def test_protected_calls_stay() -> None:
    guarded = Call("div", (x, x), protected=True)
    assert simplify(guarded) == guarded
    assert simplify(call("add", guarded, guarded)) == simplify(call("mul", 2.0, guarded))


def test_the_whole_polynomial_family_agrees_with_sympy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = [rng.integers([-4, 1, 1], [5, 4, 3]).astype(float).tolist() for _ in range(rng.integers(2, 7))]
        terms = [call("mul", c, call("pow", x, a), call("pow", y, b)) for c, a, b in drawn]
        expression = Expression(call("add", *terms), random_trees.NAMES)
        difference = sympy.expand(simplified(expression).sympy() - expression.sympy())
        assert difference == 0


def test_overflowing_constants_are_an_arithmetic_error() -> None:
    with pytest.raises(ArithmeticError, match="overflowed"):
        simplify(call("mul", 1e300, 1e300, x))


def test_a_sum_that_overflows_is_not_dropped() -> None:
    with pytest.raises(ArithmeticError, match="overflowed"):
        simplify(call("add", call("mul", 1e308, x), call("mul", 1e308, x)))


def test_a_factor_taken_out_of_itself_is_one():
    """1.85 times 1/1.85 is 0.9999999999999999, which counted as a constant, and then the data determined none of the three."""
    root = simplify(parse_tree("0.22*w*T/f - 1.85*w/f", ("w", "f", "T")))
    expression = Expression(root, ("w", "f", "T"))
    assert "0.999" not in expression.exact()
    assert free_constants(expression).sum() == 2


def test_a_part_that_was_in_normal_form_before_is_not_written_again(monkeypatch) -> None:
    asked, plain = [], simplify_module.shortest_product
    monkeypatch.setattr(simplify_module, "shortest_product", lambda *given: asked.append(1) or plain(*given))
    part = call("mul", 3.25, call("mul", x, call("add", y, 0.625)))
    first = simplify(call("add", part, z))
    n_asked = len(asked)
    assert simplify(call("add", part, call("sin", z))) != first and 0 < n_asked == len(asked)
