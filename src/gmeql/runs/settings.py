"""Settings of a fit from the command line: a TOML file, over it the environment, over it the flags.

One table of settings (`FitSettings`) serves all three, so that a name, its meaning and its check exist once.
"""

from __future__ import annotations

import difflib
import os
import shlex
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gmeql.knowledge.knowledge import UNIT_CHECKS
from gmeql.model.fit.methods import METHODS
from gmeql.model.pareto.rules import RULES
from gmeql.search.config import DEVICES
from gmeql.search.losses.losses import LOSSES, find_loss
from gmeql.tables.cells import DECIMAL_MARKS

PREFIX = "GMEQL_"
FILE_VARIABLE = "GMEQL_CONFIG"
DEFAULT_SECONDS = 30.0  # long enough for most laws of one to three columns, short enough to wait for
CHOICES: dict[str, Collection[str]] = {
    "method": METHODS,
    "selection": RULES,
    "loss": LOSSES,
    "device": DEVICES,
    "decimal": DECIMAL_MARKS,
    "unit_check": UNIT_CHECKS,
}
"""Settings that are one of a few words, and the table of those."""


class ConfigError(ValueError):
    """A setting that cannot be used: where it comes from, its name, what was given and what is allowed."""


@dataclass(frozen=True)
class FitSettings:
    """Everything `gmeql fit` can be told. The defaults stand here and nowhere else."""

    target: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    y_error: str | None = None
    x_error: tuple[str, ...] = ()
    groups: str | None = None
    method: str = "fitted"
    functions: tuple[str, ...] | None = None
    pin: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    constant_units: tuple[str, ...] = ()
    unit_check: str = "strict"
    template: str | None = None
    constants: tuple[str, ...] = ()
    guess: tuple[str, ...] = ()
    constraint: tuple[str, ...] = ()
    max_time: float | None = DEFAULT_SECONDS
    max_candidates: int | None = None
    max_complexity: int | None = None
    loss: str = "squared"
    seed: int = 0
    selection: str = "best"
    device: str = "auto"
    jobs: int | None = None
    out: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    encoding: str | None = None
    sheet: str | None = None
    skip_bad_rows: bool = False
    text_as_missing: bool = False
    keep_codes: bool = False

    def table_options(self) -> dict[str, Any]:
        """What `tables.read` takes."""
        names = ("delimiter", "decimal", "header", "encoding", "sheet", "skip_bad_rows")
        return {name: getattr(self, name) for name in names}

    def select_options(self) -> dict[str, Any]:
        """What `Table.select` takes beside the target."""
        names = ("columns", "drop", "weights", "text_as_missing", "keep_codes", "groups")
        return {name: getattr(self, name) for name in names} | {"errors": self.error_columns()}

    def error_columns(self) -> tuple[str, ...]:
        """Columns of the table that hold standard deviations of others, each once."""
        given = [*(item.rpartition("=")[2] for item in self.x_error), *([] if self.y_error is None else [self.y_error])]
        return tuple(dict.fromkeys(word.strip() for word in given if not is_number(word)))

    def estimator_options(self) -> dict[str, Any]:
        """What the estimator takes."""
        return {
            "method": self.method,
            "functions": None if self.functions is None else list(self.functions),
            "max_time": self.max_time,
            "max_candidates": self.max_candidates,
            "max_complexity": self.max_complexity,
            "loss": self.loss,
            "device": self.device,
            "random_state": self.seed,
            "model_selection": self.selection,
            "n_jobs": self.jobs,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "settings") -> FitSettings:
        """Checked settings from plain data; unknown names and wrong types are a `ConfigError`."""
        return cls(**{key: _checked(key, value, source) for key, value in _known(values, source).items()})


_NAMES = tuple(field.name for field in fields(FitSettings))
_LISTS = frozenset(
    {
        "columns",
        "drop",
        "functions",
        "pin",
        "forbid",
        "units",
        "constant_units",
        "constants",
        "guess",
        "constraint",
        "x_error",
    }
)
_REPEATED = frozenset({"pin", "forbid", "guess", "constraint"})
"""Lists whose entries hold commas: a flag for each."""
_FLAGS = frozenset({"header", "skip_bad_rows", "text_as_missing", "keep_codes"})
_NUMBERS: dict[str, type[float] | type[int]] = {
    "max_time": float,
    "max_candidates": int,
    "max_complexity": int,
    "seed": int,
    "jobs": int,
}
_LOWEST = {"max_time": 0.0, "max_candidates": 1, "max_complexity": 1, "seed": 0}


def resolve(
    flags: Mapping[str, Any], *, file: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> FitSettings:
    """Defaults, under a TOML file, under the environment, under the flags. A flag of None was not given.

    >>> resolve({"max_time": 5}, environment={"GMEQL_MAX_TIME": "9", "GMEQL_SEED": "3"}).max_time
    5.0
    """
    environment = os.environ if environment is None else environment
    file = file if file is not None else environment.get(FILE_VARIABLE)
    merged: dict[str, Any] = {}
    if file is not None:
        merged |= _from_file(Path(file))
    merged |= _from_environment(environment)
    given = {key: value for key, value in flags.items() if value is not None}
    merged |= {key: _checked(key, value, _flag(key)) for key, value in _known(given, "command line").items()}
    if merged.get("max_candidates") is not None and "max_time" not in merged:
        merged["max_time"] = None  # a count of candidates is a budget of its own, and reproducible
    return FitSettings(**merged)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); give a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML ({error}); mend that place") from None
    content = {key.replace("-", "_"): value for key, value in content.get("fit", content).items()}
    return {key: _checked(key, value, f"{path}: {key}") for key, value in _known(content, str(path)).items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in _NAMES:
        variable = PREFIX + name.upper()
        if variable in environment:
            found[name] = _checked(name, environment[variable], variable)
    return found


def _known(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    for key in values:
        if key not in _NAMES:
            near = difflib.get_close_matches(key, _NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_NAMES)}"
            raise ConfigError(f"{source}: unknown setting {key!r}; {hint}")
    return dict(values)


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")


def check_setting(key: str, value: Any) -> Any:
    """The value of one flag, checked as those of a fit are; a `ConfigError` in the words of the flag.

    >>> check_setting("max_time", "5")
    5.0
    """
    return _checked(key, value, _flag(key))


def _checked(key: str, value: Any, where: str) -> Any:
    if value is None:
        default = next(field.default for field in fields(FitSettings) if field.name == key)
        if default is not MISSING and default is not None and key != "max_time":
            raise ConfigError(f"{where}: a value is needed")
        return None
    if key in _LISTS:
        return _words(value, where)
    if key in _FLAGS:
        return _flag_value(value, where)
    if key in _NUMBERS:
        return _number(key, value, where)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {value!r} is not text")
    if key == "loss" and value.startswith("quantile:"):
        try:
            find_loss(value)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None
    elif key in CHOICES and value not in CHOICES[key]:
        raise ConfigError(f"{where}: {value!r} is not one of {', '.join(CHOICES[key])}")
    if key == "delimiter":
        value = {"tab": "\t", "\\t": "\t", "space": " "}.get(value, value)
    return value


def _words(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = split_names(value)
    if isinstance(value, Mapping):  # a table of a settings file
        value = [f"{name}={_entry(item)}" for name, item in value.items()]
    if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: {value!r} is not a list of names")
    names = tuple(name for item in value for name in [item.strip()] if name)
    if not names and value:
        raise ConfigError(f"{where}: the list is empty; leave it out, or name at least one")
    return names


def is_number(word: str) -> bool:
    """Whether a word is a number, and no name of a column."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _entry(item: Any) -> str:
    """A value of a table as the command line has it; a pair is a range."""
    return "..".join("" if end is None else str(end) for end in item) if isinstance(item, list) else str(item)


def split_names(text: str) -> tuple[str, ...]:
    r"""Names between commas; a name that holds a comma stands in double quotes.

    >>> split_names('a, "b, c", d')
    ('a', 'b, c', 'd')
    """
    import csv

    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def _flag_value(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ConfigError(f"{where}: {value!r} is neither true nor false")


def _number(key: str, value: Any, where: str) -> float | int:
    kind = _NUMBERS[key]
    number: float | int | None
    try:
        number = kind(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != number or (kind is int and isinstance(value, float) and value != number):
        raise ConfigError(f"{where}: {value!r} is not a {'whole ' if kind is int else ''}number")
    low = _LOWEST.get(key)
    if low is not None and (number < low or (key == "max_time" and number <= 0) or number == float("inf")):
        size = "large" if number > low else "small"
        raise ConfigError(
            f"{where}: {value!r} is too {size}; give a finite number {'above' if key == 'max_time' else 'from'} {low:g}"
        )
    if key == "seed" and number >= 2**32:
        raise ConfigError(f"{where}: {value!r} is too large; a seed lies between 0 and {2**32 - 1}")
    return check_jobs(int(number), where) if key == "jobs" else number


def check_jobs(number: int, where: str) -> int:
    """A number of threads as people give it. (`n_jobs` of the estimator counts further down from -1, as joblib does.)"""
    if number < 1 and number != -1:
        raise ConfigError(f"{where}: {number} threads cannot work; give 1 or more, or -1 for all cores")
    return number


def reproduce_command(description: Mapping[str, Any], *, known: Path | None = None) -> str:
    """A command line that repeats the run; by candidates where they are the budget, which repeats exactly.

    `known` is the folder of the run that it was seeded from.
    """
    settings = replace(FitSettings.from_dict(description["settings"]), out=None)
    words = ["gmeql", "fit", str(description["data"]["source"]), "--target", str(description["data"]["target"])]
    default = FitSettings()
    for key, value in settings.to_dict().items():
        if key in ("target", "out") or value is None or getattr(settings, key) == getattr(default, key):
            continue
        option = _flag(key)
        if value is True:
            words.append(option)
        elif value is False:
            words.append(_flag("no_" + key))
        elif key in _REPEATED:
            words += [word for item in value for word in (option, item)]
        else:
            words += [option, ",".join(_quoted(item) for item in value) if isinstance(value, list) else str(value)]
    words += ["--known", str(known)] if known is not None else []
    return shell_line(words + (["--seed", "0"] if settings.seed == 0 else []))


def shell_line(words: Sequence[str]) -> str:
    """Words as a shell reads them; those with primes, as equations have, in double quotes where these mean nothing else.

    >>> print(shell_line(["gmeql", "solve", "y'' = -y"]))
    gmeql solve "y'' = -y"
    """
    plain = [f'"{word}"' if "'" in word and not set(word) & set('"$`\\!\n') else shlex.quote(word) for word in words]
    return " ".join(plain)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
