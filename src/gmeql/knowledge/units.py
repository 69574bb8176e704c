"""Units read into dimensions: from text, or from objects of Pint and astropy.

The table is our own, and small: of a unit only its dimension matters here, not its size, so that a few dozen names,
the prefixes and the rules of products, powers and fractions are all there is. A library of units would be one more
dependency, and its registry a program of its own that reads text from files; who has one hands its objects over.

>>> print(read_unit("kJ/(mol*K)"))
kg*m**2/(K*mol*s**2)
>>> print(read_unit("m s^-1"))
m/s
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from gmeql.formula.messages import short
from gmeql.knowledge.dimensions import NUMBER, Dimension

_BASES = ("kg", "m", "s", "A", "K", "mol", "cd")
_SYMBOLS: dict[str, tuple[int, ...]] = {
    # symbol: exponents of kg, m, s, A, K, mol, cd; all of these take prefixes
    "g": (1,), "m": (0, 1), "s": (0, 0, 1), "A": (0, 0, 0, 1), "K": (0, 0, 0, 0, 1), "mol": (0, 0, 0, 0, 0, 1),
    "cd": (0, 0, 0, 0, 0, 0, 1), "rad": (), "sr": (), "Hz": (0, 0, -1), "N": (1, 1, -2), "Pa": (1, -1, -2),
    "J": (1, 2, -2), "W": (1, 2, -3), "C": (0, 0, 1, 1), "V": (1, 2, -3, -1), "F": (-1, -2, 4, 2),
    "ohm": (1, 2, -3, -2), "Ω": (1, 2, -3, -2), "S": (-1, -2, 3, 2), "Wb": (1, 2, -2, -1), "T": (1, 0, -2, -1),
    "H": (1, 2, -2, -2), "lm": (0, 0, 0, 0, 0, 0, 1), "lx": (0, -2, 0, 0, 0, 0, 1), "Bq": (0, 0, -1), "Gy": (0, 2, -2),
    "Sv": (0, 2, -2), "kat": (0, 0, -1, 0, 0, 1), "L": (0, 3), "l": (0, 3), "t": (1,), "eV": (1, 2, -2), "bar": (1, -1, -2),
    "pc": (0, 1), "cal": (1, 2, -2), "Da": (1,), "M": (0, -3, 0, 0, 0, 1),
}  # fmt: skip
_PLAIN: dict[str, tuple[int, ...]] = {
    # names without prefixes
    "1": (), "%": (), "ppm": (), "deg": (), "°": (), "kg": (1,), "min": (0, 0, 1), "h": (0, 0, 1), "hr": (0, 0, 1),
    "d": (0, 0, 1), "day": (0, 0, 1), "week": (0, 0, 1), "month": (0, 0, 1), "yr": (0, 0, 1), "year": (0, 0, 1),
    "a": (0, 0, 1), "Å": (0, 1), "angstrom": (0, 1), "au": (0, 1), "AU": (0, 1), "ly": (0, 1), "in": (0, 1), "ft": (0, 1),
    "yd": (0, 1), "mi": (0, 1), "mile": (0, 1), "nmi": (0, 1), "ha": (0, 2), "acre": (0, 2), "gal": (0, 3), "lb": (1,),
    "oz": (1,), "u": (1,), "Msun": (1,), "lbf": (1, 1, -2), "dyn": (1, 1, -2), "erg": (1, 2, -2), "psi": (1, -1, -2),
    "atm": (1, -1, -2), "mmHg": (1, -1, -2), "torr": (1, -1, -2), "hp": (1, 2, -3), "mph": (0, 1, -1), "kn": (0, 1, -1),
    "rpm": (0, 0, -1), "dimensionless": (),
}  # fmt: skip
_WORDS = {
    "gram": "g", "metre": "m", "meter": "m", "second": "s", "ampere": "A", "kelvin": "K", "mole": "mol", "candela": "cd",
    "radian": "rad", "steradian": "sr", "hertz": "Hz", "newton": "N", "pascal": "Pa", "joule": "J", "watt": "W",
    "coulomb": "C", "volt": "V", "farad": "F", "siemens": "S", "weber": "Wb", "tesla": "T", "henry": "H", "lumen": "lm",
    "lux": "lx", "becquerel": "Bq", "gray": "Gy", "sievert": "Sv", "litre": "L", "liter": "L", "tonne": "t",
    "electronvolt": "eV", "parsec": "pc", "calorie": "cal", "minute": "min", "hour": "h", "degree": "deg", "foot": "ft",
    "inch": "in", "pound": "lb",
}  # fmt: skip
_PREFIXES = ("Q", "R", "Y", "Z", "E", "P", "T", "G", "M", "k", "h", "da", "d", "c", "m", "µ", "μ", "u", "n", "p", "f", "a",
             "z", "y", "r", "q")  # fmt: skip
_LONG_PREFIXES = ("kilo", "mega", "giga", "tera", "peta", "hecto", "deca", "deci", "centi", "milli", "micro", "nano", "pico",
                  "femto", "atto")  # fmt: skip
_SHIFTED = ("degC", "°C", "celsius", "degF", "°F", "fahrenheit")
"""Units with a zero of their own: a product of them means nothing."""
_PINT_BASES = {
    "[mass]": "kg", "[length]": "m", "[time]": "s", "[current]": "A", "[temperature]": "K", "[substance]": "mol",
    "[luminosity]": "cd",
}  # fmt: skip
MAX_LENGTH = 200
"""Most characters of a unit's text."""
_TOKEN = re.compile(r"\s*(?:(\*\*|[*/^()·⋅])|(\d+(?:\.\d+)?)|(\[[^\]\[]+\]|[^\W\d_][^\W\d]*|[%°Å]\w*)|(-|\+))")


def read_unit(unit: Any) -> Dimension:
    """The dimension of a unit: text, a mapping of unit to exponent, or an object of Pint or astropy.

    Text is a product of names with powers and fractions ("kg*m**2/s^2", "m s-1", "V/m", "1/s"); "" and "1" are pure
    numbers; a name in brackets is a base unit of one's own ("[person]/km**2").
    """
    if isinstance(unit, Dimension):
        return unit
    if isinstance(unit, str):
        return _Reader(unit).read()
    if unit is None or (isinstance(unit, Real) and unit == 1):
        return NUMBER
    if isinstance(unit, Mapping):
        return _product({_own_or_known(str(name)): power for name, power in unit.items()}, unit)
    if hasattr(unit, "dimensionality"):  # a unit or quantity of Pint
        powers = {str(name): power for name, power in dict(unit.dimensionality).items()}
        return _product({_named(_PINT_BASES.get(name, name)): power for name, power in powers.items()}, unit)
    own = getattr(unit, "unit", unit)  # a quantity of astropy has a unit
    if hasattr(own, "decompose"):
        bases = own.decompose()
        named = zip(bases.bases, bases.powers, strict=True)
        return _product({_own_or_known(str(base)): power for base, power in named}, unit)
    raise ValueError(f"unit {short(unit)} is of type {type(unit).__name__}; give text such as 'm/s**2', or a Pint or "
                     "astropy unit")  # fmt: skip


def _named(base: str) -> Dimension:
    return Dimension(((base, Fraction(1)),))


def _own_or_known(name: str) -> Dimension:
    return _lookup(name) if not name.startswith("[") else _named(name)


def _product(powers: Mapping[Dimension, Any], unit: Any) -> Dimension:
    result = NUMBER
    for base, power in powers.items():
        if isinstance(power, bool) or not isinstance(power, Rational | float):
            raise ValueError(f"unit {short(unit)} has the exponent {power!r}; exponents are numbers")
        result = result * base ** Fraction(power).limit_denominator(12)
    return result


def _lookup(name: str) -> Dimension:
    """The dimension of one name: as it is, as a word, or behind a prefix."""
    if name in _SHIFTED:
        raise ValueError(f"{name} has a zero of its own, so products of it mean nothing; give the column in K")
    name = _WORDS.get(name, name)
    exponents = _PLAIN.get(name, _SYMBOLS.get(name))
    if exponents is None:
        for prefix in _PREFIXES:
            if name.startswith(prefix) and name[len(prefix) :] in _SYMBOLS:
                exponents = _SYMBOLS[name[len(prefix) :]]
                break
    if exponents is None and (word := _in_words(name)) is not None:
        return _lookup(word)
    if exponents is None:
        near = difflib.get_close_matches(name, [*_SYMBOLS, *_PLAIN, *_WORDS], n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? A" if near else "a"
        raise ValueError(
            f"{name!r} is no unit that is known here; {hint} base unit of your own stands in brackets: [{name}]"
        )
    return Dimension.of(dict(zip(_BASES, exponents, strict=False)))


def _in_words(name: str) -> str | None:
    """The symbol of a unit written out, behind a prefix or in the plural: "kilometers" is m."""
    for prefix in ("", *_LONG_PREFIXES):
        for ending in ("", "s", "es"):
            word = name.removeprefix(prefix).removesuffix(ending)
            if prefix + word + ending == name and prefix + ending and word in _WORDS:
                return _WORDS[word]
    singular = name.removesuffix("s")
    return singular if len(name) > 3 and singular != name and singular in _PLAIN else None


class _Reader:
    """Reads the text of one unit: products and fractions of powers, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_LENGTH:
            raise ValueError(f"unit {short(text)} is longer than {MAX_LENGTH} characters")
        self.tokens = self._tokens()
        self.place = 0

    def _tokens(self) -> list[str]:
        found, place = [], 0
        text = self.text.strip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise ValueError(f"unit {self.text!r}: {text[place]!r} cannot be read; write it like kg*m**2/s**2")
            found.append(match.group().strip())
            place = match.end()
        return found

    def read(self) -> Dimension:
        if not self.tokens:
            return NUMBER
        try:
            result = self._product()
        except ValueError as error:
            raise ValueError(f"unit {self.text!r}: {error}") from None
        if self.place < len(self.tokens):
            raise ValueError(
                f"unit {self.text!r}: {self.tokens[self.place]!r} is out of place; write it like kg*m**2/s**2"
            )
        return result

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.place += 1
        return token

    def _product(self) -> Dimension:
        result = self._power()
        while (token := self._peek()) and token != ")":
            if token == "/":
                self._take()
                result = result / self._power()
            else:  # a product, whose sign may be left out: "m s"
                if token in ("*", "·", "⋅"):
                    self._take()
                result = result * self._power()
        return result

    def _power(self) -> Dimension:
        base = self._atom()
        token = self._peek()
        if token in ("**", "^"):
            self._take()
            return base ** self._exponent()
        if token in ("-", "+") or token.isdecimal():  # "m s-1", "m2"
            return base ** self._exponent()
        return base

    def _atom(self) -> Dimension:
        token = self._take()
        if token == "(":
            inner = self._product()
            if self._take() != ")":
                raise ValueError("a bracket is not closed")
            return inner
        if token == "1":
            return NUMBER
        if not token or not (token[0].isalpha() or token[0] in "%°Å["):
            raise ValueError(
                f"{token or 'its end'!r} stands where the name of a unit belongs; units carry no numbers but 1"
            )
        return _own_or_known(token)

    def _exponent(self) -> Fraction:
        sign = {"-": -1, "+": 1}.get(self._peek(), 0)
        if sign:
            self._take()
        if self._peek() == "(":
            self._take()
            value = self._exponent()
            if self._peek() == "/":
                self._take()
                value = value / self._exponent()
            if self._take() != ")":
                raise ValueError("a bracket is not closed")
        else:
            token = self._take()
            if not re.fullmatch(r"\d+(\.\d+)?", token):
                raise ValueError(f"{token or 'its end'!r} stands where an exponent belongs")
            value = Fraction(token)
        if abs(value) > 100:
            raise ValueError(f"the exponent {value} is too large")
        return (sign or 1) * value
