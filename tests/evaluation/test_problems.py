"""The paper's problems, the reader for case files, and the definition of "solved"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from gmeql.evaluation.problems import PAPER, Problem, judge, load_suite, paper_problem, problem_from_case, read_cases
from gmeql.formula.parsing import parse_formula

TRUTH = {  # Table 1 once more, written as NumPy
    "b1": lambda x: 0.8 * x[0] ** 3 + 0.9 * x[1] ** 2 + 1.2 * x[2],
    "b2": lambda x: 0.8 * x[2] ** 4 + 0.8 * x[0] ** 3 + 1.2 * x[1] ** 2 + 1.4 * x[2],
    "b3": lambda x: 0.8 * x[2] ** 5 + 1.2 * x[1] ** 4 + 1.2 * x[0] ** 3 + 0.9 * x[1] ** 2 + 1.1 * x[2],
    "b4": lambda x: (
        1.1 * x[0] ** 6 + 0.8 * x[1] ** 5 + 0.9 * x[2] ** 4 + 1.3 * x[0] ** 3 + 1.2 * x[1] ** 2 + 0.9 * x[2]
    ),
    "b5": lambda x: 1.5 * np.sin(x[0]) + 1.3 * np.sin(x[1] ** 2),
    "b6": lambda x: 1.2 * np.sin(1.1 * x[0]) * np.cos(0.9 * x[1]),
    "b7": lambda x: 1.1 * x[0] + 0.9 * x[1] + 2.1 * x[0] * x[1] * np.cos(1.2 * x[2]),
    "b8": lambda x: np.sqrt(1.3 + 1.2 * x[1] / x[0]),
}
RANGES = {"b1": (0, 2, 3), "b2": (0, 2, 3), "b3": (0, 2, 3), "b4": (0, 2, 3)} | {
    "b5": (0, 10, 2),
    "b6": (0, 10, 2),
    "b7": (0, 10, 3),
    "b8": (1, 20, 3),
}


@pytest.mark.parametrize("name", list(PAPER))
def test_paper_problems_are_table_1(name: str, rng: np.random.Generator) -> None:
    problem = paper_problem(name)
    X, y = problem.train(rng)
    low, high, width = RANGES[name]
    assert X.shape == (300, width) and problem.test(rng)[0].shape == (300, width)
    assert low <= X.min() < low + 0.1 * (high - low) and high - 0.1 * (high - low) < X.max() <= high
    np.testing.assert_allclose(y, TRUTH[name](X.T), rtol=1e-13)


def test_released_variant() -> None:
    problems = load_suite("released")
    assert [p.name for p in problems] == ["b1", "b2", "b3", "b4"]
    X, _ = problems[0].train(np.random.default_rng(0))
    assert X.shape == (500, 3) and 2 < X.max() <= 2.1


def test_noise_falls_on_training_targets_alone() -> None:
    problem = paper_problem("b2")
    X, clean = problem.train(np.random.default_rng(1))
    Xn, noisy = problem.train(np.random.default_rng(1), noise_std=0.5)
    np.testing.assert_array_equal(X, Xn)
    assert np.std(noisy - clean) == pytest.approx(0.5, rel=0.15)
    relative = problem.train(np.random.default_rng(1), noise=0.1)[1] - clean
    assert np.std(relative) == pytest.approx(0.1 * np.sqrt(np.mean(clean**2)), rel=0.15)
    Xt, yt = problem.test(np.random.default_rng(2))
    np.testing.assert_allclose(yt, problem.evaluate(Xt))
    with pytest.raises(ValueError, match="noise"):
        problem.train(np.random.default_rng(1), noise=-1)


def test_generators_are_apart() -> None:
    problem, other = paper_problem("b1"), paper_problem("b2")
    draws = [problem.generator(0, "train"), problem.generator(0, "test"), problem.generator(1, "train")]
    values = {g.random() for g in [*draws, other.generator(0, "train")]}
    assert len(values) == 4
    assert problem.generator(3, "judge").random() == problem.generator(3, "judge").random()


def test_unknown_problems_are_named() -> None:
    with pytest.raises(ValueError, match="b1, b2"):
        paper_problem("b9")
    with pytest.raises(ValueError, match="has no problem 'b0'"):
        load_suite("paper", ["b1", "b0"])
    with pytest.raises(ValueError, match="cases file that exists"):
        load_suite("missing.json")


# ---------------------------------------------------------------------------------------------------------- case files


def variable(name: str = "x", low: float = 0, high: float = 1, **more: Any) -> dict:
    return {"name": name, "low": low, "high": high, "dist": "uniform", **more}


def case(**changes: Any) -> dict:
    return {"name": "c", "formula": "x**2", "variables": [variable()], "n_train": 20, "n_test": 5} | changes


def write(path: Path, cases: Any) -> Path:
    path.write_text(json.dumps(cases))
    return path


def test_reads_every_kind_of_case(tmp_path: Path, rng: np.random.Generator) -> None:
    grid = [variable("a", -1, 1, dist="grid", n=3), variable("b", 0, 2, dist="grid", n=5)]
    rows = [[float(i), 2.0 * i] for i in range(1, 11)]
    path = write(
        tmp_path / "cases.json",
        [
            case(name="rejection", formula="log(x) + sqrt(x - 1/2)", variables=[variable(low=-1)]),
            case(name="grid", formula="a*b + pi", variables=grid, n_train=15, n_test=15),
            case(name="locals", formula="1/(gamma - 1)*I", variables=[variable("gamma", 2, 5), variable("I")]),
            case(
                name="rows",
                formula=None,
                target="label = what it is",
                n_train=7,
                n_test=3,
                variables=[variable("t", 1, 10, dist="data")],
                data={"columns": ["t", "label"], "rows": rows},
            ),
        ],
    )
    problems = {p.name: p for p in read_cases(path)}
    X, y = problems["rejection"].train(rng)
    assert len(y) == 20 and np.isfinite(y).all() and X.min() >= 0.5
    X, y = problems["grid"].train(rng)
    assert X.shape == (15, 2) and set(X[:, 1]) == {0.0, 0.5, 1.0, 1.5, 2.0}
    X, _ = problems["grid"].train(rng, rows=50)
    assert X.shape == (50, 2) and len(set(X[:, 1])) == 50
    assert {s.name for s in problems["locals"].formula.free_symbols} == {"gamma", "I"}
    given = problems["rows"]
    X, y = given.train(np.random.default_rng(3))
    Xt, yt = given.test(np.random.default_rng(3))
    assert given.target == "label" and given.formula is None
    assert sorted([*X[:, 0], *Xt[:, 0]]) == [row[0] for row in rows]  # no row in both
    np.testing.assert_array_equal(yt, 2 * Xt[:, 0])
    assert not judge(sympy.Symbol("t") * 2, given).solved


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"name": None}, "name is missing"),
        ({"variables": []}, "names must be there"),
        ({"variables": [variable(), variable()]}, "differ"),
        ({"variables": [variable(dist="normal")]}, "dist 'normal'"),
        ({"variables": [variable(dist="grid")]}, "n = None"),
        ({"variables": [variable(low=2)]}, "low <= high"),
        ({"variables": [{"name": "x", "low": "0", "high": 1}]}, "low is '0'"),
        ({"n_train": 0}, "n_train 0"),
        ({"n_train": 2.5}, "n_train is '2.5'"),
        ({"formula": None}, "neither a formula nor data"),
        ({"formula": "x +"}, "cannot be read"),
        ({"formula": "open('f')"}, "calls 'open'"),
        ({"data": {"columns": ["x"], "rows": [[1]]}}, "without 'y'"),
        ({"data": {"columns": ["x", "y"], "rows": [[1, 2], [3]]}}, "lists of 2 numbers"),
        ({"data": {"columns": ["x", "y"], "rows": [[1, None]]}}, "numbers"),
        ({"data": {"columns": ["x", "y"], "rows": [[1, 2]]}}, "wants 20 \\+ 5 rows but holds 1"),
    ],
)
def test_bad_cases_are_refused_by_case_and_field(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"case 1 .*{message}"):
        read_cases(write(tmp_path / "cases.json", [case(), case(**{"name": "second"} | changes)]))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', "[" * 100_000, "[1]"])
def test_what_is_no_cases_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="cases file"):
        read_cases(path)


def test_names_must_differ(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'c' twice"):
        read_cases(write(tmp_path / "cases.json", [case(), case()]))


def test_a_formula_finite_nowhere_is_reported(rng: np.random.Generator) -> None:
    problem = problem_from_case(case(formula="log(x - 5)"))
    with pytest.raises(ValueError, match="check its ranges"):
        problem.train(rng)


# -------------------------------------------------------------------------------------------------------------- solved


def formula_of(problem: Problem, text: str) -> sympy.Expr:
    return parse_formula(text, problem.names)


@pytest.mark.parametrize("name", list(PAPER))
def test_the_truth_solves_its_problem(name: str) -> None:
    problem = paper_problem(name)
    assert judge(problem.formula, problem).solved
    assert judge(problem.formula, problem, noise_std=0.1).solved


@pytest.mark.parametrize(
    "name, found, solved, reason",
    [
        ("b1", "0.8000000000001*x1**3 + 0.9*x2**2 + 1.2*x3", True, "equal"),
        ("b1", "0.8*x1**3 + x2*0.9*x2 + 1.2*x3", True, "equal"),
        ("b1", "0.80001*x1**3 + 0.9*x2**2 + 1.2*x3", False, "error"),
        ("b1", "0.8*x1**3 + 0.9*x2**2 + 1.2*x3 + 1e-9*x1", False, "ballast"),
        ("b1", "0.8*x1**3 + 0.9*(x2 + 1e-10)**2 + 1.2*x3", False, "ballast"),
        ("b1", "0.8*x1**3 + 0.9*x2**2 + 1.2*x3*(sin(x1)**2 + cos(x1)**2)", False, "longer"),
        ("b6", "1.2*sin(1.1*x1)*sin(0.9*x2 + 1.5707963267949)", True, "equal"),
        ("b6", "-1.2*sin(1.1*x1)*cos(0.9*x2 + pi)", True, "equal"),
        ("b8", "sqrt((1.3*x1 + 1.2*x2)/x1)", True, "equal"),
        ("b8", "1.0954451150103321*sqrt(x2/x1 + 1.0833333333333333)", True, "equal"),
        ("b5", "1.5*sin(x1) + 1.3*sin(x2**2) + 0*x1", True, "equal"),
        ("b5", "1.5*sin(x1) + 1.3*sin(x2**2.000000001)", False, "error"),
        ("b7", "1.1*x1 + 0.9*x2 + 2.1*x1*x2*sin(1.2*x3)", False, "error"),
    ],
)
def test_solved_without_noise(name: str, found: str, solved: bool, reason: str) -> None:
    problem = paper_problem(name)
    verdict = judge(formula_of(problem, found), problem)
    assert (verdict.solved, verdict.reason.split()[0].rstrip(":")) == (solved, reason), verdict


@pytest.mark.parametrize(
    "name, found, solved",
    [
        ("b2", "0.79*x3**4 + 0.81*x1**3 + 1.21*x2**2 + 1.42*x3", True),
        ("b2", "0.79*x3**4 + 0.81*x1**3 + 1.21*x2**2 + 1.42*x3 + 0.01", False),
        ("b2", "0.79*x3**4 + 0.81*x1**3 + 1.21*x2**2", False),
        ("b2", "0.79*x3**4 + 0.81*x1**3.02 + 1.21*x2**2 + 1.42*x3", False),
        ("b6", "1.2*sin(1.1003*x1)*cos(0.9001*x2)", True),
        ("b6", "1.2*sin(1.7*x1)*cos(0.9*x2)", False),  # the right structure in a wrong minimum
        ("b8", "sqrt(1.31*x1 + 1.19*x2)/sqrt(x1)", True),
    ],
)
def test_solved_under_noise(name: str, found: str, solved: bool) -> None:
    problem = paper_problem(name)
    verdict = judge(formula_of(problem, found), problem, noise_std=0.2)
    assert verdict.solved is solved, verdict


def test_another_form_is_judged_by_numbers() -> None:
    problem = problem_from_case(case(formula="x/(1 + x)"))
    assert judge(formula_of(problem, "1 - 1/(1 + x)"), problem).reason == "equal to the truth in numbers"
    assert judge(formula_of(problem, "1 - 1/(1.000000001 + x)"), problem).reason.startswith("close")


def test_another_form_of_a_family_member_is_one() -> None:
    problem = problem_from_case(
        case(formula="1.2*sin(1.1*x)*cos(0.9*z)", variables=[variable(high=5), variable("z", high=5)])
    )
    sums = "0.61*(sin(1.12*x + 0.9*z) + sin(1.12*x - 0.9*z))"
    verdict = judge(formula_of(problem, sums), problem, noise_std=0.2)
    assert verdict.solved and verdict.reason == "a member of the truth's family"
    assert not judge(formula_of(problem, sums.replace("- 0.9*z", "- 0.92*z")), problem, noise_std=0.2).solved


def test_a_near_miss_is_not_a_solution() -> None:
    problem = problem_from_case(case(formula="sin(x)", variables=[variable(high=0.1)]))
    verdict = judge(formula_of(problem, "x - x**3/6 + x**5/120"), problem)
    assert not verdict.solved and verdict.max_error < 1e-8


def test_rows_that_scatter_are_judged_as_noisy(rng: np.random.Generator) -> None:
    x = np.linspace(0, 1, 50)
    y = 2 * np.exp(-x) + 0.01 * rng.standard_normal(50)
    data = {"columns": ["x", "y"], "rows": np.stack([x, y], 1).tolist()}
    problem = problem_from_case(case(formula="2*exp(-1.0*x)", n_train=50, n_test=0, data=data))
    assert 0.005 < problem.noise_in_rows < 0.02
    assert judge(formula_of(problem, "2.001*exp(-1.002*x)"), problem).solved
    assert not judge(formula_of(problem, "2.001*exp(-1.002*x) + 0.0001"), problem).solved


def test_accepts_whatever_has_sympy_and_checks_that_it_predicts_what_it_prints() -> None:
    problem = paper_problem("b8")

    class Model:
        def __init__(self, offset: float) -> None:
            self.offset = offset

        def sympy(self) -> sympy.Expr:  # learnt without column names
            x0, x1 = sympy.symbols("x0 x1")
            return sympy.sqrt(1.3 + 1.2 * x1 / x0)

        def __call__(self, X: np.ndarray) -> np.ndarray:
            return problem.evaluate(X) + self.offset

    assert judge(Model(0.0), problem).solved
    assert not judge(Model(1e-3), problem).solved
    with pytest.raises(ValueError, match="names \\['z'\\]"):
        judge(sympy.Symbol("z"), problem)


def test_guards_that_are_never_reached_are_no_part_of_the_formula() -> None:
    problem = paper_problem("b8")
    x1, x2 = sympy.symbols("x1 x2", real=True)

    def protected(limit: float) -> sympy.Expr:
        quotient = sympy.Piecewise((0, abs(x1) <= 1e-12), (x2 / x1, abs(x2) <= limit * abs(x1)), (limit, True))
        return sympy.sqrt(sympy.Max(1e-12, abs(1.3 + 1.2 * quotient)))

    assert judge(protected(100.0), problem).reason == "equal to the truth"
    assert not judge(protected(10.0), problem).solved  # reached where x2 > 10*x1


def test_a_formula_that_is_nan_somewhere_is_not_a_solution() -> None:
    problem = problem_from_case(case(formula="x"))
    assert judge(formula_of(problem, "x + 0*log(x) + sqrt(x - 0.5) - sqrt(x - 0.5)"), problem).solved  # SymPy cancels
    assert judge(formula_of(problem, "exp(log(x - 1/2))"), problem).max_error > 0.1
    assert judge(formula_of(problem, "log(x - 1/2)"), problem).max_error == np.inf
