"""Forms for compilers: source code of a Python function over NumPy, and of a C function of one row."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gmeql.formula.nodes import N_ARY, Call, used_columns
from gmeql.formula.operators import get_operator
from gmeql.formula.printing.markup import to_text
from gmeql.formula.printing.notation import Formula, identifiers
from gmeql.formula.printing.writing import (
    ATOM,
    Notation,
    Written,
    differs_when_protected,
    is_negative,
    signed_value,
    write,
)
from gmeql.formula.tracing import NotTraceable, Traced, trace

_RESERVED = re.compile(r"part_\d+|(protected|bounded|user)_\w*|np|numpy|math|formula|column|float|abs|a|b")


def is_code_name(name: str) -> bool:
    """Whether a column name can stand in source code as it is."""
    return (
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None
        and len(name) <= 60
        and not keyword.iskeyword(name)
        and not keyword.issoftkeyword(name)
        and _RESERVED.fullmatch(name) is None
    )


def comment(text: str, limit: int = 200) -> str:
    """Any text as one line of printable ASCII that ends no comment and continues no line."""
    text = json.dumps(text if len(text) <= limit else text[:limit] + "...")
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\\\", "\\u005c")


@dataclass(frozen=True, slots=True)
class Helper:
    """A small function written beside the formula: parameters, values of its variables c1, c2, ..., and its value."""

    parameters: tuple[str, ...]
    variables: tuple[str, ...]
    value: str


def _repeated(traced: Any) -> frozenset[int]:
    """Which traced operations are used more than once."""
    seen: set[int] = set()
    repeated: set[int] = set()
    waiting = [traced]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Traced) or node.operation == "argument":
            continue
        if id(node) in seen:
            repeated.add(id(node))
            continue
        seen.add(id(node))
        waiting.extend(node.args)
    return frozenset(repeated)


class Code(Notation):
    """Source code: exact numbers, the order of evaluation kept, helpers for what the language has no word for."""

    pretty = False
    folds_constants = True
    longest_chain: int | None = 32
    primitives: ClassVar[dict[str, str]] = {}
    """Templates of the traced primitives."""
    not_finite = ("nan", "inf")

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.parts: list[str] = []
        self.helpers: dict[str, Helper] = {}

    def number(self, value: float) -> Written:
        if not math.isfinite(value):
            nan, inf = self.not_finite
            return Written(nan if math.isnan(value) else inf, ATOM, value < 0, value=abs(value))
        return Written(repr(abs(float(value))), ATOM, is_negative(value), value=abs(float(value)))

    def prepare(self, node: Call, args: list[Written]) -> tuple[Call, list[Written]]:
        """A protected sum or product of many is the plain one of its bounded arguments."""
        operator = get_operator(node.operator)
        if not (node.protected and node.operator in N_ARY and differs_when_protected(operator)):
            return node, args
        bound = operator.domains[0].project
        bounded = [
            self.number(float(bound(np, signed_value(arg))))
            if arg.value is not None
            else self.helper(f"bounded_{node.operator}", trace(bound, 1), [arg])
            for arg in args
        ]
        return Call(node.operator, node.args), bounded

    def special(self, node: Call, args: Sequence[Written]) -> Written:
        operator = get_operator(node.operator)
        try:
            traced = trace(operator.protected if node.protected else operator.natural, len(node.args))
            word = operator.name if operator.name.isascii() else f"operator_{operator.opcode}"
            return self.helper(f"{'protected' if node.protected else 'user'}_{word}", traced, args)
        except NotTraceable as error:
            raise ValueError(
                f"operator {node.operator!r} cannot be written as {self.language}: {error}. "
                "The formats 'numpy', 'jax' and 'json' work with every operator."
            ) from error

    def helper(self, name: str, traced: Any, args: Sequence[Written]) -> Written:
        """A call of a helper function that computes what was traced."""
        if name not in self.helpers:
            shared: dict[int, str] = {}
            value = self.emit(traced, "ab", _repeated(traced), shared)
            self.helpers[name] = Helper(tuple("ab"[: len(args)]), tuple(shared.values()), value)
        return self.function(name, args)

    def emit(
        self, traced: Any, arguments: Sequence[str], repeated: frozenset[int] = frozenset(), shared: Any = None
    ) -> str:
        """Code of traced operations; repeated ones are collected in `shared` as values of variables c1, c2, ..."""
        if not isinstance(traced, Traced):
            piece = self.number(float(traced))
            return self.group(self.minus(piece)) if piece.negative else piece.text
        if traced.operation == "argument":
            return arguments[traced.args[0]]
        if id(traced) in repeated and id(traced) in shared:
            return f"c{1 + list(shared).index(id(traced))}"
        template = self.primitives.get(traced.operation)
        if template is None:
            raise NotTraceable(f"{traced.operation!r} has no word there")
        text = template.format(*(self.emit(arg, arguments, repeated, shared) for arg in traced.args))
        if id(traced) not in repeated:
            return text
        shared[id(traced)] = text
        return f"c{len(shared)}"

    def spill(self, piece: Written) -> Written:
        self.parts.append(self.render(piece))
        return Written(f"part_{len(self.parts)}")


ARITHMETIC = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0}*{1})",
    "div": "({0}/{1})",
    "neg": "(-{0})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
}
_NUMPY_WORDS = {"asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan"} | {
    name: f"np.{name}"
    for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "sinh", "cosh", "abs", "sign", "log1p", "expm1")
}


class Python(Code):
    language = "Python"
    functions: ClassVar = _NUMPY_WORDS
    primitives: ClassVar = (
        ARITHMETIC
        | {name: f"{word}({{0}})" for name, word in _NUMPY_WORDS.items()}
        | {
            "pow": "({0}**{1})",
            "where": "np.where({0}, {1}, {2})",
            "and": "({0} & {1})",
            "or": "({0} | {1})",
            "not": "(~{0})",
            "minimum": "np.minimum({0}, {1})",
            "maximum": "np.maximum({0}, {1})",
        }
    )
    not_finite = ("np.nan", "np.inf")


def python_helpers(notation: Python) -> list[str]:
    """Lines that define what the written formulas call."""
    lines = []
    for name, helper in notation.helpers.items():
        lines.append(f"def {name}({', '.join(helper.parameters)}):")
        lines += [f"    c{number} = {value}" for number, value in enumerate(helper.variables, start=1)]
        lines += [f"    return {helper.value}", "", ""]
    return lines


def to_python(expression: Formula) -> str:
    """Source of a Python function `formula(column, ...)` over NumPy, for numbers and arrays alike."""
    names = identifiers(expression.names, is_code_name)
    notation = Python(names)
    value = write(expression.root, notation)
    # A comment in the first two lines could declare the encoding of the file, so none of ours stands there.
    lines = ["import numpy as np", "", f"# {comment(to_text(expression))[1:-1]}", "", ""]
    lines += python_helpers(notation)
    lines += [f"def formula({', '.join(names)}):"]
    lines += ['    """Value of the formula for numbers or arrays, one argument per column."""']
    for index in used_columns(expression.root):
        note = "" if names[index] == expression.names[index] else f"  # column {comment(expression.names[index])}"
        lines.append(f"    {names[index]} = np.asarray({names[index]}, dtype=float){note}")
    lines += [f"    part_{number} = {part}" for number, part in enumerate(notation.parts, start=1)]
    return "\n".join([*lines, f"    return {value}", ""])


class C(Code):
    language = "C"
    functions: ClassVar = {"abs": "fabs"}
    primitives: ClassVar = (
        ARITHMETIC
        | {name: f"{name}({{0}})" for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "sinh", "cosh")}
        | {name: f"{name}({{0}})" for name in ("asin", "acos", "atan", "log1p", "expm1")}
        | {
            "abs": "fabs({0})",
            "pow": "pow({0}, {1})",
            "sign": "(double)(({0} > 0) - ({0} < 0))",
            "where": "({0} ? {1} : {2})",
            "and": "({0} && {1})",
            "or": "({0} || {1})",
            "not": "(!{0})",
            # written out because fmin and fmax swallow nan
            "minimum": "({0} > {1} ? {1} : {0})",
            "maximum": "({0} < {1} ? {1} : {0})",
        }
    )
    not_finite = ("NAN", "INFINITY")

    def raised(self, base: Written, exponent: Written) -> Written:
        return Written(f"pow({self.render(base)}, {self.render(exponent)})")


def c_helpers(notation: C) -> list[str]:
    """Lines that define what the written formulas call."""
    lines = []
    for name, helper in notation.helpers.items():
        lines += [f"static double {name}({', '.join(f'double {word}' for word in helper.parameters)})", "{"]
        lines += [f"    const double c{number} = {value};" for number, value in enumerate(helper.variables, start=1)]
        lines += [f"    return {helper.value};", "}", ""]
    return lines


def to_c(expression: Formula) -> str:
    """Source of a C99 function `double formula(const double *x)` of one row of columns."""
    notation = C(tuple(f"x[{index}]" for index in range(len(expression.names))))
    value = write(expression.root, notation)
    lines = [f"/* {comment(to_text(expression))[1:-1]} */", "#include <math.h>", ""]
    lines += c_helpers(notation)
    lines += [
        f"/* x[{index}] is column {comment(expression.names[index])} */" for index in used_columns(expression.root)
    ]
    lines += ["double formula(const double *x)", "{"]
    lines += [f"    const double part_{number} = {part};" for number, part in enumerate(notation.parts, start=1)]
    if not used_columns(expression.root):
        lines.append("    (void)x;")
    return "\n".join([*lines, f"    return {value};", "}", ""])
