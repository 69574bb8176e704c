"""Benchmark problems: the paper's b1-b8, the reader for case files, and the one definition of "solved".

>>> import numpy as np
>>> b1 = paper_problem("b1")
>>> X, y = b1.train(np.random.default_rng(0))
>>> X.shape, y.shape
((300, 3), (300,))
>>> judge(b1.formula, b1).solved
True
"""

from __future__ import annotations

from gmeql.evaluation.problems.cases import problem_from_case, read_cases
from gmeql.evaluation.problems.columns import InputColumn
from gmeql.evaluation.problems.judging import Verdict, judge
from gmeql.evaluation.problems.paper import PAPER, paper_problem, released_problem
from gmeql.evaluation.problems.problem import Problem
from gmeql.evaluation.problems.suites import load_suite

__all__ = [
    "PAPER",
    "InputColumn",
    "Problem",
    "Verdict",
    "judge",
    "load_suite",
    "paper_problem",
    "problem_from_case",
    "read_cases",
    "released_problem",
]
