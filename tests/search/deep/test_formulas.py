"""Small formulas made on an accelerator are those that a core makes, and each has the values it says."""

from __future__ import annotations

import numpy as np
import pytest
from deep_looks import ALL, EXTENT, grown, values_of_kept
from host_cuda import HostDriver, needs_compiler

from gmeql.formula.nodes import Constant, Variable, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.deep.formulas import DeepFormulas, Extent
from gmeql.search.deep.source import COST_AT
from gmeql.search.direct.middle.small_formulas import SmallFormulas

pytestmark = needs_compiler
X = np.random.default_rng(0).uniform(0.5, 2.5, (8, 3))
NAMES = ["x0", "x1", "x2"]


def values_of(formulas: DeepFormulas, number: int) -> np.ndarray:
    return row_values(formulas.tree(number), NAMES, X)


@pytest.mark.parametrize("functions", [ALL, FunctionSet(["add", "mul", "sin"]), FunctionSet(["sub", "div", "sqrt"])])
def test_whole_levels_are_those_of_a_core(functions: FunctionSet) -> None:
    there = grown(X, functions=functions)
    here = SmallFormulas.of(X, functions, max_kept=EXTENT.kept, max_formulas=EXTENT.kept)
    last = there.starts[-2]  # the last level is a sample
    assert last > 20
    assert np.bincount(here.costs[:last]).tolist() == np.bincount(there.costs()[:last]).tolist()
    assert set(map(tuple, np.round(values_of_kept(there)[:last], 9))) == set(
        map(tuple, np.round(here.values[:last], 9))
    )


def test_every_kept_formula_has_the_values_it_says() -> None:
    formulas = grown(X)
    assert len(formulas) == EXTENT.kept == len(values_of_kept(formulas))
    for number in range(len(formulas)):
        np.testing.assert_allclose(values_of(formulas, number), values_of_kept(formulas)[number], rtol=1e-12)
    assert formulas.tree(0) == Variable(0) and formulas.tree(3) == Constant(1.0)
    assert (np.diff(formulas.costs()) >= 0).all()


def test_no_two_have_the_same_values() -> None:
    formulas = grown(X)
    assert len(set(map(tuple, np.round(values_of_kept(formulas), 6)))) == len(formulas)


def test_the_same_table_gives_the_same_formulas_and_the_last_level_is_a_sample_of_all_of_it() -> None:
    first, again = grown(X), grown(X)
    assert (first.codes == again.codes).all()
    whole = grown(X, Extent(kept=20_000, tried=10**6, forms=0, bits=18))
    level = len(first.starts) - 2
    mine, theirs = (set(f.codes[f.starts[level] : f.starts[level + 1]].tolist()) for f in (first, whole))
    assert mine < theirs and len(mine) < 0.9 * len(theirs)
    lefts = {code >> 27 & (1 << 27) - 1 for code in mine}
    assert len(lefts) > 20  # from all over it


def test_a_level_beyond_what_may_be_tried_is_known_by_its_forms() -> None:
    formulas = grown(X, Extent(kept=1000, tried=300, forms=5000, bits=18))
    assert formulas.costs().max() == 3 and formulas.formed == 5000
    none = grown(X, Extent(kept=1000, tried=300, forms=0, bits=18))
    assert none.formed == 0


def test_a_formula_of_a_code_that_is_not_kept() -> None:
    formulas = grown(X)
    kept = int(formulas.codes[50])
    assert formulas.tree_of_code(kept) == formulas.tree(50)
    assert kept >> COST_AT == formulas.costs()[50]


def test_growing_ends_when_nobody_waits() -> None:
    formulas = DeepFormulas(HostDriver(), X, ALL, EXTENT)
    formulas.grow(lambda: False)
    assert len(formulas) == 5 and formulas.formed == 0


def test_functions_alone_and_sums_alone() -> None:
    assert len(grown(X, functions=FunctionSet(["sin"]))) > 20
    assert len(grown(X, functions=FunctionSet(["add"]))) > 20
