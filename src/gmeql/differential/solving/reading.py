"""What a person wrote, as a `Problem`: SymPy equations and conditions checked, decimals made exact.

Every refusal is one `ValueError` that names the argument, what was given and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gmeql.differential.solving.callables import called
from gmeql.differential.solving.config import NUMERICAL
from gmeql.differential.solving.problem import Condition, Jet, Problem
from gmeql.formula.canonical import evaluate
from gmeql.formula.messages import short

_EXACT_DIGITS = 10
"""Decimals of so many digits are what they say; longer ones are rounded numbers, such as math.sin(10)."""
_NO_DOMAIN = (0.5, 2.5)
"""Where the solution is looked at when neither conditions nor `domain` say."""


def read_problem(
    equation: Any,
    function: Any = None,
    *,
    ics: Any = None,
    domain: Any = None,
    parameters: Any = None,
) -> Problem:
    """The problem that `gmeql.solve` is given, checked; see there for what each argument may be."""
    functions = _functions(equation, function)
    variables = functions[0].args
    residuals = [_no_floats(r)[0] for r in _residuals(equation, variables, functions)]
    known, ranges = _parameters(parameters)
    conditions, measures = _condition_list(ics, variables, functions)
    box = _box(domain, variables, functions, conditions)
    symbols = {v: _symbol(v.name, *side) for v, side in zip(variables, box, strict=True)}
    symbols |= {p: _symbol(p.name, *side) for p, side in zip(known, ranges, strict=True)}
    inner = tuple(symbols[v] for v in variables)
    read = [_to_jets(r, functions, variables) for r in residuals]
    jets = tuple(dict.fromkeys(jet for _, found in read for jet in found))
    residuals = [r.xreplace(symbols) for r, _ in read]
    _check_algebra(residuals, jets, functions, symbols)
    made = [_condition(c, functions, variables, symbols) for c in conditions] + measures
    _check_conditions(made, inner, box)
    return Problem(
        variables=inner,
        names=tuple(f.func.__name__ for f in functions),
        residuals=tuple(residuals),
        jets=jets,
        conditions=tuple(made),
        box=box,
        parameters=tuple(symbols[p] for p in known),
        parameter_box=ranges,
        given_symbols={new: old for old, new in symbols.items()},
    )


def _symbol(name: str, low: float, high: float) -> Any:
    """A real symbol, with its sign where the domain has one: logarithms and roots are taken apart by it."""
    import sympy

    if low >= 0:
        return sympy.Symbol(name, positive=True)
    return sympy.Symbol(name, negative=True) if high <= 0 else sympy.Symbol(name, real=True)


# --- equations ------------------------------------------------------------------------------------------------------


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _functions(equation: Any, function: Any) -> tuple[Any, ...]:
    """The unknown functions, applied to their variables."""
    from sympy.core.function import AppliedUndef, UndefinedFunction

    inside: dict[Any, None] = {}
    for one in _listed(equation):
        atoms = one.atoms(AppliedUndef) if hasattr(one, "atoms") else ()
        inside |= dict.fromkeys(a for a in sorted(atoms, key=str) if all(v.is_Symbol for v in a.args))
    if function is None:
        found = list(inside)
    else:
        found = []
        for one in _listed(function):
            if isinstance(one, UndefinedFunction):
                found += [a for a in inside if a.func == one][:1] or [one]
            else:
                found.append(one)
    for one in found:
        if not isinstance(one, AppliedUndef) or not one.args or not all(v.is_Symbol for v in one.args):
            raise ValueError(
                f"function={short(one)} is no function of symbols; give it as y(x) with y = sympy.Function('y')"
            )
        if one.args != found[0].args:
            raise ValueError(f"all functions must have the same variables, got {found[0]} and {one}")
    if not found:
        raise ValueError(
            f"equation={short(equation)} holds no unknown function; write y(x) with y = sympy.Function('y')"
        )
    if len({f.func for f in found}) < len(found):
        raise ValueError(f"function={short(function)} names a function twice")
    return tuple(found)


def _residuals(equation: Any, variables: Sequence[Any], functions: Sequence[Any]) -> list[Any]:
    """Left minus right side of every equation."""
    import sympy

    given = called(equation, variables, functions) if _is_callable(equation) else _listed(equation)
    found = []
    for one in given:
        if isinstance(one, sympy.Eq):
            one = one.lhs - one.rhs
        if one in (True, False, sympy.true, sympy.false) or not isinstance(one, sympy.Expr):
            raise ValueError(
                f"equation={short(one)} is no equation; give sympy.Eq(left, right), an expression that is to vanish, a list "
                "of them, or a function of variables and unknown functions that returns one"
            )
        if one.has(sympy.Integral):
            raise ValueError(f"equation={short(one)} holds an integral; differentiate it first")
        found.append(one.doit())
    if len(found) != len(functions):
        names = ", ".join(map(str, functions))
        raise ValueError(
            f"there are {len(found)} equations for {len(functions)} unknown functions ({names}); give as many"
        )
    return found


def _is_callable(equation: Any) -> bool:
    import sympy

    return callable(equation) and not isinstance(equation, sympy.Basic)


def _no_floats(expression: Any) -> tuple[Any, bool]:
    """The expression with its decimals as fractions, and whether one of them is a rounded number."""
    import sympy

    exact, rounded = {}, False
    for value in sympy.sympify(expression).atoms(sympy.Float):
        plain = sympy.Rational(f"{float(value):.{_EXACT_DIGITS}g}")
        if abs(float(plain) - float(value)) <= 4e-15 * abs(float(value)):
            exact[value] = plain
        else:
            exact[value] = sympy.Rational(repr(float(value)))
            rounded = True
    return sympy.sympify(expression).xreplace(exact), rounded


def _to_jets(expression: Any, functions: Sequence[Any], variables: Sequence[Any]) -> tuple[Any, list[Jet]]:
    """The expression with symbols for unknown functions, for their derivatives, and for both at points."""
    import sympy

    found: dict[Any, Jet] = {}
    for one in expression.atoms(sympy.Subs):
        found[one] = _jet_at(one.expr, dict(zip(one.variables, one.point, strict=True)), functions, variables)
    expression = expression.xreplace({a: jet.symbol for a, jet in found.items()})
    jets = list(found.values())
    derivatives = sorted(expression.atoms(sympy.Derivative), key=lambda a: -len(a.variables))
    for one in (*derivatives, *sorted(expression.atoms(sympy.core.function.AppliedUndef), key=str)):
        jet = _jet_at(one, {}, functions, variables)
        expression = expression.xreplace({one: jet.symbol})
        jets.append(jet)
    return expression, [jet for jet in dict.fromkeys(jets) if jet.symbol in expression.free_symbols]


def _jet_at(atom: Any, point: Mapping[Any, Any], functions: Sequence[Any], variables: Sequence[Any]) -> Jet:
    import sympy

    inner, orders = atom, [0] * len(variables)
    if isinstance(atom, sympy.Derivative):
        inner = atom.expr
        for variable in atom.variables:
            variable = next((v for v, a in zip(variables, inner.args, strict=False) if a == variable), variable)
            if variable not in variables:
                raise ValueError(f"{atom} is a derivative by {variable}, which is no variable of {functions[0]}")
            orders[variables.index(variable)] += 1
    number = next((i for i, f in enumerate(functions) if getattr(inner, "func", None) == f.func), None)
    if number is None or len(inner.args) != len(variables):
        known = ", ".join(map(str, functions))
        raise ValueError(f"{atom} is no unknown function or derivative of one; the unknown functions are {known}")
    place = [_no_floats(argument.subs(point))[0] for argument in inner.args]
    fixed: tuple[Any, ...] = tuple(None if p == v else p for p, v in zip(place, variables, strict=True))
    for p in fixed:
        if p is not None and p.free_symbols & set(variables):
            raise ValueError(f"{atom} stands at {p}; only the variables themselves and fixed points are solved for")
    return Jet(number, tuple(orders), None if all(p is None for p in fixed) else fixed)


def _check_algebra(residuals: Sequence[Any], jets: Sequence[Jet], functions: Sequence[Any], symbols: Any) -> None:
    if any(jet.place is not None for jet in jets):
        raise ValueError("an equation holds the unknown function at a fixed point; that is a condition: give it in ics")
    for number, function in enumerate(functions):
        if not any(jet.function == number and sum(jet.orders) for jet in jets):
            raise ValueError(f"no derivative of {function} stands in the equation, so there is nothing to solve")
    unknown = set().union(*(r.free_symbols for r in residuals)) - {jet.symbol for jet in jets} - set(symbols.values())
    if unknown:
        name = min(map(str, unknown))
        raise ValueError(
            f"{name} in the equation is no variable and has no value; substitute a number, or keep it: parameters=[{name}]"
        )


def _parameters(parameters: Any) -> tuple[list[Any], tuple[tuple[float, float], ...]]:
    """Free parameters and between which values each is looked at."""
    given = dict(parameters) if isinstance(parameters, Mapping) else dict.fromkeys(_listed(parameters or []))
    for symbol in given:
        if not getattr(symbol, "is_Symbol", False):
            raise ValueError(
                f"parameters={short(parameters)} must be symbols, or symbols with ranges as in {{k: (1, 3)}}"
            )
    ranges = [NUMERICAL.parameter_range if r is None else _range(r, f"parameters[{s}]") for s, r in given.items()]
    return list(given), tuple(ranges)


def _range(given: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(side) for side in given)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={short(given)} must be two numbers, low and high") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"{name}=({low:g}, {high:g}) must be two finite numbers, the smaller first")
    return low, high


# --- conditions -----------------------------------------------------------------------------------------------------


def _condition_list(
    ics: Any, variables: Sequence[Any], functions: Sequence[Any]
) -> tuple[list[tuple[Any, Any]], list[Condition]]:
    """Conditions as pairs of sides; those whose value is a function of arrays are made at once."""
    import sympy

    pairs: list[tuple[Any, Any]] = []
    measures: list[Condition] = []
    given: Iterable[Any] = ics.items() if isinstance(ics, Mapping) else _listed(ics if ics is not None else [])
    for one in given:
        if isinstance(one, sympy.Eq):
            one = (one.lhs, one.rhs)
        if not isinstance(one, tuple) or len(one) != 2 or not hasattr(one[0], "free_symbols"):
            raise ValueError(f"ics={short(one)} is no condition; write {{y(0): 1}}, or sympy.Eq(y(0), 1)")
        left, right = one
        if _is_callable(right):
            measures.append(_measured(left, right, functions, variables))
            continue
        try:
            pairs.append((left, sympy.sympify(right, strict=True)))
        except sympy.SympifyError:
            raise ValueError(f"ics[{left}]={short(right)} is no number, expression or function") from None
    return pairs, measures


def _measured(left: Any, values: Callable[..., Any], functions: Sequence[Any], variables: Sequence[Any]) -> Condition:
    residual, jets = _to_jets(left, functions, variables)
    if len(jets) != 1 or residual != jets[0].symbol or jets[0].place is None:
        raise ValueError(
            f"ics[{left}] has a function as its value, so it must be one function on one face, as in u(0, y)"
        )
    return Condition(
        residual, (jets[0],), jets[0].place, f"{left} = {getattr(values, '__name__', 'values')}(...)", values
    )


def _condition(
    pair: tuple[Any, Any], functions: Sequence[Any], variables: Sequence[Any], symbols: Mapping[Any, Any]
) -> Condition:
    left, right = pair
    value, rounded = _no_floats(right)
    residual, jets = _to_jets(_no_floats(left)[0] - value, functions, variables)
    if not jets:
        raise ValueError(f"ics: {left} = {right} says nothing about {', '.join(map(str, functions))}")
    if any(jet.place is None for jet in jets):
        raise ValueError(f"ics: {left} = {right} must hold at a point or on a face; write the point, as in y(0)")
    faces = {tuple(p is None for p in jet.place or ()) for jet in jets}
    if len(faces) > 1:
        raise ValueError(f"ics: {left} = {right} mixes places of different kinds")
    unknown = residual.free_symbols - {jet.symbol for jet in jets} - set(symbols)
    if unknown:
        raise ValueError(f"ics: {min(map(str, unknown))} in {left} = {right} is no variable and no parameter")
    face = jets[0].place or ()
    fixed = {v for v, p in zip(variables, face, strict=True) if p is not None}
    if residual.free_symbols & fixed:
        raise ValueError(f"ics: {left} = {right} holds {min(map(str, fixed))}, which is fixed there")
    return Condition(residual.xreplace(symbols), tuple(jets), face, f"{left} = {right}", rounded=rounded)


def _check_conditions(conditions: Sequence[Condition], variables: Sequence[Any], box: Any) -> None:
    """No two conditions on the same value, none outside the domain."""
    seen: dict[Any, Condition] = {}
    for condition in conditions:
        for jet in condition.jets:
            for place, (low, high), variable in zip(jet.place or (), box, variables, strict=True):
                if place is None or place.free_symbols:
                    continue
                where = float(evaluate(place, {}))
                if not low - 1e-12 * (high - low) <= where <= high + 1e-12 * (high - low):
                    raise ValueError(f"ics: {condition.given} lies outside domain {variable} in ({low:g}, {high:g})")
        if len(condition.jets) != 1 or condition.residual.diff(condition.jets[0].symbol) != 1:
            continue
        jet = condition.jets[0]
        if jet in seen and seen[jet].residual != condition.residual:
            raise ValueError(f"ics contradict each other: {seen[jet].given} and {condition.given}")
        seen[jet] = condition


def _box(
    domain: Any, variables: Sequence[Any], functions: Sequence[Any], conditions: Sequence[tuple[Any, Any]]
) -> tuple[tuple[float, float], ...]:
    """The range of each variable: as given, or the one that the places of the conditions span."""
    if isinstance(domain, Mapping):
        unknown = [v for v in domain if v not in variables]
        if unknown:
            raise ValueError(
                f"domain has {unknown[0]}, which is no variable; they are {', '.join(map(str, variables))}"
            )
        sides = [domain.get(v) for v in variables]
    elif domain is None:
        sides = [None] * len(variables)
    elif len(variables) == 1 and np.ndim(domain[0] if isinstance(domain, list | tuple) else domain) == 0:
        sides = [domain]
    else:
        sides = _listed(domain)
    if len(sides) != len(variables):
        raise ValueError(f"domain={short(domain)} must have a pair for each of {', '.join(map(str, variables))}")
    box = []
    for number, (variable, side) in enumerate(zip(variables, sides, strict=True)):
        if side is not None:
            box.append(_range(side, f"domain of {variable}"))
            continue
        places = [
            jet.place[number] for left, _ in conditions for jet in _to_jets(left, functions, variables)[1] if jet.place
        ]
        points = sorted({float(evaluate(p, {})) for p in places if p is not None and not p.free_symbols})
        if len(points) > 1:
            box.append((points[0], points[-1]))
        elif points:
            box.append((points[0], points[0] + NUMERICAL.default_length))
        elif len(variables) == 1:
            box.append(_NO_DOMAIN)
        else:
            raise ValueError(f"domain of {variable} is not known; give domain={{{variable}: (low, high)}}")
    return tuple(box)
