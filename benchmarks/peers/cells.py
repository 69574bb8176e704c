"""What is run: suites of problems, and the training and test rows of a cell, the same for every system.

Rows follow SRBench: given rows are split 75/25; noise of `gamma` x RMS(y) falls on training targets alone. Rows drawn
from a formula have test rows of their own. Systems see plain arrays; their formulas speak of x1, x2, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.evaluation.problems import Problem, load_suite, problem_from_case
from gmeql.formula.parsing import parse_formula

TRAIN_SHARE = 0.75
MAX_TEST_ROWS = 10_000
STATSMODELS = {  # data set: (target, columns left out)
    "cancer": ("cancer", ()),
    "ccard": ("AVGEXP", ()),
    "copper": ("WORLDCONSUMPTION", ("YEAR",)),
    "engel": ("foodexp", ()),
    "fair": ("affairs", ()),
    "grunfeld": ("invest", ("firm", "year")),
    "longley": ("TOTEMP", ("YEAR",)),
    "macrodata": ("realgdp", ("year", "quarter")),
    "stackloss": ("STACKLOSS", ()),
    "star98": ("NABOVE", ()),
    "statecrime": ("murder", ("state",)),
}
"""Those that come with statsmodels and have a numeric target."""
MAX_BLACK_BOX_ROWS = 1_000


@dataclass(frozen=True)
class Cell:
    """One run. `rows` bounds the training rows that are drawn from a formula."""

    suite: str
    problem: str
    noise: float
    seed: int
    system: str
    max_time: float
    threads: int = 1
    rows: int = 1_000

    @property
    def key(self) -> tuple:
        return tuple(asdict(self).values())


def cells(
    suite: str | Path,
    *,
    systems: Sequence[str],
    max_time: float,
    noises: Sequence[float] = (0.0,),
    seeds: Iterable[int] = (0,),
    problems: Sequence[str] | None = None,
    threads: int = 1,
    rows: int = 1_000,
) -> list[tuple[Cell, Problem]]:
    """The cells of a suite: seed by seed and problem by problem, the systems side by side."""
    chosen = load(suite, problems)
    name = suite_name(suite)
    return [
        (Cell(name, problem.name, noise, seed, system, max_time, threads, rows), problem)
        for noise in noises
        for seed in seeds
        for problem in chosen
        for system in systems
    ]


def suite_name(suite: str | Path) -> str:
    return Path(suite).stem


def load(suite: str | Path, problems: Sequence[str] | None = None) -> list[Problem]:
    """Problems of "paper", "blackbox" or a cases file."""
    if str(suite) != "blackbox":
        return load_suite(suite, problems)
    found = [problem_from_case(case) for case in black_box_cases()]
    return [problem for problem in found if problems is None or problem.name in problems]


def table(problem: Problem, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training X, y and noise-free test X, y of a cell. The seed decides rows and noise, whatever the system."""
    if problem.rows_X is not None:
        n_train = round(TRAIN_SHARE * len(problem.rows_X))
        problem = replace(problem, n_train=n_train, n_test=len(problem.rows_X) - n_train)
    rows = None if problem.rows_X is not None or problem.n_train <= cell.rows else cell.rows
    X, y = problem.train(problem.generator(cell.seed, "train"), rows=rows, noise=cell.noise)
    Xt, yt = problem.test(problem.generator(cell.seed, "train" if problem.rows_X is not None else "test"))
    return X, y, Xt[:MAX_TEST_ROWS], yt[:MAX_TEST_ROWS]


def plain_truth(problem: Problem) -> str | None:
    """The truth over x1, x2, ..., as text."""
    if problem.formula_text is None:
        return None
    import sympy

    formula = parse_formula(problem.formula_text, problem.names)
    places = {symbol: sympy.Symbol(f"x{problem.names.index(symbol.name) + 1}") for symbol in formula.free_symbols}
    return str(formula.xreplace(places))


# ----------------------------------------------------------------------------------------------------- black-box data


def black_box_cases() -> list[dict[str, Any]]:
    """Tables nobody knows the formula of, as scikit-learn and statsmodels bring them along, in the cases format."""
    return [*_from_sklearn(), *_from_statsmodels()]


def _from_sklearn() -> Iterator[dict[str, Any]]:
    from sklearn import datasets

    diabetes = datasets.load_diabetes(scaled=False)
    yield _case("sklearn_diabetes", diabetes.feature_names, diabetes.data, "target", diabetes.target)
    linnerud = datasets.load_linnerud()
    yield _case("sklearn_linnerud", linnerud.feature_names, linnerud.data, "Waist", linnerud.target[:, 1])
    iris = datasets.load_iris()
    names = [name.removesuffix(" (cm)").replace(" ", "_") for name in iris.feature_names]
    yield _case("sklearn_iris", names[:3], iris.data[:, :3], names[3], iris.data[:, 3])
    wine = datasets.load_wine()
    names = [name.replace("/", "_") for name in wine.feature_names]
    yield _case("sklearn_wine", names[1:], wine.data[:, 1:], names[0], wine.data[:, 0])


def _from_statsmodels() -> Iterator[dict[str, Any]]:
    import statsmodels.api as sm

    for name, (target, left_out) in STATSMODELS.items():
        frame = getattr(sm.datasets, name).load_pandas().data.reset_index(drop=True)
        frame = frame.drop(columns=[column for column in left_out if column in frame]).select_dtypes("number").dropna()
        frame = frame.sample(min(len(frame), MAX_BLACK_BOX_ROWS), random_state=0)
        inputs = [column for column in frame if column != target]
        yield _case(f"statsmodels_{name}", inputs, frame[inputs].to_numpy(float), target, frame[target].to_numpy(float))


def _case(name: str, columns: Sequence[str], X: np.ndarray, target: str, y: np.ndarray) -> dict[str, Any]:
    variables = [
        {"name": column, "low": float(values.min()), "high": float(values.max()), "dist": "data"}
        for column, values in zip(columns, X.T)
    ]
    rows = np.column_stack([X, y]).tolist()
    return {
        "name": name,
        "suite": "black-box",
        "variables": variables,
        "n_train": len(rows),
        "data": {"columns": [*columns, target], "rows": rows},
        "target": target,
    }
