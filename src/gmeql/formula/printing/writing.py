"""The one walk that writes a tree: signs, parentheses and order of every written form are decided here.

A `Notation` says how a language spells numbers, names, products, powers and functions; the base class is plain text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gmeql.formula.domains import EVERYWHERE
from gmeql.formula.nodes import Call, Constant, Leaf, Node, fold, whole_exponent
from gmeql.formula.operators import Operator, get_operator
from gmeql.formula.printing.notation import DIGITS, number_text

SUM, PRODUCT, POWER, ATOM = range(4)
"""How tightly a written part binds."""


@dataclass(frozen=True, slots=True)
class Written:
    """A written part: its text without the sign, how tightly it binds, and what it is made of."""

    text: str
    level: int = ATOM
    negative: bool = False
    terms: tuple[Written, ...] = ()
    factors: tuple[Written, ...] = ()
    divisors: tuple[Written, ...] = ()
    value: float | None = None
    head: tuple[str, str] | None = None
    is_column: bool = False
    """Whether it is a column, or a plain power of one: these stand before brackets and functions in a product."""
    nesting: int = 0


class Notation:
    """How a language spells a formula. This base class is plain text; others override what differs."""

    language = "text"
    pretty = True
    folds_constants = False
    """Whether calls of numbers are written as the number they come to, which need not be finite."""
    longest_chain: int | None = None
    """Most arguments in one sum or product, and most nesting, before a part is moved to a variable of its own."""
    functions: ClassVar[dict[str, str]] = {}
    """Words for operators where they differ from the operator's name."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    # --- atoms

    def number(self, value: float) -> Written:
        text = number_text(abs(value), DIGITS if self.pretty else None)
        return Written(text, ATOM, is_negative(value), value=abs(value))

    def constant(self, value: float) -> Written:
        """A constant of the tree; they come from left to right, as in `Expression.constants`."""
        return self.number(value)

    def name(self, index: int) -> Written:
        return Written(self.names[index], is_column=True)

    def group(self, text: str) -> str:
        return f"({text})"

    def minus(self, piece: Written) -> str:
        return f"-{piece.text}"

    # --- the grammar

    def render(self, piece: Written, level: int = SUM) -> str:
        """Text that may stand where only parts binding at least as tightly as `level` may."""
        text = self.minus(piece) if piece.negative else piece.text
        return self.group(text) if piece.level < level or (piece.negative and level > SUM) else text

    def sum(self, terms: Sequence[Written]) -> Written:
        """Terms with their signs; the first positive one leads where people read."""
        if self.pretty:
            flat: list[Written] = []
            for term in terms:
                flat.extend(term.terms if term.terms and not term.negative else (term,))
            lead = next((i for i, term in enumerate(flat) if not term.negative), 0)
            terms = [flat[lead], *flat[:lead], *flat[lead + 1 :]]
        text = self.render(terms[0])
        for term in terms[1:]:
            part = replace(term, negative=False)
            # a + (b + c) keeps its parentheses where the order of operations counts
            text += self.sign(term.negative) + self.render(part, SUM + 1)
        return Written(text, SUM, terms=tuple(terms), nesting=_nesting(terms, len(terms) - 1))

    def sign(self, negative: bool) -> str:
        return " - " if negative else " + "

    def negate(self, piece: Written) -> Written:
        if self.pretty and _is_all_negative(piece):
            return self._opposite(piece)
        if piece.level == SUM:
            piece = Written(self.group(piece.text), nesting=piece.nesting + 1)
        return replace(piece, negative=not piece.negative)

    def product(self, factors: Sequence[Written], divisors: Sequence[Written] = ()) -> Written:
        """Product of the factors over the divisors, signs merged, ones dropped."""
        negative = sum(piece.negative for piece in (*factors, *divisors)) % 2 == 1
        above = [replace(piece, negative=False) for piece in factors]
        below = [replace(piece, negative=False) for piece in divisors]
        if self.pretty:
            negative ^= self._hand_on_signs(above, below)
            above, below = (
                [part for piece in above for part in _factors(piece)] + [d for piece in below for d in piece.divisors],
                [d for piece in above for d in piece.divisors] + [part for piece in below for part in _factors(piece)],
            )
            for pieces in (above, below):
                pieces.sort(key=lambda piece: 0 if piece.value is not None else 1 if piece.is_column else 2)
        above = [piece for piece in above if piece.value != 1.0]
        below = [piece for piece in below if piece.value != 1.0]
        if len(above) == 1 and not below:
            return self.negate(above[0]) if negative else above[0]
        if not above and not below:
            return replace(self.number(1.0), negative=negative)
        text = self.fraction(above, below) if below else self.times(above)
        nesting = _nesting((*above, *below), len(above) + len(below) - 1)
        return Written(text, PRODUCT, negative, factors=tuple(above), divisors=tuple(below), nesting=nesting)

    def _hand_on_signs(self, above: list[Written], below: list[Written]) -> bool:
        """Write sums of nothing but negative terms without signs; whether an odd number of them is left over, which a
        difference that stands below the line, or beside them, takes by its order."""
        odd = False
        for pieces in (above, below):
            for place, piece in enumerate(pieces):
                if _is_all_negative(piece):
                    pieces[place], odd = self._opposite(piece), not odd
        for pieces in (below, above) if odd else ():
            for place, piece in enumerate(pieces):
                if any(term.negative for term in piece.terms):
                    pieces[place] = self._opposite(piece)
                    return False
        return odd

    def _opposite(self, total: Written) -> Written:
        return self.sum([replace(term, negative=not term.negative) for term in total.terms])

    def times(self, factors: Sequence[Written]) -> str:
        first = self.render(factors[0], POWER if self.pretty else PRODUCT)
        return "*".join([first, *(self.render(factor, POWER) for factor in factors[1:])])

    def fraction(self, above: Sequence[Written], below: Sequence[Written]) -> str:
        top = self.times(above) if above else self.number(1.0).text
        bottom = self.render(below[0], POWER) if len(below) == 1 else self.group(self.times(below))
        return f"{top}/{bottom}"

    def power(self, base: Written, exponent: Written) -> Written:
        value = None if exponent.value is None else -exponent.value if exponent.negative else exponent.value
        if self.pretty and value is not None:
            if value == 0.5:
                return self.function("sqrt", [base])
            if value < 0:
                return self.product([], [self.power(base, replace(exponent, negative=False))])
            if value == 1.0:
                return base
            if value % 2.0 == 0.0 and _is_all_negative(base):
                base = self._opposite(base)
        is_column = base.is_column and value is not None
        return replace(self.raised(base, exponent), is_column=is_column, nesting=_nesting((base, exponent), 1))

    def raised(self, base: Written, exponent: Written) -> Written:
        bare_sign = exponent.negative and exponent.value is not None
        upper = self.minus(exponent) if bare_sign else self.render(exponent, ATOM)
        return Written(f"{self.render(base, ATOM)}**{upper}", POWER)

    def function(self, operator: str, args: Sequence[Written]) -> Written:
        head = self.functions.get(operator, operator)
        return Written(f"{head}({', '.join(map(self.render, args))})", nesting=_nesting(args, 1))

    def prepare(self, node: Call, args: list[Written]) -> tuple[Call, list[Written]]:
        """A call in the form this notation writes it in."""
        return node, args

    def special(self, node: Call, args: Sequence[Written]) -> Written:
        """A call that the language has no word for: a protected form or an operator of the user's own."""
        return self.function(f"protected_{node.operator}" if node.protected else node.operator, args)

    def spill(self, piece: Written) -> Written:
        """A part that grew too long, moved to a variable of its own where the language has variables."""
        return piece


def is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _is_all_negative(piece: Written) -> bool:
    return bool(piece.terms) and all(term.negative for term in piece.terms)


def _factors(piece: Written) -> tuple[Written, ...]:
    return piece.factors if piece.factors or piece.divisors else (piece,)


def _nesting(pieces: Iterable[Written], more: int) -> int:
    return max((piece.nesting for piece in pieces), default=0) + more


def differs_when_protected(operator: Operator) -> bool:
    """Whether the protected form is another function than the natural one."""
    return operator.protected_override is not None or any(domain != EVERYWHERE for domain in operator.domains)


def write(root: Node, notation: Notation) -> str:
    """The tree in a notation."""

    def leaf(node: Leaf) -> Written:
        return notation.constant(node.value) if isinstance(node, Constant) else notation.name(node.index)

    def call(node: Call, args: list[Written]) -> Written:
        node, args = notation.prepare(node, args)
        longest = notation.longest_chain
        if longest and len(args) > longest:
            total = notation.spill(apply(node, args[:longest]))
            for start in range(longest, len(args), longest):
                total = notation.spill(apply(node, [total, *args[start : start + longest]]))
            return total
        piece = apply(node, args)
        return notation.spill(piece) if longest and piece.nesting > longest else piece

    def apply(node: Call, args: list[Written]) -> Written:
        operator = get_operator(node.operator)
        is_special = node.protected and differs_when_protected(operator)
        if notation.pretty and is_special:
            # People are shown sqrt(abs(x)); clipping at the ends of a range is left to the exact forms.
            domains = operator.domains * len(args) if len(operator.domains) == 1 else operator.domains
            args = [
                notation.function("abs", [arg]) if domain.kind == "magnitude" else arg
                for arg, domain in zip(args, domains, strict=True)
            ]
        elif notation.folds_constants and (value := _constant_value(node, args)) is not None:
            return notation.number(value)
        elif is_special or operator.is_user_defined:
            return notation.special(node, args)
        return _spell(notation, node, operator, args)

    return notation.render(fold(root, leaf, call))


def _spell(notation: Notation, node: Call, operator: Operator, args: list[Written]) -> Written:
    name = operator.name
    if name == "id":
        return args[0]
    if name == "neg":
        return notation.negate(args[0])
    if name == "add":
        return notation.sum(args)
    if name == "sub":
        return notation.sum([args[0], notation.negate(args[1])])
    if name == "mul":
        return notation.product(args)
    if name == "div":
        return notation.product(args[:1], args[1:])
    if name == "inv":
        return notation.product([], args)
    if name == "pow":
        exponent = whole_exponent(node)
        return notation.power(args[0], args[1] if exponent is None else _whole(exponent))
    if operator.exponent is not None and operator.exponent.is_integer():
        return notation.power(args[0], _whole(int(operator.exponent)))
    return notation.function(name, args)


def _whole(exponent: int) -> Written:
    return Written(str(abs(exponent)), ATOM, exponent < 0, value=float(abs(exponent)))


def signed_value(piece: Written) -> np.float64:
    value = math.nan if piece.value is None else piece.value
    return np.float64(-value if piece.negative else value)


def _constant_value(node: Call, args: Sequence[Written]) -> float | None:
    """The number a call comes to where all its arguments are numbers: no language then has to divide 1 by 0."""
    if any(arg.value is None for arg in args):
        return None
    numbers = [signed_value(arg) for arg in args]
    operator = get_operator(node.operator)
    with np.errstate(all="ignore"):
        return float((operator.protected if node.protected else operator.natural)(np, *numbers))
