"""The one table of elementary functions.

Every function the network, the constant fitter, the printed formulas and the exports know stands here once. An
operator has two readings of the same mathematics:

- *natural*: the plain function. Outside its natural domain it is nan or inf, and the fitted method rejects the
  candidate.
- *protected*: finite value and finite gradient for every input; inside the natural domain it equals the natural
  reading. The relaxed network of method "paper" trains on it, as the paper's released code does.

Both are written over an array namespace ``xp`` (``numpy`` or ``jax.numpy``), so NumPy, JAX and the SymPy forms
compute the very same numbers. The compiled CPU kernel dispatches on ``opcode``; a test holds it against this table.

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

Array = Any
Namespace = Any

VARIADIC = -1
"""Arity of the dense nodes: every node of the layer below is an input."""

TINY = 1e-12
"""Smallest magnitude a root, logarithm or denominator may see; below it the protected reading takes over."""
QUOTIENT_LIMIT = 100.0
"""Protected quotients are clipped to this magnitude, as in the paper's released code."""
USER_OPCODE = 1000
"""Opcodes from here on belong to operators that users registered."""


@dataclass(frozen=True)
class Domain:
    """Natural domain of one argument, and the projection of any real number into it.

    ``kind`` is ``"interval"`` (clip to [low, high]) or ``"magnitude"`` (take the absolute value, at least ``low``).
    """

    low: float = -math.inf
    high: float = math.inf
    kind: str = "interval"

    def contains(self, x: Array) -> Array:
        """Whether each number lies in the natural domain."""
        return (x >= self.low) & (x <= self.high)

    def project(self, xp: Namespace, x: Array) -> Array:
        if self.kind == "magnitude":
            return xp.clip(xp.abs(x), self.low, self.high)
        if math.isinf(self.low) and math.isinf(self.high):
            return x
        return xp.clip(x, self.low, self.high)

    def project_sympy(self, x: Any) -> Any:
        import sympy

        if self.kind == "magnitude":
            x = sympy.Abs(x)
        if not math.isinf(self.low):
            x = sympy.Max(x, sympy.Float(self.low))
        if not math.isinf(self.high):
            x = sympy.Min(x, sympy.Float(self.high))
        return x


EVERYWHERE = Domain()
_MAGNITUDE = Domain(TINY, math.inf, "magnitude")


def _symmetric(limit: float) -> Domain:
    return Domain(-limit, limit)


@dataclass(frozen=True, eq=False)
class Operator:
    """One elementary function.

    ``natural`` and ``partials`` take the array namespace first; ``partials`` returns one derivative per argument.
    ``weighted_inputs`` says whether its inputs carry a constant of their own in the fitted method: a factor on an
    input of a product, a power or a root moves outward, so a constant there would be redundant.
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
    aliases: tuple[str, ...] = field(default=())

    @property
    def is_dense(self) -> bool:
        """Whether the node takes the whole layer below (Σ, Π) instead of choosing its inputs."""
        return self.arity == VARIADIC

    @property
    def is_user_defined(self) -> bool:
        return self.opcode >= USER_OPCODE

    def protected(self, xp: Namespace, *args: Array) -> Array:
        """The protected reading: the natural function of the projected arguments."""
        if self.protected_override is not None:
            return self.protected_override(xp, *args)
        return self.natural(xp, *(d.project(xp, a) for d, a in zip(self._domains_for(args), args, strict=True)))

    def protected_sympy(self, *args: Any) -> Any:
        """SymPy form of the protected reading."""
        if self.protected_sympy_override is not None:
            return self.protected_sympy_override(*args)
        return self.sympy(*(d.project_sympy(a) for d, a in zip(self._domains_for(args), args, strict=True)))

    def in_domain(self, *args: Array) -> Array:
        """Whether natural and protected reading agree, element by element."""
        inside = np.bool_(True)
        for domain, arg in zip(self._domains_for(args), args, strict=True):
            inside = inside & domain.contains(arg)
        if self.protected_override is not None and self.name in ("div", "inv"):
            with np.errstate(all="ignore"):
                inside = inside & (np.abs(args[-1]) > TINY) & (np.abs(self.natural(np, *args)) <= QUOTIENT_LIMIT)
        return inside

    def _domains_for(self, args: tuple[Array, ...]) -> tuple[Domain, ...]:
        return self.domains * len(args) if len(self.domains) == 1 else self.domains


# --- natural readings that need more than one call ------------------------------------------------------------


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


def _protected_quotient(xp: Namespace, a: Array, b: Array) -> Array:
    """a/b clipped to ±100, 0 for a zero denominator; the guard sits on the input so gradients stay finite."""
    divides = xp.abs(b) > TINY
    inside = divides & (xp.abs(a) <= QUOTIENT_LIMIT * xp.abs(b))
    quotient = xp.where(inside, a, 0.0) / xp.where(inside, b, 1.0)
    return xp.where(inside, quotient, xp.where(divides, QUOTIENT_LIMIT * xp.sign(a) * xp.sign(b), 0.0))


def _protected_quotient_sympy(a: Any, b: Any) -> Any:
    import sympy

    limit = sympy.Float(QUOTIENT_LIMIT)
    return sympy.Piecewise(
        (sympy.Float(0.0), sympy.Abs(b) <= sympy.Float(TINY)),
        (a / b, sympy.Abs(a) <= limit * sympy.Abs(b)),
        (limit * sympy.sign(a) * sympy.sign(b), True),
    )


def _protected_angle(name: str) -> Callable[..., Array]:
    """asin and acos at ±1 have infinite slope: clip a hair inside for the gradient, exact value outside."""
    edge = 1.0 - 1e-7

    def protected(xp: Namespace, x: Array) -> Array:
        x = xp.clip(x, -1.0, 1.0)
        inside = xp.abs(x) <= edge
        function = getattr(xp, name)
        end = xp.where(x > 0, function(xp.ones_like(x)), function(-xp.ones_like(x)))
        return xp.where(inside, function(xp.where(inside, x, 0.0)), end)

    return protected


def _protected_angle_sympy(name: str) -> Callable[..., Any]:
    edge = 1.0 - 1e-7

    def protected(x: Any) -> Any:
        import sympy

        function = getattr(sympy, name)
        return sympy.Piecewise(
            (function(sympy.Integer(-1)), x < -edge), (function(sympy.Integer(1)), x > edge), (function(x), True)
        )

    return protected


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
        domains=(_symmetric(limit),),
        aliases=(f"x^{exponent}", f"x**{exponent}", f"pow{exponent}"),
    )


def _unary(name: str, domain: Domain, slope: Callable[..., Array], **more: Any) -> dict[str, Any]:
    """A function that NumPy, JAX and SymPy all know by ``name`` (NumPy spells the inverse ones arc...)."""
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


OPERATORS: dict[str, Operator] = {}
"""Every operator by name, the built-in ones in order of opcode."""
_ALIASES: dict[str, str] = {}


def _add(name: str, opcode: int, complexity: int, **entry: Any) -> None:
    operator = Operator(name=name, opcode=opcode, complexity=complexity, **entry)
    OPERATORS[name] = operator
    for alias in operator.aliases:
        _ALIASES[alias] = name


_SUM = _symmetric(1e37)
_FACTOR = _symmetric(1e15)

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
    domains=(_symmetric(1e30), _symmetric(1e30)),
    protected_override=_protected_quotient,
    protected_sympy_override=_protected_quotient_sympy,
    aliases=("/", "÷"),
)
_add("sin", 5, 2, **_unary("sin", EVERYWHERE, lambda xp, x: xp.cos(x), weighted_inputs=True))
_add("cos", 6, 2, **_unary("cos", EVERYWHERE, lambda xp, x: -xp.sin(x), weighted_inputs=True))
_add("sqrt", 7, 2, **_unary("sqrt", _MAGNITUDE, lambda xp, x: 0.5 / xp.sqrt(x), aliases=("√",)))
_add("square", 8, 2, **_power(2))
_add("cube", 9, 2, **_power(3))
_add("pow4", 10, 2, **_power(4))
_add("pow5", 11, 2, **_power(5))
_add("pow6", 12, 2, **_power(6))
_add("exp", 13, 2, **_unary("exp", Domain(-80.0, 80.0), lambda xp, x: xp.exp(x), weighted_inputs=True))
_add("log", 14, 2, **_unary("log", _MAGNITUDE, lambda xp, x: 1 / x, aliases=("ln",)))
_add("tanh", 15, 3, **_unary("tanh", EVERYWHERE, lambda xp, x: 1 - xp.tanh(x) ** 2, weighted_inputs=True))
_add(
    "asin",
    16,
    3,
    **_unary(
        "asin",
        Domain(-1.0, 1.0),
        lambda xp, x: 1 / xp.sqrt(1 - x**2),
        weighted_inputs=True,
        protected_override=_protected_angle("arcsin"),
        protected_sympy_override=_protected_angle_sympy("asin"),
    ),
)
_add(
    "acos",
    17,
    3,
    **_unary(
        "acos",
        Domain(-1.0, 1.0),
        lambda xp, x: -1 / xp.sqrt(1 - x**2),
        weighted_inputs=True,
        protected_override=_protected_angle("arccos"),
        protected_sympy_override=_protected_angle_sympy("acos"),
    ),
)
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
    domains=(_symmetric(1e30),),
    protected_override=lambda xp, x: _protected_quotient(xp, xp.ones_like(x), x),
    protected_sympy_override=lambda x: _protected_quotient_sympy(_sympy("Integer")(1), x),
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
    domains=(Domain(1e-6, 1e6, "magnitude"), _symmetric(5.0)),
)  # 1e±30: finite in float32, slopes too
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

NAMED_CONSTANTS: dict[str, float] = {"1": 1.0, "pi": math.pi, "e": math.e}
"""Constants that can stand in the input layer beside the variables."""


def get_operator(name: str) -> Operator:
    """The operator of that name or alias.

    >>> get_operator("+").name
    'add'
    """
    operator = OPERATORS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if operator is None:
        known = ", ".join(OPERATORS)
        raise ValueError(f"unknown operator {name!r}; known: {known}. Add your own with register_operator(...).")
    return operator


def operator_of_opcode(opcode: int) -> Operator:
    for operator in OPERATORS.values():
        if operator.opcode == opcode:
            return operator
    raise ValueError(f"no operator has opcode {opcode}")


# --- operators of users -----------------------------------------------------------------------------------------

_PROBES = np.array([-3.0, -1.0, -0.5, 0.25, 0.5, 1.0, 2.0, 7.0])


def register_operator(
    name: str,
    function: Callable[..., Array],
    *,
    arity: int = 1,
    derivative: Callable[..., Any] | None = None,
    sympy: Callable[..., Any] | None = None,
    complexity: int = 3,
    domain: tuple[float, float] = (-math.inf, math.inf),
    weighted_inputs: bool = True,
) -> Operator:
    """Add an operator of your own; it can then stand in ``functions`` and in layers like any other.

    ``function(xp, *args)`` is written over an array namespace, so that NumPy and JAX share it. ``derivative`` has the
    same signature and returns the slope (arity 1) or a tuple of slopes; without it, it is derived by JAX. ``sympy``
    builds the SymPy form; without it the formula shows the plain name. ``domain`` bounds the arguments.

    Raises ValueError, saying what to mend, for a taken name, a wrong arity, nan on ordinary input, or no derivative.

    >>> import numpy as np
    >>> op = register_operator("softplus", lambda xp, x: xp.logaddexp(0.0, x),
    ...                        derivative=lambda xp, x: 1 / (1 + xp.exp(-x)))
    >>> round(float(op.natural(np, np.float64(0.0))), 4)
    0.6931
    >>> unregister_operator("softplus")
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"operator name must be a plain identifier such as 'softplus', got {name!r}")
    if name in OPERATORS or name in _ALIASES:
        raise ValueError(
            f"operator {name!r} exists already; choose another name or unregister_operator({name!r}) first"
        )
    if arity not in (1, 2):
        raise ValueError(f"arity of operator {name!r} must be 1 or 2, got {arity!r}")
    if not callable(function):
        raise ValueError(f"function of operator {name!r} must be callable as function(xp, *args), got {function!r}")
    low, high = domain
    if not low < high:
        raise ValueError(f"domain of operator {name!r} must be (low, high) with low < high, got {domain!r}")
    probes = _PROBES[(_PROBES >= low) & (_PROBES <= high)]
    if len(probes) < 2:
        probes = np.linspace(max(low, -1e3), min(high, 1e3), 8)
    args = (probes,) if arity == 1 else tuple(a.ravel() for a in np.meshgrid(probes, probes))
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(np, *args), float)
    except TypeError as error:
        raise ValueError(
            f"operator {name!r} has arity {arity}, but function(xp, {', '.join('ab'[:arity])}) failed: {error}. "
            "Write it as function(xp, x) for arity 1 or function(xp, a, b) for arity 2."
        ) from error
    if values.shape != args[0].shape:
        raise ValueError(
            f"operator {name!r} must map arrays element by element: got shape {values.shape} for {args[0].shape}"
        )
    if not np.isfinite(values).all():
        where = tuple(float(a[~np.isfinite(values)][0]) for a in args)
        raise ValueError(
            f"operator {name!r} is not finite at {where}; guard its input with xp.where/xp.clip or narrow domain="
        )
    partials = _partials_from(name, function, derivative, arity)
    _check_derivative(name, function, partials, args)
    bounds = Domain(low, high)
    operator = Operator(
        name=name,
        arity=arity,
        opcode=max([USER_OPCODE - 1, *(op.opcode for op in OPERATORS.values())]) + 1,
        natural=function,
        partials=partials,
        sympy=sympy or _opaque_sympy(name),
        complexity=complexity,
        symbol=name,
        domains=(bounds,) * arity,
        weighted_inputs=weighted_inputs,
    )
    OPERATORS[name] = operator
    return operator


def unregister_operator(name: str) -> None:
    """Remove an operator that was registered by ``register_operator``."""
    if not get_operator(name).is_user_defined:
        raise ValueError(f"operator {name!r} is built in and stays")
    del OPERATORS[name]


def _opaque_sympy(name: str) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        import sympy

        return sympy.Function(name)(*args)

    return build


def _partials_from(
    name: str, function: Callable[..., Array], derivative: Callable[..., Any] | None, arity: int
) -> Callable[..., tuple[Array, ...]]:
    if derivative is not None:

        def given(xp: Namespace, *args: Array) -> tuple[Array, ...]:
            slopes = derivative(xp, *args)
            return slopes if isinstance(slopes, tuple) else (slopes,)

        return given

    def derived(xp: Namespace, *args: Array) -> tuple[Array, ...]:
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True):
            flat = [jnp.asarray(np.ravel(a), jnp.float64) for a in args]
            slopes = jax.vmap(jax.grad(lambda *a: function(jnp, *a), argnums=tuple(range(arity))))(*flat)
            return tuple(np.asarray(s).reshape(np.shape(args[0])) for s in slopes)

    return derived


def _check_derivative(
    name: str, function: Callable[..., Array], partials: Callable[..., tuple[Array, ...]], args: tuple[Array, ...]
) -> None:
    advice = "give derivative=lambda xp, x: ... (a tuple of slopes for arity 2)"
    try:
        with np.errstate(all="ignore"):
            slopes = partials(np, *args)
    except Exception as error:  # whatever a user's function raises becomes one clear refusal
        why = str(error).partition("\n")[0]
        raise ValueError(f"operator {name!r} has no derivative: {why}; {advice}") from error
    if len(slopes) != len(args):
        raise ValueError(f"operator {name!r} needs {len(args)} slopes, its derivative gave {len(slopes)}; {advice}")
    for index, slope in enumerate(slopes):
        slope = np.asarray(slope, float) * np.ones_like(args[0])
        step = 1e-6 * np.maximum(1.0, np.abs(args[index]))
        shifted = [[*args[:index], args[index] + sign * step, *args[index + 1 :]] for sign in (1, -1)]
        with np.errstate(all="ignore"):
            numeric = (function(np, *shifted[0]) - function(np, *shifted[1])) / (2 * step)
        smooth = np.isfinite(numeric) & np.isfinite(slope)
        close = np.abs(slope - numeric) <= 1e-3 * np.maximum(1.0, np.abs(numeric))
        if smooth.sum() == 0 or np.mean(close[smooth]) < 0.75:  # a few kinks are fine, a wrong slope is not
            raise ValueError(f"the derivative of operator {name!r} does not match its values; {advice}")
