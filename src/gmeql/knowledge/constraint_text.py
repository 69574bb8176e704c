"""Constraints from text: one short sentence each, as the table of constraints says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gmeql.formula.messages import listing, short
from gmeql.formula.operators import get_operator, is_known
from gmeql.knowledge.constraints import (
    CONSTRAINTS,
    Bounded,
    Constraint,
    Exchangeable,
    Finite,
    FunctionsOf,
    LargestExponent,
    Limit,
    Mirrored,
    Monotone,
    MostTerms,
    Nesting,
    Point,
    Ranges,
)

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf)"
MAX_LENGTH = 300
"""Most characters of a constraint's text."""


def read_constraint(given: Any, names: Sequence[str]) -> Constraint:
    """The constraint of a text (see `CONSTRAINTS`), or one given as an object, over the columns `names`."""
    if isinstance(given, Constraint):
        found: Constraint | None = given
    elif isinstance(given, str):
        if len(given) > MAX_LENGTH:
            raise ValueError(f"constraint {short(given)} is longer than {MAX_LENGTH} characters")
        text = " ".join(given.replace("→", "->").replace("≤", "<=").replace("≥", ">=").split())
        soft = text.startswith("soft ")
        found = _read(text.removeprefix("soft "), names)
        found = None if found is None else replace(found, soft=soft)
    else:
        raise ValueError(f'constraint {short(given)} must be text such as "increasing in x", or a constraint')
    if found is None:
        forms = "; ".join(form for _, form in CONSTRAINTS.values())
        raise ValueError(f"constraint {given!r} cannot be read; written are: {forms}")
    for name in found.columns():
        if name not in names:
            raise ValueError(
                f"constraint {found.text()!r} names {short(name)}, which is no column; there are: {listing(names)}"
            )
    return replace(found, names=tuple(names)) if isinstance(found, FunctionsOf) else found


def _read(text: str, names: Sequence[str]) -> Constraint | None:
    body, _, domain_text = text.partition(" for ")
    domain = _ranges(domain_text)
    if domain is None:
        return None
    if match := re.fullmatch(r"(increasing|decreasing) in (.+)", body):
        return Monotone(column=match[2], rises=match[1] == "increasing", domain=domain)
    if match := re.fullmatch(r"(even|odd) in (.+)", body):
        return Mirrored(column=match[2], odd=match[1] == "odd")
    if match := re.fullmatch(r"symmetric in (.+), ?(.+)", body):
        return Exchangeable(first=match[1], second=match[2])
    if body == "finite":
        if any(math.isinf(end) for _, *ends in domain for end in ends):
            raise ValueError(f"{text!r}: give both ends of every range, as in finite for 0 <= x <= 100")
        return Finite(domain=domain)
    if match := re.fullmatch(rf"(?:exponents?|powers?) <= ({_NUMBER})", body):
        return LargestExponent(most=float(match[1]))
    if match := re.fullmatch(r"terms <= (\d+)", body):
        return MostTerms(most=int(match[1]))
    if match := re.fullmatch(r"(\w+) in (\w+) <= (\d+)", body):
        return Nesting(inner=_function(match[1]), outer=_function(match[2]), most=int(match[3]))
    if match := re.fullmatch(r"functions of (.+): (.+)", body):
        listed = [] if match[2] == "none" else [word.strip() for word in match[2].split(",")]
        return FunctionsOf(column=match[1], functions=tuple(_function(word) for word in listed))
    if match := re.fullmatch(rf"f ?-> ?({_NUMBER}) as (.+?) ?-> ?({_NUMBER})", body):
        return Limit(column=match[2], towards=float(match[3]), value=float(match[1]))
    if match := re.fullmatch(rf"f\((.+)\) ?= ?({_NUMBER})", body):
        return _point(match[1], float(match[2]), names)
    ranges = _ranges(body)
    if ranges and len(ranges) == 1 and ranges[0][0] in ("output", "f"):
        return Bounded(low=ranges[0][1], high=ranges[0][2], domain=domain)
    return None


def _function(name: str) -> str:
    if not is_known(name):
        raise ValueError(f"{name!r} is no function that is known here")
    return get_operator(name).name


def _point(text: str, value: float, names: Sequence[str]) -> Point | None:
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch(_NUMBER, part) for part in parts):
        if len(parts) != len(names):
            raise ValueError(
                f"f({text}) has {len(parts)} values for {len(names)} columns; name them, as in f({names[0]}=0)"
            )
        return Point(at=tuple((name, float(part)) for name, part in zip(names, parts, strict=True)), value=value)
    found = [re.fullmatch(rf"(.+?) ?= ?({_NUMBER})", part) for part in parts]
    return None if None in found else Point(at=tuple((m[1], float(m[2])) for m in found if m), value=value)


def _ranges(text: str) -> Ranges | None:
    """Ranges such as "0 <= x <= 10, t >= 0, z in [1, 2]"; None where one cannot be read."""
    found = []
    for part in re.split(r", (?![^\[]*\])", text) if text else []:
        if match := re.fullmatch(rf"({_NUMBER}) <=? (.+?) <=? ({_NUMBER})", part):
            found.append((match[2], float(match[1]), float(match[3])))
        elif match := re.fullmatch(rf"(.+?) (<=?|>=?) ({_NUMBER})", part):
            value = float(match[3])
            found.append((match[1], -math.inf, value) if "<" in match[2] else (match[1], value, math.inf))
        elif match := re.fullmatch(rf"(.+?) in \[({_NUMBER}), ?({_NUMBER})\]", part):
            found.append((match[1], float(match[2]), float(match[3])))
        else:
            return None
        if not found[-1][1] < found[-1][2]:
            raise ValueError(f"{part!r}: the lower end must be below the upper one")
    return tuple(found)
