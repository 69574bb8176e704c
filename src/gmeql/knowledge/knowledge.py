"""All that a user knows about one target, as the search asks for it: which formulas may stand on the front."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import Constant, Node, leaves
from gmeql.formula.operators import get_operator
from gmeql.knowledge.consistency import ANY_UNIT, UnitRules, rules_from_dict
from gmeql.knowledge.constraint_text import read_constraint
from gmeql.knowledge.constraints import Constraint, LargestExponent
from gmeql.knowledge.scene import Scene, Verdict, scene_from_dict
from gmeql.knowledge.templates import Template, read_template, template_from_dict
from gmeql.knowledge.units import read_unit

UNIT_CHECKS = {
    "strict": "a formula that breaks the units is neither tried nor kept",
    "soft": "a formula that breaks the units must fit better to be kept",
}
"""The one table of ways to take units."""
ALIKE = 0.75
"""How alike (difflib's ratio) the name of a constant and a column are of which one may be meant for the other."""
SOFT_PRICE = 4.0
"""Factor on the loss to expect of a formula for each soft rule that it breaks: it must halve the error to be kept."""


_NOWHERE = Scene((), (), 1.0)


@dataclass(frozen=True)
class Knowledge:
    """What is known of one target."""

    units: UnitRules | None = None
    unit_check: str = "strict"
    template: Template | None = None
    """The outer form that every formula has."""
    guesses: tuple[Template, ...] = ()
    """Formulas to begin with; their numbers are only starts."""
    constraints: tuple[Constraint, ...] = ()
    scene: Scene | None = None
    """Where constraints of the formula's course are looked at; None before the data are known."""

    @property
    def has_strict_units(self) -> bool:
        """Whether only formulas that keep the units are wanted."""
        return self.units is not None and self.unit_check == "strict"

    @property
    def has_pure_constants(self) -> bool:
        """Whether units leave only pure numbers as constants."""
        return self.has_strict_units and self.units is not None and self.units.allowed == ()

    def admits(self, root: Node) -> bool:
        """Whether a formula may be tried at all: nothing hard that its tree alone shows is broken."""
        if self.template is not None and isinstance(root, Constant):
            return False
        if self.has_strict_units and self.units is not None and not self.units.keeps(root):
            return False
        return all(self._check(c, root).holds for c in self.constraints if not c.soft and not c.needs_values)

    def keeps(self, root: Node) -> bool:
        """Whether a fitted formula may stand on the front: no hard constraint is broken by its values either."""
        if self.scene is None:
            return True
        return all(self._check(c, root).holds for c in self.constraints if not c.soft and c.needs_values)

    def keeps_units(self, root: Node) -> bool:
        """Whether a formula keeps the units, as far as some are known."""
        return self.units is None or self.units.keeps(root)

    def units_of_constants(self, root: Node) -> list[Any]:
        """The unit of each constant, None where it cannot have one; empty where no units are known."""
        return [] if self.units is None else list(self.units.units_of_constants(root))

    def verdicts(self, root: Node) -> list[tuple[Constraint, Verdict]]:
        """What becomes of each constraint in a formula."""
        return [(constraint, self._check(constraint, root)) for constraint in self.constraints]

    def _check(self, constraint: Constraint, root: Node) -> Verdict:
        scene = self.scene if self.scene is not None else _NOWHERE
        try:
            return constraint.check(scene.in_users_units(root) if constraint.needs_values else root, scene)
        except (ArithmeticError, ValueError):  # a slope that no formula can say, a constant that no float holds
            return Verdict(False)

    @property
    def looks_at_values(self) -> bool:
        """Whether fitted formulas may still be refused."""
        return any(c.needs_values and not c.soft for c in self.constraints)

    @property
    def rules_out_offsets(self) -> bool:
        """Whether a constant added to the formula breaks a hard constraint as a rule."""
        return any(c.no_offset for c in self.constraints if not c.soft)

    def allowed_functions(self, functions: Sequence[str]) -> list[str]:
        """The functions that no constraint of form rules out altogether."""
        most = min(
            (c.most for c in self.constraints if isinstance(c, LargestExponent) and not c.soft), default=math.inf
        )
        kept = [name for name in functions if abs(get_operator(name).exponent or 0.0) <= most]
        return kept or list(functions)

    def held_constants(self, root: Node) -> frozenset[int]:
        """Numbers of the constants that a fit must leave as they are, lest it break what is known."""
        held: frozenset[int] = frozenset()
        if self.units is not None and self.has_strict_units:
            held = self.units.held_exponents(root)
        if self.template is not None:
            numbers = {abs(leaf.value) for leaf in leaves(self.template.form.root) if isinstance(leaf, Constant)}
            constants = [leaf for leaf in leaves(root) if isinstance(leaf, Constant)]
            held |= {number for number, leaf in enumerate(constants) if abs(leaf.value) in numbers}
        return held

    def price(self, root: Node) -> float:
        """Factor on the loss to expect of a formula for the soft rules that it breaks."""
        broken = sum(not self._check(c, root).holds for c in self.constraints if c.soft)
        if self.units is not None and not self.has_strict_units:
            broken += not self.units.keeps(root)
        return SOFT_PRICE**broken

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "units": None if self.units is None else self.units.to_dict(),
            "unit_check": self.unit_check,
            "template": None if self.template is None else self.template.to_dict(),
            "guesses": [guess.to_dict() for guess in self.guesses],
            "constraints": [constraint.text() for constraint in self.constraints],
            "scene": None if self.scene is None else asdict(self.scene),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Knowledge:
        """What `to_dict` gave."""
        units, template, scene = data["units"], data["template"], data["scene"]
        return cls(
            None if units is None else rules_from_dict(units),
            data["unit_check"],
            None if template is None else template_from_dict(template),
            tuple(template_from_dict(guess) for guess in data["guesses"]),
            () if scene is None else tuple(read_constraint(text, scene["names"]) for text in data["constraints"]),
            None if scene is None else scene_from_dict(scene),
        )


def read_knowledge(
    names: Sequence[str],
    *,
    n_targets: int = 1,
    units: Mapping[str, Any] | Sequence[Any] | None = None,
    target_units: Any = None,
    constant_units: Any = None,
    unit_check: str = "strict",
    template: str | None = None,
    constants: Mapping[str, Any] | None = None,
    guesses: Sequence[str] | None = None,
    constraints: Sequence[Any] | None = None,
) -> list[Knowledge | None]:
    """What is known of each target over the columns `names`; None where nothing is. A ValueError says what is wrong."""
    if template is None and constants is not None:
        raise ValueError("constants= gives bounds of a template's constants; give template= too")
    shared = Knowledge(
        None,
        unit_check,
        None if template is None else _read_given(template, names, constants),
        tuple(_read_guess(guess, names) for guess in guesses or ()),
        tuple(read_constraint(constraint, names) for constraint in constraints or ()),
    )
    rules = _unit_rules(names, n_targets, units, target_units, constant_units)
    if unit_check == "strict":
        for rule in rules:
            if rule is not None:
                rule.check_target(names)
    found = [replace(shared, units=rule) for rule in rules]
    return [None if one == Knowledge(unit_check=unit_check) else one for one in found]


def _read_given(text: Any, names: Sequence[str], constants: Mapping[str, Any] | None = None) -> Template:
    """A template as the user gave it, with a word where a constant may be a column that was misspelt."""
    found = read_template(text, names, constants)
    for name in found.form.names:
        if name not in (constants or {}) and (meant := get_close_matches(name, names, 1, ALIKE)):
            warnings.warn(
                f"template {text!r}: {name} is no column, so it is a constant to fit; was the column {meant[0]} meant?",
                UserWarning,
                stacklevel=2,
            )
    return found


def _read_guess(guess: Any, names: Sequence[str]) -> Template:
    try:
        found = _read_given(guess, names)
    except ValueError as error:
        raise ValueError(str(error).replace("template", "guess", 1)) from None
    if found.functions:
        raise ValueError(f"guess {guess!r}: calls {next(iter(found.functions))}, which is no function known here; a form with "
                         "free functions is a template")  # fmt: skip
    return found


def _unit_rules(
    names: Sequence[str], n_targets: int, units: Any, target_units: Any, constant_units: Any
) -> list[UnitRules | None]:
    """The units of each target, None where none are given."""
    if units is None:
        for name, value in (("target_units", target_units), ("constant_units", constant_units)):
            if value is not None:
                raise ValueError(f"{name}={value!r} needs units=, the units of the columns")
        return [None] * n_targets
    columns, allowed = _column_units(units, names), _constant_units(constant_units)
    targets = _target_units(target_units, n_targets)
    return [UnitRules(columns, _read("target_units", target), allowed) for target in targets]


def _read(where: str, unit: Any) -> Any:
    try:
        return read_unit(unit)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _column_units(units: Mapping[str, Any] | Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The dimension of every column, from a mapping by name or a sequence in their order."""
    if isinstance(units, Mapping):
        unknown = [name for name in units if name not in names]
        if unknown:
            raise ValueError(f"units names {short(unknown[0])}, which is no column; there are: {listing(names)}")
        missing = [name for name in names if name not in units]
        if missing:
            raise ValueError(f'units has no entry for column {missing[0]!r}; write "1" for a pure number')
        given = [units[name] for name in names]
    else:
        given = list(units)
        if len(given) != len(names):
            raise ValueError(f"units has {len(given)} entries for {len(names)} columns; give one for each")
    return tuple(_read(f"units of {name!r}", unit) for name, unit in zip(names, given, strict=True))


def _target_units(given: Any, n_targets: int) -> list[Any]:
    if given is None:
        raise ValueError('units= without target_units=: give the unit of y, as in target_units="J" ("1" for a number)')
    several = list(given) if isinstance(given, list | tuple) else [given] * n_targets
    if len(several) != n_targets:
        raise ValueError(f"target_units has {len(several)} entries for {n_targets} targets; give one for each")
    return several


def _constant_units(given: Any) -> tuple[Any, ...] | None:
    if given is None:
        return ()
    if isinstance(given, str) and given == ANY_UNIT:
        return None
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(_read("constant_units", unit) for unit in several)
