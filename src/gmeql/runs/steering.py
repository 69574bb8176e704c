"""Steering a search by hand: pin a sub-expression, forbid a function or a sub-expression, and go on from what is known.

A pinned sub-expression joins the table as a column of its own, so that a formula gets it for the price of one; in the
end it is written out again and the formula speaks of the real columns only. A forbidden function leaves the set of
functions; formulas that hold a forbidden sub-expression leave the front.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.network.families import DEFAULT_FUNCTIONS
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, fold, transform, tree_complexity
from gmeql.formula.operators import EXPONENTS, get_operator
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify

if TYPE_CHECKING:
    from gmeql.search.events import Member
    from gmeql.search.judging.outlook import Outlook
    from gmeql.tables.training import Training

MAX_LENGTH = 300
MAX_PINS = 8


def parse(text: str, names: Sequence[str]) -> Expression:
    """An expression over the columns from text such as "sin(a)/b" or "`flow rate`**2". Nothing is evaluated.

    >>> str(parse("a*sin(b)", ["a", "b"]))
    'a*sin(b)'
    """
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"expression {text[:40]!r}...: longer than {MAX_LENGTH} characters; pin a smaller part")
    try:
        return Expression(parse_tree(text, names), tuple(names))
    except ValueError as error:
        raise ConfigError(f"expression {text!r}: {error}") from None


# ------------------------------------------------------------------------------------------------- looking inside


def operators_in(expression: Expression) -> frozenset[str]:
    """Names of all operators of a formula."""
    return fold(expression.root, lambda leaf: frozenset(), lambda call, args: frozenset({call.operator}).union(*args))


def contains(expression: Expression, part: Expression) -> bool:
    """Whether `part` occurs in the formula; order of sums and products does not count, constants to 6 digits.

    >>> contains(parse("2*b*a + 1", ["a", "b"]), parse("a*b", ["a", "b"]))
    True
    """
    wanted = _key(part.root)
    found = [False]

    def leaf(node: Constant | Variable) -> Any:
        key = _key(node)
        found[0] |= key == wanted
        return key

    def call(node: Call, args: list[Any]) -> Any:
        key = _call_key(node.operator, args)
        same_kind = isinstance(wanted, tuple) and key[0] == wanted[0] and key[0] in ("add", "mul")
        found[0] |= key == wanted or (same_kind and not Counter(wanted[1]) - Counter(key[1]))
        return key

    fold(expression.root, leaf, call)
    return found[0]


def _key(node: Node) -> Any:
    return fold(node, _leaf_key, lambda call, args: _call_key(call.operator, args))


def _leaf_key(leaf: Constant | Variable) -> Any:
    return ("constant", f"{leaf.value:.6g}") if isinstance(leaf, Constant) else ("variable", str(leaf.index))


def _call_key(operator: str, args: Sequence[Any]) -> Any:
    """One key for all spellings: powers by name or exponent, differences as sums, quotients as products."""
    if operator in EXPONENTS:
        return ("pow", (args[0], ("constant", f"{EXPONENTS[operator]:.6g}")))
    if operator == "neg":
        return ("mul", tuple(sorted([("constant", "-1"), args[0]], key=repr)))
    if operator == "sub":
        return _call_key("add", [args[0], _call_key("neg", [args[1]])])
    if operator == "div":
        return _call_key("mul", [args[0], _call_key("inv", [args[1]])])
    if operator in ("add", "mul"):
        flat: list[Any] = []
        for arg in args:
            flat.extend(arg[1] if arg[0] == operator else [arg])
        return (operator, tuple(sorted(flat, key=repr)))
    return (operator, tuple(args))


# ------------------------------------------------------------------------------------------------- steering a fit


def standard_functions() -> tuple[str, ...]:
    """Names of the functions that a search uses when none are given."""
    return tuple(DEFAULT_FUNCTIONS)


@dataclass(frozen=True)
class Steering:
    """What was pinned and forbidden, understood."""

    pins: tuple[Expression, ...]
    forbidden_functions: frozenset[str]
    forbidden_parts: tuple[Expression, ...]

    @property
    def active(self) -> bool:
        """Whether anything is pinned or forbidden."""
        return bool(self.pins or self.forbidden_functions or self.forbidden_parts)

    @classmethod
    def of(cls, settings: FitSettings, names: Sequence[str]) -> Steering:
        """Read the settings' pins and forbids for a table with these columns; a `ConfigError` says what is wrong."""
        if len(settings.pin) > MAX_PINS:
            raise ConfigError(f"--pin: {len(settings.pin)} expressions; at most {MAX_PINS} can be pinned at once")
        functions, parts = set(), []
        for text in settings.forbid:
            try:
                functions.add(get_operator(text).name)
            except ValueError:
                parts.append(parse(text, names))
        return cls(tuple(parse(text, names) for text in settings.pin), frozenset(functions), tuple(parts))

    def functions(self, given: Sequence[str] | None, standard: Sequence[str]) -> tuple[str, ...] | None:
        """The functions a steered search may use; None leaves the standard set as it is."""
        if not self.forbidden_functions:
            return None if given is None else tuple(given)
        left = tuple(n for n in (given or standard) if get_operator(n).name not in self.forbidden_functions)
        if not left:
            raise ConfigError("--forbid: no function is left; allow at least one")
        return left

    def extend(self, training: Training) -> Training:
        """The table with a column for each pinned sub-expression."""
        if not self.pins:
            return training
        columns, names = [training.X], list(training.names)
        for pin in self.pins:
            values = pin(training.X)
            if not np.isfinite(values).all():
                row = int(training.rows[np.flatnonzero(~np.isfinite(values))[0]])
                where = f"row {row} of {training.source}"
                raise ConfigError(f"--pin {pin}: has no finite value in {where}; pin another part")
            columns.append(values[:, None])
            names.append(_fresh_name(f"({pin})", names))
        return replace(training, X=np.hstack(columns), names=tuple(names))

    def allows(self, expression: Expression) -> bool:
        """Whether the formula holds nothing forbidden."""
        return not (operators_in(expression) & self.forbidden_functions) and not any(
            contains(expression, part) for part in self.forbidden_parts
        )

    def write_out(self, expression: Expression, names: Sequence[str]) -> Expression:
        """The formula over the real columns, pinned parts in place of their columns, equal factors and terms as one.

        `speed*(speed/grip)` is written `speed**2/grip`, unless that spelling holds something forbidden.
        """
        count = len(names)

        def leaf(node: Constant | Variable) -> Node:
            if isinstance(node, Variable) and node.index >= count:
                return self.pins[node.index - count].root
            return node

        written = Expression(transform(expression.root, leaf), tuple(names))
        if not self.pins:
            return written
        try:
            shorter = written.with_root(_shortened(written.root))
        except ArithmeticError:  # a constant that no float holds
            return written
        return shorter if self.allows(shorter) else written


def _shortened(root: Node) -> Node:
    """In normal form as a whole, or part by part where that of the whole is longer: of `x*x/y + (x/y)**3` the first."""
    whole = simplify(root)
    if tree_complexity(whole) <= tree_complexity(root) or not isinstance(root, Call):
        return whole if tree_complexity(whole) <= tree_complexity(root) else root
    return Call(root.operator, tuple(map(_shortened, root.args)), protected=root.protected)


def _fresh_name(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name = f"({name})"
    return name


def merge(members: Iterable[Member | Any], steering: Steering, names: Sequence[str]) -> list[Any]:
    """Members of one front over the real columns, without those that hold something forbidden."""
    from gmeql.search.events import Member

    pairs = [(m, Member(steering.write_out(m.expression, names), m.loss, 0, m.outlook)) for m in members]
    left_out = {m.complexity for m, written in pairs if not steering.allows(written.expression)}
    return [
        replace(written, complexity=written.expression.complexity, outlook=_beside_others(m.outlook, left_out))
        for m, written in pairs
        if steering.allows(written.expression)
    ]


def _beside_others(outlook: Outlook | None, left_out: set[int]) -> Outlook | None:
    """The outlook without what the formula gains over simpler ones of these complexities, which are `left_out`: one that says no
    more than a forbidden formula still says more than what may be chosen."""
    if outlook is None or not any(complexity in left_out for complexity, _ in outlook.gains):
        return outlook
    gains = tuple((complexity, z) for complexity, z in outlook.gains if complexity not in left_out)
    return replace(outlook, gains=gains, support=min((z for _, z in gains), default=math.inf))
