"""Differential equations as text: `y'' = -y`, `u_t = u_xx`, `y(0)=0, y'(0)=1`.

Primes and subscripts become names, names become SymPy's own derivatives, and everything between is read by the one
grammar of formulas (`formula/parsing.py`): nothing in the text is ever run.

>>> read_text("y'' = -y", ics="y(0)=0, y'(0)=1").equations
[Eq(Derivative(y(x), (x, 2)), -y(x))]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gmeql.formula.parsing import FUNCTIONS, parse_formula

_NAME = r"[A-Za-z][A-Za-z0-9]*"
_PRIMED = re.compile(rf"(?<![\w'])({_NAME})('+)")
_SUBSCRIPTED = re.compile(rf"(?<![\w'])({_NAME})_([A-Za-z]+)(?![\w'])")
_WORD = re.compile(rf"(?<![\w'.])({_NAME})(?![\w(])")
_CONDITION = re.compile(rf"^\s*({_NAME})('*|_[A-Za-z]+)\s*\((.*)\)\s*$", re.DOTALL)
_CONSTANTS = {"pi", "E", "e"}
_DERIVATIVE = "derivative{}of{}"
"""What stands for a derivative while the text is read."""
MAX_ORDER = 8


@dataclass(frozen=True)
class TextProblem:
    """What `gmeql.solve` takes, read from text."""

    equations: list[Any]
    functions: list[Any]
    ics: list[Any]
    domain: dict[Any, tuple[Any, Any]] | None
    parameters: list[Any]


def read_text(
    equation: str,
    *,
    ics: str = "",
    domain: str = "",
    variables: Sequence[str] = (),
    parameters: Sequence[str] = (),
) -> TextProblem:
    """Equations between semicolons, conditions between commas, a domain such as `0..1` or `x=0..1, t=0..2`.

    Unknown functions are what has primes or subscripts. The variable is the one other name, `x` where there is none.
    """
    import sympy

    texts = [part.replace("^", "**") for part in re.split(r"[;\n]", equation) if part.strip()]
    if not texts:
        raise ValueError("the equation is empty; write it like y'' = -y")
    unknown = _unknown_functions(texts)
    names = _variables(texts, unknown, variables, parameters)
    reader = _Reader(unknown, names, list(parameters))
    return TextProblem(
        equations=[reader.equation(text) for text in texts],
        functions=[reader.applied[name] for name in unknown],
        ics=[reader.condition(part) for part in split_commas(ics.replace("^", "**"))],
        domain=reader.domain(domain) if domain.strip() else None,
        parameters=[sympy.Symbol(name, real=True) for name in parameters],
    )


def _unknown_functions(texts: Sequence[str]) -> list[str]:
    primed = [match[1] for text in texts for match in _PRIMED.finditer(text)]
    subscripted = [match[1] for text in texts for match in _SUBSCRIPTED.finditer(text)]
    if primed and subscripted:
        raise ValueError(
            "the equation has both primes and subscripts; write y' for one variable, u_t, u_xx for several"
        )
    found = list(dict.fromkeys(primed or subscripted))
    if not found:
        raise ValueError(
            f"{texts[0].strip()!r} holds no derivative; write y' and y'' for one variable, u_t, u_xx for several"
        )
    return found


def _variables(
    texts: Sequence[str], unknown: Sequence[str], given: Sequence[str], parameters: Sequence[str]
) -> list[str]:
    """Names of the variables: as given, from subscripts, or the one name that is nothing else."""
    if given:
        return list(given)
    subscripts = [letter for text in texts for match in _SUBSCRIPTED.finditer(text) for letter in match[2]]
    if subscripts:
        return sorted(set(subscripts))
    others = {match[1] for text in texts for match in _WORD.finditer(re.sub(r"'+", "", text))}
    others -= {*unknown, *parameters, *_CONSTANTS, *FUNCTIONS}
    if len(others) > 1:
        raise ValueError(
            f"is one of {', '.join(sorted(others))} the variable? Say which (--variables), and keep the others as --parameters"
        )
    return [others.pop() if others else "x"]


def split_commas(text: str) -> list[str]:
    """Parts between commas that stand in no brackets.

    >>> split_commas("u(0, y)=1, u(x, 0)=2")
    ['u(0, y)=1', 'u(x, 0)=2']
    """
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


class _Reader:
    """Texts over certain unknown functions, variables and parameters."""

    def __init__(self, unknown: Sequence[str], variables: Sequence[str], parameters: Sequence[str]) -> None:
        import sympy

        self.variables = [sympy.Symbol(name, real=True) for name in variables]
        self.applied = {name: sympy.Function(name)(*self.variables) for name in unknown}
        self.names = [*variables, *parameters]
        clash = set(unknown) & set(self.names)
        if clash:
            raise ValueError(f"{min(clash)} is an unknown function and a variable; give one of them another name")

    def equation(self, text: str) -> Any:
        import sympy

        sides = text.split("=")
        if len(sides) != 2:
            raise ValueError(f"{text.strip()!r} is no equation; write left = right, with one =")
        left, right = (self.expression(side, text) for side in sides)
        return sympy.Eq(left, right, evaluate=False)

    def expression(self, text: str, whole: str) -> Any:
        """A side of an equation: derivatives and functions as names, read, and put in."""
        import sympy

        stand_ins: dict[str, Any] = {name: self.applied[name] for name in self.applied}

        def primes(match: re.Match[str]) -> str:
            return self._stand_in(match[1], self.names[0] * len(match[2]), stand_ins)

        def subscripts(match: re.Match[str]) -> str:
            return self._stand_in(match[1], match[2], stand_ins)

        text = self._without_arguments(text)
        text = _SUBSCRIPTED.sub(subscripts, _PRIMED.sub(primes, text))
        if "e" not in self.names:
            text = re.sub(r"(?<![\w.])e(?![\w(])", "E", text)
        try:
            read = parse_formula(text, [*self.names, *stand_ins], exact=True)
        except ValueError as error:
            raise ValueError(f"{whole.strip()!r} cannot be read: {error}") from None
        return read.xreplace({sympy.Symbol(name, real=True): value for name, value in stand_ins.items()})

    def _without_arguments(self, text: str) -> str:
        """`y(x)` and `y'(x)` as `y` and `y'`."""
        variables = r"\s*,\s*".join(re.escape(v.name) for v in self.variables)
        for name in self.applied:
            text = re.sub(rf"(?<![\w'])({re.escape(name)}(?:'*|_[A-Za-z]+))\s*\(\s*{variables}\s*\)", r"\1", text)
        return text

    def _stand_in(self, name: str, by: str, stand_ins: dict[str, Any]) -> str:
        letters = [self.names[0]] * (len(by) // len(self.names[0])) if set(by) <= set(self.names[0]) else list(by)
        symbol = f"{_DERIVATIVE.format(len(stand_ins), name)}"
        stand_ins[symbol] = self.derivative(name, letters)
        return symbol

    def derivative(self, name: str, by: Sequence[str]) -> Any:
        """A derivative of an unknown function by variables, given by their names."""
        if name not in self.applied:
            raise ValueError(f"{name} has a derivative but is no unknown function; they are {', '.join(self.applied)}")
        if len(by) > MAX_ORDER:
            raise ValueError(f"a derivative of {name} of order {len(by)}; up to {MAX_ORDER} are read")
        known = {v.name: v for v in self.variables}
        for letter in by:
            if letter not in known:
                raise ValueError(
                    f"{name} has a derivative by {letter}, which is no variable; they are {', '.join(known)}"
                )
        form = self.applied[name]
        for letter in by:
            form = form.diff(known[letter])
        return form

    def condition(self, text: str) -> Any:
        """`y(0)=1`, `y'(0)=2`, `u(x, 0)=sin(x)`, `u_t(x, 0)=0` as a pair of SymPy objects."""
        sides = text.split("=")
        match = _CONDITION.match(sides[0])
        if len(sides) != 2 or match is None or match[1] not in self.applied:
            known = next(iter(self.applied))
            raise ValueError(f"{text!r} is no condition; write them like {known}(0)=1, {known}'(0)=2")
        places = [self.expression(part, text) for part in split_commas(match[3])]
        if len(places) != len(self.variables):
            names = ", ".join(v.name for v in self.variables)
            raise ValueError(f"{text!r}: {match[1]} has {len(self.variables)} variable(s), {names}")
        mark = match[2]
        by = [self.names[0]] * len(mark) if "'" in mark else list(mark[1:])
        at = {v: p for v, p in zip(self.variables, places, strict=True) if p != v}
        form = self.derivative(match[1], by)
        return (form.subs(at) if by else form.func(*places)), self.expression(sides[1], text)

    def domain(self, text: str) -> dict[Any, tuple[Any, Any]]:
        """`0..1`, or `x=0..1, t=0..2`."""
        found = {}
        for number, part in enumerate(split_commas(text)):
            name, _, span = part.rpartition("=")
            ends = span.split("..")
            if len(ends) != 2:
                raise ValueError(f"domain {part!r} cannot be read; write it like 0..1, or x=0..1, t=0..2")
            name = name.strip() or self.names[min(number, len(self.variables) - 1)]
            variable = next((v for v in self.variables if v.name == name), None)
            if variable is None:
                raise ValueError(
                    f"domain of {name}, which is no variable; they are {', '.join(v.name for v in self.variables)}"
                )
            low, high = (self.expression(end, part) for end in ends)
            if low.free_symbols or high.free_symbols:
                raise ValueError(f"domain {part!r} must lie between two numbers")
            found[variable] = (low, high)
        return found
