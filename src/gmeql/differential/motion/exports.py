"""Systems of equations in the forms that people and integrators read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from gmeql.differential.motion.measured import Columns
from gmeql.formula.expression import Expression
from gmeql.formula.printing.code import C, Python, c_helpers, comment, is_code_name, python_helpers
from gmeql.formula.printing.notation import identifiers
from gmeql.formula.printing.writing import write
from gmeql.formula.nodes import Variable

Equations = Sequence[Expression]


def lines(columns: Columns, equations: Equations) -> list[str]:
    """An equation a line: x' = ..., or y'' = ... in a system of second order."""
    return [
        f"{name}{chr(39) * columns.order} = {equation}"
        for name, equation in zip(columns.measured, equations, strict=True)
    ]


def to_text(columns: Columns, equations: Equations) -> str:
    """The equations as text, one a line."""
    return "\n".join(lines(columns, equations))


def to_sympy(columns: Columns, equations: Equations) -> list[Any]:
    """SymPy equations, `Eq(Derivative(x(t), t), ...)`; inputs are functions of time too."""
    import sympy

    time = sympy.Symbol(columns.time, real=True)
    found = []
    for name, equation in zip(columns.measured, equations, strict=True):
        right = equation.sympy()
        symbols = {str(symbol): symbol for symbol in right.free_symbols}
        replaced = {
            symbols[column]: _function(sympy, columns, column, time)
            for column in (*columns.states, *columns.inputs)
            if column in symbols
        }
        left = sympy.Derivative(sympy.Function(name)(time), (time, columns.order))
        found.append(sympy.Eq(left, right.xreplace(replaced), evaluate=False))
    return found


def _function(sympy: Any, columns: Columns, column: str, time: Any) -> Any:
    if column in columns.states[len(columns.measured) :]:
        measured = columns.measured[columns.states.index(column) - len(columns.measured)]
        return sympy.Derivative(sympy.Function(measured)(time), time)
    return sympy.Function(column)(time)


def to_latex(columns: Columns, equations: Equations) -> str:
    r"""LaTeX, the equations aligned at their signs: `\dot{x} &= ...`."""
    dot = "\\dot" if columns.order == 1 else "\\ddot"
    rows = [
        f"{dot}{{{Expression(Variable(j), columns.names).latex()}}} &= {equation.latex()}"
        for j, equation in enumerate(equations)
    ]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def to_python(columns: Columns, equations: Equations) -> str:
    """Source of `right_side(t, x)` for `scipy.integrate.solve_ivp`; with inputs `right_side(t, x, inputs)`."""
    third = ", inputs" if columns.inputs else ""
    return _python(columns, equations, "numpy", f"right_side(t, x{third})", "inputs(t)")


def to_jax(columns: Columns, equations: Equations) -> str:
    """Source of `vector_field(t, x, args)` for `diffrax.ODETerm`; `args` is a function that gives the inputs."""
    return _python(columns, equations, "jax.numpy", "vector_field(t, x, args)", "args(t)")


def _python(columns: Columns, equations: Equations, library: str, signature: str, inputs: str) -> str:
    names = identifiers(columns.names, lambda name: is_code_name(name) and name not in ("t", "x", "inputs", "args"))
    notation = Python(names)
    values = [write(equation.root, notation) for equation in _whole(columns, equations)]
    parts = [f"    part_{number} = {part}" for number, part in enumerate(notation.parts, start=1)]
    text = [f"import {library} as np", "", *(f"# {comment(line)[1:-1]}" for line in lines(columns, equations)), "", ""]
    text += [*python_helpers(notation), f"def {signature}:"]
    count = len(columns.states)
    places = [f"x[{k}]" for k in range(count)]
    known = [f"known[{k}]" for k in range(len(columns.inputs))]
    if known:
        text.append(f"    known = np.atleast_1d(np.asarray({inputs}))")
    for name, given, place in zip(names, columns.names, [*places, *known, "t"], strict=False):
        text.append(f"    {name} = {place}{'' if name == given else f'  # {comment(given)}'}")
    text += [*parts, "    return np.stack(np.broadcast_arrays(", *(f"        {value}," for value in values)]
    return "\n".join([*text, "    ))", ""])


def to_c(columns: Columns, equations: Equations) -> str:
    """Source of a C99 function `void right_side(double t, const double *x, const double *u, double *slope)`."""
    count = len(columns.states)
    names = [f"x[{k}]" for k in range(count)] + [f"u[{k}]" for k in range(len(columns.inputs))]
    notation = C((*names, "t") if columns.with_time else tuple(names))
    values = [write(equation.root, notation) for equation in _whole(columns, equations)]
    text = [f"/* {comment(line)[1:-1]} */" for line in lines(columns, equations)]
    text += ["#include <math.h>", "", *c_helpers(notation)]
    text += [f"/* {name} is {comment(given)} */" for name, given in zip(names, columns.names, strict=False)]
    text += [
        "void right_side(double t, const double *x, const double *u, double *slope)",
        "{",
        "    (void)t;",
        "    (void)u;",
    ]
    text += [f"    const double part_{number} = {part};" for number, part in enumerate(notation.parts, start=1)]
    text += [f"    slope[{k}] = {value};" for k, value in enumerate(values)]
    return "\n".join([*text, "}", ""])


def _whole(columns: Columns, equations: Equations) -> list[Expression]:
    roots = columns.whole(tuple(equation.root for equation in equations))
    return [Expression(root, columns.names) for root in roots]


def to_json(columns: Columns, equations: Equations) -> str:
    """Plain data of every equation; `Expression.from_dict` reads each back."""
    named = zip(columns.measured, equations, strict=True)
    return json.dumps({name: equation.to_dict() for name, equation in named}, allow_nan=False)


EXPORTS: dict[str, Callable[[Columns, Equations], Any]] = {
    "text": to_text,
    "sympy": to_sympy,
    "latex": to_latex,
    "python": to_python,
    "jax": to_jax,
    "c": to_c,
    "json": to_json,
}
"""Every format by name."""


def export(columns: Columns, equations: Equations, format: str) -> Any:
    """The system in one of the formats of `EXPORTS`."""
    if not isinstance(format, str) or format not in EXPORTS:
        raise ValueError(f"unknown export format {format!r}; known: {', '.join(EXPORTS)}")
    return EXPORTS[format](columns, equations)
