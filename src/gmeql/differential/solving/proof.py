"""From a formula that fits to one that is proven: constants polished on the equation, made exact, put in and shown to
vanish.

A proof is two things at once: the residual and every condition have the normal form zero (`identities.py`), and they
are zero with fifty digits at points of the domain. A slip in one of the two would have to be met by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.differential.solving.config import PROOF
from gmeql.differential.solving.exact_numbers import numbers_in, recognise, units_of
from gmeql.differential.solving.identities import vanishes
from gmeql.differential.solving.problem import Condition, FloatArray, Jet, Problem
from gmeql.differential.solving.residuals import OpenFormula, Substituted, relative_size
from gmeql.differential.solving.solutions import APPROXIMATION
from gmeql.formula.expression import Expression
from gmeql.search.polish.cutting import without_dead_terms
from gmeql.search.polish.scoring import JudgedRows


@dataclass(frozen=True)
class Judged:
    """Formulas of all unknown functions, and what is known about them."""

    expressions: tuple[Expression, ...]
    forms: tuple[Any, ...]
    """SymPy forms in the problem's symbols; with exact constants where they are known."""
    residual: float
    """Largest residual of the equations on the domain, as it stands in them."""
    misfit: float
    """Largest misfit of the conditions."""
    relative: float
    """The larger of both, relative to the terms they are made of."""
    proven: bool
    verdict: str

    @property
    def complexity(self) -> int:
        """Of all formulas together."""
        return sum(e.complexity for e in self.expressions)


class Judge:
    """Polishes, recognises and proves formulas for one problem."""

    def __init__(self, problem: Problem, points: FloatArray) -> None:
        self.problem = problem
        self.points = points
        self.substituted = Substituted(problem, points)
        given = [*problem.residuals, *(c.residual for c in problem.conditions)]
        places = [p for c in problem.conditions for p in c.face if p is not None]
        self.units = units_of(numbers_in([*given, *places]))

    def judge(self, expressions: Sequence[Expression], *, polish: bool) -> Judged:
        """What the formulas come to; with `polish`, after the best has been made of them."""
        formula = OpenFormula.of([self._alive(e.natural()) for e in expressions])
        constants = np.array(formula.constants)
        if polish and len(constants) <= PROOF.max_constants:
            try:
                constants, relative = self.substituted.polish(formula)
            except ValueError:  # a derivative outgrew what a tree may hold
                relative = np.inf
            if relative <= PROOF.met:
                proven = self._exact(formula, constants)
                if proven is not None:
                    return proven
        symbols = (*self.problem.variables, *self.problem.parameters)
        forms = formula.sympy(symbols, [float(c) for c in constants])
        return self._measured(formula, constants, forms, proven=False)

    def _alive(self, expression: Expression) -> Expression:
        """The formula without terms that rounding swallows."""
        rows = JudgedRows.of(self.points, np.zeros(len(self.points)), None, expression.names)
        return expression.with_root(without_dead_terms(expression.root, rows))

    # --- exact constants ---------------------------------------------------------------------------------------------

    def _exact(self, formula: OpenFormula, constants: FloatArray) -> Judged | None:
        """The formula with exact constants that hold, proven if it can be; None where no exact ones are seen."""
        picks = [recognise(float(c), self.units) for c in constants]
        exact = self._from_conditions(formula, [p[0] if p else None for p in picks])
        if exact is None:
            return None
        values = np.array([float(e) for e in exact])
        left, _, scale, _ = self.substituted.rows(formula, values, slopes=False)
        if not relative_size(left, scale) <= PROOF.met:
            return None
        forms = formula.sympy((*self.problem.variables, *self.problem.parameters), exact)
        return self._measured(formula, values, forms, proven=self.holds(forms))

    def _from_conditions(self, formula: OpenFormula, exact: list[Any]) -> list[Any] | None:
        """Constants that are no number anybody writes, from the conditions, where those are linear in them."""
        import sympy

        unknown = {k: sympy.Dummy(f"c{k}", real=True) for k, e in enumerate(exact) if e is None}
        if not unknown:
            return exact
        symbols = (*self.problem.variables, *self.problem.parameters)
        forms = formula.sympy(symbols, [unknown.get(k, e) for k, e in enumerate(exact)])
        equations = [self.condition_value(forms, c) for c in self.problem.conditions if c.measure is None]
        wanted = list(unknown.values())
        equations = [e for e in equations if e.free_symbols & set(wanted)]
        try:
            if any(e.free_symbols - set(wanted) for e in equations):
                return None
            solved = sympy.linsolve(equations, wanted)
        except (ValueError, sympy.PolynomialError, NotImplementedError):
            return None
        for values in solved if solved is not sympy.EmptySet else ():
            if not any(v.free_symbols for v in values):
                found = dict(zip(unknown, values, strict=True))
                return [found.get(k, e) for k, e in enumerate(exact)]
        return None

    # --- proof -------------------------------------------------------------------------------------------------------

    def holds(self, forms: Sequence[Any]) -> bool:
        """Whether equations and conditions are shown to be met by the exact forms."""
        if any(c.measure is not None or c.rounded for c in self.problem.conditions):
            return False
        residuals = [self._residual_value(forms, r) for r in self.problem.residuals]
        conditions = [self.condition_value(forms, c) for c in self.problem.conditions]
        return all(vanishes(value) and self._is_zero_in_numbers(value) for value in (*residuals, *conditions))

    def _residual_value(self, forms: Sequence[Any], residual: Any) -> Any:
        return residual.xreplace({jet.symbol: self._derivative(forms, jet) for jet in self.problem.jets})

    def condition_value(self, forms: Sequence[Any], condition: Condition) -> Any:
        """The residual of a condition with the forms put in."""
        values = {}
        for jet in condition.jets:
            assert jet.place is not None
            at = {v: p for v, p in zip(self.problem.variables, jet.place, strict=True) if p is not None}
            values[jet.symbol] = _value_at(self._derivative(forms, jet), at)
        return condition.residual.xreplace(values)

    def _derivative(self, forms: Sequence[Any], jet: Jet) -> Any:
        form = forms[jet.function]
        for variable, order in zip(self.problem.variables, jet.orders, strict=True):
            form = form.diff(variable, order) if order else form
        return form

    def _is_zero_in_numbers(self, value: Any) -> bool:
        """Whether the value is zero with many digits at some points of the domain."""
        import sympy

        if value == 0:
            return True
        symbols = [*self.problem.variables, *self.problem.parameters]
        chosen = np.linspace(0, len(self.points) - 1, PROOF.checked_points + 2).round().astype(int)[1:-1]
        limit = sympy.Float(10) ** (-PROOF.digits // 2)
        for row in self.points[chosen]:
            at = {s: sympy.Rational(f"{v:.6g}") for s, v in zip(symbols, row, strict=True)}
            number = sympy.N(value.subs(at), PROOF.digits, maxn=4 * PROOF.digits)
            if not number.is_number or not abs(number) < limit:
                return False
            if not value.free_symbols:
                break
        return True

    # --- figures -----------------------------------------------------------------------------------------------------

    def _measured(self, formula: OpenFormula, constants: FloatArray, forms: Sequence[Any], *, proven: bool) -> Judged:
        try:
            values, _, scale, of_equation = self.substituted.rows(formula, constants, slopes=False)
        except ValueError:
            values, scale, of_equation = np.array([np.inf]), np.ones(1), np.array([True])
        with np.errstate(all="ignore"):
            residual = float(np.max(np.abs(values[of_equation]), initial=0.0))
            misfit = float(np.max(np.abs(values[~of_equation]), initial=0.0))
        residual, misfit = (v if np.isfinite(v) else np.inf for v in (residual, misfit))
        relative = relative_size(values, scale)
        return Judged(
            formula.closed(constants),
            tuple(forms),
            residual,
            misfit,
            relative,
            proven,
            self._verdict(proven, forms, relative),
        )

    def _verdict(self, proven: bool, forms: Sequence[Any], relative: float) -> str:
        if proven:
            return "proven: equation and conditions vanish identically"
        if relative > PROOF.met:
            return f"{APPROXIMATION}: misses the equation by {relative:.1g} of its terms"
        import sympy

        exact = not any(form.has(sympy.Float) for form in forms)
        if exact and all(vanishes(self._residual_value(forms, r)) for r in self.problem.residuals):
            rounded = [c.given for c in self.problem.conditions if c.rounded or c.measure is not None]
            if rounded:
                return f"equation proven; {'; '.join(rounded)} verified numerically to {max(relative, 1e-16):.0e}"
        return f"verified numerically to {max(relative, 1e-16):.0e}"


def _value_at(form: Any, at: dict[Any, Any]) -> Any:
    """A form at a place; where it has no value there, as sin(x)/x at 0, its limit, if it is the same from both sides."""
    import sympy

    value = form.subs(at)
    if not value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        return value
    for variable, place in at.items():
        try:
            below, above = (sympy.limit(form, variable, place, side) for side in "-+")
        except (NotImplementedError, ValueError, TypeError, RecursionError):
            return sympy.nan
        if below != above or above.has(sympy.oo, -sympy.oo, sympy.zoo, sympy.nan):
            return sympy.nan
        form = above
    return form
