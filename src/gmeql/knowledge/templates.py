"""Outer forms that a user fixes: "a*exp(-b*f(x)) + g(y, z)" with functions still to be found and named constants.

A template is a tree with open places. A free function may stand in several places, with other arguments each: it is one
function, and its constants are the same everywhere. A formula without free functions is a template too, in which only
constants are open. D(f(x), x) is the derivative of what f turns out to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gmeql.formula.calculus import expand
from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import Call, Constant, Leaf, Node, Variable, transform, used_columns, whole_exponent
from gmeql.formula.parsing import FIRST_CALL, FIRST_NAME, OpenForm, parse_open_form

UNKNOWN = range(FIRST_CALL, FIRST_NAME)
"""Variables that stand for calls of functions that are still open."""
MAX_ARGUMENTS = 10
"""Most arguments of a free function."""


@dataclass(frozen=True)
class NamedConstant:
    """A constant of a template, between two bounds."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    def clip(self, value: float) -> float:
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Template:
    """An outer form over columns. `V` columns, `F` free functions, `K` named constants."""

    text: str
    names: tuple[str, ...]
    form: OpenForm
    constants: tuple[NamedConstant, ...]

    @cached_property
    def functions(self) -> dict[str, int]:
        """The free functions in the order in which they first stand, with their number of arguments."""
        return {name: len(arguments) for name, arguments in self.form.calls}

    def uses(self, function: int) -> int:
        """In how many places a free function stands."""
        name = list(self.functions)[function]
        return sum(called == name for called, _ in self.form.calls)

    def compose(self, inner: Sequence[Node | None], constants: Sequence[Node]) -> Node:
        """The formula with every free function in its places; one that is None stays open.

        `inner` are trees over a function's own arguments; leaves from `FIRST_CALL` on pass through.
        """
        order = {name: i for i, name in enumerate(self.functions)}

        def leaf(node: Leaf) -> Node:
            if not isinstance(node, Variable) or node.index < FIRST_CALL:
                return node
            if node.index >= FIRST_NAME:
                return constants[node.index - FIRST_NAME]
            name, arguments = self.form.calls[node.index - FIRST_CALL]
            found = inner[order[name]]
            return node if found is None else put_in(found, arguments)

        return expand(transform(self.form.root, leaf), UNKNOWN)

    def fill(self, root: Node, function: int, found: Node) -> Node:
        """A composed formula in which one function is still open, with it."""
        name = list(self.functions)[function]

        def leaf(node: Leaf) -> Node:
            if isinstance(node, Variable) and FIRST_CALL <= node.index < FIRST_NAME:
                called, arguments = self.form.calls[node.index - FIRST_CALL]
                return put_in(found, arguments) if called == name else node
            return node

        return expand(transform(root, leaf), UNKNOWN)

    def arguments_of(self, function: int) -> list[tuple[Node, ...]]:
        """What a free function is given, in each of its places."""
        name = list(self.functions)[function]
        return [arguments for called, arguments in self.form.calls if called == name]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the text, the columns, the bounds."""
        bounds = {c.name: [_plain(c.low), _plain(c.high)] for c in self.constants}
        return {"text": self.text, "names": list(self.names), "constants": bounds}


def _plain(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def template_from_dict(data: Mapping[str, Any]) -> Template:
    """What `Template.to_dict` gave."""
    return read_template(data["text"], data["names"], data["constants"])


def put_in(found: Node, arguments: Sequence[Node]) -> Node:
    """A tree over a function's own arguments with what it is given; other leaves stay."""

    def leaf(node: Leaf) -> Node:
        return arguments[node.index] if isinstance(node, Variable) and node.index < len(arguments) else node

    return transform(found, leaf)


def read_template(text: Any, names: Sequence[str], constants: Mapping[str, Any] | None = None) -> Template:
    """The template that a text spells over the columns `names`; a ValueError says what is wrong with it.

    `constants` gives bounds by name, (low, high) each, None where there is none.
    """
    if not isinstance(text, str):
        raise ValueError(f'template={short(text)} must be text such as "a*exp(-b*f(x)) + g(y, z)"')
    try:
        form = parse_open_form(text, names)
    except ValueError as error:
        raise ValueError(f"template {text!r}: {error}") from None
    given = dict(constants or {})
    unknown = [name for name in given if name not in form.names]
    if unknown:
        has = f"it has {listing(form.names)}" if form.names else "it has none"
        raise ValueError(f"constants names {short(unknown[0])}, which is no constant of the template; {has}")
    arities: dict[str, int] = {}
    for name, arguments in form.calls:
        if arities.setdefault(name, len(arguments)) != len(arguments):
            raise ValueError(f"template {text!r}: {name} takes {arities[name]} arguments in one place and {len(arguments)} "
                             "in another")  # fmt: skip
        if len(arguments) > MAX_ARGUMENTS:
            raise ValueError(
                f"template {text!r}: {name} takes {len(arguments)} arguments; at most {MAX_ARGUMENTS} can be"
            )
        if not any(used_columns(argument) for argument in arguments):
            raise ValueError(f"template {text!r}: {name} is given no column")
    return Template(text, tuple(names), form, tuple(NamedConstant(n, *_bounds(n, given.get(n))) for n in form.names))


def _bounds(name: str, given: Any) -> tuple[float, float]:
    if given is None:
        return -math.inf, math.inf
    try:
        low, high = given
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ValueError(
            f'constants[{name!r}]={short(given)} must be a pair (low, high), as in {{"a": (0, 10)}}'
        ) from None
    if not low < high:
        raise ValueError(f"constants[{name!r}]={short(given)}: the lower bound must be below the upper one")
    return low, high


def open_constants(root: Node, first: int) -> tuple[Node, list[float]]:
    """A tree with its constants as variables numbered from `first`, and their values; whole exponents stay."""
    values: list[float] = []

    def visit(node: Node) -> Node:
        if isinstance(node, Constant):
            values.append(node.value)
            return Variable(first + len(values) - 1)
        if not isinstance(node, Call):
            return node
        if node.operator == "pow" and whole_exponent(node) is not None:
            return Call("pow", (visit(node.args[0]), node.args[1]), node.protected)
        return Call(node.operator, tuple(visit(arg) for arg in node.args), node.protected)

    return visit(root), values


def close_constants(root: Node, first: int, values: Sequence[float]) -> Node:
    """The inverse of `open_constants`, with other values."""

    def leaf(node: Leaf) -> Node:
        return Constant(values[node.index - first]) if isinstance(node, Variable) and node.index >= first else node

    return transform(root, leaf)
