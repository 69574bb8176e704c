"""The one normal form: sums, products, exponentials and logarithms whose parts are in normal form already.

A sum is a constant and terms with coefficients; a product is a coefficient and bases with exponents. Each is made of
the others, so they stand together. `positive(node)` may vouch that a part is positive wherever it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from gmeql.formula.limits import SIMPLIFIED_EXPONENT_LIMIT, SIMPLIFIED_EXPONENTIAL_LIMIT
from gmeql.formula.nodes import Call, Constant, Node, build, tree_complexity
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


def never(node: Node) -> bool:
    """Vouches for nothing."""
    return False


# --- sums -------------------------------------------------------------------------------------------------------------


def as_sum(node: Node, positive: Positive) -> tuple[float, Terms]:
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
        return merge_sums(node.args, positive)
    coefficient, powers = as_product(node)
    return 0.0, {normal_product(1.0, powers, positive): coefficient}


def merge_sums(args: Sequence[Node], positive: Positive) -> tuple[float, Terms]:
    """Constant and terms of several summands together, equal terms merged."""
    constant = 0.0
    parts: list[Terms] = []
    for arg in args:
        more_constant, more = as_sum(arg, positive)
        constant += more_constant
        parts.append(more)
    return constant, add(parts, ROUNDING.terms)


def scaled_sum(factor: float, constant: float, terms: Terms, positive: Positive) -> Node:
    """A factor times a sum, multiplied in."""
    return normal_sum(factor * constant, scale(terms, factor), positive)


def normal_sum(constant: float, terms: Terms, positive: Positive) -> Node:
    """The sum written out, or with what all its terms share taken out where that is shorter."""
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
    return normal_product(coefficient, powers, positive)


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
            core = normal_product(1.0, rest, positive)
            factor, core_powers = as_product(core)
            inner[normal_product(1.0, core_powers, positive)] = coefficient * factor
        else:
            constant += coefficient
    if not inner:
        return None
    total = normal_sum(constant, inner, positive)
    if not is_sum(total):
        return None
    powers = dict(shared)
    merge_powers(powers, {total: 1.0}, ROUNDING)
    return normal_product(1.0, powers, positive)


def negated(node: Node, positive: Positive) -> Node:
    """The opposite of a node in normal form."""
    if is_sum(node):
        return scaled_sum(-1.0, *as_sum(node, positive), positive)
    coefficient, powers = as_product(node)
    return normal_product(-coefficient, powers, positive)


# --- products ---------------------------------------------------------------------------------------------------------


def raised(node: Node, exponent: float, positive: Positive) -> tuple[float, Factors]:
    """Coefficient and powers of node ** exponent."""
    coefficient, powers = as_product(node)
    if exponent == 1.0:
        return coefficient, powers
    whole = exponent.is_integer()
    if whole or (coefficient > 0 and all(_is_positive(base, power, positive) for base, power in powers.items())):
        if coefficient == 0.0:
            return (0.0 if exponent > 0 else math.nan), {}
        return power_of(coefficient, exponent), {base: power * exponent for base, power in powers.items()}
    if coefficient > 0 and len(powers) == 1:
        ((base, power),) = powers.items()
        if power % 2.0 == 1.0 and not (power * exponent).is_integer():  # defined for positive bases alone, either way
            return power_of(coefficient, exponent), {base: power * exponent}
    if coefficient > 0 and coefficient != 1.0 and powers:
        return power_of(coefficient, exponent), {normal_product(1.0, powers, positive): exponent}
    if not powers:
        return power_of(coefficient, exponent), {}
    return 1.0, {normal_product(coefficient, powers, positive): exponent}


def _is_positive(base: Node, exponent: float, positive: Positive) -> bool:
    """Whether base ** exponent is surely positive: a base under a fractional power must be."""
    if not exponent.is_integer() or (isinstance(base, Call) and base.operator in ("exp", "sqrt")):
        return True
    return positive(base)


def normal_product(coefficient: float, powers: Factors, positive: Positive) -> Node:
    """The product written out: exponentials joined, the constants inside its sums not redundant."""
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
            return scaled_sum(coefficient, *as_sum(base, positive), positive)
        if is_sum(base) and exponent == 0.5 and coefficient > 0 and coefficient != 1.0:
            return build("sqrt", scaled_sum(coefficient**2, *as_sum(base, positive), positive))
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
        more_constant, more = as_sum(base.args[0], positive)
        constant += e * more_constant
        parts.append(scale(more, e))
    factor, more_powers = as_product(normal_exponential(constant, add(parts), positive))
    merge_powers(rest, more_powers, ROUNDING)
    return coefficient * factor, rest


def _normalised_sums(coefficient: float, powers: Factors, positive: Positive) -> tuple[float, Factors]:
    """Take a common factor out of every sum among the bases, so that its constants are not redundant."""
    result: Factors = {}
    for base, exponent in powers.items():
        if is_sum(base) and not (len(powers) == 1 and exponent == 1.0):
            constant, terms = as_sum(base, positive)
            factor = nicest_factor(constant, list(terms.values()))
            if not exponent.is_integer():
                factor = abs(factor)
            scaled = power_of(factor, exponent)
            if math.isfinite(scaled) and scaled != 0.0:
                coefficient *= scaled
                divided = {
                    core: c / factor for core, c in terms.items()
                }  # times 1/factor, the factor itself may miss 1
                base = normal_sum(constant / factor, divided, positive)
        merge_powers(result, {base: exponent}, ROUNDING)
    if coefficient < 0:  # -u/(1 - v) is u/(v - 1)
        for base, exponent in result.items():
            if is_sum(base) and exponent % 2 == 1.0 and len(result) > 1:
                flipped = scaled_sum(-1.0, *as_sum(base, positive), positive)
                del result[base]
                merge_powers(result, {flipped: exponent}, ROUNDING)
                return -coefficient, result
    return coefficient, result


# --- exponential and logarithm ----------------------------------------------------------------------------------------


def normal_exponential(constant: float, terms: Terms, positive: Positive) -> Node:
    """exp(a + u + c log v + w log z) is e**a * exp(u) * v**c * z**w."""
    rest: Terms = {}
    powers: Factors = {}
    for core, coefficient in terms.items():
        if isinstance(core, Call) and core.operator == "log" and abs(coefficient) <= SIMPLIFIED_EXPONENT_LIMIT:
            factor, more = raised(core.args[0], coefficient, positive)
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
            return build("exp", normal_sum(constant, rest, positive))
        merge_powers(powers, {build("exp", normal_sum(0.0, rest, positive)): 1.0}, ROUNDING)
    return normal_product(coefficient, powers, positive)


def _as_power(core: Node, coefficient: float, positive: Positive) -> Node | None:
    """exp(c u log(v)) as v ** (c u), where `core` is u log(v)."""
    _, factors = as_product(core)
    logarithms = [b for b, e in factors.items() if isinstance(b, Call) and b.operator == "log" and e == 1.0]
    if len(logarithms) != 1 or len(factors) < 2:
        return None
    rest = {base: exponent for base, exponent in factors.items() if base is not logarithms[0]}
    return build("pow", logarithms[0].args[0], normal_product(coefficient, rest, positive))


def normal_logarithm(node: Node, positive: Positive) -> Node:
    """log(c*exp(u)*v) is log(c) + u + log(v); log(u**e) is e*log(u) where u is positive; log(c*u - c*v) is log(c*(u - v))."""
    coefficient, powers = as_product(node)
    if isinstance(node, Constant) or coefficient <= 0 or not powers:
        return build("log", node)
    constant = math.log(coefficient)
    outside: list[Terms] = []
    inside: Factors = {}
    for base, exponent in powers.items():
        if isinstance(base, Call) and base.operator == "exp" and not base.protected:
            own, terms = as_sum(base.args[0], positive)
            constant += exponent * own
            outside.append(scale(terms, exponent))
        else:
            inside[base] = exponent
    if inside:
        factor, logarithm, times = _logarithm_of(inside, positive)
        constant += math.log(factor)
        outside.append({logarithm: times})
    return normal_sum(constant, add(outside, ROUNDING.terms), positive)


def _logarithm_of(powers: Factors, positive: Positive) -> tuple[float, Node, float]:
    """A factor, a logarithm and how many times it counts: log(c*u - c*v) is log(c) and log(u - v)."""
    ((base, exponent), *others) = powers.items()
    if not others and exponent == 1.0 and (factor := _shared_factor(base, positive)) != 1.0:
        constant, terms = as_sum(base, positive)
        return factor, build("log", normal_sum(constant / factor, scale(terms, 1.0 / factor), positive)), 1.0
    if not others and exponent != 1.0 and (not exponent.is_integer() or int(exponent) % 2 or positive(base)):
        return 1.0, build("log", base), exponent
    return 1.0, build("log", normal_product(1.0, powers, positive)), 1.0


def _shared_factor(node: Node, positive: Positive) -> float:
    """The size that factors of two terms of a sum have in common; 1 where there is none."""
    if not is_sum(node):
        return 1.0
    sizes = [abs(factor) for factor in as_sum(node, positive)[1].values()]
    shared = [a for i, a in enumerate(sizes) if any(math.isclose(a, b, rel_tol=1e-12) for b in sizes[:i])]
    return shared[0] if shared and 1.0 not in shared else 1.0
