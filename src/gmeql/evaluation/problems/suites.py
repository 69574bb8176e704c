"""Suites of problems by name: the paper's, those of the released code, or a file of cases."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gmeql.evaluation.problems.cases import read_cases
from gmeql.evaluation.problems.paper import PAPER, RELEASED, paper_problem, released_problem
from gmeql.evaluation.problems.problem import Problem


def load_suite(suite: str | os.PathLike[str], problems: Sequence[str] | None = None) -> list[Problem]:
    """The problems of `"paper"`, `"released"` or a cases file; only those named in `problems`, if given."""
    if suite == "paper":
        found = [paper_problem(name) for name in PAPER]
    elif suite == "released":
        found = [released_problem(name) for name in RELEASED]
    else:
        found = read_cases(suite)
    if problems is None:
        return found
    by_name = {problem.name: problem for problem in found}
    unknown = [name for name in problems if name not in by_name]
    if unknown:
        raise ValueError(f"suite {os.fspath(suite)!r} has no problem {unknown[0]!r}; it has {', '.join(by_name)}")
    return [by_name[name] for name in problems]
