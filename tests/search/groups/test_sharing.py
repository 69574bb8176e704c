"""Which constants are shared: exactly those that are, at every size of noise, and rounded where people would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.groups.sharing import share
from gmeql.search.groups.surplus import is_surplus
from gmeql.search.polish.scoring import JudgedRows, refit


def rows_of(x: np.ndarray, y: np.ndarray, codes: np.ndarray) -> JudgedRows:
    return JudgedRows.of(x[:, None], y, None, ["x"], groups=codes, n_groups=int(codes.max()) + 1)


def shared(text: str, rows: JudgedRows):
    (scored,) = refit([parse_tree(text, ["x"])], rows, keep_recognised=False)
    found = share(scored, rows)
    assert found is not None and found.own is not None
    names = ("x", *(f"k{k + 1}" for k in range(found.own.shape[1])))
    return found, str(Expression(found.root, names))


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_common_exponent_and_own_sizes(noise: float) -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), 40)
    x, sizes = rng.uniform(0, 3, 240), rng.uniform(0.5, 2, 6)
    y = sizes[codes] * np.exp(-0.71 * x) + noise * rng.standard_normal(240)
    found, text = shared("1.1*exp(-0.9*x)", rows_of(x, y, codes))
    assert found.own.shape == (6, 1)
    assert "k1" in text and "k2" not in text
    np.testing.assert_allclose(found.own[:, 0], sizes, atol=1e-6 if noise == 0 else 0.03)
    if noise == 0:
        assert "-0.71*x" in text


def test_an_amplitude_that_is_one_everywhere_is_held_at_one() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(5), 40)
    x, rates = rng.uniform(0, 3, 200), rng.uniform(0.3, 1.5, 5)
    y = np.exp(-rates[codes] * x) + 0.01 * rng.standard_normal(200)
    found, text = shared("1.1*exp(-0.9*x)", rows_of(x, y, codes))
    assert found.own.shape == (5, 1)
    assert text.startswith("1*exp(") or text.startswith("exp(")


def test_groups_that_are_all_alike_share_everything() -> None:
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(5), 40)
    x = rng.uniform(0, 3, 200)
    found, text = shared("1.1*x + 0.9", rows_of(x, 1.5 * x + 0.25 + 0.05 * rng.standard_normal(200), codes))
    assert found.own.shape == (5, 0)
    assert "k" not in text


def test_the_price_of_an_own_constant_is_paid_in_every_group() -> None:
    """Differences that noise explains are not worth ten constants."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(10), 20)
    x = rng.uniform(0, 3, 200)
    y = (1.5 + 0.005 * rng.standard_normal(10)[codes]) * x + 0.1 * rng.standard_normal(200)
    found, _ = shared("1.1*x", rows_of(x, y, codes))
    assert found.own.shape[1] == 0


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("(1.1*x + 0.9)/(0.7*x**2 + 1.2)", lambda x, k: (x + k) / (1 + x**2)),
        ("1.1*(1.2*x**2 + 0.9)/1.3", lambda x, k: 2 * x**2 + k),
        ("1/(0.4/x + 0.7)", lambda x, k: 3 * x / (x + k)),
    ],
)
def test_constants_that_others_make_up_for_are_not_own_ones(
    text: str, law: Callable[..., np.ndarray], noise: float
) -> None:
    """Above and below a line all may be multiplied alike: `(x*k1 + k2)/(x**2*k3 + k4)` was chosen of `(x + k)/(x**2 + 1)`."""
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(4), 40)
    x, k = rng.uniform(1, 4, 160), rng.uniform(0.5, 3, 4)
    y = law(x, k[codes])
    rows = rows_of(x, y + noise * y.std() * rng.standard_normal(160), codes)
    found, _ = shared(text, rows)
    assert found.own.shape == (4, 1)
    assert not is_surplus(found.root, found.own, rows.X, codes)
    extended = np.column_stack([x, found.own[codes]])
    error = Expression(found.root, ("x", "k1"))(extended) - y
    assert np.sqrt(np.mean(error**2)) < (1e-10 if noise == 0 else 0.5 * noise) * y.std()
