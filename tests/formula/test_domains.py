"""Domains, and the protected forms that are more than a projection."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

from gmeql.formula.domains import EVERYWHERE, MAGNITUDE, TINY, Domain, protected_angle, symmetric
from gmeql.formula.operators import get_operator


def test_quotient_is_clipped_and_zero_denominators_give_zero() -> None:
    divide = get_operator("div")
    a, b = np.array([1.0, -1.0, 5.0, 1.0]), np.array([1e-5, 1e-5, 0.0, 0.5 * TINY])
    assert divide.protected(np, a, b).tolist() == [100.0, -100.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (EVERYWHERE, [-5.0, 0.0, 5.0]),
        (symmetric(2.0), [-2.0, 0.0, 2.0]),
        (Domain(1.0), [1.0, 1.0, 5.0]),
        (MAGNITUDE, [5.0, TINY, 5.0]),
    ],
)
def test_projection_lands_in_the_domain(domain: Domain, expected: list[float]) -> None:
    x = np.array([-5.0, 0.0, 5.0])
    projected = domain.project(np, x)
    assert projected.tolist() == expected
    assert domain.contains(projected).all()
    for given, number in zip(x, expected, strict=True):
        assert float(domain.project_sympy(sympy.Float(given))) == number


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_arcus_functions_have_slopes_at_their_ends(name: str) -> None:
    protected = protected_angle(f"arc{name[1:]}")
    ends = np.array([-7.0, -1.0, 1.0, 7.0])
    np.testing.assert_allclose(protected(np, ends), getattr(np, f"arc{name[1:]}")(np.clip(ends, -1, 1)))
    slopes = jax.vmap(jax.grad(lambda x: protected(jnp, x)))(jnp.asarray(ends))
    assert np.isfinite(slopes).all()
