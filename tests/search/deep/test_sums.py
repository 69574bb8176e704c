"""Sums of two formulas are found in one pass, whatever their factors, and none where there is none."""

from __future__ import annotations

import numpy as np
from deep_looks import grown, table
from host_cuda import needs_compiler

from gmeql.search.deep.sums import paired, summed
from gmeql.search.direct.middle.meeting import Target, few_rows
from gmeql.search.direct.table import DirectTable

pytestmark = needs_compiler


def as_it_is(given: DirectTable) -> Target:
    return Target(given.y, lambda root: root)


def test_every_pair_is_a_sum_on_the_few_rows_and_the_law_is_among_them() -> None:
    given = table(lambda a, b, c: 1.35 * a * b - 5.5 * np.sin(b * c) + 0.3, 3)
    rows = few_rows(given.y)
    small = grown(given.X[rows])
    numbers, codes = paired(small, given.y[None, rows], 500)
    assert len(codes) == len(numbers) > 0 and not numbers.any()
    for pair in codes.tolist():
        terms = [given.values(small.tree_of_code(code))[rows] for code in pair]
        basis = np.stack([*terms, np.ones(len(rows))], axis=1)
        residual = given.y[rows] - basis @ np.linalg.lstsq(basis, given.y[rows], rcond=None)[0]
        assert np.abs(residual).max() < 1e-6 * np.ptp(given.y)
    roots = list(summed(small, numbers, codes, given, [as_it_is(given)]))
    assert given.error(roots[0]) < 1e-12


def test_each_of_many_targets_has_its_own() -> None:
    given = table(lambda a, b, c: 1.35 * a * b - 5.5 * np.sin(b * c) + 0.3, 3)
    rows, rng = few_rows(given.y), np.random.default_rng(1)
    small = grown(given.X[rows])
    noise = rng.normal(size=(8, len(rows)))
    numbers, codes = paired(small, np.stack([*noise, given.y[rows], np.ones(len(rows))]), 500)
    assert set(numbers) == {8}
    assert (codes == paired(small, given.y[None, rows], 500)[1]).all()
    assert len(paired(small, given.y[None, rows], 1)[1]) == 1
    assert len(paired(small, np.stack([given.y[rows]] * 20), 500, lambda: False)[1]) < 20 * len(codes)


def test_a_constant_that_is_nothing_is_left_out() -> None:
    given = table(lambda a, b, c: 2 * a * b + 3 * np.sin(b * c), 3)
    rows = few_rows(given.y)
    small = grown(given.X[rows])
    (root, *_) = summed(small, *paired(small, given.y[None, rows], 500), given, [as_it_is(given)])
    assert "Constant(value=3" in str(root) or "Constant(value=2.99" in str(root)
    assert str(root).count("Constant") == 2
