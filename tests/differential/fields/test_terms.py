"""Terms and their integral forms."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.differential.fields.derivatives import take_derivatives
from gmeql.differential.fields.grid import read_grid
from gmeql.differential.fields.terms import (
    found_terms,
    library,
    noise_gain,
    term_rows,
    total_derivative,
    with_integral_form,
)
from gmeql.differential.fields.weak import Bumps
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import used_columns
from gmeql.formula.parsing import parse_tree
from gmeql.formula.products import split_terms
from gridded_fields import T, X, between_ends, heat, heat_grid

GRID = heat_grid()
JETS = take_derivatives(GRID, 4, "auto")


def text(root: object) -> str:
    return str(Expression(root, JETS.names))


def test_total_derivatives_follow_the_chain_rule() -> None:
    assert text(total_derivative(parse_tree("u*u_x + x", JETS.names), 0, JETS)) == "1 + u_x*u_x + u*u_xx"


def test_the_library_holds_what_laws_are_made_of() -> None:
    found = {text(term.root) for term in library(JETS, GRID, 4)}
    assert {"1", "u", "u_x", "u_xxxx", "u**2", "2*u*u_x", "u**3", "u_x**2", "u*u_xx"} <= found
    assert not any(0 in used_columns(term.root) for term in library(JETS, GRID, 4))  # the circle has no origin
    x, u = between_ends()
    grid = read_grid(u, x, T)
    jets = take_derivatives(grid, 2, "auto")
    radial = {str(Expression(term.root, jets.names)) for term in library(jets, grid, 2, [0])}
    assert {"u_x/x", "x*u", "u_xx/x**2"} <= radial


def test_formulas_are_split_into_terms_that_are_new() -> None:
    root = parse_tree("2*u*u_x - 0.5*exp(u) + u", JETS.names)
    assert [(c, text(t)) for c, t in split_terms(root)] == [(2.0, "u*u_x"), (-0.5, "exp(u)"), (1.0, "u")]
    new = found_terms([root], library(JETS, GRID, 4), JETS)
    assert [text(term.root) for term in new] == ["u*u_x", "exp(u)"]
    assert new[0].inner is not None and new[1].inner is None


@pytest.mark.parametrize("formula", ["u*u_x", "u**2*u_x", "u_xxx", "u_x*u_xx", "exp(u)", "u*u_xx"])
def test_integral_forms_are_those_of_the_values(formula: str) -> None:
    bumps = Bumps(GRID, JETS.smooth, 4)
    term = with_integral_form(parse_tree(formula, JETS.names), JETS)
    X = np.stack([column.reshape(-1) for column in JETS.columns], axis=1)
    values = Expression(term.root, JETS.names)(X).reshape(GRID.values.shape[1:])
    plain = bumps.plain(values)
    assert term_rows(term, bumps, JETS, GRID) == pytest.approx(plain, abs=1e-5 * np.abs(plain).max())


def test_what_noise_makes_of_a_term_is_foreseen() -> None:
    bumps = Bumps(GRID, JETS.smooth, 4)
    rng = np.random.default_rng(0)
    for formula in ("u_xx", "u*u_x"):
        term = with_integral_form(parse_tree(formula, JETS.names), JETS)
        still = term_rows(term, bumps, JETS, GRID)
        grids = [
            read_grid(heat() + 1e-3 * rng.standard_normal((len(X), len(T))), X, T, periodic=True) for _ in range(20)
        ]
        squares = [np.mean((term_rows(term, bumps, JETS, noisy) - still) ** 2) for noisy in grids]
        assert np.sqrt(np.mean(squares)) == pytest.approx(1e-3 * noise_gain(term, bumps, JETS, GRID)[0], rel=0.2)
