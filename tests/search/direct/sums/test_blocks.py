"""Functions of one column before anything smooth of another are told by least squares; narrow bumps by the rows they miss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.blocks import Blocks, OuterSearch, errors_of, span_of
from gmeql.search.direct.table import DirectTable
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.terms.term_sums import beside

ROWS = 500


def search(f: Callable[..., np.ndarray], outer: int = 1) -> OuterSearch:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(0.1, 2, ROWS), rng.uniform(20, 60, ROWS)])
    libraries = [library(X[:, [j]], FunctionSet().allows) for j in range(2)]
    spans = [span_of(X[:, j], libraries[j]) for j in range(2)]
    return OuterSearch(DirectTable(X, f(*X.T), np.ones(ROWS)), outer, libraries, spans)


def written(found: Blocks) -> list[str]:
    return [str(Expression(outer.node, ["z"])) for outer in found.outers]


def test_many_functions_are_ranked_as_each_is_by_itself() -> None:
    rng = np.random.default_rng(0)
    span = np.linalg.qr(np.column_stack([np.ones(200), rng.standard_normal((200, 11))]))[0]
    basis = np.linalg.qr(np.column_stack([span, rng.standard_normal((200, 7))]))[0]
    h = np.concatenate([rng.standard_normal((5, 200)), 1e6 + rng.uniform(0, 1, (2, 200)), np.ones((1, 200))])
    left = beside(basis, h[3] * (span @ rng.standard_normal(12)) + 0.1 * rng.standard_normal(200))

    def alone(one: np.ndarray) -> float:
        columns = np.column_stack([basis, one[:, None] * span])
        rest = left - columns @ np.linalg.lstsq(columns, left, rcond=None)[0]
        return float(np.sqrt(rest @ rest / (200 - 19 - 12)))

    errors = errors_of(h, span, basis, left)
    np.testing.assert_allclose(errors[:7], [alone(one) for one in h[:7]], rtol=1e-5)
    assert np.argmin(errors) == 3 and np.isinf(errors[7])


def test_the_constant_inside_is_fitted_whatever_stands_before() -> None:
    found = search(lambda x, z: np.sqrt(x) * np.exp(-0.037 * z) + np.log(x) + np.sin(z / 20)).single()
    assert found is not None
    assert found.outers[0].constants == pytest.approx([-0.037], rel=1e-6)


def test_several_functions_are_found_a_plain_one_first() -> None:
    looking = search(lambda x, z: x**0.3 * np.exp(-5.2 / z) + z * x**3)
    assert looking.single() is None
    assert looking.is_worth_more
    found = looking.several(lambda: False)
    assert found is not None
    assert written(found)[0] == "z"
    assert found.outers[1].constants == pytest.approx([-5.2], rel=1e-4)


def test_a_bump_that_few_rows_see_is_found_beside_others() -> None:
    found = search(lambda x, z: x * np.exp(-9.0 * (z - 41.3) ** 2) + z * np.log(x)).single()
    assert found is not None
    rate, place = found.outers[0].constants
    assert (rate, place) == (pytest.approx(-9.0, rel=1e-6), pytest.approx(-41.3, rel=1e-8))


def test_noise_is_not_worth_a_second_function() -> None:
    noise = np.random.default_rng(0).standard_normal(ROWS)
    looking = search(lambda x, z: x + z + noise)
    assert looking.single() is None
    assert not looking.is_worth_more


def test_nothing_is_fitted_where_no_function_explains_any_of_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[object] = []
    monkeypatch.setattr(OuterSearch, "_tuned", lambda self, start, outer: fitted.append(outer))
    looking = search(lambda x, z: x + np.random.default_rng(0).standard_normal(len(x)))
    assert looking.single() is None and not looking.is_worth_more
    assert not fitted
