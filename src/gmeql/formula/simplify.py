"""Algebra that keeps the value: one normal form for sums, products, powers and the odd and even functions.

A sum is a constant and terms with coefficients; a product is a coefficient and bases with exponents. Writing every
formula in that form folds constants, merges equal terms, cancels factors, drops zeros and removes redundant constants
(a factor inside a power and one outside are one constant). Values are kept on the formula's domain, up to rounding.

>>> from gmeql.formula.expression import Expression
>>> from gmeql.formula.nodes import Variable
>>> x, y = Variable(0), Variable(1)
>>> twice = Call("add", (Call("mul", (Constant(2.0), x)), Call("mul", (x, Constant(3.0))), Constant(0.0)))
>>> print(Expression(simplify(twice), ("x", "y")))
5*x
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from gmeql.formula.limits import SIMPLIFIED_EXPONENT_LIMIT, SIMPLIFIED_EXPONENTIAL_LIMIT
from gmeql.formula.nodes import Call, Constant, Node, build, exponent_of, fold, tree_complexity
from gmeql.formula.products import (
    ROUNDING,
    Factors,
    as_product,
    is_sum,
    nicest_factor,
    power_of,
    write_product,
    writing_order,
)
from gmeql.formula.sums import add, merge_powers, scale, shared_powers

Terms = dict[Node, float]
Positive = Callable[[Node], bool]

_ODD = frozenset({"sin", "tanh", "asin", "atan"})
_EVEN = frozenset({"cos", "abs"})
_LARGEST_REARRANGED = 40
"""Products of more nodes are written as they come: nobody reads them, and trying every form takes long."""


def _never(node: Node) -> bool:
    return False


def simplify(root: Node, positive: Positive = _never) -> Node:
    """The normal form of a formula. `positive(node)` may vouch that a part is positive wherever it is used, which
    lets roots and fractional powers of products come apart. Raises ArithmeticError where a constant overflows."""
    return fold(root, lambda leaf: leaf, lambda call, args: _simplified(call, args, positive))


def _simplified(node: Call, args: list[Node], positive: Positive) -> Node:
    """A call of arguments in normal form, in normal form."""
    if node.protected:
        return Call(node.operator, tuple(args), protected=True)
    name = node.operator
    if name in ("add", "sub", "neg"):
        if name == "sub":
            args[1] = _negated(args[1], positive)
        elif name == "neg":
            args[0] = _negated(args[0], positive)
        return _make_sum(*_merge_sums(args, positive), positive)
    if name in ("mul", "div"):
        signs = (1.0, -1.0) if name == "div" else (1.0,) * len(args)
        coefficient = 1.0
        powers: Factors = {}
        for arg, exponent in zip(args, signs, strict=True):
            factor, more = _raised(arg, exponent, positive)
            coefficient *= factor
            merge_powers(powers, more, ROUNDING)
        return _make_product(coefficient, powers, positive)
    if (power := exponent_of(name, args)) is not None:
        return _make_product(*_raised(args[0], power, positive), positive)
    if name in _ODD or name in _EVEN:
        constant, terms = _as_sum(args[0], positive)
        leading = next(iter(terms.values()), constant)
        if leading < 0:
            flipped = build(name, _scaled_sum(-1.0, constant, terms, positive))
            return _negated(flipped, positive) if name in _ODD else flipped
        return build(name, args[0])
    if name == "exp":
        return _make_exponential(*_as_sum(args[0], positive), positive)
    if name == "log":
        return _make_logarithm(args[0], positive)
    return build(name, *args)


# --- products -----------------------------------------------------------------------------------------------------


def _raised(node: Node, exponent: float, positive: Positive) -> tuple[float, Factors]:
    """Coefficient and powers of node ** exponent."""
    coefficient, powers = as_product(node)
    if exponent == 1.0:
        return coefficient, powers
    whole = exponent.is_integer()
    if whole or (coefficient > 0 and all(_is_positive(base, power, positive) for base, power in powers.items())):
        if coefficient == 0.0:
            return (0.0 if exponent > 0 else math.nan), {}
        return power_of(coefficient, exponent), {base: power * exponent for base, power in powers.items()}
    if coefficient > 0 and coefficient != 1.0 and powers:
        return power_of(coefficient, exponent), {_write_product(1.0, powers, positive): exponent}
    if not powers:
        return power_of(coefficient, exponent), {}
    return 1.0, {_write_product(coefficient, powers, positive): exponent}


def _is_positive(base: Node, exponent: float, positive: Positive) -> bool:
    """Whether base ** exponent is surely positive: a base under a fractional power must be."""
    if not exponent.is_integer() or (isinstance(base, Call) and base.operator in ("exp", "sqrt")):
        return True
    return positive(base)


def _make_product(coefficient: float, powers: Factors, positive: Positive) -> Node:
    plain = _write_product(coefficient, powers, positive)
    if sum(map(is_sum, powers)) == 0 or len(powers) < 2 or plain.size > _LARGEST_REARRANGED:
        return plain
    ways = [_cleared(base, powers, positive) for base in _denominators(powers)]
    ways += [_absorbed(base, total, powers, positive) for total in powers if is_sum(total) for base in powers]
    written = [_write_product(coefficient, way, positive) for way in ways if way is not None]
    shortest = min([plain, *written], key=tree_complexity)
    expanded = _expanded(coefficient, powers, positive)
    if expanded is not None and tree_complexity(expanded) <= tree_complexity(shortest):
        return expanded  # of two forms of one length, people write the sum
    return shortest


def _expanded(coefficient: float, powers: Factors, positive: Positive) -> Node | None:
    """The product multiplied out where one of its factors is a plain sum: (u + v) w is u w + v w."""
    sums = [base for base, exponent in powers.items() if is_sum(base)]
    if len(sums) != 1 or powers[sums[0]] != 1.0:
        return None
    total: Node = sums[0]
    for base, exponent in powers.items():
        if base is not sums[0]:
            total = _multiplied_sum(total, base, exponent, positive)
    return _scaled_sum(coefficient, *_as_sum(total, positive), positive)


def _absorbed(base: Node, total: Node, powers: Factors, positive: Positive) -> Factors | None:
    """The product with `base` taken under the power of a sum: sqrt(u + v)/sqrt(u) is sqrt(1 + v/u)."""
    times = powers[base] / powers[total]
    if is_sum(base) or not times.is_integer() or not (powers[total].is_integer() or positive(base)):
        return None
    inner = _multiplied_sum(total, base, times, positive)
    if not is_sum(inner):
        return None
    result = {part: exponent for part, exponent in powers.items() if part not in (base, total)}
    merge_powers(result, {inner: powers[total]}, ROUNDING)
    return result


def _multiplied_sum(total: Node, base: Node, exponent: float, positive: Positive) -> Node:
    """Every term of a sum times `base ** exponent`."""
    constant, terms = _as_sum(total, positive)
    multiplied: list[Terms] = []
    offset = 0.0
    for core, c in [*terms.items(), *([(Constant(1.0), constant)] if constant else [])]:
        factor, core_powers = as_product(core)
        merge_powers(core_powers, {base: exponent}, ROUNDING)
        more_constant, more_terms = _as_sum(_write_product(1.0, core_powers, positive), positive)
        offset += c * factor * more_constant
        multiplied.append(scale(more_terms, c * factor))
    return _make_sum(offset, add(multiplied), positive)


def _denominators(powers: Factors) -> list[Node]:
    """Bases that divide a term of a sum among the bases, or stand beside such a sum."""
    found: dict[Node, None] = {}
    for base in powers:
        if not is_sum(base):
            continue
        for core in _as_sum(base, _never)[1]:
            found.update({b: None for b, exponent in as_product(core)[1].items() if exponent < 0})
    return list(found)


def _cleared(base: Node, powers: Factors, positive: Positive) -> Factors | None:
    """The product with `base` multiplied into every sum that is divided by it: (u/b + v) b is u + v b."""
    result: Factors = {}
    for part, exponent in powers.items():
        terms = _as_sum(part, positive)[1] if is_sum(part) else {}
        lowest = min((as_product(core)[1].get(base, 0.0) for core in terms), default=0.0)
        if lowest >= 0.0:
            merge_powers(result, {part: exponent}, ROUNDING)
            continue
        if not (lowest * exponent).is_integer() and not positive(base):
            return None
        total = _multiplied_sum(part, base, -lowest, positive)
        if not is_sum(total):
            return None
        merge_powers(result, {total: exponent}, ROUNDING)
        merge_powers(result, {base: lowest * exponent}, ROUNDING)
    return result


def _write_product(coefficient: float, powers: Factors, positive: Positive) -> Node:
    if coefficient == 0.0:
        return Constant(0.0)
    powers = {base: exponent for base, exponent in powers.items() if exponent != 0.0}
    coefficient, powers = _join_exponentials(coefficient, powers, positive)
    coefficient, powers = _normalised_sums(coefficient, powers, positive)
    if not math.isfinite(coefficient) or any(abs(e) > SIMPLIFIED_EXPONENT_LIMIT for e in powers.values()):
        raise ArithmeticError("a constant of the formula overflowed")
    if not powers:
        return Constant(coefficient)
    if len(powers) == 1:
        ((base, exponent),) = powers.items()
        if is_sum(base) and exponent == 1.0:
            return _scaled_sum(coefficient, *_as_sum(base, positive), positive)
        if is_sum(base) and exponent == 0.5 and coefficient > 0 and coefficient != 1.0:
            return build("sqrt", _scaled_sum(coefficient**2, *_as_sum(base, positive), positive))
    return write_product(coefficient, powers)


def _join_exponentials(coefficient: float, powers: Factors, positive: Positive) -> tuple[float, Factors]:
    """exp(u)**a * exp(v)**b is exp(a u + b v)."""
    found = [(base, e) for base, e in powers.items() if isinstance(base, Call) and base.operator == "exp"]
    if not found or (len(found) == 1 and found[0][1] == 1.0):
        return coefficient, powers
    rest = {base: e for base, e in powers.items() if not (isinstance(base, Call) and base.operator == "exp")}
    constant = 0.0
    parts: list[Terms] = []
    for base, e in found:
        more_constant, more = _as_sum(base.args[0], positive)
        constant += e * more_constant
        parts.append(scale(more, e))
    factor, more_powers = as_product(_make_exponential(constant, add(parts), positive))
    merge_powers(rest, more_powers, ROUNDING)
    return coefficient * factor, rest


def _normalised_sums(coefficient: float, powers: Factors, positive: Positive) -> tuple[float, Factors]:
    """Take a common factor out of every sum among the bases, so that its constants are not redundant."""
    result: Factors = {}
    for base, exponent in powers.items():
        if is_sum(base) and not (len(powers) == 1 and exponent == 1.0):
            constant, terms = _as_sum(base, positive)
            factor = nicest_factor(constant, list(terms.values()))
            if not exponent.is_integer():
                factor = abs(factor)
            scaled = power_of(factor, exponent)
            if math.isfinite(scaled) and scaled != 0.0:
                coefficient *= scaled
                base = _scaled_sum(1.0 / factor, constant, terms, positive)
        merge_powers(result, {base: exponent}, ROUNDING)
    if coefficient < 0:  # -u/(1 - v) is u/(v - 1)
        for base, exponent in result.items():
            if is_sum(base) and exponent % 2 == 1.0 and len(result) > 1:
                flipped = _scaled_sum(-1.0, *_as_sum(base, positive), positive)
                del result[base]
                merge_powers(result, {flipped: exponent}, ROUNDING)
                return -coefficient, result
    return coefficient, result


# --- sums ---------------------------------------------------------------------------------------------------------


def _as_sum(node: Node, positive: Positive) -> tuple[float, Terms]:
    """Constant and terms with coefficients of a node in normal form."""
    constant, items = _sum_items(node, positive)
    return constant, dict(items)


@lru_cache(maxsize=50_000)
def _sum_items(node: Node, positive: Positive) -> tuple[float, tuple[tuple[Node, float], ...]]:
    constant, terms = _split_sum(node, positive)
    return constant, tuple(terms.items())


def _split_sum(node: Node, positive: Positive) -> tuple[float, Terms]:
    if isinstance(node, Constant):
        return node.value, {}
    if isinstance(node, Call) and is_sum(node):
        return _merge_sums(node.args, positive)
    coefficient, powers = as_product(node)
    return 0.0, {_write_product(1.0, powers, positive): coefficient}


def _merge_sums(args: Sequence[Node], positive: Positive) -> tuple[float, Terms]:
    constant = 0.0
    parts: list[Terms] = []
    for arg in args:
        more_constant, more = _as_sum(arg, positive)
        constant += more_constant
        parts.append(more)
    return constant, add(parts, ROUNDING.terms)


def _scaled_sum(factor: float, constant: float, terms: Terms, positive: Positive) -> Node:
    return _make_sum(factor * constant, scale(terms, factor), positive)


def _make_sum(constant: float, terms: Terms, positive: Positive) -> Node:
    terms = {core: c for core, c in terms.items() if c != 0.0}
    if not math.isfinite(constant) or not all(math.isfinite(c) for c in terms.values()):
        raise ArithmeticError("a constant of the formula overflowed")
    ordered = sorted(terms.items(), key=lambda item: writing_order(item[0]))
    written = [_times(coefficient, core, positive) for core, coefficient in ordered]
    if not written:
        return Constant(constant)
    if constant == 0.0:
        plain = build("add", *written)
        factored = _factored(terms, positive) if len(terms) > 1 else None
        return factored if factored is not None and tree_complexity(factored) < tree_complexity(plain) else plain
    first = ordered[0][1] < 0 and constant > 0
    return build("add", Constant(constant), *written) if first else build("add", *written, Constant(constant))


def _times(coefficient: float, core: Node, positive: Positive) -> Node:
    _, powers = as_product(core)
    if len(powers) == 1 and next(iter(powers.values())) in (0.5, 1.0) and is_sum(next(iter(powers))):
        return build("neg", core) if coefficient == -1.0 else build("mul", Constant(coefficient), core)
    return _write_product(coefficient, powers, positive)


def _factored(terms: Terms, positive: Positive) -> Node | None:
    """The sum with the bases that all terms share taken out, or None."""
    products = [as_product(core)[1] for core in terms]
    shared = shared_powers(products)
    if not shared:
        return None
    constant, inner = 0.0, {}
    for powers, coefficient in zip(products, terms.values(), strict=True):
        rest = dict(powers)
        merge_powers(rest, {base: -exponent for base, exponent in shared.items()}, ROUNDING)
        if rest:
            core = _write_product(1.0, rest, positive)
            factor, core_powers = as_product(core)
            inner[_write_product(1.0, core_powers, positive)] = coefficient * factor
        else:
            constant += coefficient
    if not inner:
        return None
    total = _make_sum(constant, inner, positive)
    if not is_sum(total):
        return None
    powers = dict(shared)
    merge_powers(powers, {total: 1.0}, ROUNDING)
    return _write_product(1.0, powers, positive)


def _negated(node: Node, positive: Positive) -> Node:
    if is_sum(node):
        return _scaled_sum(-1.0, *_as_sum(node, positive), positive)
    coefficient, powers = as_product(node)
    return _write_product(-coefficient, powers, positive)


# --- exponential and logarithm ------------------------------------------------------------------------------------


def _make_exponential(constant: float, terms: Terms, positive: Positive) -> Node:
    """exp(a + u + c log v + w log z) is e**a * exp(u) * v**c * z**w."""
    rest: Terms = {}
    powers: Factors = {}
    for core, coefficient in terms.items():
        if isinstance(core, Call) and core.operator == "log" and abs(coefficient) <= SIMPLIFIED_EXPONENT_LIMIT:
            factor, more = _raised(core.args[0], coefficient, positive)
            if factor == 1.0:
                merge_powers(powers, more, ROUNDING)
                continue
        power = _as_power(core, coefficient, positive)
        if power is not None:
            merge_powers(powers, {power: 1.0}, ROUNDING)
            continue
        rest[core] = coefficient
    try:
        coefficient = math.exp(constant)
    except OverflowError:
        coefficient = 0.0
    if rest:
        if not math.isfinite(coefficient) or coefficient == 0.0 or abs(constant) > SIMPLIFIED_EXPONENTIAL_LIMIT:
            return build("exp", _make_sum(constant, rest, positive))
        merge_powers(powers, {build("exp", _make_sum(0.0, rest, positive)): 1.0}, ROUNDING)
    return _write_product(coefficient, powers, positive)


def _as_power(core: Node, coefficient: float, positive: Positive) -> Node | None:
    """exp(c u log(v)) as v ** (c u), where `core` is u log(v)."""
    _, factors = as_product(core)
    logarithms = [b for b, e in factors.items() if isinstance(b, Call) and b.operator == "log" and e == 1.0]
    if len(logarithms) != 1 or len(factors) < 2:
        return None
    rest = {base: exponent for base, exponent in factors.items() if base is not logarithms[0]}
    return build("pow", logarithms[0].args[0], _write_product(coefficient, rest, positive))


def _make_logarithm(node: Node, positive: Positive) -> Node:
    """log(c u) is log(c) + log(u); log(u**e) is e log(u) where u is positive."""
    coefficient, powers = as_product(node)
    if isinstance(node, Constant) or coefficient <= 0 or not powers:
        return build("log", node)
    if len(powers) == 1:
        ((base, exponent),) = powers.items()
        if isinstance(base, Call) and base.operator == "exp":
            inner_constant, inner = _as_sum(base.args[0], positive)
            return _make_sum(math.log(coefficient) + exponent * inner_constant, scale(inner, exponent), positive)
        if exponent != 1.0 and (not exponent.is_integer() or int(exponent) % 2 or positive(base)):
            logarithm = build("log", base)
            return _make_sum(math.log(coefficient), {logarithm: exponent}, positive)
    if coefficient == 1.0:
        return build("log", node)
    return _make_sum(math.log(coefficient), {build("log", _write_product(1.0, powers, positive)): 1.0}, positive)
