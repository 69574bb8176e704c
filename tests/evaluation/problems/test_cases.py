"""The reader of case files: every kind of case, and refusals by case and field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy

from case_files import case, variable, write
from gmeql.evaluation.problems import judge, problem_from_case, read_cases


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
        ({"variables": [variable(dist="log")]}, "needs low > 0"),
        ({"variables": [variable(low=0.5, dist="integer")]}, "whole low and high"),
        ({"variables": [variable(dist="grid", n=3, signed=True)]}, "is signed but has dist 'grid'"),
        ({"variables": [variable(signed=1)]}, "signed is '1'; it must be a bool"),
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


def test_distributions_and_signs_are_read() -> None:
    variables = [variable("a", 1e-3, 10, dist="log", signed=True, units=[1, 0]), variable("b", 1, 4, dist="integer")]
    log, whole = problem_from_case(case(formula="a*b", variables=variables)).columns
    assert (log.dist, log.signed, whole.dist, whole.signed) == ("log", True, "integer", False)


def test_differential_equations_are_refused_as_what_they_are(tmp_path: Path) -> None:
    system = {"name": "growth", "states": ["x"], "formulas": ["0.8*x"], "init": [[1.0]], "t_span": [0, 10]}
    with pytest.raises(ValueError, match=r"case 0 \(growth\): it describes differential equations"):
        read_cases(write(tmp_path / "cases.json", [system]))
