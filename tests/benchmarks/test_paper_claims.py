"""Published cases of the opponents: what counts as found."""

import numpy as np
from programs import program

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable


def test_published_cases_count_only_formulas_that_hold_elsewhere():
    """benchmarks/paper_claims.py: a good fit on the training rows is not enough."""
    claims = program("benchmarks/paper_claims.py")
    x = Variable(0)

    def line(what, name, root):
        return {"what": what, "name": name, "seed": 0, "expression": Expression(root, ("x",)).to_dict()}

    square = Call("mul", (x, x))
    cubic = Call("add", (Call("mul", (x, square)), Call("add", (square, x))))
    assert claims.is_found(line("dsr", "Nguyen-1", cubic)) and not claims.is_found(line("dsr", "Nguyen-1", square))
    assert claims.is_found(line("eql", "x^2", Call("mul", (Constant(0.97), square)))), "constants are refitted"
    assert not claims.is_found(line("eql", "x^2", Call("sin", (square,)))), "x^2 only near zero"
    X, y = claims.rows("eql", "x y/2 + z/2", 3)
    np.testing.assert_allclose(y, X[:, 0] * X[:, 1] / 2 + X[:, 2] / 2)
    assert np.abs(claims.rows("eql", "x", 0, fresh=True)[0]).max() > 1.9, "judged where it was not trained"
