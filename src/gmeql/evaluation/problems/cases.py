"""The reader of case files (docs/cases-format.md): JSON to problems, with errors by case and field."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.evaluation.problems.columns import InputColumn
from gmeql.evaluation.problems.problem import Problem

MAX_CASE_FILE = 64 * 2**20
"""Bytes of a cases file that are read at most."""


def read_cases(path: str | os.PathLike[str]) -> list[Problem]:
    """The problems of a cases file (docs/cases-format.md). What is wrong is reported by case and field."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"suite {os.fspath(path)!r} is neither 'paper', 'released' nor a cases file that exists")
    if file.stat().st_size > MAX_CASE_FILE:
        raise ValueError(f"cases file {file} is larger than {MAX_CASE_FILE // 2**20} MiB")
    try:
        cases = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"cases file {file} is not JSON: {error}") from error
    if not isinstance(cases, list) or not cases:
        raise ValueError(f"cases file {file} must hold a list of cases, at least one; see docs/cases-format.md")
    problems = []
    for number, case in enumerate(cases):
        try:
            problems.append(problem_from_case(case))
        except ValueError as error:
            label = case.get("name") if isinstance(case, dict) else None
            raise ValueError(f"cases file {file}, case {number} ({label}): {error}") from error
    names = [problem.name for problem in problems]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"cases file {file} holds the case {twice!r} twice; names must differ")
    return problems


def problem_from_case(case: Any) -> Problem:
    """One case of a cases file, as the dictionary JSON gives."""
    if not isinstance(case, dict):
        raise ValueError("a case must be an object with name, variables and formula or data")
    if "states" in case and "variables" not in case:
        raise ValueError(
            "it describes differential equations (states, formulas); a benchmark needs one formula or table: give "
            "variables, n_train and formula or data"
        )
    columns = _columns(_get(case, "variables", list))
    formula = _get(case, "formula", str, None)
    rows_X = rows_y = None
    target = _get(case, "target", str, "y")
    if "data" in case:
        rows_X, rows_y, target = _rows(_get(case, "data", dict), [column.name for column in columns], target)
    problem = Problem(
        name=_get(case, "name", str),
        columns=columns,
        formula_text=formula,
        n_train=_get(case, "n_train", int),
        n_test=_get(case, "n_test", int, 0),
        suite=_get(case, "suite", str, ""),
        test_columns=_columns(case["test_variables"]) if case.get("test_variables") else (),
        rows_X=rows_X,
        rows_y=rows_y,
        target=target,
    )
    _ = problem.formula  # a formula that cannot be read is the file's fault, so say so now
    return problem


_REQUIRED = object()


def _get(case: Mapping[str, Any], key: str, kind: type, default: Any = _REQUIRED) -> Any:
    value = case.get(key)
    if value is None:
        if default is _REQUIRED:
            raise ValueError(f"{key} is missing")
        return default
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{key} is {str(value)[:60]!r}; it must be a {kind.__name__}")
    return value


def _columns(variables: Any) -> tuple[InputColumn, ...]:
    if not isinstance(variables, list) or not all(isinstance(v, dict) for v in variables):
        raise ValueError("variables must be a list of objects with name, low, high and dist")
    return tuple(
        InputColumn(
            _get(v, "name", str),
            _get(v, "low", float),
            _get(v, "high", float),
            _get(v, "dist", str, "uniform"),
            _get(v, "n", int, None),
            _get(v, "signed", bool, False),
        )
        for v in variables
    )


def _rows(data: Mapping[str, Any], names: Sequence[str], target: str) -> tuple[np.ndarray, np.ndarray, str]:
    header, rows = _get(data, "columns", list), _get(data, "rows", list)
    # The target may carry an explanation ("label = d/dt of state x"); its first word is the column.
    words = target.split()
    column = target if target in header else (words[0] if words else "")
    missing = [name for name in [*names, column] if name not in header]
    if missing:
        raise ValueError(f"data has the columns {header}, without {missing[0]!r}")
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"data rows must be lists of {len(header)} numbers: {error}") from error
    if table.ndim != 2 or table.shape[1] != len(header) or not np.isfinite(table).all():
        raise ValueError(f"data rows must be lists of {len(header)} finite numbers")
    return table[:, [header.index(name) for name in names]], table[:, header.index(column)], column
