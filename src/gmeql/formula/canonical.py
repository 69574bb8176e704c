"""SymPy objects evaluated and compared in bounded time.

Nothing here can hang: equality is decided on a canonical form that is built in one bounded pass, not by open-ended
simplification, and numbers come from walking the object with NumPy, not from generated code.

>>> from gmeql.formula.parsing import parse_formula
>>> formula = parse_formula("sqrt(1.3 + 1.2*x2/x1)", ["x1", "x2"])
>>> float(evaluate(formula, {"x1": 2.0, "x2": 4.0}))
1.9235384061671346
>>> canonical(formula) == canonical(parse_formula("(1.3*x1 + 1.2*x2)**0.5 * x1**(-1/2)", ["x1", "x2"]))
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.formula.sums import (
    Monomial,
    Polynomial,
    Rounding,
    TooManyTerms,
    add,
    divide,
    join,
    monomial,
    multiply,
    scale,
)

if TYPE_CHECKING:
    import sympy

MAX_TERMS = 2_000
"""Terms a canonical form may grow to before the comparison is given up as undecided."""
SIGNIFICANT_DIGITS = 4
"""Constants that agree to this many digits are one constant (definition of "solved")."""
ROUNDING = Rounding(exponents=1e-9, terms=1e-6)
"""What cancels once constants have four digits is gone."""
MAX_PRODUCTS = 20 * MAX_TERMS
"""Products of terms in one multiplication before the comparison is given up."""
TIES = 3e-7
"""Share that moves constants before they are cut to digits: ties (1/64 = 0.015625) away from fitting errors of 1e-8."""
PARTS = 12
"""Exponents are exact as fractions of this denominator, and sums to whole powers up to it are multiplied out."""
SAME = 1e-6
"""Distance at which an exponent is such a fraction, and a phase that of a sine or cosine."""

Product = Monomial[Any]
Parts = Polynomial[Any]
Key = tuple[Any, ...]


class Undecided(Exception):
    """A canonical form would grow past its limit, or holds something the comparison does not know."""


# --- evaluation ---------------------------------------------------------------------------------------------------


def evaluate(expression: sympy.Expr, columns: Mapping[str, Any]) -> np.ndarray:
    """Numbers of a SymPy object, by walking it with NumPy (no generated code). `columns`: name -> array.

    Out of a function's domain the value is nan or inf, without a warning.
    """
    with np.errstate(all="ignore"):
        return np.asarray(_walk(expression, columns), dtype=np.float64)


def _walk(e: Any, columns: Mapping[str, Any]) -> Any:
    import sympy

    if e.is_Symbol:
        if e.name not in columns:
            raise ValueError(f"formula names {e.name!r}, which is no column; the columns are {', '.join(columns)}")
        return np.asarray(columns[e.name], dtype=np.float64)
    if not e.args:
        return _number(e)
    if e.is_Add:
        return sum((_walk(a, columns) for a in e.args[1:]), _walk(e.args[0], columns))
    if e.is_Mul:
        return math.prod((_walk(a, columns) for a in e.args[1:]), start=_walk(e.args[0], columns))
    if e.is_Pow:
        base = _walk(e.base, columns)
        return np.sqrt(base) if e.exp == sympy.S.Half else np.power(base, _walk(e.exp, columns))
    name = type(e).__name__
    if name == "harmonic":
        from scipy.special import digamma

        return digamma(_walk(e.args[0], columns) + 1) + np.euler_gamma
    if name in _NUMPY:
        return _NUMPY[name](*(_walk(a, columns) for a in e.args))
    if isinstance(e, sympy.Piecewise):
        values = [_walk(value, columns) for value, _ in e.args]
        return np.select([_condition(test, columns) for _, test in e.args], np.broadcast_arrays(*values), np.nan)
    raise ValueError(f"formula contains {name}, which has no NumPy form here")


def _number(e: Any) -> np.float64:
    if not e.is_real:  # zoo, nan, the imaginary unit
        return np.float64(np.nan)
    try:
        return np.float64(float(e))
    except OverflowError:
        return np.float64(np.inf)


_NUMPY = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sign")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "Abs": np.abs,
    "Max": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    "Min": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
}

_RELATIONS = {
    "StrictLessThan": np.less,
    "LessThan": np.less_equal,
    "StrictGreaterThan": np.greater,
    "GreaterThan": np.greater_equal,
    "Equality": np.equal,
    "Unequality": np.not_equal,
}


def _condition(test: Any, columns: Mapping[str, Any]) -> Any:
    import sympy

    if test in (sympy.true, sympy.false):
        return np.asarray(bool(test))
    if isinstance(test, sympy.And | sympy.Or):
        join = np.logical_and if isinstance(test, sympy.And) else np.logical_or
        return join.reduce(np.broadcast_arrays(*(_condition(a, columns) for a in test.args)))
    if isinstance(test, sympy.Not):
        return ~_condition(test.args[0], columns)
    if type(test).__name__ in _RELATIONS:
        return _RELATIONS[type(test).__name__](*(_walk(a, columns) for a in test.args))
    raise ValueError(f"formula contains the condition {type(test).__name__}, which has no NumPy form here")


def active_part(expression: sympy.Expr, columns: Mapping[str, Any]) -> sympy.Expr:
    """`expression` without the branches that no row of `columns` reaches: guards of protected operators, abs of what is
    positive. On those rows it computes the same.

    >>> import sympy
    >>> x = sympy.Symbol("x", real=True)
    >>> active_part(abs(x) + 1, {"x": np.array([1.0, 2.0])})
    x + 1
    """
    import sympy

    if not expression.args:
        return expression
    if isinstance(expression, sympy.Piecewise):
        with np.errstate(all="ignore"):
            for value, test in expression.args:
                reached = _condition(test, columns)
                if reached.all():
                    return active_part(value, columns)
                if reached.any():
                    return expression
        return expression
    parts = [active_part(a, columns) if isinstance(a, sympy.Expr) else a for a in expression.args]
    if isinstance(expression, sympy.Abs) and (evaluate(parts[0], columns) >= 0).all():
        return parts[0]
    if isinstance(expression, sympy.Max | sympy.Min):
        values = np.broadcast_arrays(*(evaluate(a, columns) for a in parts))
        extreme = np.max(values, axis=0) if isinstance(expression, sympy.Max) else np.min(values, axis=0)
        for part, value in zip(parts, values):
            if (value == extreme).all():
                return part
    return expression.func(*parts)


# --- canonical form -----------------------------------------------------------------------------------------------


def canonical(expression: sympy.Expr, *, skeleton: bool = False) -> Key:
    """A form that equal formulas share: a sum of products of atoms, with constants to four significant digits.

    Products are multiplied out; common factors leave roots and denominators; exp of a sum becomes a product, log of a
    product a sum; cosines become sines with a phase in [0, pi). Signs of even roots are taken as for positive numbers:
    two formulas are compared here only after their numbers agreed. With `skeleton`, constants are left out (fractions
    such as 2 or 1/2 in exponents stay): formulas with one skeleton are members of one family.

    Raises `Undecided` where the form would grow past `MAX_TERMS`.
    """
    try:
        return _key(_polynomial(expression, skeleton), skeleton)
    except (RecursionError, OverflowError, ZeroDivisionError, TooManyTerms) as error:
        raise Undecided(str(error)) from error


def compared_digits(value: float) -> float:
    """`value` to four significant digits."""
    return float(f"{value * (1 + TIES):.{SIGNIFICANT_DIGITS - 1}e}")


def _exponent(value: float, skeleton: bool) -> Any:
    if abs(value * PARTS - round(value * PARTS)) < SAME:
        return round(value * PARTS) / PARTS
    return "free" if skeleton else compared_digits(value)


def _key(p: Parts, skeleton: bool) -> Key:
    terms = []
    for factors, coefficient in p.items():
        product = tuple(sorted(((atom, _exponent(power, skeleton)) for atom, power in factors), key=repr))
        if skeleton:  # powers of exp(m) are the constants of an exponent: exp(-0.17*x) is a family
            product = tuple((a, "free" if a[0] == "exp" else power) for a, power in product)
            terms.append((product, 0.0))
        else:
            terms.append((product, compared_digits(coefficient)))
    return tuple(sorted(set(terms), key=repr))


def _add(parts: Iterable[Parts]) -> Parts:
    return add(parts, ROUNDING.terms, max_terms=MAX_TERMS)


def _multiply(p: Parts, q: Parts) -> Parts:
    if len(p) * len(q) > MAX_PRODUCTS:
        raise Undecided(f"more than {MAX_PRODUCTS} products")
    return multiply(p, q, ROUNDING, max_terms=MAX_TERMS)


def _factor(p: Parts) -> tuple[float, Product, Parts]:
    """`p = coefficient * monomial * rest`, where rest has no common factor, no denominator and a leading 1 or -1."""
    lowest: dict[Any, float] = {}
    for atom in {atom for product in p for atom, _ in product}:
        lowest[atom] = min(dict(product).get(atom, 0.0) for product in p)
    common = {atom: power for atom, power in lowest.items() if abs(power) > ROUNDING.exponents}
    rest = divide(p, common, ROUNDING)
    leading = abs(rest[min(rest, key=_order)])
    return leading, monomial(common), {key: coefficient / leading for key, coefficient in rest.items()}


def _order(product: Product) -> str:
    return repr([(atom, round(power, 6)) for atom, power in product])


def _raise(p: Parts, power: float, skeleton: bool) -> Parts:
    """`p ** power` for a number `power`."""
    if not p:
        if power > 0:
            return {}
        raise ZeroDivisionError("a power of zero")
    whole = abs(power - round(power)) < ROUNDING.exponents
    if whole and 0 <= power and (len(p) == 1 or power <= PARTS):
        power = round(power)
    if len(p) > 1 and isinstance(power, int):
        result: Parts = {(): 1.0}
        for _ in range(power):
            result = _multiply(result, p)
        return result
    coefficient, common, rest = _factor(p)
    outer = tuple((atom, exponent * power) for atom, exponent in common if abs(exponent * power) > ROUNDING.exponents)
    if len(rest) == 1:  # rest is 1 or -1; the root of a negative constant is that of its size, as a protected root's
        sign = next(iter(rest.values()))
        return {outer: coefficient**power * (sign ** round(power) if whole else 1.0)}
    flip = 1.0
    if whole and rest[min(rest, key=_order)] < 0:
        rest, flip = scale(rest, -1.0), (-1.0) ** round(power)
    return {join(outer, ((("sum", _key(rest, skeleton)), float(power)),), ROUNDING): flip * coefficient**power}


def _polynomial(e: Any, skeleton: bool) -> Parts:
    if e.is_Symbol:
        return {((("column", e.name), 1.0),): 1.0}
    if not e.free_symbols:
        value = float(evaluate(e, {}))
        if not math.isfinite(value):
            raise Undecided("a constant is not a finite real number")
        return {(): value} if value else {}
    if e.is_Add:
        return _add(_polynomial(a, skeleton) for a in e.args)
    if e.is_Mul:
        product: Parts = {(): 1.0}
        for a in e.args:
            product = _multiply(product, _polynomial(a, skeleton))
        return product
    if e.is_Pow and not e.exp.free_symbols:
        return _raise(_polynomial(e.base, skeleton), float(evaluate(e.exp, {})), skeleton)
    if e.is_Pow and not e.base.free_symbols and (base := float(evaluate(e.base, {}))) > 0:
        return _exponential(_multiply({(): math.log(base)}, _polynomial(e.exp, skeleton)))
    if e.is_Pow:
        pair = (_key(_polynomial(e.base, skeleton), skeleton), _key(_polynomial(e.exp, skeleton), skeleton))
        return {((("power", pair), 1.0),): 1.0}
    name = type(e).__name__
    if not e.is_Function or not all(getattr(a, "is_Function", None) is not None for a in e.args):
        raise Undecided(f"{name} has no canonical form")
    return _function(name, [_polynomial(a, skeleton) for a in e.args], skeleton)


def _exponential(p: Parts) -> Parts:
    factor = math.exp(p.get((), 0.0))
    atoms = tuple(((("exp", product)), coefficient) for product, coefficient in p.items() if product)
    return {tuple(sorted(atoms, key=repr)): factor}


def _function(name: str, arguments: list[Parts], skeleton: bool) -> Parts:
    p = arguments[0]
    if name == "exp":
        return _exponential(p)
    if name == "log" and p:
        coefficient, common, rest = _factor(p)
        parts: list[Parts] = [{(): math.log(coefficient)} if coefficient != 1 else {}]
        parts += [{((("log", atom), 1.0),): power} for atom, power in common]
        parts += [{((("log", ("sum", _key(rest, skeleton))), 1.0),): 1.0}] if len(rest) > 1 else []
        return _add(parts)
    if name in ("sin", "cos"):
        return _sine(p, math.pi / 2 if name == "cos" else 0.0, skeleton)
    if name == "acos":
        return _add([{(): math.pi / 2}, _multiply({(): -1.0}, _function("asin", arguments, skeleton))])
    if name == "Abs" and p:
        coefficient, common, rest = _factor(p)
        inner = join(common, ((("sum", _key(rest, skeleton)), 1.0),), ROUNDING) if len(rest) > 1 else common
        return {tuple(sorted((((("abs", atom)), power) for atom, power in inner), key=repr)): coefficient}
    odd = name in ("asin", "atan", "tan", "tanh", "sinh")
    sign = 1.0
    if (odd or name == "cosh") and p and p[min(p, key=_order)] < 0:
        arguments, sign = [scale(p, -1.0)], -1.0 if odd else 1.0
    return {((("call", name, tuple(_key(a, skeleton) for a in arguments)), 1.0),): sign}


def _sine(p: Parts, phase: float, skeleton: bool) -> Parts:
    """sin(p + phase) with a positive leading coefficient and a phase in [0, pi)."""
    phase += p.get((), 0.0)
    moving = {product: coefficient for product, coefficient in p.items() if product}
    if not moving:
        return {(): math.sin(phase)}
    if moving[min(moving, key=_order)] < 0:  # sin(-q + phase) = sin(q + pi - phase)
        moving, phase = scale(moving, -1.0), math.pi - phase
    turns = math.floor((phase + SAME) / math.pi)
    phase -= turns * math.pi
    kind: Any = next((k for k, fixed in (("sin", 0.0), ("cos", math.pi / 2)) if abs(phase - fixed) < SAME), None)
    if kind is None:
        kind = "sin with a phase" if skeleton else ("sin with a phase", compared_digits(phase))
    return {((("sine", kind, _key(moving, skeleton)), 1.0),): -1.0 if turns % 2 else 1.0}
