"""`gmeql.solve` from equation to proof."""

from __future__ import annotations

import pytest
import sympy
from differential_problems import SLOPE, k, slope_at, t, u, w, x, y

import gmeql
from gmeql.differential.solving import solve as module

QUICK = dict(random_state=0, n_jobs=1, max_time=None, max_candidates=20_000)
FEW = QUICK | {"max_candidates": 1500}


def test_initial_values() -> None:
    found = gmeql.solve(sympy.Eq(y(x).diff(x, 2), -100 * y(x)), y(x), ics={y(0): 0, slope_at(0): 10}, **QUICK)
    assert found.proven and found.sympy() == sympy.sin(10 * x)
    assert found.reason == "a closed form is proven"


def test_a_condition_that_is_missing_is_filled_and_a_note_says_so() -> None:
    found = gmeql.solve(sympy.Eq(y(x).diff(x, 2) * SLOPE, -4 / x**3), y(x), ics={y(1): 0}, domain=(1, 2), **QUICK)
    assert found.proven and sympy.simplify(found.sympy().diff(x) ** 2 - 4 / x**2) == 0
    assert "leave the solution open" in found.notes[0]


def test_a_system() -> None:
    equations = [sympy.Eq(SLOPE, w(x)), sympy.Eq(w(x).diff(x), -y(x))]
    found = gmeql.solve(equations, [y(x), w(x)], ics={y(0): 0, w(0): 1}, **QUICK)
    assert found.proven and found.sympy() == {"y": sympy.sin(x), "w": sympy.cos(x)}


def test_a_field_with_values_on_its_edge() -> None:
    edge = {u(0, t): 0, u(1, t): sympy.sin(t), u(x, 0): 0, u(x, 1): sympy.sin(x)}
    equation = sympy.Eq(u(x, t).diff(x, 2) + u(x, t).diff(t, 2), -(x**2 + t**2) * u(x, t))
    found = gmeql.solve(equation, u(x, t), ics=edge, **QUICK)
    assert found.proven and found.sympy() == sympy.sin(t * x)


def test_a_family_keeps_its_parameter() -> None:
    found = gmeql.solve(sympy.Eq(SLOPE, -k * y(x)), y(x), ics={y(0): 1}, parameters=[k], **QUICK)
    assert found.proven and sympy.simplify(found.sympy() - sympy.exp(-k * x)) == 0


def test_no_closed_form_is_a_clear_no() -> None:
    found = gmeql.solve(sympy.Eq(SLOPE, x**2 + y(x) ** 2), y(x), ics={y(0): 0}, domain=(0, 1), **FEW)
    assert not found.proven and str(found).startswith("no closed form was found")
    assert 0 < found.best.residual < 1


@pytest.mark.slow  # two whole searches
def test_the_same_seed_gives_the_same_front() -> None:
    def front() -> list[str]:
        return [str(m) for m in gmeql.solve(sympy.Eq(SLOPE, sympy.sin(x * y(x))), y(x), ics={y(0): 1}, **FEW)]

    assert front() == front()


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(module.Search):
        def run(self):
            yield next(super().run())
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "Search", Interrupted)
    found = gmeql.solve(sympy.Eq(SLOPE, x**2 + y(x) ** 2), y(x), ics={y(0): 0}, **FEW)
    assert found.reason == "interrupted" and len(found) >= 1


@pytest.mark.parametrize("budget", [{"max_time": 0}, {"max_candidates": -1}, {"max_time": None}])
def test_budgets_are_checked(budget: dict) -> None:
    with pytest.raises(ValueError, match="max_time"[:4]):
        gmeql.solve(sympy.Eq(SLOPE, y(x)), y(x), ics={y(0): 1}, **budget)
