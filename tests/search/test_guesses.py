"""Guesses: fitted and offered at once, and written as wirings of networks that spell them."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.fitters.programs import expression_from_structure
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.knowledge import read_knowledge
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.guesses import embedded, try_guesses
from gmeql.search.data.rows import SearchRows
from gmeql.search.state import SearchState

NAMES = ("x", "t")
X = np.random.default_rng(0).uniform(0.5, 2, (60, 2))


@pytest.mark.parametrize("text", ["sin(x)*exp(t)", "x/t + x**2", "sqrt(x + t**3)/x", "1/(x + log(t))", "x - t + 1"])
def test_a_wiring_spells_its_guess(text: str) -> None:
    root = parse_tree(text, NAMES)
    made = embedded(root, 2, FunctionSet(DEFAULT_FUNCTIONS), np.random.default_rng(1))
    assert made is not None
    architecture, choices = made
    weights = np.ones(architecture.n_weights)
    (spelled,) = expression_from_structure(architecture, choices, weights, NAMES, protected=False)
    assert np.allclose(spelled(X), Expression(root, NAMES)(X))


def test_what_no_network_holds_is_no_island() -> None:
    functions = FunctionSet(["+", "*"])
    rng = np.random.default_rng(0)
    assert embedded(parse_tree("sin(x)", NAMES), 2, functions, rng) is None
    assert embedded(parse_tree("x**0.3", NAMES), 2, FunctionSet(DEFAULT_FUNCTIONS), rng) is None
    assert embedded(parse_tree("x", NAMES), 2, functions, rng) is None


def test_a_right_guess_is_on_the_front_before_any_search() -> None:
    y = 1.4 * np.sin(2.2 * X[:, 0]) * np.exp(-0.8 * X[:, 1])
    (known,) = read_knowledge(NAMES, guesses=["sin(w*x)*exp(-k*t)", "x**0.37"])
    rows = SearchRows.of(X, y, names=NAMES, config=SearchConfig(n_jobs=1, knowledge=known), seed=0)
    state = SearchState.new(rows, 0)
    islands = try_guesses(state, lambda: False)
    assert len(islands) == 1 and islands[0].repository.losses[0] < np.inf
    assert rows.polished.is_exact(state.leaderboard.best.loss)
    program, length, constants = islands[0].program_of(0)
    assert length > 0 and np.isnan(constants).all()
