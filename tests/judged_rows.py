"""Rows of three columns on which the tests of polishing judge formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, Variable
from gmeql.search.polish.scoring import JudgedRows, Scored, refit

x, y, z = (Variable(i) for i in range(3))
NAMES = ("x", "y", "z")


def rows(
    target: Callable[[np.ndarray], np.ndarray],
    n: int = 200,
    noise: float = 0.0,
    low: float = 0.2,
    high: float = 3.0,
    seed: int = 0,
) -> JudgedRows:
    """Rows whose target is `target(X)` plus normal noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (n, 3))
    return JudgedRows.of(X, target(X) + noise * rng.standard_normal(n), None, NAMES)


def show(root: Node) -> str:
    return str(Expression(root, NAMES))


def scored(root: Node, data: JudgedRows) -> Scored:
    """The formula with its constants fitted to the rows."""
    (result,) = refit([root], data, keep_recognised=False)
    return result
