"""The paper's problems b1-b8, as its Table 1 states them and as the authors' released code draws them."""

from __future__ import annotations

from dataclasses import replace

from gmeql.evaluation.problems.columns import InputColumn
from gmeql.evaluation.problems.problem import Problem

PAPER_LENGTH = (1.6, 0)
"""b1-b8 are written out in full, so less is allowed there."""
PAPER = {  # Table 1: formula, number of variables, range
    "b1": ("0.8*x1**3 + 0.9*x2**2 + 1.2*x3", 3, 0, 2),
    "b2": ("0.8*x3**4 + 0.8*x1**3 + 1.2*x2**2 + 1.4*x3", 3, 0, 2),
    "b3": ("0.8*x3**5 + 1.2*x2**4 + 1.2*x1**3 + 0.9*x2**2 + 1.1*x3", 3, 0, 2),
    "b4": ("1.1*x1**6 + 0.8*x2**5 + 0.9*x3**4 + 1.3*x1**3 + 1.2*x2**2 + 0.9*x3", 3, 0, 2),
    "b5": ("1.5*sin(x1) + 1.3*sin(x2**2)", 2, 0, 10),
    "b6": ("1.2*sin(1.1*x1)*cos(0.9*x2)", 2, 0, 10),
    "b7": ("1.1*x1 + 0.9*x2 + 2.1*x1*x2*cos(1.2*x3)", 3, 0, 10),
    "b8": ("sqrt(1.3 + 1.2*x2/x1)", 3, 1, 20),
}
PAPER_ROWS = 300
"""Training and test examples, "No. of Examples" of Table 1."""
RELEASED = ("b1", "b2", "b3", "b4")
"""Problems that the authors' released code holds."""
RELEASED_ROWS, RELEASED_HIGH = 500, 2.1
"""The authors' released code draws this many points on (0, 2.1) for its problems."""


def paper_problem(name: str) -> Problem:
    """One of b1-b8, exactly as Table 1 of the paper states it."""
    if name not in PAPER:
        raise ValueError(f"problem {name!r} is unknown; the paper's problems are {', '.join(PAPER)}")
    formula, width, low, high = PAPER[name]
    columns = tuple(InputColumn(f"x{i + 1}", low, high) for i in range(width))
    return Problem(name, columns, formula, PAPER_ROWS, PAPER_ROWS, suite="paper", allowed_length=PAPER_LENGTH)


def released_problem(name: str) -> Problem:
    """One of b1-b4 as the released code draws it."""
    problem = paper_problem(name)
    if name not in RELEASED:
        raise ValueError(f"problem {name!r} is not in the released code; that has {', '.join(RELEASED)}")
    columns = tuple(replace(column, high=RELEASED_HIGH) for column in problem.columns)
    return replace(problem, columns=columns, n_train=RELEASED_ROWS, suite="released")
