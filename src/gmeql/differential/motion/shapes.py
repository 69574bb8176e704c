"""Terms with a scale of their own: saturation, switches and logarithms of a column; waves that another one carries.

Rates that level off, as enzymes, predators and genes have them, are fractions x/(c + x) and x²/(c² + x²) with a scale c
that no library of fixed terms can hold. Each is offered with a few values of its constants; fits adapt them.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.formula.nodes import Call, Constant, Node, Variable, calls
from gmeql.formula.products import write_product
from gmeql.formula.operators import WHOLE_POWERS, get_operator

FloatArray = NDArray[np.float64]
ALWAYS = {"add", "mul", *WHOLE_POWERS}


def scaled_terms(X: FloatArray, allowed: Collection[str] | None = None) -> list[Node]:
    """Saturating fractions of each column of `X` [G, V], alone and times another, switches and logarithms.

    `allowed` names the operators that terms may use (None: all).

    >>> from gmeql.formula.expression import Expression
    >>> [str(Expression(term, ("x",))) for term in scaled_terms(np.array([[1.0], [2.0], [3.0]]), ["/"])][:3]
    ['x/(0.2 + x)', 'x**2/(0.04 + x**2)', 'x/(0.04 + x**2)']
    """
    found: list[Node] = []
    for j, values in enumerate(X.T):
        fractions = _saturating(Variable(j), values)
        found += fractions
        for k in range(X.shape[1]):
            if k != j:
                found += [_times(Variable(k), fraction) for fraction in fractions]
                found += _carried(Variable(j), Variable(k))
        found += _switches(Variable(j), values)
        if (values > 0).all():
            logarithm = Call("log", (Variable(j),))
            found += [logarithm, Call("mul", (Variable(j), logarithm))]
    names = None if allowed is None else {*ALWAYS, *(get_operator(name).name for name in allowed)}
    if names is not None and "div" in names:
        names.add("inv")
    return [node for node in found if names is None or all(call.operator in names for call in calls(node))]


def _saturating(x: Variable, values: FloatArray) -> list[Call]:
    """x/(c + x) where x has one sign that keeps it from its pole, x²/(c² + x²) and x/(c² + x²), for each scale c."""
    typical = float(np.median(np.abs(values)))
    if typical == 0:
        return []
    square = Call("square", (x,))
    found = []
    for share in MOTION.terms.scales:
        c = Constant(share * typical)
        if (values >= 0).all():
            found.append(Call("div", (x, Call("add", (c, x)))))
        below = Call("add", (Constant(c.value**2), square))
        found += [Call("div", (square, below)), Call("div", (x, below))]
    return found


def _times(other: Variable, fraction: Call) -> Node:
    above, below = fraction.args
    return Call("div", (Call("mul", tuple(sorted((other, above), key=repr))), below))


def _carried(angle: Variable, other: Variable) -> list[Node]:
    """Sine and cosine of a column times another, and divided by it: what turns seldom turns alone."""
    waves = [Call(name, (angle,)) for name in ("sin", "cos")]
    return [write_product(1.0, {wave: 1.0, other: power}) for wave in waves for power in (1.0, -1.0)]


def _switches(x: Variable, values: FloatArray) -> list[Node]:
    """1/(a + exp(b x)): steps of several widths in the middle of the values."""
    spread, middle = float(values.std()), float(np.median(values))
    if spread == 0:
        return []
    found: list[Node] = []
    for steepness in MOTION.terms.steepness:
        b = steepness / spread
        if abs(b * middle) < MOTION.terms.largest_exponent:
            wave = Call("exp", (Call("mul", (Constant(b), x)),))
            found.append(Call("inv", (Call("add", (Constant(math.exp(b * middle)), wave)),)))
    return found
