"""Printed, SymPy, Python, C and JSON forms of random formulas compute what `predict` does."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import Report

MANY_DIGITS = 400
"""More than lie between the smallest and the largest value that formulas are asked for here."""


def is_equal(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.isclose(found, expected, rtol=1e-11, atol=0)


def forms(report: Report, *, formulas: int) -> None:
    """Each form against the expression, on rows where rounding does not decide (`comparable`)."""
    import mpmath  # type: ignore[import-untyped]
    import sympy
    from hypothesis import HealthCheck, Phase, given, seed, settings

    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from exported_formulas import COMPILER, compile_c, run_python
    from gmeql import Expression
    from gmeql.formula.parsing import parse_tree
    from random_trees import NAMES, all_parts_finite, comparable, expressions, rows

    corners = np.array([0.0, 1.0, -1.0, -2.5, 1e-9, 1e9, -1e9, 1e120, -1e120])
    grid = np.array(np.meshgrid(corners, corners, corners)).reshape(3, -1).T
    X = np.vstack([rows(), 100 * rows(1), grid[:: len(grid) // 150]])
    compared, wrong, kept = Counter[str](), Counter[str](), 0
    wrong_formulas: dict[str, str] = {}

    def sympy_values(expression: Any, keep: np.ndarray) -> np.ndarray | None:
        """By NumPy; in many digits where SymPy's order of terms and factors rounds or overflows otherwise."""
        form = expression.sympy()
        if form.has(sympy.nan, sympy.zoo, sympy.oo):  # a branch that is never taken, or no value anywhere
            return None
        symbols = sympy.symbols(" ".join(NAMES))
        values = np.array(np.broadcast_to(sympy.lambdify(symbols, form, "numpy")(*X.T), (len(X),)), complex)
        with mpmath.workdps(MANY_DIGITS):
            for row in np.flatnonzero(keep & ~is_equal(values.real, expression(X))):
                values[row] = complex(sympy.lambdify(symbols, form, "mpmath")(*map(mpmath.mpf, X[row])))
        return values

    def check(form: str, expression: Any, values: Any, keep: np.ndarray) -> None:
        expected = expression(X)[keep]
        found = np.broadcast_to(np.asarray(values, complex).real, (len(X),))[keep]
        compared[form] += len(expected)
        bad = int((~is_equal(found, expected)).sum())
        wrong[form] += bad
        if bad:
            wrong_formulas.setdefault(form, expression.exact())

    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)

        @seed(0)
        @settings(max_examples=formulas, database=None, deadline=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(expressions())
        def each(expression: Any) -> None:
            nonlocal kept
            kept += 1
            keep = comparable(expression, X)
            read_back = Expression.from_dict(json.loads(expression.export("json")))
            check("JSON", expression, read_back(X), keep)
            check("Python", expression, run_python(expression.export("python"), folder)(*X.T), keep)
            if COMPILER is not None:
                check("C", expression, compile_c(expression.export("c"), folder)(X), keep)
            if not expression.is_protected:  # protected forms have words that only people read
                check("text", expression, Expression(parse_tree(expression.exact(), NAMES), NAMES)(X), keep)
            keep &= all_parts_finite(expression, X)
            values = sympy_values(expression, keep)
            if values is not None:
                check("SymPy", expression, values, keep)

        each()
        if COMPILER is None:
            report.skip("C", "no compiler")
    for form in compared:
        detail = f"{wrong[form]} of {compared[form]} values differ, {kept} formulas on {len(X)} rows"
        report.add(form, not wrong[form], detail + (f"; first: {wrong_formulas[form]}" if wrong[form] else ""))
