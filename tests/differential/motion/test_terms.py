from __future__ import annotations

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.terms import best_sums, found_terms, monomials, single_functions
from gmeql.formula.expression import Expression
from gmeql.formula.products import split_terms
from motions import NAMES, hunters_motion, tree


def test_many_columns_lower_the_degree():
    assert len(monomials(range(2))) == 10
    assert len(monomials(range(12))) == 1 + 12
    assert len(monomials(range(5))) == 56 <= MOTION.terms.most_terms


def test_terms_of_a_formula_add_up_to_it():
    root = tree("3*x - (y - 2)/4 - x*y")
    X = np.random.default_rng(0).normal(size=(20, 2))
    total = sum(c * Expression(term, NAMES)(X) for c, term in split_terms(root))
    assert np.allclose(total, Expression(root, NAMES)(X))


def test_the_true_terms_come_first_among_sums_of_their_number():
    motion = hunters_motion()
    sums = best_sums(motion.rows, 0, monomials(range(2)))
    pairs = [root for root in sums if len(split_terms(root)) == 2]
    assert {term for _, term in split_terms(pairs[0])} == {tree("x"), tree("x*y")}
    assert np.allclose(sorted(c for c, _ in split_terms(pairs[0])), [-1.0, 1.0], atol=1e-4)


def test_terms_of_found_formulas_join_once():
    known = monomials(range(2))
    assert found_terms([tree("2*sin(x) + x"), tree("sin(x) - 3*y")], known) == [tree("sin(x)")]


def test_functions_that_are_not_allowed_are_not_on_offer():
    assert len(single_functions([0, 1])) == 8
    assert single_functions([0], ["+", "sin"]) == [tree("sin(x)")]


def test_sums_of_the_shortest_description_are_handed_on_though_longer_ones_come_closer():
    rng = np.random.default_rng(0)
    rows = hunters_motion(0.05).rows
    plain = monomials(range(2))
    wild = [tree(f"sin({c:.3f}*x**2*y + {d:.3f}*y**2)") for c, d in rng.uniform(1.0, 9.0, (60, 2))]
    found = best_sums(rows, 0, [*plain, *wild])
    assert {tree("x"), tree("x*y")} in [{term for _, term in split_terms(root)} for root in found]
