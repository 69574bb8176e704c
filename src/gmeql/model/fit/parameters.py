"""The estimator's parameters: checked before any work, and as plain data in model files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from gmeql.knowledge.constraints import Constraint
from gmeql.knowledge.knowledge import UNIT_CHECKS
from gmeql.knowledge.units import read_unit
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.methods import METHODS
from gmeql.model.pareto.rules import RULES
from gmeql.network.architecture import Architecture
from gmeql.search.config import DEVICES
from gmeql.search.losses.losses import find_loss

E = TypeVar("E")
KNOWLEDGE_PARAMETERS = ("units", "target_units", "constant_units", "unit_check", "template", "constants", "guesses",
    "constraints",)  # fmt: skip
"""Parameters that say what the user knows; `read_knowledge` takes and judges them."""
_CODE = ("callbacks", "random_state", "model_selection", "loss")
"""Parameters that may hold objects no file can; those come back as their defaults."""


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Every parameter's type and range; a ValueError names the first that is wrong. The search judges the rest."""
    get = parameters.__getitem__
    _check_choice("method", get("method"), METHODS)
    functions = get("functions")
    names = isinstance(functions, Sequence) and not isinstance(functions, str) and len(functions) > 0
    allowed = 'None or a list of operator names such as ["+", "*", "sin"]'
    _check(functions is None or names, "functions", functions, allowed)
    _check(get("max_time") is None or _is_positive(get("max_time")), "max_time", get("max_time"), "None or seconds > 0")
    interval = get("checkpoint_interval")
    _check(_is_positive(interval), "checkpoint_interval", interval, "a number of seconds > 0")
    for name in ("max_candidates", "max_complexity"):
        value = get(name)
        _check(value is None or (_is_whole(value) and value > 0), name, value, "None or a whole number > 0")
    if get("max_time") is None and get("max_candidates") is None and not METHODS[get("method")].ends_alone:
        raise ValueError("max_time=None and max_candidates=None give the search no end; set one of them")
    rule = get("model_selection")
    if not callable(rule):
        _check_choice("model_selection", rule, RULES, " or a callable")
    jobs = get("n_jobs")
    _check(
        jobs is None or (_is_whole(jobs) and jobs != 0), "n_jobs", jobs, "None, -1 (every core) or a number of threads"
    )
    find_loss(get("loss"))
    _check_method(parameters)
    _check_choice("device", get("device"), DEVICES)
    _check_knowledge(parameters)
    verbose = get("verbose")
    _check(_is_whole(verbose) or isinstance(verbose, bool), "verbose", verbose, "0, 1 or 2")
    _check(isinstance(get("warm_start"), bool | np.bool_), "warm_start", get("warm_start"), "True or False")
    folder = get("checkpoint")
    paths = folder is None or isinstance(folder, str | os.PathLike)
    _check(paths, "checkpoint", folder, "None or the path of a folder")
    callbacks = get("callbacks")
    several = isinstance(callbacks, Sequence) and all(map(callable, callbacks))
    allowed = "None, a callable or a list of callables"
    _check(callbacks is None or callable(callbacks) or several, "callbacks", callbacks, allowed)


def _check_method(parameters: Mapping[str, Any]) -> None:
    """What the method would not heed is refused."""
    name, method = parameters["method"], METHODS[parameters["method"]]
    if not method.takes_losses and parameters["loss"] != "squared":
        raise ValueError(f'loss={parameters["loss"]!r} needs method="fitted"; method={name!r} has a loss of its own')
    if not method.takes_complexity and parameters["max_complexity"] is not None:
        raise ValueError(f'max_complexity needs method="fitted"; method={name!r} knows no such bound')


def _check_knowledge(parameters: Mapping[str, Any]) -> None:
    """What is known, as far as it can be judged without the columns."""
    get = parameters.__getitem__
    units = get("units")
    several = isinstance(units, Mapping) or (isinstance(units, Sequence) and not isinstance(units, str))
    allowed = 'None, a mapping such as {"m": "kg", "v": "m/s"}, or a list with one unit per column'
    _check(units is None or several, "units", units, allowed)
    _check_choice("unit_check", get("unit_check"), UNIT_CHECKS)
    template, constants, guesses = get("template"), get("constants"), get("guesses")
    _check(template is None or isinstance(template, str), "template", template, "None or text such as 'a*f(x) + g(y)'")
    mapping = constants is None or isinstance(constants, Mapping)
    _check(mapping, "constants", constants, 'None or bounds by name, such as {"a": (0, 10)}')
    texts = isinstance(guesses, Sequence) and not isinstance(guesses, str) and all(isinstance(g, str) for g in guesses)
    rules = get("constraints")
    listed = isinstance(rules, Sequence) and not isinstance(rules, str)
    _check(rules is None or listed, "constraints", rules, 'None or a list such as ["increasing in x", "output >= 0"]')
    _check(guesses is None or texts, "guesses", guesses, 'None or a list of formulas such as ["sin(x)*exp(-k*t)"]')
    given = [name for name in KNOWLEDGE_PARAMETERS if get(name) is not None and name != "unit_check"]
    if given and not METHODS[get("method")].takes_knowledge:
        raise ValueError(
            f'{given[0]} needs method="fitted"; method={get("method")!r} trains one network on the columns alone'
        )


def _check(holds: bool, name: str, value: Any, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{name}={value!r} is not allowed; it must be {allowed}")


def _check_choice(name: str, value: Any, table: Collection[str], more: str = "") -> None:
    _check(isinstance(value, str) and value in table, name, value, f"one of {list(table)}{more}")


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value) and float(value) > 0


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


_MAPPINGS = ("units", "constants")
"""Parameters that may be objects in a model file."""


def to_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON data. Callables and random generators are left out; an Architecture becomes an object."""
    return {name: _plain(value) for name, value in parameters.items() if name not in _CODE or _is_data(value)}


def _is_data(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # an infinite budget is no budget
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Architecture):
        return {"architecture": value.to_dict()}
    if isinstance(value, Sequence | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Constraint):
        return value.text()
    if hasattr(value, "dimensionality") or hasattr(value, "decompose"):  # units of other libraries
        return str(read_unit(value))
    raise ValueError(f"a parameter of type {type(value).__name__} cannot be stored; use numbers, texts and lists")


def from_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `to_plain` for the parameters that were kept; a ValueError when they are not what it writes."""
    restored = dict(parameters)
    for name, value in restored.items():
        if isinstance(value, dict) and name not in _MAPPINGS:
            if name != "architecture" or set(value) != {"architecture"}:
                raise ValueError(f"parameter {name!r} cannot be an object")
            restored[name] = Architecture.from_dict(value["architecture"])
    return restored


def rebuilt(
    estimator: Callable[..., E], names: Collection[str], parameters: Mapping[str, Any], path: str | os.PathLike[str]
) -> E:
    """An estimator with the parameters of a model file, of which `names` are known; a `StorageError` for any other."""
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise StorageError(f"{path}: unknown parameter {unknown[0]!r:.60}; the file is damaged or not from gmeql")
    try:
        return estimator(**from_plain(parameters))
    except ValueError as error:
        raise StorageError(f"{path}: {error}") from None
