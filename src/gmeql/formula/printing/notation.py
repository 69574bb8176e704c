"""Numbers and names as people and languages read them: constants rounded, column names shown or made identifiers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Protocol

from gmeql.formula.nodes import Constant, Leaf, Node, Variable, transform

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
PLAIN = (1e-4, 1e6)
"""Sizes of figures that are written without a power of ten."""
DIGITS = 5
"""Significant digits of constants shown to people,"""
MOST_DIGITS = 10
"""save of those that have no more than this: somebody wrote them so, or a search found that they are needed."""

ALL_DIGITS = 17
"""Significant digits that tell every number from all others."""


class Formula(Protocol):
    """What every printer takes: a tree and the names of its columns."""

    @property
    def root(self) -> Node: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def digits(self) -> Sequence[int] | None: ...


# --- numbers ----------------------------------------------------------------------------------------------------------


def round_constant(value: float, digits: int = DIGITS) -> float:
    """A constant as shown to people: as it is where that takes few digits, else rounded to `digits` digits.

    >>> round_constant(2458040.25), round_constant(3.141592653589793)
    (2458040.25, 3.1416)
    """
    return value if float(f"{value:.{MOST_DIGITS}g}") == value else float(f"{value:.{digits}g}")


def checked_digits(digits: Sequence[int], n_constants: int) -> tuple[int, ...]:
    """Numbers of digits if there is one for each constant that a text can have."""
    usable = isinstance(digits, list | tuple) and all(type(d) is int and 1 <= d <= ALL_DIGITS for d in digits)
    if not usable or len(digits) != n_constants:
        raise ValueError(f"digits must be {n_constants} whole numbers from 1 to {ALL_DIGITS}, one for each constant")
    return tuple(digits)


def number_text(value: float, digits: int | None = None) -> str:
    """Shortest text of a number: 3 for 3.0, 1.2, 1.5e-07; of a rounded one never more than `digits` digits.

    >>> number_text(3.0), number_text(1.2), number_text(1.5e-7), number_text(2.9979e8, digits=5)
    ('3', '1.2', '1.5e-07', '2.9979e+08')
    """
    if digits is not None and abs(value) >= 1e6:
        short = f"{value:.{digits}g}"
        return short if float(short) == value else f"{value:.{MOST_DIGITS}g}"
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def four_digits(value: float) -> str:
    """A figure, such as a loss, wherever people read one.

    >>> four_digits(14513.2), four_digits(0.50487), four_digits(1.2e-7)
    ('14510', '0.5049', '1.2e-07')
    """
    return unfolded(f"{value:.4g}") if math.isfinite(value) else "not finite"


def unfolded(text: str) -> str:
    """1.451e+04 as 14510."""
    return f"{float(text):.0f}" if 1e3 <= abs(float(text)) < PLAIN[1] and "e" in text else text


def round_constants(root: Node, digits: Sequence[int] | None = None) -> Node:
    """The tree with its constants rounded as shown to people: to so many `digits` each, from left to right, where they are
    told."""
    supply = iter(digits or ())

    def leaf(node: Leaf) -> Node:
        if isinstance(node, Variable):
            return node
        told = next(supply, None)
        shown = round_constant(node.value) if told is None else float(f"{node.value:.{told}g}")
        return node if shown == node.value else Constant(shown)

    return transform(root, leaf)


def shown(expression: Formula) -> Node:
    """The tree of a formula with its constants as people see them."""
    return round_constants(expression.root, expression.digits)


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
    """The names with repeated ones renamed by `pattern`; first comers keep theirs."""
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


def is_own_constant(name: str) -> bool:
    """Whether a name is one of a constant that each group has for itself, such as `k1[star]`."""
    base, _, group = name.partition("[")
    return is_plain_name(base) and group.endswith("]") and is_plain_name(group[:-1])


def text_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names in a text that is read back: those that are no identifiers stand in backticks.

    >>> text_names(["x1", "petal length (cm)"])
    ('x1', '`petal length (cm)`')
    """
    return tuple(
        name if is_plain_name(name) or is_own_constant(name) else "`" + name.replace("`", "``") + "`"
        for name in display_names(names)
    )


def identifiers(names: Sequence[str], keep: Callable[[str], bool]) -> tuple[str, ...]:
    """A distinct identifier for each name: the name itself where `keep` allows, else one made of [A-Za-z0-9_].

    >>> identifiers(["x1", "petal length (cm)", "1st", "", "x1"], str.isidentifier)
    ('x1', 'petal_length_cm', 'x_1st', 'x4', 'x1_2')
    >>> identifiers(["Länge (m)", "Straße", "Größe [m²]"], str.isascii)
    ('Lange_m', 'Strasse', 'Grosse_m2')
    """
    safe = []
    for index, name in enumerate(names):
        if not keep(name):
            name = re.sub(r"[^A-Za-z0-9_]+", "_", _without_accents(name)).strip("_")[:40] or f"x{index + 1}"
            name = name if name[0].isalpha() and keep(name) else f"x_{name}"
        safe.append(name)
    # Kept names come first in the queue for their own spelling, made-up ones give way.
    order = sorted(range(len(names)), key=lambda i: safe[i] != names[i])
    distinct = _distinct([safe[i] for i in order], "{name}_{count}")
    result = [""] * len(names)
    for place, name in zip(order, distinct, strict=True):
        result[place] = name
    return tuple(result)


def _without_accents(name: str) -> str:
    """Letters and digits as near to ASCII as they have a form there."""
    parts = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return "".join(part for part in parts if not unicodedata.combining(part))


def symbol_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the SymPy symbols: a plain name is kept; others become identifiers, because SymPy's own tools
    (`lambdify`, `sympify` of printed text) run what a symbol's name says."""
    return identifiers(names, is_plain_name)
