"""The one table of elementary functions.

Every function the network, the constant fitter, the printed formulas and the exports know stands here once. An
operator has two forms of the same mathematics:

- *natural*: the plain function. Outside its natural domain it is nan or inf, and the fitted method rejects the
  candidate.
- *protected*: finite value and finite gradient for every input; inside the natural domain it equals the natural
  form. The relaxed network of method "paper" trains on it, as the paper's released code does.

Both are written over an array namespace `xp` (`numpy` or `jax.numpy`), so NumPy, JAX and the SymPy forms
compute the very same numbers. The compiled CPU kernel dispatches on `opcode`; a test holds it against this table.

>>> import numpy as np
>>> sqrt = get_operator("sqrt")
>>> float(sqrt.natural(np, np.float64(9.0))), float(sqrt.protected(np, np.float64(-9.0)))
(3.0, 3.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.formula.domains import (
    EVERYWHERE,
    MAGNITUDE,
    QUOTIENT_LIMIT,
    TINY,
    Array,
    Domain,
    Namespace,
    protected_angle,
    protected_angle_sympy,
    protected_quotient,
    protected_quotient_sympy,
    symmetric,
)
from gmeql.formula.limits import PROTECTED_EXPONENT_LIMIT, PROTECTED_EXPONENTIAL_LIMIT, PROTECTED_POWER_LIMITS

VARIADIC = -1
"""Arity of the dense nodes: every node of the layer below is an input."""

USER_OPCODE = 1000
"""Opcodes from here on belong to operators that users registered."""


@dataclass(frozen=True, eq=False)
class Operator:
    """One elementary function.

    `natural` and `partials` take the array namespace first; `partials` returns one derivative per argument.
    `weighted_inputs` says whether its inputs carry a constant of their own in the fitted method: a factor on an
    input of a product, a power or a root moves outward, so a constant there would be redundant. `exponent` is that of
    an operator that raises its one argument to a fixed power.
    """

    name: str
    arity: int
    opcode: int
    natural: Callable[..., Array]
    partials: Callable[..., tuple[Array, ...]]
    sympy: Callable[..., Any]
    complexity: int
    symbol: str
    domains: tuple[Domain, ...]
    commutative: bool = False
    weighted_inputs: bool = False
    protected_override: Callable[..., Array] | None = None
    protected_sympy_override: Callable[..., Any] | None = None
    exponent: float | None = None
    aliases: tuple[str, ...] = field(default=())

    @property
    def is_dense(self) -> bool:
        """Whether the node takes the whole layer below (Σ, Π) instead of choosing its inputs."""
        return self.arity == VARIADIC

    @property
    def is_user_defined(self) -> bool:
        return self.opcode >= USER_OPCODE

    def protected(self, xp: Namespace, *args: Array) -> Array:
        """The protected form: the natural function of the projected arguments."""
        if self.protected_override is not None:
            return self.protected_override(xp, *args)
        return self.natural(xp, *(d.project(xp, a) for d, a in zip(self._domains_for(args), args, strict=True)))

    def protected_sympy(self, *args: Any) -> Any:
        """SymPy form of the protected form."""
        if self.protected_sympy_override is not None:
            return self.protected_sympy_override(*args)
        return self.sympy(*(d.project_sympy(a) for d, a in zip(self._domains_for(args), args, strict=True)))

    def in_domain(self, *args: Array) -> Array:
        """Whether natural and protected form agree, element by element."""
        inside = np.bool_(True)
        for domain, arg in zip(self._domains_for(args), args, strict=True):
            inside = inside & domain.contains(arg)
        if self.protected_override is not None and self.name in ("div", "inv"):
            with np.errstate(all="ignore"):
                inside = inside & (np.abs(args[-1]) > TINY) & (np.abs(self.natural(np, *args)) <= QUOTIENT_LIMIT)
        return inside

    def _domains_for(self, args: tuple[Array, ...]) -> tuple[Domain, ...]:
        return self.domains * len(args) if len(self.domains) == 1 else self.domains


# --- natural forms that need more than one call ------------------------------------------------------------


def _total(xp: Namespace, *args: Array) -> Array:
    result = args[0]
    for arg in args[1:]:
        result = result + arg
    return result


def _product(xp: Namespace, *args: Array) -> Array:
    result = args[0]
    for arg in args[1:]:
        result = result * arg
    return result


def _product_partials(xp: Namespace, *args: Array) -> tuple[Array, ...]:
    ones = args[0] * 0 + 1
    return tuple(_product(xp, ones, *args[:i], *args[i + 1 :]) for i in range(len(args)))


def _sympy(name: str) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        import sympy

        return getattr(sympy, name)(*args)

    return build


def _power(exponent: int) -> dict[str, Any]:
    limit = 10.0 ** (30 // exponent)  # keeps the power and its slope finite in float32
    return dict(
        arity=1,
        natural=lambda xp, x: x**exponent if exponent < 4 else (x**2) ** (exponent // 2) * (x if exponent % 2 else 1.0),
        partials=lambda xp, x: (exponent * x ** (exponent - 1),),
        sympy=lambda x: x**exponent,
        symbol=f"**{exponent}",
        exponent=float(exponent),
        domains=(symmetric(limit),),
        aliases=(f"x^{exponent}", f"x**{exponent}", f"pow{exponent}"),
    )


def _unary(name: str, domain: Domain, slope: Callable[..., Array], **more: Any) -> dict[str, Any]:
    """A function that NumPy, JAX and SymPy all know by `name` (NumPy spells the inverse ones arc...)."""
    array_name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "abs": "abs"}.get(name, name)
    sympy_name = {"abs": "Abs"}.get(name, name)
    return (
        dict(
            arity=1,
            natural=lambda xp, x: getattr(xp, array_name)(x),
            partials=lambda xp, x: (slope(xp, x),),
            sympy=_sympy(sympy_name),
            symbol=name,
            domains=(domain,),
        )
        | more
    )


def _angle(name: str, sign: int) -> dict[str, Any]:
    return _unary(
        name,
        Domain(-1.0, 1.0),
        lambda xp, x: sign / xp.sqrt(1 - x**2),
        weighted_inputs=True,
        protected_override=protected_angle("arc" + name[1:]),
        protected_sympy_override=protected_angle_sympy(name),
    )


OPERATORS: dict[str, Operator] = {}
"""Every operator by name, the built-in ones in order of opcode."""
_ALIASES: dict[str, str] = {}


def _add(name: str, opcode: int, complexity: int, **entry: Any) -> None:
    operator = Operator(name=name, opcode=opcode, complexity=complexity, **entry)
    OPERATORS[name] = operator
    for alias in operator.aliases:
        _ALIASES[alias] = name


_SUM = symmetric(1e37)
_FACTOR = symmetric(1e15)

# name, opcode, complexity
_add(
    "id",
    0,
    0,
    arity=1,
    natural=lambda xp, x: x,
    partials=lambda xp, x: (xp.ones_like(x),),
    sympy=lambda x: x,
    symbol="",
    domains=(EVERYWHERE,),
    aliases=("identity",),
)
_add(
    "add",
    1,
    1,
    arity=2,
    natural=_total,
    partials=lambda xp, *a: tuple(xp.ones_like(x) for x in a),
    sympy=lambda *a: _sympy("Add")(*a),
    symbol="+",
    domains=(_SUM,),
    commutative=True,
    weighted_inputs=True,
    aliases=("+",),
)
_add(
    "sub",
    2,
    1,
    arity=2,
    natural=lambda xp, a, b: a - b,
    partials=lambda xp, a, b: (xp.ones_like(a), -xp.ones_like(b)),
    sympy=lambda a, b: a - b,
    symbol="-",
    domains=(_SUM, _SUM),
    weighted_inputs=True,
    aliases=("-", "−"),
)
_add(
    "mul",
    3,
    1,
    arity=2,
    natural=_product,
    partials=_product_partials,
    sympy=lambda *a: _sympy("Mul")(*a),
    symbol="*",
    domains=(_FACTOR,),
    commutative=True,
    aliases=("*", "×"),
)
_add(
    "div",
    4,
    1,
    arity=2,
    natural=lambda xp, a, b: a / b,
    partials=lambda xp, a, b: (1 / b, -a / b**2),
    sympy=lambda a, b: a / b,
    symbol="/",
    domains=(symmetric(1e30), symmetric(1e30)),
    protected_override=protected_quotient,
    protected_sympy_override=protected_quotient_sympy,
    aliases=("/", "÷"),
)
_add("sin", 5, 2, **_unary("sin", EVERYWHERE, lambda xp, x: xp.cos(x), weighted_inputs=True))
_add("cos", 6, 2, **_unary("cos", EVERYWHERE, lambda xp, x: -xp.sin(x), weighted_inputs=True))
_add("sqrt", 7, 2, **_unary("sqrt", MAGNITUDE, lambda xp, x: 0.5 / xp.sqrt(x), exponent=0.5, aliases=("√",)))
_add("square", 8, 2, **_power(2))
_add("cube", 9, 2, **_power(3))
_add("pow4", 10, 2, **_power(4))
_add("pow5", 11, 2, **_power(5))
_add("pow6", 12, 2, **_power(6))
_add(
    "exp", 13, 2, **_unary("exp", symmetric(PROTECTED_EXPONENTIAL_LIMIT), lambda xp, x: xp.exp(x), weighted_inputs=True)
)
_add("log", 14, 2, **_unary("log", MAGNITUDE, lambda xp, x: 1 / x, aliases=("ln",)))
_add("tanh", 15, 3, **_unary("tanh", EVERYWHERE, lambda xp, x: 1 - xp.tanh(x) ** 2, weighted_inputs=True))
_add("asin", 16, 3, **_angle("asin", 1))
_add("acos", 17, 3, **_angle("acos", -1))
_add("atan", 18, 3, **_unary("atan", EVERYWHERE, lambda xp, x: 1 / (1 + x**2), weighted_inputs=True))
_add("abs", 19, 1, **_unary("abs", EVERYWHERE, lambda xp, x: xp.sign(x)))
_add(
    "inv",
    20,
    1,
    arity=1,
    natural=lambda xp, x: 1.0 / x,
    partials=lambda xp, x: (-1 / x**2,),
    sympy=lambda x: 1 / x,
    symbol="1/",
    exponent=-1.0,
    domains=(symmetric(1e30),),
    protected_override=lambda xp, x: protected_quotient(xp, xp.ones_like(x), x),
    protected_sympy_override=lambda x: protected_quotient_sympy(_sympy("Integer")(1), x),
    aliases=("1/x",),
)
_add(
    "neg",
    21,
    1,
    arity=1,
    natural=lambda xp, x: -x,
    partials=lambda xp, x: (-xp.ones_like(x),),
    sympy=lambda x: -x,
    symbol="-",
    domains=(EVERYWHERE,),
)
_add(
    "pow",
    22,
    2,
    arity=2,
    natural=lambda xp, a, b: a**b,
    partials=lambda xp, a, b: (b * a ** (b - 1), a**b * xp.log(a)),
    sympy=lambda a, b: a**b,
    symbol="**",
    domains=(Domain(*PROTECTED_POWER_LIMITS, "magnitude"), symmetric(PROTECTED_EXPONENT_LIMIT)),
)
_add(
    "sum",
    23,
    1,
    arity=VARIADIC,
    natural=_total,
    partials=lambda xp, *a: tuple(xp.ones_like(x) for x in a),
    sympy=lambda *a: _sympy("Add")(*a),
    symbol="Σ",
    domains=(_SUM,),
    weighted_inputs=True,
    aliases=("Σ",),
)
_add(
    "prod",
    24,
    1,
    arity=VARIADIC,
    natural=_product,
    partials=_product_partials,
    sympy=lambda *a: _sympy("Mul")(*a),
    symbol="Π",
    domains=(_FACTOR,),
    aliases=("Π",),
)


def _no_value(xp: Namespace, *args: Array) -> Any:
    raise ValueError("D(f, x) acts on the formula f, not on its values; `calculus.expand` writes it out first")


DERIVATIVE = Operator(
    name="D", arity=2, opcode=-1, natural=_no_value, partials=_no_value, sympy=lambda f, x: f.diff(x), complexity=1,
    symbol="D", domains=(EVERYWHERE, EVERYWHERE),
)  # fmt: skip
"""The derivative of a sub-formula by a column: `calculus.expand` writes it out before anything is computed or fitted."""

EXPONENTS: dict[str, float] = {name: op.exponent for name, op in OPERATORS.items() if op.exponent is not None}
"""Operators that raise their argument to a fixed power, and the exponent of each: square, cube, ..., sqrt, inv."""
POWER_NAMES: dict[float, str] = {exponent: name for name, exponent in EXPONENTS.items() if exponent > 0}
"""The operator that people write for a power: 2.0 -> square, 0.5 -> sqrt. 1/x is written as a quotient."""
WHOLE_POWERS = tuple(name for name, exponent in EXPONENTS.items() if exponent >= 2)
"""square, cube and the higher whole powers, ascending."""

NAMED_CONSTANTS: dict[str, float] = {"1": 1.0, "pi": math.pi, "e": math.e}
"""Constants that can stand in the input layer beside the variables."""


def is_known(name: str) -> bool:
    """Whether an operator has that name or alias."""
    return name in OPERATORS or name in _ALIASES or name == DERIVATIVE.name


def get_operator(name: str) -> Operator:
    """The operator of that name or alias.

    >>> get_operator("+").name
    'add'
    """
    try:
        return OPERATORS[name]  # a million times a search
    except (KeyError, TypeError):
        pass
    operator = OPERATORS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if operator is None and name == DERIVATIVE.name:
        return DERIVATIVE
    if operator is None:
        known = ", ".join((*OPERATORS, DERIVATIVE.name))
        raise ValueError(f"unknown operator {name!r}; known: {known}. Add your own with register_operator(...).")
    return operator


def operator_of_opcode(opcode: int) -> Operator:
    for operator in OPERATORS.values():
        if operator.opcode == opcode:
            return operator
    raise ValueError(f"no operator has opcode {opcode}")
