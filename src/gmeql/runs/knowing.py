"""What a user says on the command line about units, outer forms and constraints, as the estimator takes it.

Units come as `column=unit`, the target's among them; bounds of constants as `name=low..high`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.knowledge.consistency import ANY_UNIT
from gmeql.knowledge.knowledge import read_knowledge
from gmeql.knowledge.scene import Scene
from gmeql.model.fit.ranges import column_ranges
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.tables.categories import MARK
from gmeql.tables.errors import with_errors

if TYPE_CHECKING:
    from gmeql.knowledge.knowledge import Knowledge
    from gmeql.tables.table import Table
    from gmeql.tables.training import Training


def training_of(settings: FitSettings, table: Table) -> Training:
    """The rows that a fit by these settings sees, with the errors of its columns."""
    assert settings.target is not None
    if settings.x_error and settings.y_error is None:
        raise ConfigError(
            "--x-error needs --y-error: rows cannot tell how their scatter is shared; give the target's too"
        )
    if settings.weights is not None and settings.y_error is not None:
        raise ConfigError("--weights and --y-error both weigh the rows; give one of them")
    training = table.select(settings.target, **settings.select_options())
    return with_errors(table, training, settings.y_error, _pairs("--x-error", settings.x_error))


def errors_of(training: Training) -> dict[str, Any]:
    """What `fit` is told of weights and errors."""
    if training.y_errors is None:
        return {"sample_weight": training.weights}
    return {"y_error": training.y_errors, "x_error": training.x_errors}


def knowledge_options(settings: FitSettings, training: Training, pins: Sequence[Expression] = ()) -> dict[str, Any]:
    """Parameters of the estimator that say what is known; empty where nothing is.

    `pins` are parts that stand behind the columns of `training` as columns of their own; their units follow.
    """
    options: dict[str, Any] = {}
    for key, flag in (("constant_units", "--constant-units"), ("unit_check", "--unit-check")):
        if not settings.units and getattr(settings, key) != getattr(FitSettings, key):
            raise ConfigError(f"{flag} needs --units, the units of the columns and the target; give them too")
    if settings.units:
        given = _pairs("--units", settings.units)
        if training.target not in given:
            raise ConfigError(f"--units: the target's is missing; add {training.target}=... (1 for a pure number)")
        options["target_units"] = given[training.target]
        names = training.names[: len(training.names) - len(pins)]
        given |= {name: "1" for name in names if name not in given and _is_category(name, training)}
        missing = [name for name in names if name not in given]
        if missing:
            known_by = "column {} has none" if len(missing) == 1 else "columns {} have none"
            told = known_by.format(", ".join(map(repr, missing)))
            added = ",".join(f"{name}=..." for name in missing)
            raise ConfigError(f"--units: {told}; add {added} (1 for a pure number)")
        options["units"] = {name: given[name] for name in names}
        options["unit_check"] = settings.unit_check
        if settings.constant_units:
            any_unit = list(settings.constant_units) == [ANY_UNIT]
            options["constant_units"] = ANY_UNIT if any_unit else list(settings.constant_units)
        (known,) = _read(names, options)
        if pins and known is not None and known.units is not None:
            more = training.names[len(names) :]
            units = known.units
            options["units"] |= {name: str(units.unit_of(pin.root)) for name, pin in zip(more, pins, strict=True)}
    if settings.template is not None:
        options["template"] = settings.template
    if settings.constants:
        options["constants"] = {
            name: _bounds(name, text) for name, text in _pairs("--constants", settings.constants).items()
        }
    if settings.guess:
        options["guesses"] = list(settings.guess)
    if settings.constraint:
        options["constraints"] = list(settings.constraint)
    return options


def _is_category(name: str, training: Training) -> bool:
    """Whether a column says of each row if it belongs to a category: a pure number, which nobody has to say."""
    values = training.X[:, list(training.names).index(name)]
    return MARK in name and bool(np.isin(values, (0.0, 1.0)).all())


def check_knowledge(settings: FitSettings, training: Training) -> Knowledge | None:
    """What is known of the target, or a `ConfigError` that says which flag is wrong."""
    options = knowledge_options(settings, training)
    return _read(training.names, options)[0]


def knowledge_of(settings: FitSettings, training: Training) -> Knowledge | None:
    """What is known of the target, looked at over the ranges of the rows."""
    known = check_knowledge(settings, training)
    if known is None:
        return None
    ranges = tuple((float(low), float(high)) for low, high in column_ranges(training.X))
    return replace(known, scene=Scene(tuple(training.names), ranges, float(training.y.std()) or 1.0))


def _read(names: Sequence[str], options: Mapping[str, Any]) -> list[Knowledge | None]:
    try:
        return read_knowledge(names, **options)
    except ValueError as error:
        raise ConfigError(_with_flags(str(error))) from None


_FLAGS = {
    "units=": "--units", "target_units": "--units (the target's)", "constant_units": "--constant-units",
    "template": "--template", "constants": "--constants", "guess": "--guess", "constraint": "--constraint",
}  # fmt: skip


def _with_flags(message: str) -> str:
    """A message about parameters, with the flag in front."""
    flag = next((flag for name, flag in _FLAGS.items() if message.startswith(name)), "--units")
    return f"{flag}: {message}"


def _pairs(flag: str, items: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in items:
        name, sign, value = item.rpartition("=")
        if not sign or not name.strip():
            raise ConfigError(f"{flag}: {item!r} is not name=value")
        found[name.strip()] = value.strip()
    return found


def _bounds(name: str, text: str) -> tuple[float | None, float | None]:
    low, dots, high = text.partition("..")
    try:
        if not dots:
            raise ValueError
        return float(low) if low.strip() else None, float(high) if high.strip() else None
    except ValueError:
        raise ConfigError(f"--constants: {name}={text} is not name=low..high, as in a=0..10 or a=0..") from None
