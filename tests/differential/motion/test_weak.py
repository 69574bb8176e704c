from __future__ import annotations

import numpy as np
from motions import hunters_motion, tree

from gmeql.formula.expression import Expression


def test_the_truth_has_no_residual_and_a_wrong_law_has_one():
    rows = hunters_motion().rows
    scale = np.mean((rows.left[:, 0] / rows.error[:, 0]) ** 2)
    for text, share in (("x - x*y", 1e-9), ("x - x*y*y", 1e-2)):
        sides = rows.right(0, Expression(tree(text), rows.names)(rows.X)) - rows.left[:, 0] / rows.error[:, 0]
        assert (np.mean(sides**2) / scale < share) == (text == "x - x*y")


def test_constants_are_fitted():
    rows = hunters_motion().rows
    root, loss = rows.fit(tree("2*x*y - 3*y"), 1)
    assert np.allclose(Expression(root, rows.names).constants, [1.0, 0.8], atol=1e-4)
    assert np.isfinite(loss)


def test_under_noise_the_residual_of_the_truth_is_about_the_noise():
    rows = hunters_motion(0.05).rows
    _, loss = rows.fit(tree("2*x*y - 3*y"), 1)
    assert 0.02 < loss < 5.0


def test_a_formula_without_value_is_infinitely_bad():
    rows = hunters_motion().rows
    assert rows.fit(tree("2*log(x - 100)"), 0)[1] == np.inf
