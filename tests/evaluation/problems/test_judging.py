"""The definition of "solved"."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from case_files import case, variable
from gmeql.evaluation.problems import PAPER, Problem, judge, paper_problem, problem_from_case
from gmeql.formula.parsing import parse_formula


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


def test_a_formula_without_a_term_of_the_truth_is_no_member_of_its_family() -> None:
    # a*x - b*x**2 is what the truth computes with the fraction's factor at 0
    problem = problem_from_case(case(formula="-0.01*x**2/(x**2 + 4) + 0.8*x - 0.1*x**2", variables=[variable(high=3)]))
    verdict = judge(formula_of(problem, "0.79*x - 0.1*x**2"), problem, noise_std=1.0)
    assert not verdict.solved and verdict.reason == "another structure"
    whole = formula_of(problem, "0.79*x - 0.1*x**2 - 0.02/(1 + 3/x**2)")
    assert judge(whole, problem, noise_std=1.0).solved
