"""What the terms of a sum have in common is put before brackets, and the value stays the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values, tree_complexity
from gmeql.search.direct.terms.brackets import bracketed
from thinned import examples

a, b, c, d, e, f = map(Variable, range(6))


def times(*factors: Node | float) -> Node:
    return build("mul", *(Constant(x) if isinstance(x, float) else x for x in factors))


def over(above: Node, below: Node) -> Node:
    return build("div", above, below)


def expanded(left: list[Node], right: list[Node]) -> list[Node]:
    return [times(x, z) for x in left for z in right]


def values(root: Node) -> np.ndarray:
    X = np.random.default_rng(3).uniform(1, 3, (30, 6))
    return np.asarray(row_values(root, [f"x{j}" for j in range(6)], X))


@pytest.mark.parametrize(
    ("terms", "complexity"),
    [
        (expanded([b, e], [a, c, d]), 9),  # (b + e)*(a + c + d)
        ([*expanded([b, times(2.0, e)], [a, c, times(3.7, d)]), Constant(0.9)], 15),
        (expanded([over(f, e), Constant(13.7)], [over(b, times(c, c)), over(a, c), times(-3.0, d)]), 23),
        ([times(a, a, b), times(a, a, c), times(a, d), e], 15),  # a*(a*(b + c) + d) + e
        ([over(a, f), over(b, f), over(times(c, d), f), a], 13),
    ],
)
def test_common_factors_stand_before_brackets(terms: list[Node], complexity: int) -> None:
    plain = build("add", *terms)
    found = bracketed(plain)
    assert tree_complexity(found) <= complexity < tree_complexity(plain)
    np.testing.assert_allclose(values(found), values(plain), rtol=1e-12)


def test_sums_inside_functions_and_fractions() -> None:
    total = build("add", *expanded([a, b], [c, d, e]))
    whole = over(build("sqrt", total), build("add", f, Constant(2.0)))
    found = bracketed(whole)
    assert tree_complexity(found) < tree_complexity(whole)
    np.testing.assert_allclose(values(found), values(whole), rtol=1e-12)


def test_what_has_nothing_in_common_stays() -> None:
    for root in (a, Constant(2.0), times(a, b), build("add", a, times(b, c)), build("sin", build("add", a, b))):
        assert tree_complexity(bracketed(root)) <= tree_complexity(root)
        np.testing.assert_allclose(values(bracketed(root)), values(root), rtol=1e-12)


@examples(25)
@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, -2.0, 0.7]), st.lists(st.integers(-2, 2), min_size=4, max_size=4)),
        min_size=2,
        max_size=9,
    )
)
def test_values_stay(terms: list[tuple[float, list[int]]]) -> None:
    nodes = [
        times(factor, *(build("pow", Variable(j), Constant(float(p))) for j, p in enumerate(powers) if p))
        for factor, powers in terms
    ]
    plain = build("add", *nodes)
    size = np.sum([np.abs(values(node)) for node in nodes], axis=0)
    assert (np.abs(values(bracketed(plain)) - values(plain)) <= 1e-12 * size).all()
