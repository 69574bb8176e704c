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

import json
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.formula.parsing import Undecided, active_part, canonical, evaluate, parse_formula

if TYPE_CHECKING:
    import sympy

DISTRIBUTIONS = ("uniform", "grid", "data", "trajectory")
MAX_CASE_FILE = 64 * 2**20
MAX_ROWS = 10_000_000
CASE_LENGTH = (2.0, 3)
"""A solution may have 2 x the truth's operations + 3: public formulas are often factored, solutions multiplied out."""
PAPER_LENGTH = (1.6, 0)
"""b1-b8 are written out in full, so less is allowed there."""


@dataclass(frozen=True)
class Column:
    """One input column: its range, and how training values lie in it (`n` values a column on a grid)."""

    name: str
    low: float
    high: float
    dist: str = "uniform"
    n: int | None = None

    def __post_init__(self) -> None:
        if self.dist not in DISTRIBUTIONS:
            raise ValueError(f"column {self.name!r} has dist {self.dist!r}; allowed are {', '.join(DISTRIBUTIONS)}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"column {self.name!r} has range {self.low}..{self.high}; give finite low <= high")
        if self.dist == "grid" and (self.n is None or self.n < 1):
            raise ValueError(f"column {self.name!r} lies on a grid but has n = {self.n!r}; give the number of values")


@dataclass(frozen=True, eq=False)
class Problem:
    """A table to learn from, drawn from a formula or given as rows. N rows, V columns.

    `formula_text` is None where nobody knows the truth. With `rows_X` [N, V] and `rows_y` [N] the training and test
    rows are taken from those; fresh points for judging always come from the columns' ranges.
    """

    name: str
    columns: tuple[Column, ...]
    formula_text: str | None
    n_train: int
    n_test: int
    suite: str = ""
    test_columns: tuple[Column, ...] = ()
    rows_X: np.ndarray | None = field(default=None, repr=False)
    rows_y: np.ndarray | None = field(default=None, repr=False)
    target: str = "y"
    allowed_length: tuple[float, int] = CASE_LENGTH

    def __post_init__(self) -> None:
        names = self.names
        if not names or len(set(names)) != len(names):
            raise ValueError(f"problem {self.name!r} has columns {list(names)}; names must be there and differ")
        if self.test_columns and tuple(c.name for c in self.test_columns) != names:
            raise ValueError(f"problem {self.name!r}: test_variables must name the same columns as variables, in order")
        if self.formula_text is None and self.rows_X is None:
            raise ValueError(f"problem {self.name!r} has neither a formula nor data rows; give one")
        if not (0 < self.n_train <= MAX_ROWS and 0 <= self.n_test <= MAX_ROWS):
            raise ValueError(f"problem {self.name!r} has n_train {self.n_train}, n_test {self.n_test}; give row counts")
        if self.rows_X is not None and self.n_train + self.n_test > len(self.rows_X):
            raise ValueError(
                f"problem {self.name!r} wants {self.n_train} + {self.n_test} rows but holds {len(self.rows_X)}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def formula(self) -> sympy.Expr | None:
        """The truth as a SymPy object, or None."""
        return None if self.formula_text is None else parse_formula(self.formula_text, self.names)

    @cached_property
    def noise_in_rows(self) -> float:
        """Root mean square distance of the given rows from the formula; 0 where they agree to rounding."""
        if self.rows_X is None or self.rows_y is None or self.formula is None:
            return 0.0
        residual = self.rows_y - self.evaluate(self.rows_X)
        rms = float(np.sqrt(np.mean(residual**2)))
        return rms if rms > 1e-9 * float(np.std(self.rows_y)) else 0.0

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """The random numbers of one problem, seed and purpose ("train", "test", "judge"), apart from all others."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode()), zlib.crc32(purpose.encode())])

    def evaluate(self, X: np.ndarray) -> np.ndarray:
        """The truth's numbers [N] for X [N, V]; nan or inf out of its domain."""
        if self.formula is None:
            raise ValueError(f"problem {self.name!r} has no formula")
        return np.broadcast_to(evaluate(self.formula, dict(zip(self.names, np.asarray(X).T))), len(X)).copy()

    def sample(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Fresh noise-free points, uniform on the columns' ranges; points where the truth is not finite are redrawn."""
        return self._draw(self.columns, rng, rows, lambda column, n: rng.uniform(column.low, column.high, n))

    def train(
        self, rng: np.random.Generator, *, rows: int | None = None, noise: float = 0.0, noise_std: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Training rows; Gaussian noise of `noise` x RMS(y), or of `noise_std` in y's units, falls on y alone."""
        if noise < 0 or noise_std < 0 or (noise and noise_std):
            raise ValueError(f"noise={noise}, noise_std={noise_std}: give one of them, not negative")
        if rows is not None and rows < 1:
            raise ValueError(f"rows={rows}: at least one training row is needed")
        if self.rows_X is not None and self.rows_y is not None:
            chosen = rng.permutation(len(self.rows_X))[: min(rows or self.n_train, self.n_train)]
            X, y = self.rows_X[chosen], self.rows_y[chosen]
        else:
            X, y = self._table(self.columns, rng, rows or self.n_train, exact_grid=rows is None)
        scale = noise_std or noise * float(np.sqrt(np.mean(y**2)))
        return (X, y + scale * rng.standard_normal(len(y))) if scale else (X, y)

    def test(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Noise-free test rows. Of given rows, pass the generator state of `train`: those left over (all, if none)."""
        if self.rows_X is not None and self.rows_y is not None:
            order = rng.permutation(len(self.rows_X))
            chosen = order[self.n_train : self.n_train + self.n_test] if self.n_test else order
            return self.rows_X[chosen], self.rows_y[chosen]
        return self._table(self.test_columns or self.columns, rng, self.n_test or self.n_train, exact_grid=True)

    def _table(
        self, columns: Sequence[Column], rng: np.random.Generator, rows: int, *, exact_grid: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        if exact_grid and all(column.dist == "grid" for column in columns):
            axes = [np.linspace(column.low, column.high, column.n or 1) for column in columns]
            X = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
            y = self.evaluate(X)
            finite = np.isfinite(y)
            return X[finite], y[finite]

        def draw(column: Column, n: int) -> np.ndarray:
            if column.dist == "grid" and exact_grid:
                return rng.choice(np.linspace(column.low, column.high, column.n or 1), n)
            return rng.uniform(column.low, column.high, n)

        return self._draw(columns, rng, rows, draw)

    def _draw(
        self,
        columns: Sequence[Column],
        rng: np.random.Generator,
        rows: int,
        draw: Callable[[Column, int], np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        X, y = np.empty((0, len(columns))), np.empty(0)
        for _ in range(100):
            missing = rows - len(y)
            if missing <= 0:
                return X[:rows], y[:rows]
            fresh = np.stack([draw(column, missing) for column in columns], axis=1)
            values = self.evaluate(fresh)
            finite = np.isfinite(values)
            X, y = np.concatenate([X, fresh[finite]]), np.concatenate([y, values[finite]])
        raise ValueError(
            f"problem {self.name!r}: {self.formula_text} is finite at only {len(y)} of the points; check its ranges"
        )


# ----------------------------------------------------------------------------------------------------------- the paper

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
RELEASED_ROWS, RELEASED_HIGH = 500, 2.1
"""The authors' released code draws this many points on (0, 2.1) for its problems b1-b4."""


def paper_problem(name: str) -> Problem:
    """One of b1-b8, exactly as Table 1 of the paper states it."""
    if name not in PAPER:
        raise ValueError(f"problem {name!r} is unknown; the paper's problems are {', '.join(PAPER)}")
    formula, width, low, high = PAPER[name]
    columns = tuple(Column(f"x{i + 1}", low, high) for i in range(width))
    return Problem(name, columns, formula, PAPER_ROWS, PAPER_ROWS, suite="paper", allowed_length=PAPER_LENGTH)


def released_problem(name: str) -> Problem:
    """One of b1-b4 as the released code draws it."""
    problem = paper_problem(name)
    if name not in ("b1", "b2", "b3", "b4"):
        raise ValueError(f"problem {name!r} is not in the released code; that has b1 to b4")
    columns = tuple(replace(column, high=RELEASED_HIGH) for column in problem.columns)
    return replace(problem, columns=columns, n_train=RELEASED_ROWS, suite="released")


def load_suite(suite: str | os.PathLike[str], problems: Sequence[str] | None = None) -> list[Problem]:
    """The problems of `"paper"`, `"released"` or a cases file; only those named in `problems`, if given."""
    if suite == "paper":
        found = [paper_problem(name) for name in PAPER]
    elif suite == "released":
        found = [released_problem(name) for name in ("b1", "b2", "b3", "b4")]
    else:
        found = read_cases(suite)
    if problems is None:
        return found
    by_name = {problem.name: problem for problem in found}
    unknown = [name for name in problems if name not in by_name]
    if unknown:
        raise ValueError(f"suite {os.fspath(suite)!r} has no problem {unknown[0]!r}; it has {', '.join(by_name)}")
    return [by_name[name] for name in problems]


# ---------------------------------------------------------------------------------------------------------- case files


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
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} is {str(value)[:60]!r}; it must be a {kind.__name__}")
    return value


def _columns(variables: Any) -> tuple[Column, ...]:
    if not isinstance(variables, list) or not all(isinstance(v, dict) for v in variables):
        raise ValueError("variables must be a list of objects with name, low, high and dist")
    return tuple(
        Column(
            _get(v, "name", str),
            _get(v, "low", float),
            _get(v, "high", float),
            _get(v, "dist", str, "uniform"),
            _get(v, "n", int, None),
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


# -------------------------------------------------------------------------------------------------------------- solved

JUDGE_POINTS = 10_000
MAX_ERROR = 1e-8
"""Largest error on fresh points, in units of std(y)."""
SAME_FUNCTION = 1e-10
"""Where the canonical forms cannot decide, two formulas are one function within this error (units of std(y))."""
NEGLIGIBLE = 1e-6
"""A term whose removal changes the formula by less than this (units of std(y)) is ballast."""
NOISE_SHARE = 0.5
"""Under noise the formula's RMSE against the truth must be below this share of the noise's standard deviation."""


@dataclass(frozen=True)
class Verdict:
    """Whether a formula solves a problem, and why. Errors are in units of std(y) on fresh noise-free points."""

    solved: bool
    reason: str
    max_error: float = math.inf
    relative_rmse: float = math.inf


def judge(found: Any, problem: Problem, *, noise_std: float = 0.0, seed: int = 0) -> Verdict:
    """Decide whether `found` solves `problem`. `found`: a SymPy object, or anything with `.sympy()` (and callable).

    Without noise, all of:

    1. on 10,000 fresh points of the domain, max |error| <= 1e-8 std(y), for the formula as printed and as predicted;
    2. no longer than needed: at most factor x the truth's operations + extra (`problem.allowed_length`); and no
       ballast: no term anywhere whose removal changes nothing (unless the truth itself has such terms);
    3. the difference to the truth vanishes with constants at four significant digits: both have one canonical form;
       or, where the canonical forms differ or grow too large to tell, the error stays below 1e-10 std(y).

    With noise on the training targets (`noise_std`, or rows that scatter around the truth) constants cannot be exact.
    Then: its RMSE against the truth is below half the noise; it is no longer than needed; and it is a member of the
    truth's family: one skeleton (constants free), or the truth's constants refitted give this function.

    Guards of protected operators that no fresh point reaches do not count as part of the formula.
    Every step is bounded in time, so it may run in threads and worker processes.
    """
    truth = problem.formula
    if truth is None:
        return Verdict(False, "the truth is unknown")
    import sympy

    formula = found if isinstance(found, sympy.Basic) else found.sympy()
    formula = _with_names(formula, problem.names)
    X, y = problem.sample(problem.generator(seed, "judge"), JUDGE_POINTS)
    scale = float(np.std(y)) or float(np.max(np.abs(y))) or 1.0
    columns = dict(zip(problem.names, X.T))

    def error_of(values: Any) -> np.ndarray:
        error = np.abs(np.broadcast_to(np.asarray(values, dtype=np.float64).squeeze(), y.shape) - y) / scale
        return np.where(np.isnan(error), math.inf, error)

    error = error_of(evaluate(formula, columns))
    if callable(found) and not isinstance(found, sympy.Basic):
        error = np.maximum(error, error_of(found(X)))
    worst, rmse = float(error.max()), float(np.sqrt(np.mean(error**2)))
    formula, truth = active_part(formula, columns), active_part(truth, columns)

    def verdict(solved: bool, reason: str) -> Verdict:
        return Verdict(solved, reason, worst, rmse)

    noise = noise_std or problem.noise_in_rows
    needed, length = int(sympy.count_ops(truth)), int(sympy.count_ops(formula))
    factor, extra = problem.allowed_length
    too_long = length > factor * needed + extra
    if noise:
        if rmse * scale > NOISE_SHARE * noise:
            return verdict(False, f"error {rmse:.1e} std(y) is not explained by the noise")
        if too_long:
            return verdict(False, f"longer than needed: {length} operations, the truth has {needed}")
        if _same(formula, truth, skeleton=True):
            return verdict(True, "the truth's structure")
        if _in_family(formula, truth, {name: column[:400] for name, column in columns.items()}):
            return verdict(True, "a member of the truth's family")
        return verdict(False, "another structure")

    if worst > MAX_ERROR:
        return verdict(False, f"error {worst:.1e} std(y) on fresh points")
    if too_long:
        return verdict(False, f"longer than needed: {length} operations, the truth has {needed}")
    some = {name: column[:500] for name, column in columns.items()}
    ballast = _ballast(formula, some, scale)
    if ballast is not None and _ballast(truth, some, scale) is None:
        return verdict(False, f"ballast: without the term {ballast} it computes the same")
    if _same(formula, truth, skeleton=False):
        return verdict(True, "equal to the truth")
    if worst <= SAME_FUNCTION:
        return verdict(True, "equal to the truth in numbers")
    return verdict(False, "close to the truth, but another formula")


def _with_names(formula: sympy.Expr, names: Sequence[str]) -> sympy.Expr:
    """Symbols named as the problem's columns; a formula learnt without names calls them x1, x2, ... or x0, x1, ..."""
    import sympy

    used = {symbol.name for symbol in formula.free_symbols}
    if used <= set(names):
        return formula
    places = {f"x{i}": name for i, name in enumerate(names, start=0 if "x0" in used else 1)}
    if not used <= set(places):
        raise ValueError(f"the formula names {sorted(used - set(names))}; the columns are {', '.join(names)}")
    return formula.xreplace({s: sympy.Symbol(places[s.name], real=True) for s in formula.free_symbols})


def _same(a: sympy.Expr, b: sympy.Expr, *, skeleton: bool) -> bool:
    try:
        return canonical(a, skeleton=skeleton) == canonical(b, skeleton=skeleton)
    except Undecided:
        return False


def _ballast(formula: sympy.Expr, columns: Mapping[str, np.ndarray], scale: float) -> sympy.Expr | None:
    """A term of a sum, at any depth, that can go without changing the formula's numbers; None if there is none."""
    import sympy

    values = evaluate(formula, columns)
    for total in formula.atoms(sympy.Add):
        for term in total.args:
            without = evaluate(formula.xreplace({total: total - term}), columns)
            change = np.max(np.abs(without - values))
            if change <= NEGLIGIBLE * scale:  # nan compares false: the term is needed
                return term
    return None


def _in_family(formula: sympy.Expr, truth: sympy.Expr, columns: Mapping[str, np.ndarray]) -> bool:
    """Whether the truth with its constants refitted computes `formula`'s numbers."""
    from scipy.optimize import least_squares

    start: list[float] = []
    family = _free_constants(truth, start)
    target = evaluate(formula, columns)
    scale = float(np.std(target)) or 1.0
    if not start or not np.isfinite(target).all():
        return False

    def residual(constants: np.ndarray) -> np.ndarray:
        values = evaluate(family, {**columns, **{f"c{i}#": value for i, value in enumerate(constants)}})
        return np.nan_to_num((values - target) / scale, nan=1e6, posinf=1e6, neginf=-1e6)

    fit = least_squares(residual, np.array(start), x_scale=np.abs(start), max_nfev=200, xtol=1e-15, ftol=1e-15)
    return bool(np.max(np.abs(fit.fun)) <= NEGLIGIBLE)


def _free_constants(e: sympy.Expr, start: list[float]) -> sympy.Expr:
    """`e` with a symbol in place of each constant, whose value is appended to `start`. Plain exponents stay."""
    import sympy

    def free(value: sympy.Expr) -> sympy.Expr:
        start.append(float(evaluate(value, {})))
        return sympy.Symbol(f"c{len(start) - 1}#", real=True)

    if not e.free_symbols:
        return free(e)
    if e.is_Add or e.is_Mul:
        fixed = [a for a in e.args if not a.free_symbols]
        parts = [_free_constants(a, start) for a in e.args if a.free_symbols]
        return e.func(*parts, *([free(e.func(*fixed))] if fixed else []))
    if e.is_Pow and e.exp.is_Rational:
        return _free_constants(e.base, start) ** e.exp
    return e.func(*(_free_constants(a, start) for a in e.args)) if e.args else e
