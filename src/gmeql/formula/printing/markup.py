"""Forms for people: text, LaTeX and MathML; constants rounded, except in the exact text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import ClassVar

from gmeql.formula.printing.notation import (
    GREEK,
    Formula,
    display_names,
    is_own_constant,
    is_plain_name,
    shown,
    text_names,
)
from gmeql.formula.printing.writing import ATOM, POWER, Notation, Written, write

# --- text -------------------------------------------------------------------------------------------------------------


def to_text(expression: Formula) -> str:
    """Readable text, constants rounded.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> slower = Call("add", (Call("mul", (Constant(-1.0), Variable(0))), Constant(1.2000000001)))
    >>> print(to_text(Expression(slower, ("speed (m/s)",))))
    1.2 - `speed (m/s)`
    """
    return write(shown(expression), Notation(text_names(expression.names)))


class _ExactText(Notation):
    pretty = False


def to_exact_text(expression: Formula) -> str:
    """Text with constants in full, in the order of evaluation, protected calls marked as such."""
    return write(expression.root, _ExactText(text_names(expression.names)))


# --- names in mathematics ---------------------------------------------------------------------------------------------

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
    if word in GREEK:
        return f"\\{word}"
    if re.fullmatch(r"[A-Za-z]|[0-9]+", word):
        return word
    return r"\mathrm{" + "".join(_LATEX_ESCAPES.get(c, c) for c in word) + "}"


def _latex_names(names: Sequence[str]) -> tuple[str, ...]:
    def spell(name: str) -> str:
        if is_own_constant(name):
            base, group = name[:-1].split("[")
            return rf"{spell(base)}\left[{_latex_word(group)}\right]"
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


_ODD_NAME = '<mi class="name">'


def _mathml_names(names: Sequence[str]) -> tuple[str, ...]:
    def spell(name: str) -> str:
        parts = _split_subscript(name)
        if parts is None:
            is_word = is_plain_name(name) or is_own_constant(name)  # others may hold what reads as mathematics
            return f"{'<mi>' if is_word else _ODD_NAME}{html.escape(name)}</mi>"
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


# --- LaTeX and MathML -------------------------------------------------------------------------------------------------


class _Latex(Notation):
    language = "LaTeX"
    functions: ClassVar = {"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"} | {
        name: f"\\{name}" for name in ("sin", "cos", "tanh", "log")
    }

    def number(self, value: float) -> Written:
        piece = super().number(value)
        mantissa, _, exponent = piece.text.partition("e")
        if not exponent:
            return piece
        return replace(piece, text=f"{mantissa} \\cdot 10^{{{int(exponent)}}}", level=POWER)

    def group(self, text: str) -> str:
        return rf"\left({text}\right)"

    def times(self, factors: Sequence[Written]) -> str:
        words = tuple(name for name in self.names if name.startswith(r"\mathrm{"))
        text = self.render(factors[0], POWER)
        for before, factor in pairwise(factors):
            part = self.render(factor, POWER)
            # two words side by side would read as one name
            dot = part[0].isdigit() or (before.value is None and part.startswith(words))
            text += (r" \cdot " if dot else r"\, ") + part
        return text

    def fraction(self, above: Sequence[Written], below: Sequence[Written]) -> str:
        top = "1" if not above else self.render(above[0]) if len(above) == 1 else self.times(above)
        bottom = self.render(below[0]) if len(below) == 1 else self.times(below)
        return rf"\frac{{{top}}}{{{bottom}}}"

    def raised(self, base: Written, exponent: Written) -> Written:
        upper = self.render(exponent)
        if base.head and exponent.value is not None and not base.negative:
            return Written(f"{base.head[0]}^{{{upper}}}{base.head[1]}", POWER)
        return Written(f"{self.render(base, ATOM)}^{{{upper}}}", POWER)

    def function(self, operator: str, args: Sequence[Written]) -> Written:
        inner = ", ".join(map(self.render, args))
        if operator == "sqrt":
            return Written(rf"\sqrt{{{inner}}}", ATOM)
        if operator == "exp":
            return Written(f"e^{{{inner}}}", POWER)
        if operator == "abs":
            return Written(rf"\left|{inner}\right|", ATOM)
        head = self.functions.get(operator) or r"\operatorname{" + operator.replace("_", r"\_") + "}"
        return Written(head + self.group(inner), POWER, head=(head, self.group(inner)))


def to_latex(expression: Formula) -> str:
    r"""LaTeX, constants rounded.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Variable
    >>> x1, x2 = Variable(0), Variable(1)
    >>> print(to_latex(Expression(Call("sqrt", (Call("div", (x2, Call("square", (x1,)))),)), ("alpha", "x2"))))
    \sqrt{\frac{x_{2}}{\alpha^{2}}}
    """
    return write(shown(expression), _Latex(_latex_names(expression.names)))


class _Mathml(Notation):
    language = "MathML"

    def number(self, value: float) -> Written:
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

    def minus(self, piece: Written) -> str:
        return f"<mrow><mo>&#x2212;</mo>{piece.text}</mrow>"

    def sign(self, negative: bool) -> str:
        return "<mo>&#x2212;</mo>" if negative else "<mo>+</mo>"

    def times(self, factors: Sequence[Written]) -> str:
        words = tuple(name for name in self.names if re.match(r"(<msub>)?<mi[^>]*>[^<]{2,}", name))
        text = self.render(factors[0], POWER)
        for before, factor in pairwise(factors):
            part = self.render(factor, POWER)
            opening = re.sub(r"^(<m(sup|row|under)[^>]*>)*", "", part)
            # two words side by side would read as one name
            dot = opening.startswith("<mn>") or (before.value is None and opening.startswith(words))
            text += ("<mo>&#xB7;</mo>" if dot else '<mo>&#x2062;</mo><mspace width="0.17em"/>') + part
        return f"<mrow>{text}</mrow>"

    def fraction(self, above: Sequence[Written], below: Sequence[Written]) -> str:
        top = "<mn>1</mn>" if not above else self.render(above[0]) if len(above) == 1 else self.times(above)
        bottom = self.render(below[0]) if len(below) == 1 else self.times(below)
        return f"<mfrac><mrow>{top}</mrow><mrow>{bottom}</mrow></mfrac>"

    def raised(self, base: Written, exponent: Written) -> Written:
        upper = self.render(exponent)
        if upper.isdigit():
            upper = f"<mn>{upper}</mn>"
        if base.head and exponent.value is not None and not base.negative:
            return Written(f"<mrow><msup>{base.head[0]}{upper}</msup>{base.head[1]}</mrow>", POWER)
        return Written(f"<msup><mrow>{self.render(base, ATOM)}</mrow><mrow>{upper}</mrow></msup>", POWER)

    def function(self, operator: str, args: Sequence[Written]) -> Written:
        inner = "<mo>,</mo>".join(map(self.render, args))
        if operator == "sqrt":
            return Written(f"<msqrt>{inner}</msqrt>", ATOM)
        if operator == "exp":
            return Written(f"<msup><mi>e</mi><mrow>{inner}</mrow></msup>", POWER)
        if operator == "abs":
            return Written(f"<mrow><mo>|</mo>{inner}<mo>|</mo></mrow>", ATOM)
        head = f"<mi>{html.escape(self.functions.get(operator, operator))}</mi>"
        body = f"<mo>&#x2061;</mo>{self.group(inner)}"
        return Written(f"<mrow>{head}{body}</mrow>", POWER, head=(head, body))


class _MarkedMathml(_Mathml):
    """MathML with a mark under some constants, so that a page can say which one it speaks of."""

    def __init__(self, names: Sequence[str], marks: Mapping[int, str]) -> None:
        super().__init__(names)
        self._marks = marks
        self._positions = count()

    def constant(self, value: float) -> Written:
        piece, position = self.number(value), next(self._positions)
        if position not in self._marks:
            return piece
        mark = f"<mtext>{html.escape(self._marks[position])}</mtext>"
        return replace(piece, text=f'<munder data-constant="{position}">{piece.text}{mark}</munder>')


def to_mathml(expression: Formula, *, marks: Mapping[int, str] | None = None) -> str:
    """MathML for HTML pages, which browsers typeset without a script; constants rounded.

    `marks` are texts to stand under constants, by their position in `Expression.constants`.
    """
    notation = _MarkedMathml(_mathml_names(expression.names), marks or {})
    body = write(shown(expression), notation)
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow>{body}</mrow></math>'
