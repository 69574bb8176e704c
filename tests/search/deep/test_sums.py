"""Sums of two formulas are found in one pass, whatever their factors, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from deep_looks import grown, table
from host_cuda import needs_compiler

from gmeql.formula.nodes import Constant, Node, Variable, leaves
from gmeql.search.deep.formulas import DeepFormulas
from gmeql.search.deep.source import BELOW, COST_AT, SIDE_MASK
from gmeql.search.deep.sums import costs_of, paired, summed, term_of
from gmeql.search.direct.middle.meeting import Target, few_rows
from gmeql.search.direct.middle.two_terms import Pass, Term
from gmeql.search.direct.table import DirectTable

pytestmark = needs_compiler


def as_it_is(given: DirectTable, **options: object) -> Pass:
    return Pass(Target(given.y, lambda root: root), **options)  # type: ignore[arg-type]


def seen(given: DirectTable, one: Pass) -> tuple[DeepFormulas, np.ndarray, Node]:
    """What one pass sees: the codes, and the simplest formula that is exact."""
    small = grown(given.X[few_rows(given.y)])
    numbers, codes = paired(small, [one], given, 500)
    assert len(codes) == len(numbers) > 0 and not numbers.any()
    (root, *_) = summed(small, numbers, codes, given, [one])
    return small, codes, root


def law(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return 1.35 * a * b - 5.5 * np.sin(b * c) + 0.3


def test_every_pair_is_a_sum_on_the_few_rows_and_the_law_is_among_them() -> None:
    given = table(law, 3)
    rows = few_rows(given.y)
    small, codes, root = seen(given, as_it_is(given))
    for pair in codes.tolist():
        terms = [given.values(small.tree_of_code(code))[rows] for code in pair]
        basis = np.stack([*terms, np.ones(len(rows))], axis=1)
        residual = given.y[rows] - basis @ np.linalg.lstsq(basis, given.y[rows], rcond=None)[0]
        assert np.abs(residual).max() < 1e-6 * np.ptp(given.y)
    assert given.error(root) < 1e-12


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: (1.7 + 2.3 * a * b) / (0.4 + np.sin(b * c)),
        lambda a, b, c: (np.exp(a / c) + 0.3) / (1.5 + 0.7 * c * b),
        lambda a, b, c: 1 / (0.3 + a * b + 0.7 * np.sqrt(c)),
    ],
)
def test_fractions_of_two(f: Callable[..., np.ndarray]) -> None:
    given = table(f, 3)
    rows = few_rows(given.y)
    small, codes, root = seen(given, as_it_is(given, with_fractions=True))
    assert given.error(root) < 1e-11
    terms = [[term_of(small, code) for code in pair] for pair in codes.tolist()]
    assert any(term.is_below for pair in terms for term in pair)
    for pair in terms:
        parts = [given.values(term.root)[rows] * (given.y[rows] if term.is_below else 1.0) for term in pair]
        basis = np.stack([*parts, np.ones(len(rows)), given.y[rows]], axis=1)
        basis /= np.linalg.norm(basis, axis=0)
        assert np.linalg.svd(basis, compute_uv=False)[-1] < 1e-6


def test_a_sum_beside_a_column() -> None:
    given = table(lambda a, b, c: law(a, b, c) + 0.7 * c, 3)
    one = as_it_is(given, beside=[Term(Variable(2))])
    assert given.error(seen(given, one)[2]) < 1e-12


def test_a_product_of_powers() -> None:
    given = table(lambda a, b, c: 0.4 * (a + b) ** 1.7 * (1 + np.sin(c)) ** -0.6, 3)
    assert given.y.min() > 0
    one = Pass(Target(np.log(given.y), lambda root: root), of_logarithms=True)
    small, codes, root = seen(given, one)
    assert np.abs(given.values(root) - np.log(given.y)).max() < 1e-9


def test_costs_are_those_of_the_formulas() -> None:
    given = table(lambda a, b, c: (1.7 + 2.3 * a * b) / (0.4 + np.sin(b * c)), 3)
    small, codes, _ = seen(given, as_it_is(given, with_fractions=True))
    kept = small.costs()
    for code, cost in zip(codes.reshape(-1).tolist(), costs_of(small, codes).reshape(-1).tolist(), strict=True):
        assert cost == (kept[code & SIDE_MASK] if code >= BELOW else code >> COST_AT)
    assert (np.diff(costs_of(small, codes).sum(axis=1)) >= 0).all()


def test_what_is_no_fraction_has_none() -> None:
    rng = np.random.default_rng(0)
    given = table(lambda a, b, c: rng.normal(size=len(a)), 3)
    small = grown(given.X[few_rows(given.y)])
    ones = [as_it_is(given, with_fractions=True), as_it_is(given, beside=[Term(Variable(0))])]
    assert not list(summed(small, *paired(small, ones, given, 500), given, ones))


def test_each_of_many_targets_has_its_own() -> None:
    given, rng = table(law, 3), np.random.default_rng(1)
    small = grown(given.X[few_rows(given.y)])

    def of(values: np.ndarray) -> Pass:
        return Pass(Target(values, lambda root: root))

    noise = [of(rng.normal(size=len(given.y))) for _ in range(8)]
    constant = of(np.ones(len(given.y)))
    numbers, codes = paired(small, [*noise, of(given.y), constant], given, 500)
    assert set(numbers) == {8}
    assert (codes == paired(small, [of(given.y)], given, 500)[1]).all()
    assert len(paired(small, [of(given.y)], given, 1)[1]) == 1
    assert len(paired(small, [of(given.y)] * 20, given, 500, lambda: False)[1]) < 20 * len(codes)


def test_a_constant_that_is_nothing_is_left_out() -> None:
    given = table(lambda a, b, c: 2 * a * b + 3 * np.sin(b * c), 3)
    _, _, root = seen(given, as_it_is(given))
    constants = sorted(node.value for node in leaves(root) if isinstance(node, Constant))
    np.testing.assert_allclose(constants, [2.0, 3.0])
