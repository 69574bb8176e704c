"""Formula text and SymPy objects, handled safely: parse, evaluate, compare.

Text from a file never reaches SymPy's own parsers, which run code. `parse_formula` walks Python's syntax tree and knows
numbers, names, arithmetic and a short list of functions. Nothing here can hang: sizes are limited before work starts,
and equality is decided on a canonical form that is built in one bounded pass, not by open-ended simplification.

>>> formula = parse_formula("sqrt(1.3 + 1.2*x2/x1)", ["x1", "x2"])
>>> float(evaluate(formula, {"x1": 2.0, "x2": 4.0}))
1.9235384061671346
>>> canonical(formula) == canonical(parse_formula("(1.3*x1 + 1.2*x2)**0.5 * x1**(-1/2)", ["x1", "x2"]))
True
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import sympy

MAX_TEXT = 10_000
MAX_NODES = 5_000
MAX_NUMBER = 1e300
MAX_NUMERIC_EXPONENT = 1_000
MAX_TERMS = 2_000
"""Terms a canonical form may grow to before the comparison is given up as undecided."""
SIGNIFICANT_DIGITS = 4
"""Constants that agree to this many digits are one constant (definition of "solved")."""

FUNCTIONS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "arcsin": "asin",
    "acos": "acos",
    "arccos": "acos",
    "atan": "atan",
    "arctan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "ln": "log",
    "sqrt": "sqrt",
    "abs": "Abs",
    "Abs": "Abs",
    "harmonic": "harmonic",
}
"""Functions of formula text, and the SymPy class of each."""

Monomial = tuple[tuple[Any, Any], ...]
Polynomial = dict[Monomial, float]


class Undecided(Exception):
    """A canonical form would grow past its limit, or holds something the comparison does not know."""


# ---------------------------------------------------------------------------------------------------------------- text


def parse_formula(text: str, names: Iterable[str]) -> sympy.Expr:
    """A SymPy object for formula text over the columns `names`; nothing in the text is ever run.

    Column names come first, so columns called `I`, `gamma` or `E` are columns. Otherwise `pi` and `E` are constants.
    """
    import sympy

    symbols = {name: sympy.Symbol(name, real=True) for name in names}
    if len(text) > MAX_TEXT:
        raise ValueError(f"formula has {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
            raise ValueError(f"formula {_short(text)} has more than {MAX_NODES} parts")
        result = _build(tree.body, symbols)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"formula {_short(text)} cannot be read ({error}); write it like 0.5*x1**2 + sin(x2)"
        ) from error
    return result


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _build(node: ast.expr, symbols: Mapping[str, Any]) -> Any:
    """The SymPy object of one syntax node; constant parts must be finite real numbers before anything uses them."""
    result = _build_any(node, symbols)
    if not result.free_symbols and not np.isfinite(evaluate(result, {})):
        raise ValueError(f"formula contains {_short(ast.unparse(node))}, which is no finite real number")
    return result


def _build_any(node: ast.expr, symbols: Mapping[str, Any]) -> Any:
    import sympy

    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
            raise ValueError(f"formula contains {_short(str(value))}; numbers up to {MAX_NUMBER:g} are allowed")
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)
    if isinstance(node, ast.Name):
        if node.id in symbols:
            return symbols[node.id]
        if node.id in ("pi", "E"):
            return sympy.pi if node.id == "pi" else sympy.E
        raise ValueError(f"formula names {node.id!r}; the columns are {', '.join(symbols)}, the constants pi and E")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        operand = _build(node.operand, symbols)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp):
        left, right = _build(node.left, symbols), _build(node.right, symbols)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
            case ast.Pow():
                return _power(left, right)
        raise ValueError(f"formula uses {type(node.op).__name__}; allowed are + - * / and ** for powers")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ValueError(f"formula calls {node.func.id!r}; allowed are {', '.join(sorted(FUNCTIONS))}")
        argument = _build(node.args[0], symbols)
        if node.func.id == "harmonic" and not argument.free_symbols:
            raise ValueError("harmonic() takes a column, not a number")
        return getattr(sympy, FUNCTIONS[node.func.id])(argument)
    raise ValueError(f"formula contains {_short(ast.unparse(node))}, which is not arithmetic on columns and numbers")


def _power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`, refused where two numbers would make one too large to hold (9**9**9**9)."""
    if not base.free_symbols and not exponent.free_symbols:
        b, x = float(evaluate(base, {})), float(evaluate(exponent, {}))
        if abs(x) > MAX_NUMERIC_EXPONENT or (b and abs(x * math.log10(abs(b))) > math.log10(MAX_NUMBER)):
            raise ValueError(f"formula raises a number to the power {exponent}, which is too large")
    return base**exponent


# ---------------------------------------------------------------------------------------------------------- evaluation


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

    >>> x = parse_formula("x", ["x"])
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


# ------------------------------------------------------------------------------------------------------ canonical form


def canonical(expression: sympy.Expr, *, skeleton: bool = False) -> tuple:
    """A form that equal formulas share: a sum of products of atoms, with constants to four significant digits.

    Products are multiplied out; common factors leave roots and denominators; exp of a sum becomes a product, log of a
    product a sum; cosines become sines with a phase in [0, pi). Signs of even roots are taken as for positive numbers:
    two formulas are compared here only after their numbers agreed. With `skeleton`, constants are left out (fractions
    such as 2 or 1/2 in exponents stay): formulas with one skeleton are members of one family.

    Raises `Undecided` where the form would grow past `MAX_TERMS`.
    """
    try:
        return _key(_polynomial(expression, skeleton), skeleton)
    except (RecursionError, OverflowError, ZeroDivisionError) as error:
        raise Undecided(str(error)) from error


def round_constant(value: float) -> float:
    """`value` to four significant digits. The bias moves ties (1/64 = 0.015625) away from fitting errors of 1e-8."""
    return float(f"{value * (1 + 3e-7):.{SIGNIFICANT_DIGITS - 1}e}")


def _exponent(value: float, skeleton: bool) -> Any:
    if abs(value * 12 - round(value * 12)) < 1e-6:
        return round(value * 12) / 12
    return "free" if skeleton else round_constant(value)


def _key(p: Polynomial, skeleton: bool) -> tuple:
    terms = []
    for monomial, coefficient in p.items():
        product = tuple(sorted(((atom, _exponent(power, skeleton)) for atom, power in monomial), key=repr))
        if skeleton:  # powers of exp(m) are the constants of an exponent: exp(-0.17*x) is a family
            product = tuple((a, "free" if a[0] == "exp" else power) for a, power in product)
            terms.append((product, 0.0))
        else:
            terms.append((product, round_constant(coefficient)))
    return tuple(sorted(set(terms), key=repr))


def _add(parts: Iterable[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    size: Polynomial = {}
    for part in parts:
        for monomial, coefficient in part.items():
            total[monomial] = total.get(monomial, 0.0) + coefficient
            size[monomial] = size.get(monomial, 0.0) + abs(coefficient)
    if len(total) > MAX_TERMS:
        raise Undecided(f"more than {MAX_TERMS} terms")
    # What cancels once constants have four digits is gone.
    return {m: c for m, c in total.items() if abs(c) > 1e-6 * size[m]}


def _multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    if len(p) * len(q) > 20 * MAX_TERMS:
        raise Undecided(f"more than {20 * MAX_TERMS} products")
    return _add({_join(a, b): x * y} for a, x in p.items() for b, y in q.items())


def _join(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0.0) + power
    return tuple(sorted(((atom, power) for atom, power in powers.items() if abs(power) > 1e-9), key=repr))


def _factor(p: Polynomial) -> tuple[float, Monomial, Polynomial]:
    """`p = coefficient * monomial * rest`, where rest has no common factor, no denominator and a leading 1 or -1."""
    lowest: dict[Any, float] = {}
    for atom in {atom for monomial in p for atom, _ in monomial}:
        lowest[atom] = min(dict(monomial).get(atom, 0.0) for monomial in p)
    common = tuple(sorted(((atom, power) for atom, power in lowest.items() if abs(power) > 1e-9), key=repr))
    inverse = tuple((atom, -power) for atom, power in common)
    rest = {_join(monomial, inverse): coefficient for monomial, coefficient in p.items()}
    leading = abs(rest[min(rest, key=_order)])
    return leading, common, {monomial: coefficient / leading for monomial, coefficient in rest.items()}


def _order(monomial: Monomial) -> str:
    return repr([(atom, round(power, 6)) for atom, power in monomial])


def _raise(p: Polynomial, power: float, skeleton: bool) -> Polynomial:
    """`p ** power` for a number `power`."""
    if not p:
        if power > 0:
            return {}
        raise ZeroDivisionError("a power of zero")
    whole = abs(power - round(power)) < 1e-9
    if whole and 0 <= power and (len(p) == 1 or power <= 12):
        power = round(power)
    if len(p) > 1 and isinstance(power, int):
        result: Polynomial = {(): 1.0}
        for _ in range(power):
            result = _multiply(result, p)
        return result
    coefficient, common, rest = _factor(p)
    outer = tuple((atom, exponent * power) for atom, exponent in common if abs(exponent * power) > 1e-9)
    if len(rest) == 1:  # rest is 1 or -1; the root of a negative constant is that of its size, as a protected root's
        sign = next(iter(rest.values()))
        return {outer: coefficient**power * (sign ** round(power) if whole else 1.0)}
    flip = 1.0
    if whole and rest[min(rest, key=_order)] < 0:
        rest, flip = {m: -c for m, c in rest.items()}, (-1.0) ** round(power)
    return {_join(outer, ((("sum", _key(rest, skeleton)), float(power)),)): flip * coefficient**power}


def _polynomial(e: Any, skeleton: bool) -> Polynomial:
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
        product: Polynomial = {(): 1.0}
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


def _exponential(p: Polynomial) -> Polynomial:
    factor = math.exp(p.get((), 0.0))
    atoms = tuple(((("exp", monomial)), coefficient) for monomial, coefficient in p.items() if monomial)
    return {tuple(sorted(atoms, key=repr)): factor}


def _function(name: str, arguments: list[Polynomial], skeleton: bool) -> Polynomial:
    p = arguments[0]
    if name == "exp":
        return _exponential(p)
    if name == "log" and p:
        coefficient, common, rest = _factor(p)
        parts: list[Polynomial] = [{(): math.log(coefficient)} if coefficient != 1 else {}]
        parts += [{((("log", atom), 1.0),): power} for atom, power in common]
        parts += [{((("log", ("sum", _key(rest, skeleton))), 1.0),): 1.0}] if len(rest) > 1 else []
        return _add(parts)
    if name in ("sin", "cos"):
        return _sine(p, math.pi / 2 if name == "cos" else 0.0, skeleton)
    if name == "acos":
        return _add([{(): math.pi / 2}, _multiply({(): -1.0}, _function("asin", arguments, skeleton))])
    if name == "Abs" and p:
        coefficient, common, rest = _factor(p)
        inner = _join(common, ((("sum", _key(rest, skeleton)), 1.0),)) if len(rest) > 1 else common
        return {tuple(sorted((((("abs", atom)), power) for atom, power in inner), key=repr)): coefficient}
    odd = name in ("asin", "atan", "tan", "tanh", "sinh")
    sign = 1.0
    if (odd or name == "cosh") and p and p[min(p, key=_order)] < 0:
        arguments, sign = [{m: -c for m, c in p.items()}], -1.0 if odd else 1.0
    return {((("call", name, tuple(_key(a, skeleton) for a in arguments)), 1.0),): sign}


def _sine(p: Polynomial, phase: float, skeleton: bool) -> Polynomial:
    """sin(p + phase) with a positive leading coefficient and a phase in [0, pi)."""
    phase += p.get((), 0.0)
    moving = {monomial: coefficient for monomial, coefficient in p.items() if monomial}
    if not moving:
        return {(): math.sin(phase)}
    if moving[min(moving, key=_order)] < 0:  # sin(-q + phase) = sin(q + pi - phase)
        moving, phase = {m: -c for m, c in moving.items()}, math.pi - phase
    turns = math.floor((phase + 1e-6) / math.pi)
    phase -= turns * math.pi
    kind: Any = next((k for k, fixed in (("sin", 0.0), ("cos", math.pi / 2)) if abs(phase - fixed) < 1e-6), None)
    if kind is None:
        kind = "sin with a phase" if skeleton else ("sin with a phase", round_constant(phase))
    return {((("sine", kind, _key(moving, skeleton)), 1.0),): -1.0 if turns % 2 else 1.0}
