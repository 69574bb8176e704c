"""What cannot run is refused before a folder is made, in the words of the flag that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmeql.formula.operators import get_operator
from gmeql.model.fit.inputs import VALIDATION_ROWS
from gmeql.model.fit.methods import METHODS
from gmeql.runs.knowing import check_knowledge
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.runs.steering import Steering, standard_functions
from gmeql.search.groups.table import Grouping
from gmeql.search.losses.losses import find_loss

if TYPE_CHECKING:
    from gmeql.tables.training import Training


def check_fit(settings: FitSettings, training: Training) -> None:
    """Raise a `ConfigError` where a fit of `training` by `settings` would fail for what was asked."""
    if settings.functions == ():
        raise ConfigError("--functions: none is given; name some, as in +,*,sin, or leave the option out")
    for name in settings.functions or ():
        try:
            get_operator(name)
        except ValueError as error:
            raise ConfigError(f"--functions: {error}") from None
    steering = Steering.of(settings, training.names)
    steering.extend(training)
    functions = steering.functions(settings.functions, standard_functions())
    method = METHODS[settings.method]
    if functions is not None and not method.takes_functions:
        flag = "--functions" if settings.functions is not None else "--forbid"
        raise ConfigError(
            f"{flag}: --method {settings.method} has a network of fixed functions; leave it out, or use --method fitted"
        )
    if check_knowledge(settings, training) is not None and not method.takes_knowledge:
        raise ConfigError(
            f"--method {settings.method} takes no units, templates, guesses or constraints; leave them out, or use "
            "--method fitted"
        )
    if training.weights is not None and not method.takes_weights:
        raise ConfigError(
            f"--weights: --method {settings.method} knows no weights; leave them out, or use --method fitted"
        )
    if settings.loss != FitSettings.loss and not method.takes_losses:
        raise ConfigError(
            f"--loss: --method {settings.method} has a loss of its own; leave it out, or use --method fitted"
        )
    if settings.max_complexity is not None and not method.takes_complexity:
        raise ConfigError(
            f"--max-complexity: --method {settings.method} knows no such bound; leave it out, or use --method fitted"
        )
    loss = find_loss(settings.loss)
    if not loss.domain(training.y):
        raise ConfigError(f"--loss {settings.loss} needs a target that is {loss.needs}; {training.target!r} is not")
    if training.groups is not None:
        _check_groups(settings, training)
    if training.x_errors is not None:
        _check_errors(settings)
    if settings.selection == "validation" and len(training.y) < VALIDATION_ROWS:
        raise ConfigError(
            f"--selection validation: needs at least {VALIDATION_ROWS} rows, {training.source} has {len(training.y)}; "
            "use --selection best"
        )
    if settings.device == "gpu" and settings.method == "fitted":
        _check_accelerator()


def _check_groups(settings: FitSettings, training: Training) -> None:
    if not METHODS[settings.method].takes_groups:
        raise ConfigError(
            f"--groups: --method {settings.method} knows no groups; leave them out, or use --method fitted"
        )
    for name, given in (("--pin", settings.pin), ("--forbid", settings.forbid), ("--constants", settings.constants)):
        if given:
            raise ConfigError(f"--groups cannot be combined with {name}; leave one of them out")
    try:
        Grouping.of(list(training.groups or ()), str(training.group_column))
    except ValueError as error:
        raise ConfigError(f"--groups {training.group_column}: {error}") from None


def _check_errors(settings: FitSettings) -> None:
    """Where errors of the inputs have no meaning yet, say so."""
    if settings.pin:
        raise ConfigError(
            "--x-error cannot be combined with --pin: errors of columns are taken as independent, and a pinned part errs "
            "along with the columns it is made of; leave one of them out, or give the part as --guess"
        )
    if settings.loss != "squared" or not METHODS[settings.method].takes_weights:
        raise ConfigError("--x-error needs --loss squared and --method fitted, the defaults")


def _check_accelerator() -> None:
    from gmeql.fitters.cuda.driver import why_not

    if why_not():
        raise ConfigError(f"--device gpu: {why_not()}; use --device auto or cpu")
