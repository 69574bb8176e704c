"""Every form a formula can leave in: text, SymPy, LaTeX, MathML, source code, callables, spreadsheet, JSON.

``EXPORTS`` is the one table of formats. All written forms come from one walk over the tree (``write``) that decides
signs, parentheses and order once; a ``Notation`` only says how a language spells numbers, names, products, powers
and functions. Notations for people (``pretty``) round constants and arrange as a person would; the others keep the
order of the floating-point operations, so that they compute the numbers that ``Expression`` computes.

Functions themselves are known to ``operators.py`` alone. What a language has no word for (protected readings, a user's
own operator) is traced from there and written out as a small helper function.

Column names can hold any text. They never reach code: identifiers are made from ``[A-Za-z0-9_]`` only, and the given
name stands beside them in an escaped comment.
"""

from __future__ import annotations

import functools
import html
import json
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gmeql.formula.expression import (
    N_ARY,
    Call,
    Constant,
    Expression,
    Node,
    Variable,
    evaluate,
    fold,
    transform,
    whole_exponent,
)
from gmeql.formula.operators import EVERYWHERE, Operator, get_operator
from gmeql.formula.tracing import NotTraceable, Traced, trace

DIGITS = 5
"""Significant digits of constants shown to people."""


# --- numbers ----------------------------------------------------------------------------------------------------------


def round_constant(value: float, digits: int = DIGITS) -> float:
    """A constant as shown to people: whole numbers below a million as they are, others to ``digits`` digits."""
    return value if value.is_integer() and abs(value) < 1e6 else float(f"{value:.{digits}g}")


def number_text(value: float, digits: int | None = None) -> str:
    """Shortest text of a number: 3 for 3.0, 1.2, 1.5e-07; of a rounded one never more than ``digits`` digits.

    >>> number_text(3.0), number_text(1.2), number_text(1.5e-7), number_text(2.9979e8, digits=5)
    ('3', '1.2', '1.5e-07', '2.9979e+08')
    """
    if digits is not None and abs(value) >= 1e6:
        return f"{value:.{digits}g}"
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def round_constants(expression: Expression, digits: int = DIGITS) -> Expression:
    """The expression with its constants rounded as shown to people."""

    def leaf(node: Constant | Variable) -> Node:
        if isinstance(node, Variable) or round_constant(node.value, digits) == node.value:
            return node
        return Constant(round_constant(node.value, digits))

    return expression.with_root(transform(expression.root, leaf))


# --- names ------------------------------------------------------------------------------------------------------------


def display_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names for people: control characters and line breaks blanked, nameless and repeated columns told apart.

    >>> display_names(["mass", "", "mass"])
    ('mass', 'column 2', 'mass (2)')
    """
    cleaned = []
    for index, name in enumerate(names):
        name = name if name.isprintable() else "".join(" " if _is_control(c) else c for c in name)
        cleaned.append(name if name.strip() else f"column {index + 1}")
    return _distinct(cleaned, "{name} ({count})")


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")


def _distinct(names: Sequence[str], pattern: str) -> tuple[str, ...]:
    """The names with repeated ones renamed by ``pattern``; first comers keep theirs."""
    taken, counts, result = set(names), dict.fromkeys(names, 0), []
    for name in names:
        counts[name] += 1
        new = name
        while counts[name] > 1 and new in taken:
            new = pattern.format(name=name, count=counts[name])
            counts[name] += new in taken
        taken.add(new)
        result.append(new)
    return tuple(result)


def is_plain_name(name: str) -> bool:
    """Whether a name is an identifier that no reader, and no compiler, takes for another one."""
    return name.isidentifier() and unicodedata.normalize("NFKC", name) == name


def identifiers(names: Sequence[str], keep: Callable[[str], bool]) -> tuple[str, ...]:
    """A distinct identifier for each name: the name itself where ``keep`` allows, else one made of [A-Za-z0-9_].

    >>> identifiers(["x1", "petal length (cm)", "1st", "", "x1"], str.isidentifier)
    ('x1', 'petal_length_cm', 'x_1st', 'x4', 'x1_2')
    """
    safe = []
    for index, name in enumerate(names):
        if not keep(name):
            name = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:40] or f"x{index + 1}"
            name = name if name[0].isalpha() and keep(name) else f"x_{name}"
        safe.append(name)
    # Kept names come first in the queue for their own spelling, made-up ones give way.
    order = sorted(range(len(names)), key=lambda i: safe[i] != names[i])
    distinct = _distinct([safe[i] for i in order], "{name}_{count}")
    result = [""] * len(names)
    for place, name in zip(order, distinct, strict=True):
        result[place] = name
    return tuple(result)


_RESERVED = re.compile(r"part_\d+|(protected|bounded|user)_\w*|np|numpy|math|formula|column|float|abs|a|b")


def _is_code_name(name: str) -> bool:
    """Whether a column name can stand in source code as it is."""
    return (
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None
        and len(name) <= 60
        and not keyword.iskeyword(name)
        and not keyword.issoftkeyword(name)
        and _RESERVED.fullmatch(name) is None
    )


def symbol_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the SymPy symbols: a plain name is kept; others become identifiers, because SymPy's own tools
    (``lambdify``, ``sympify`` of printed text) run what a symbol's name says."""
    return identifiers(names, is_plain_name)


_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
_LATEX_ESCAPES = {
    **{c: f"\\{c}" for c in "{}$&#%_"},
    **{"\\": r"\backslash ", "^": r"\wedge ", "~": r"\sim ", " ": r"\ ", "<": r"\lt ", ">": r"\gt ", "`": r"\grave{}"},
    **{"'": r"\prime ", '"': r"\prime\prime "},
}


def _split_subscript(name: str) -> tuple[str, str] | None:
    """Base and subscript of names such as x1, m_0, v_max, theta2."""
    match = re.fullmatch(r"([A-Za-z]+)_?([0-9]+)", name) or re.fullmatch(r"([A-Za-z])_([A-Za-z0-9]+)", name)
    return (match[1], match[2]) if match else None


def _latex_word(word: str) -> str:
    if word in _GREEK:
        return f"\\{word}"
    if re.fullmatch(r"[A-Za-z]|[0-9]+", word):
        return word
    return r"\mathrm{" + "".join(_LATEX_ESCAPES.get(c, c) for c in word) + "}"


def _latex_names(names: Sequence[str]) -> tuple[str, ...]:
    def spell(name: str) -> str:
        parts = _split_subscript(name)
        return f"{_latex_word(parts[0])}_{{{_latex_word(parts[1])}}}" if parts else _latex_word(name)

    taken: set[str] = set()
    result = []
    for name in display_names(names):
        spelled = spell(name)
        if spelled in taken:  # x1 and x_1 would look alike
            spelled = r"\mathrm{" + "".join(_LATEX_ESCAPES.get(c, c) for c in name) + "}"
        taken.add(spelled)
        result.append(spelled)
    return tuple(result)


def _mathml_names(names: Sequence[str]) -> tuple[str, ...]:
    def spell(name: str) -> str:
        parts = _split_subscript(name)
        if parts is None:
            return f"<mi>{html.escape(name)}</mi>"
        tag = "mn" if parts[1].isdigit() else "mi"
        return f"<msub><mi>{parts[0]}</mi><{tag}>{parts[1]}</{tag}></msub>"

    taken: set[str] = set()
    result = []
    for name in display_names(names):
        spelled = spell(name)
        spelled = f"<mi>{html.escape(name)}</mi>" if spelled in taken else spelled
        taken.add(spelled)
        result.append(spelled)
    return tuple(result)


def _comment(text: str, limit: int = 200) -> str:
    """Any text as one line of printable ASCII that ends no comment and continues no line."""
    text = json.dumps(text if len(text) <= limit else text[:limit] + "...")
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\\\", "\\u005c")


# --- the walk that writes ---------------------------------------------------------------------------------------------

SUM, PRODUCT, POWER, ATOM = range(4)


@dataclass(frozen=True, slots=True)
class Piece:
    """A written part: its text without the sign, how tightly it binds, and what it is made of."""

    text: str
    level: int = ATOM
    negative: bool = False
    terms: tuple[Piece, ...] = ()
    factors: tuple[Piece, ...] = ()
    divisors: tuple[Piece, ...] = ()
    value: float | None = None
    head: tuple[str, str] | None = None
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

    def number(self, value: float) -> Piece:
        text = number_text(abs(value), DIGITS if self.pretty else None)
        return Piece(text, ATOM, _is_negative(value), value=abs(value))

    def name(self, index: int) -> Piece:
        return Piece(self.names[index])

    def group(self, text: str) -> str:
        return f"({text})"

    def minus(self, piece: Piece) -> str:
        return f"-{piece.text}"

    # --- the grammar

    def render(self, piece: Piece, level: int = SUM) -> str:
        """Text that may stand where only parts binding at least as tightly as ``level`` may."""
        text = self.minus(piece) if piece.negative else piece.text
        return self.group(text) if piece.level < level or (piece.negative and level > SUM) else text

    def sum(self, terms: Sequence[Piece]) -> Piece:
        """Terms with their signs; the first positive one leads where people read."""
        if self.pretty:
            flat: list[Piece] = []
            for term in terms:
                flat.extend(term.terms if term.terms and not term.negative else (term,))
            lead = next((i for i, term in enumerate(flat) if not term.negative), 0)
            terms = [flat[lead], *flat[:lead], *flat[lead + 1 :]]
        text = self.render(terms[0])
        for term in terms[1:]:
            part = replace(term, negative=False)
            # a + (b + c) keeps its parentheses where the order of operations counts
            text += self.sign(term.negative) + self.render(part, SUM + 1)
        return Piece(text, SUM, terms=tuple(terms), nesting=_nesting(terms, len(terms) - 1))

    def sign(self, negative: bool) -> str:
        return " - " if negative else " + "

    def negate(self, piece: Piece) -> Piece:
        if piece.level == SUM:
            piece = Piece(self.group(piece.text), nesting=piece.nesting + 1)
        return replace(piece, negative=not piece.negative)

    def product(self, factors: Sequence[Piece], divisors: Sequence[Piece] = ()) -> Piece:
        """Product of the factors over the divisors, signs merged, ones dropped."""
        negative = sum(piece.negative for piece in (*factors, *divisors)) % 2 == 1
        above = [replace(piece, negative=False) for piece in factors]
        below = [replace(piece, negative=False) for piece in divisors]
        if self.pretty:
            above, below = (
                [part for piece in above for part in _factors(piece)] + [d for piece in below for d in piece.divisors],
                [d for piece in above for d in piece.divisors] + [part for piece in below for part in _factors(piece)],
            )
            above.sort(key=lambda piece: piece.value is None)
        above = [piece for piece in above if piece.value != 1.0]
        below = [piece for piece in below if piece.value != 1.0]
        if len(above) == 1 and not below:
            return self.negate(above[0]) if negative else above[0]
        if not above and not below:
            return replace(self.number(1.0), negative=negative)
        text = self.fraction(above, below) if below else self.times(above)
        nesting = _nesting((*above, *below), len(above) + len(below) - 1)
        return Piece(text, PRODUCT, negative, factors=tuple(above), divisors=tuple(below), nesting=nesting)

    def times(self, factors: Sequence[Piece]) -> str:
        first = self.render(factors[0], POWER if self.pretty else PRODUCT)
        return "*".join([first, *(self.render(factor, POWER) for factor in factors[1:])])

    def fraction(self, above: Sequence[Piece], below: Sequence[Piece]) -> str:
        top = self.times(above) if above else self.number(1.0).text
        bottom = self.render(below[0], POWER) if len(below) == 1 else self.group(self.times(below))
        return f"{top}/{bottom}"

    def power(self, base: Piece, exponent: Piece) -> Piece:
        value = None if exponent.value is None else -exponent.value if exponent.negative else exponent.value
        if self.pretty and value is not None:
            if value == 0.5:
                return self.function("sqrt", [base])
            if value < 0:
                return self.product([], [self.power(base, replace(exponent, negative=False))])
            if value == 1.0:
                return base
        return replace(self.raised(base, exponent), nesting=_nesting((base, exponent), 1))

    def raised(self, base: Piece, exponent: Piece) -> Piece:
        bare_sign = exponent.negative and exponent.value is not None
        upper = self.minus(exponent) if bare_sign else self.render(exponent, ATOM)
        return Piece(f"{self.render(base, ATOM)}**{upper}", POWER)

    def function(self, operator: str, args: Sequence[Piece]) -> Piece:
        head = self.functions.get(operator, operator)
        return Piece(f"{head}({', '.join(map(self.render, args))})", nesting=_nesting(args, 1))

    def prepare(self, node: Call, args: list[Piece]) -> tuple[Call, list[Piece]]:
        """A call in the form this notation writes it in."""
        return node, args

    def special(self, node: Call, args: Sequence[Piece]) -> Piece:
        """A call that the language has no word for: a protected reading or an operator of the user's own."""
        return self.function(f"protected_{node.operator}" if node.protected else node.operator, args)

    def spill(self, piece: Piece) -> Piece:
        """A part that grew too long, moved to a variable of its own where the language has variables."""
        return piece


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _factors(piece: Piece) -> tuple[Piece, ...]:
    return piece.factors if piece.factors or piece.divisors else (piece,)


def _nesting(pieces: Iterable[Piece], more: int) -> int:
    return max((piece.nesting for piece in pieces), default=0) + more


def differs_when_protected(operator: Operator) -> bool:
    """Whether the protected reading is another function than the natural one."""
    return operator.protected_override is not None or any(domain != EVERYWHERE for domain in operator.domains)


def write(root: Node, notation: Notation) -> str:
    """The tree in a notation."""

    def leaf(node: Constant | Variable) -> Piece:
        return notation.number(node.value) if isinstance(node, Constant) else notation.name(node.index)

    def call(node: Call, args: list[Piece]) -> Piece:
        node, args = notation.prepare(node, args)
        longest = notation.longest_chain
        if longest and len(args) > longest:
            total = notation.spill(apply(node, args[:longest]))
            for start in range(longest, len(args), longest):
                total = notation.spill(apply(node, [total, *args[start : start + longest]]))
            return total
        piece = apply(node, args)
        return notation.spill(piece) if longest and piece.nesting > longest else piece

    def apply(node: Call, args: list[Piece]) -> Piece:
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


def _spell(notation: Notation, node: Call, operator: Operator, args: list[Piece]) -> Piece:
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
    if operator.symbol.startswith("**"):
        return notation.power(args[0], _whole(int(operator.symbol[2:])))
    return notation.function(name, args)


def _whole(exponent: int) -> Piece:
    return Piece(str(abs(exponent)), ATOM, exponent < 0, value=float(abs(exponent)))


def _signed_value(piece: Piece) -> np.float64:
    value = math.nan if piece.value is None else piece.value
    return np.float64(-value if piece.negative else value)


def _constant_value(node: Call, args: Sequence[Piece]) -> float | None:
    """The number a call comes to where all its arguments are numbers: no language then has to divide 1 by 0."""
    if any(arg.value is None for arg in args):
        return None
    numbers = [_signed_value(arg) for arg in args]
    operator = get_operator(node.operator)
    with np.errstate(all="ignore"):
        return float((operator.protected if node.protected else operator.natural)(np, *numbers))


# --- text -------------------------------------------------------------------------------------------------------------


def _text_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name if is_plain_name(name) else "`" + name.replace("`", "``") + "`" for name in display_names(names))


def to_text(expression: Expression) -> str:
    """Readable text, constants rounded.

    >>> slower = Call("add", (Call("mul", (Constant(-1.0), Variable(0))), Constant(1.2000000001)))
    >>> print(to_text(Expression(slower, ("speed (m/s)",))))
    1.2 - `speed (m/s)`
    """
    return write(round_constants(expression).root, Notation(_text_names(expression.names)))


class _ExactText(Notation):
    pretty = False


def to_exact_text(expression: Expression) -> str:
    """Text with constants in full, in the order of evaluation, protected calls marked as such."""
    return write(expression.root, _ExactText(_text_names(expression.names)))


# --- LaTeX and MathML -------------------------------------------------------------------------------------------------


class _Latex(Notation):
    language = "LaTeX"
    functions: ClassVar = {"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"} | {
        name: f"\\{name}" for name in ("sin", "cos", "tanh", "log")
    }

    def number(self, value: float) -> Piece:
        piece = super().number(value)
        mantissa, _, exponent = piece.text.partition("e")
        if not exponent:
            return piece
        return replace(piece, text=f"{mantissa} \\cdot 10^{{{int(exponent)}}}", level=POWER)

    def group(self, text: str) -> str:
        return rf"\left({text}\right)"

    def times(self, factors: Sequence[Piece]) -> str:
        text = self.render(factors[0], POWER)
        for factor in factors[1:]:
            part = self.render(factor, POWER)
            text += (r" \cdot " if part[0].isdigit() else r"\, ") + part
        return text

    def fraction(self, above: Sequence[Piece], below: Sequence[Piece]) -> str:
        top = "1" if not above else self.render(above[0]) if len(above) == 1 else self.times(above)
        bottom = self.render(below[0]) if len(below) == 1 else self.times(below)
        return rf"\frac{{{top}}}{{{bottom}}}"

    def raised(self, base: Piece, exponent: Piece) -> Piece:
        upper = self.render(exponent)
        if base.head and exponent.value is not None and not base.negative:
            return Piece(f"{base.head[0]}^{{{upper}}}{base.head[1]}", POWER)
        return Piece(f"{self.render(base, ATOM)}^{{{upper}}}", POWER)

    def function(self, operator: str, args: Sequence[Piece]) -> Piece:
        inner = ", ".join(map(self.render, args))
        if operator == "sqrt":
            return Piece(rf"\sqrt{{{inner}}}", ATOM)
        if operator == "exp":
            return Piece(f"e^{{{inner}}}", POWER)
        if operator == "abs":
            return Piece(rf"\left|{inner}\right|", ATOM)
        head = self.functions.get(operator) or r"\operatorname{" + operator.replace("_", r"\_") + "}"
        return Piece(head + self.group(inner), POWER, head=(head, self.group(inner)))


def to_latex(expression: Expression) -> str:
    r"""LaTeX, constants rounded.

    >>> x1, x2 = Variable(0), Variable(1)
    >>> print(to_latex(Expression(Call("sqrt", (Call("div", (x2, Call("square", (x1,)))),)), ("alpha", "x2"))))
    \sqrt{\frac{x_{2}}{\alpha^{2}}}
    """
    return write(round_constants(expression).root, _Latex(_latex_names(expression.names)))


class _Mathml(Notation):
    language = "MathML"

    def number(self, value: float) -> Piece:
        piece = super().number(value)
        mantissa, _, exponent = piece.text.partition("e")
        if not exponent:
            return replace(piece, text=f"<mn>{piece.text}</mn>")
        power = f"<msup><mn>10</mn>{self._whole(int(exponent))}</msup>"
        return replace(piece, text=f"<mrow><mn>{mantissa}</mn><mo>&#xB7;</mo>{power}</mrow>", level=POWER)

    @staticmethod
    def _whole(value: int) -> str:
        return f"<mn>{value}</mn>" if value >= 0 else f"<mrow><mo>&#x2212;</mo><mn>{-value}</mn></mrow>"

    def group(self, text: str) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"

    def minus(self, piece: Piece) -> str:
        return f"<mrow><mo>&#x2212;</mo>{piece.text}</mrow>"

    def sign(self, negative: bool) -> str:
        return "<mo>&#x2212;</mo>" if negative else "<mo>+</mo>"

    def times(self, factors: Sequence[Piece]) -> str:
        parts = [self.render(factor, POWER) for factor in factors]
        text = parts[0]
        for part in parts[1:]:
            begins_with_number = re.match(r"(<m(sup|row)>)*<mn>", part)
            text += ("<mo>&#xB7;</mo>" if begins_with_number else '<mo>&#x2062;</mo><mspace width="0.17em"/>') + part
        return f"<mrow>{text}</mrow>"

    def fraction(self, above: Sequence[Piece], below: Sequence[Piece]) -> str:
        top = "<mn>1</mn>" if not above else self.render(above[0]) if len(above) == 1 else self.times(above)
        bottom = self.render(below[0]) if len(below) == 1 else self.times(below)
        return f"<mfrac><mrow>{top}</mrow><mrow>{bottom}</mrow></mfrac>"

    def raised(self, base: Piece, exponent: Piece) -> Piece:
        upper = self.render(exponent)
        if upper.isdigit():
            upper = f"<mn>{upper}</mn>"
        if base.head and exponent.value is not None and not base.negative:
            return Piece(f"<mrow><msup>{base.head[0]}{upper}</msup>{base.head[1]}</mrow>", POWER)
        return Piece(f"<msup><mrow>{self.render(base, ATOM)}</mrow><mrow>{upper}</mrow></msup>", POWER)

    def function(self, operator: str, args: Sequence[Piece]) -> Piece:
        inner = "<mo>,</mo>".join(map(self.render, args))
        if operator == "sqrt":
            return Piece(f"<msqrt>{inner}</msqrt>", ATOM)
        if operator == "exp":
            return Piece(f"<msup><mi>e</mi><mrow>{inner}</mrow></msup>", POWER)
        if operator == "abs":
            return Piece(f"<mrow><mo>|</mo>{inner}<mo>|</mo></mrow>", ATOM)
        head = f"<mi>{html.escape(self.functions.get(operator, operator))}</mi>"
        body = f"<mo>&#x2061;</mo>{self.group(inner)}"
        return Piece(f"<mrow>{head}{body}</mrow>", POWER, head=(head, body))


def to_mathml(expression: Expression) -> str:
    """MathML for HTML pages, which browsers typeset without a script; constants rounded."""
    body = write(round_constants(expression).root, _Mathml(_mathml_names(expression.names)))
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow>{body}</mrow></math>'


# --- source code ------------------------------------------------------------------------------------------------------


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


class _Code(Notation):
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

    def number(self, value: float) -> Piece:
        if not math.isfinite(value):
            nan, inf = self.not_finite
            return Piece(nan if math.isnan(value) else inf, ATOM, value < 0, value=abs(value))
        return Piece(repr(abs(float(value))), ATOM, _is_negative(value), value=abs(float(value)))

    def prepare(self, node: Call, args: list[Piece]) -> tuple[Call, list[Piece]]:
        """A protected sum or product of many is the plain one of its bounded arguments."""
        operator = get_operator(node.operator)
        if not (node.protected and node.operator in N_ARY and differs_when_protected(operator)):
            return node, args
        bound = operator.domains[0].project
        bounded = [
            self.number(float(bound(np, _signed_value(arg))))
            if arg.value is not None
            else self.helper(f"bounded_{node.operator}", trace(bound, 1), [arg])
            for arg in args
        ]
        return Call(node.operator, node.args), bounded

    def special(self, node: Call, args: Sequence[Piece]) -> Piece:
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

    def helper(self, name: str, traced: Any, args: Sequence[Piece]) -> Piece:
        """A call of a helper function that computes what was traced."""
        if name not in self.helpers:
            shared: dict[int, str] = {}
            value = self.emit(traced, "ab", _repeated(traced), shared)
            self.helpers[name] = Helper(tuple("ab"[: len(args)]), tuple(shared.values()), value)
        return self.function(name, args)

    def emit(
        self, traced: Any, arguments: Sequence[str], repeated: frozenset[int] = frozenset(), shared: Any = None
    ) -> str:
        """Code of traced operations; repeated ones are collected in ``shared`` as values of variables c1, c2, ..."""
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

    def spill(self, piece: Piece) -> Piece:
        self.parts.append(self.render(piece))
        return Piece(f"part_{len(self.parts)}")


_ARITHMETIC = {
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


class _Python(_Code):
    language = "Python"
    functions: ClassVar = _NUMPY_WORDS
    primitives: ClassVar = (
        _ARITHMETIC
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


def to_python(expression: Expression) -> str:
    """Source of a Python function ``formula(column, ...)`` over NumPy, for numbers and arrays alike."""
    names = identifiers(expression.names, _is_code_name)
    notation = _Python(names)
    value = write(expression.root, notation)
    # A comment in the first two lines could declare the encoding of the file, so none of ours stands there.
    lines = ["import numpy as np", "", f"# {_comment(to_text(expression))[1:-1]}", "", ""]
    for name, helper in notation.helpers.items():
        lines.append(f"def {name}({', '.join(helper.parameters)}):")
        lines += [f"    c{number} = {value}" for number, value in enumerate(helper.variables, start=1)]
        lines += [f"    return {helper.value}", "", ""]
    lines += [f"def formula({', '.join(names)}):"]
    lines += ['    """Value of the formula for numbers or arrays, one argument per column."""']
    for index in expression.variables:
        note = "" if names[index] == expression.names[index] else f"  # column {_comment(expression.names[index])}"
        lines.append(f"    {names[index]} = np.asarray({names[index]}, dtype=float){note}")
    lines += [f"    part_{number} = {part}" for number, part in enumerate(notation.parts, start=1)]
    return "\n".join([*lines, f"    return {value}", ""])


class _C(_Code):
    language = "C"
    functions: ClassVar = {"abs": "fabs"}
    primitives: ClassVar = (
        _ARITHMETIC
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

    def raised(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"pow({self.render(base)}, {self.render(exponent)})")


def to_c(expression: Expression) -> str:
    """Source of a C99 function ``double formula(const double *x)`` of one row of columns."""
    notation = _C(tuple(f"x[{index}]" for index in range(len(expression.names))))
    value = write(expression.root, notation)
    lines = [f"/* {_comment(to_text(expression))[1:-1]} */", "#include <math.h>", ""]
    for name, helper in notation.helpers.items():
        lines += [f"static double {name}({', '.join(f'double {word}' for word in helper.parameters)})", "{"]
        lines += [f"    const double c{number} = {value};" for number, value in enumerate(helper.variables, start=1)]
        lines += [f"    return {helper.value};", "}", ""]
    lines += [f"/* x[{index}] is column {_comment(expression.names[index])} */" for index in expression.variables]
    lines += ["double formula(const double *x)", "{"]
    lines += [f"    const double part_{number} = {part};" for number, part in enumerate(notation.parts, start=1)]
    if not expression.variables:
        lines.append("    (void)x;")
    return "\n".join([*lines, f"    return {value};", "}", ""])


# --- spreadsheet ------------------------------------------------------------------------------------------------------

SPREADSHEET_LENGTH = 8192
"""Longest formula that spreadsheets take, in characters."""
SPREADSHEET_NESTING = 64
"""Deepest nesting that spreadsheets take."""
SPREADSHEET_COLUMNS = 16384
"""Widest table that spreadsheets take."""


class _Spreadsheet(_Code):
    language = "a spreadsheet formula"
    longest_chain = None
    functions: ClassVar = {"log": "LN"} | {
        name: name.upper() for name in ("sin", "cos", "sqrt", "exp", "tanh", "asin", "acos", "atan", "abs")
    }
    primitives: ClassVar = (
        {name: template.replace(" ", "") for name, template in _ARITHMETIC.items()}
        | {name: f"{name.upper()}({{0}})" for name in ("sin", "cos", "tan", "sqrt", "exp", "tanh", "sinh", "cosh")}
        | {name: f"{name.upper()}({{0}})" for name in ("asin", "acos", "atan", "abs", "sign")}
        | {
            "log": "LN({0})",
            "log1p": "LN(1+{0})",
            "expm1": "(EXP({0})-1)",
            "pow": "({0}^{1})",
            "where": "IF({0},{1},{2})",
            "and": "AND({0},{1})",
            "or": "OR({0},{1})",
            "not": "NOT({0})",
            "minimum": "MIN({0},{1})",
            "maximum": "MAX({0},{1})",
        }
    )
    not_finite = ("NA()", "(1/0)")

    def number(self, value: float) -> Piece:
        piece = super().number(value)
        return replace(piece, text=number_text(abs(value)).upper()) if math.isfinite(value) else piece

    def sign(self, negative: bool) -> str:
        return "-" if negative else "+"

    def minus(self, piece: Piece) -> str:
        """Spreadsheets read -a^b as (-a)^b, so only an atom takes a bare sign."""
        return f"-{piece.text}" if piece.level == ATOM else f"-({piece.text})"

    def raised(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(super().raised(base, exponent).text.replace("**", "^"), POWER)

    def function(self, operator: str, args: Sequence[Piece]) -> Piece:
        piece = super().function(operator, args)
        return replace(piece, text=f"{self.functions[operator]}({','.join(map(self.render, args))})")

    def helper(self, name: str, traced: Any, args: Sequence[Piece]) -> Piece:
        """Spreadsheets have no functions of our own: what was traced is written out in place."""
        text = self.emit(traced, [self.render(arg, ATOM) for arg in args])
        if len(text) > SPREADSHEET_LENGTH:
            raise ValueError(_TOO_LONG.format(length=len(text)))
        return Piece(text)


_TOO_LONG = (
    f"the formula is too long for a spreadsheet ({{length}} characters, at most {SPREADSHEET_LENGTH}); "
    "choose a simpler one from the front or export('python')"
)


def _cell(index: int) -> str:
    """Cell of the first data row in column ``index``: A2, B2, ..., AA2."""
    letters = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}2"


def to_spreadsheet(expression: Expression) -> str:
    """A spreadsheet formula for row 2, the table's columns standing in A, B, C, ... under a row of headings.

    Column names are not part of it, so that nothing in them can act as a formula.

    >>> to_spreadsheet(Expression(Call("mul", (Constant(0.5), Call("square", (Variable(1),))))))
    '=0.5*B2^2'
    """
    if max(expression.variables, default=0) >= SPREADSHEET_COLUMNS:
        raise ValueError(f"a spreadsheet has at most {SPREADSHEET_COLUMNS} columns; export('python') has no such limit")
    notation = _Spreadsheet(tuple(_cell(index) for index in range(min(len(expression.names), SPREADSHEET_COLUMNS))))
    text = "=" + write(expression.root, notation)
    if len(text) > SPREADSHEET_LENGTH:
        raise ValueError(_TOO_LONG.format(length=len(text)))
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > SPREADSHEET_NESTING:
        raise ValueError(
            f"the formula is nested too deeply for a spreadsheet ({deepest} levels, at most {SPREADSHEET_NESTING}); "
            "choose a simpler one from the front or export('python')"
        )
    return text


# --- SymPy ------------------------------------------------------------------------------------------------------------

_INTEGER_DEGREE = 1000
"""Above this polynomial degree whole constants go to SymPy as floats: it would expand 2**degree digit by digit."""


@dataclass(frozen=True, slots=True)
class _Form:
    """SymPy form of a part, its value where it is a number, and whether a protected reading is spelled out in it."""

    sympy: Any
    value: float | None = None
    protected: bool = False


def to_sympy(expression: Expression, rounded: bool = False) -> Any:
    """SymPy form, built from objects; symbols are plain ``sympy.Symbol`` of the column names (see ``symbol_names``).

    A protected reading is spelled out with Abs, Max, Min and Piecewise. One that holds another appears as a function
    ``protected_...``, which ``lambdify`` and ``evalf`` compute: SymPy takes nested maxima apart without end.
    """
    import sympy

    root = round_constants(expression).root if rounded else expression.root
    names = symbol_names(expression.names)
    exact_integers = fold(root, lambda leaf: 1.0, _degree) <= _INTEGER_DEGREE

    def number(value: float) -> _Form:
        if not math.isfinite(value):
            return _Form(sympy.nan if math.isnan(value) else sympy.oo if value > 0 else -sympy.oo, value)
        if value.is_integer() and (abs(value) <= 1 or (exact_integers and abs(value) <= 1e6)):
            return _Form(sympy.Integer(int(value)), value)
        return _Form(sympy.Float(value), value)

    def leaf(node: Constant | Variable) -> _Form:
        return number(node.value) if isinstance(node, Constant) else _Form(sympy.Symbol(names[node.index]))

    def call(node: Call, args: list[_Form]) -> _Form:
        operator = get_operator(node.operator)
        protected = node.protected and differs_when_protected(operator)
        values = [arg.value for arg in args if arg.value is not None]
        if len(values) == len(args):
            with np.errstate(all="ignore"):
                reading = operator.protected if protected else operator.natural
                return number(float(reading(np, *map(np.float64, values))))
        forms = [arg.sympy for arg in args]
        nested = any(arg.protected for arg in args)
        if any(form in (sympy.nan, sympy.oo, -sympy.oo, sympy.zoo) for form in forms):
            return _Form(sympy.nan)  # SymPy refuses to compare with what is not a number
        if protected and nested:
            return _Form(_computed_function(operator, protected=True)(*forms), protected=True)
        if protected:
            return _Form(operator.protected_sympy(*forms), protected=True)
        if node.operator == "pow" and (exponent := args[1].value) is not None:
            is_half = (2 * exponent).is_integer() and abs(exponent) <= 64
            forms[1] = sympy.Rational(int(2 * exponent), 2) if is_half else sympy.Float(exponent)
        form = operator.sympy(*forms)
        if operator.is_user_defined and getattr(form, "name", None) == operator.name:
            form = _computed_function(operator, protected=False)(*forms)  # registered without a SymPy form
        return _Form(form, protected=nested)

    return fold(root, leaf, call).sympy


@functools.cache  # lambdify wants one implementation per name
def _computed_function(operator: Operator, protected: bool) -> Any:
    """A SymPy function without a closed form, which ``lambdify`` and ``evalf`` compute by the operator itself."""
    from sympy.utilities.lambdify import implemented_function

    reading = operator.protected if protected else operator.natural

    def compute(*args: Any) -> Any:
        value = reading(np, *(np.asarray(arg, dtype=float) for arg in args))
        return float(value) if np.ndim(value) == 0 else value

    return implemented_function(f"protected_{operator.name}" if protected else operator.name, compute)


def _degree(node: Call, degrees: list[float]) -> float:
    if node.operator == "mul":
        return sum(degrees)
    if node.operator == "pow" and isinstance(node.args[1], Constant):
        return max(1.0, abs(node.args[1].value)) * degrees[0]
    symbol = get_operator(node.operator).symbol
    return max(degrees) * (int(symbol[2:]) if re.fullmatch(r"\*\*\d+", symbol) else 1)


# --- callables --------------------------------------------------------------------------------------------------------


def to_numpy(expression: Expression) -> Callable[[Any], np.ndarray]:
    """A function of X [N, V] -> [N] over NumPy, float64."""

    def formula(X: Any) -> np.ndarray:
        return expression(X)

    formula.__doc__ = to_text(expression)
    return formula


def to_jax(expression: Expression) -> Callable[[Any], Any]:
    """A compiled, differentiable function of X [..., V] -> [...] over JAX, in the precision of X."""
    import jax
    import jax.numpy as jnp

    def formula(X: Any) -> Any:
        X = jnp.asarray(X)
        X = X if jnp.issubdtype(X.dtype, jnp.floating) else X.astype(float)
        value = evaluate(expression.root, lambda i: X[..., i], lambda v: jnp.asarray(v, dtype=X.dtype), jnp)
        return jnp.broadcast_to(value, X.shape[:-1])

    formula.__doc__ = to_text(expression)
    return jax.jit(formula)


def to_torch(expression: Expression) -> Callable[[Any], Any]:
    """A differentiable function of X [..., V] -> [...] over PyTorch, in the precision and on the device of X."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("export('torch') needs PyTorch: pip install torch") from error

    def formula(X: Any) -> Any:
        X = torch.as_tensor(X)
        X = X if X.is_floating_point() else X.to(torch.float64)
        constant = lambda v: torch.as_tensor(v, dtype=X.dtype, device=X.device)  # noqa: E731
        value = evaluate(expression.root, lambda i: X[..., i], constant, torch)
        return torch.broadcast_to(value, X.shape[:-1])

    formula.__doc__ = to_text(expression)
    return formula


# --- the table of formats ---------------------------------------------------------------------------------------------


def to_json(expression: Expression) -> str:
    """The plain data of ``Expression.to_dict`` as JSON text; ``Expression.from_dict`` reads it back."""
    return json.dumps(expression.to_dict(), allow_nan=False)


EXPORTS: dict[str, Callable[[Expression], Any]] = {
    "text": to_text,
    "exact": to_exact_text,
    "sympy": to_sympy,
    "latex": to_latex,
    "mathml": to_mathml,
    "python": to_python,
    "numpy": to_numpy,
    "jax": to_jax,
    "torch": to_torch,
    "c": to_c,
    "spreadsheet": to_spreadsheet,
    "json": to_json,
}
"""Every format by name. Each entry maps an Expression to text, or to a callable ("numpy", "jax", "torch") or object."""


def export(expression: Expression, format: str) -> Any:
    """The expression in one of the formats of ``EXPORTS``.

    >>> export(Expression(Call("sin", (Variable(0),))), "latex")
    '\\\\sin\\\\left(x_{1}\\\\right)'
    """
    function = EXPORTS.get(format) if isinstance(format, str) else None
    if function is None:
        raise ValueError(f"unknown export format {format!r}; known: {', '.join(EXPORTS)}")
    return function(expression)
