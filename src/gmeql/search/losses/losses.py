"""The one table of losses: what the constants of a formula minimise, each as least squares on a working target.

Around the values `f` of a formula every loss is met by a square: with its slope `g` and a curvature `h` no smaller than
its own, `loss(f') ~ h/2 (f' - z)²` where `z = f - g/h`. So the compiled weighted fit serves them all (iteratively
reweighted least squares: Holland and Welsch 1977; generalised linear models: McCullagh and Nelder 1989): target `z`,
weights `h`, taken anew as the formula gets better. A new loss is one entry.

Legend: `N` rows; `f` values of a formula, `y` the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.search.losses.robust import huber, robust_weights, scale_of

FloatArray = NDArray[np.float64]
Values = Callable[[FloatArray, FloatArray], FloatArray]

LEAST_SHARE = 1e-3
"""Residuals below this share of their scale count as this: 1/|r| would let single rows decide."""
LEAST_MEAN = 1e-6
"""Share of the mean count below which a Poisson mean is not taken."""
LARGEST_LOGIT = 8.0
"""Logits beyond this count as this where weights are taken: rows that are certain still weigh a little."""
STEP = 1e-5
"""Share of the scale by which a user's loss is differentiated."""


@dataclass(frozen=True)
class Loss:
    """One loss. `mean_is_nats` where the mean loss is a mean negative log-likelihood, so that N times it are nats."""

    description: str
    value: Values | None = None
    """Loss of each row [N]; None where the weighted squared error stands for it."""
    slope: Values | None = None
    """Its derivative by the formula's value [N]; None where weights alone make the loss."""
    curvature: Values | None = None
    """At least as large as the second derivative, so that steps never overshoot."""
    second: Values | None = None
    """The second derivative itself [N], where the loss has no kink."""
    is_centred: bool = False
    """Whether the formula is the middle of errors of one size, so that an interval around it holds the next target."""
    mean_is_nats: bool = False
    domain: Callable[[FloatArray], bool] = lambda y: True
    needs: str = ""
    """What the target must be, for the error where it is not."""
    link: Callable[[FloatArray], FloatArray] | None = None
    """What makes a prediction of the formula's value, where that is not the value itself."""
    is_square: bool = False
    """Whether its mean is that of squares, so that half its logarithm is that of the errors' scale."""
    measure: str = "mean loss"
    """What its mean over the rows is called."""


def _bounded(residual: FloatArray, y: FloatArray) -> FloatArray:
    """Sizes of residuals, none below a small share of their scale."""
    scale = scale_of(residual, y)
    return np.maximum(np.abs(residual), LEAST_SHARE * scale if scale > 0 else 1e-300)


def _least_mean(y: FloatArray) -> float:
    return max(LEAST_MEAN * float(np.mean(y)), 1e-12)


def sigmoid(f: FloatArray) -> FloatArray:
    """1/(1 + exp(-f)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * f)))


def _log_loss(f: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, f) - y * f)


def _sigmoid_slope(f: FloatArray, y: FloatArray) -> FloatArray:
    p = sigmoid(np.clip(f, -LARGEST_LOGIT, LARGEST_LOGIT))
    return p * (1.0 - p)


def _squares_of(y: FloatArray) -> FloatArray:
    """y², none below a small share of the median's: a target near 0 has no relative error to speak of."""
    return np.asarray(np.maximum(np.abs(y), LEAST_SHARE * float(np.median(np.abs(y))) + 1e-300) ** 2)


def _poisson(f: FloatArray, y: FloatArray) -> FloatArray:
    """Half the deviance of each count: f - y + y log(y/f)."""
    mean = np.maximum(f, _least_mean(y))
    logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
    return np.asarray(np.where(f > 0, mean - y + logs, np.inf))


def _quantile(q: float) -> Loss:
    def sign(f: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(f > y, 1.0 - q, -q)

    return Loss(
        f"check loss of a quantile, here {q:g}: a share of {q:g} of the rows lies below the formula",
        lambda f, y: sign(f, y) * (f - y),
        sign,
        lambda f, y: np.abs(sign(f, y)) / _bounded(f - y, y),
        measure="mean check loss",
    )


def _log_cosh(f: FloatArray, y: FloatArray) -> FloatArray:
    size = np.abs(f - y)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0))


LOSSES: dict[str, Loss] = {
    "squared": Loss("the mean squared error"),
    "huber": Loss("squared near zero, in proportion further out: outliers move it less"),
    "robust": Loss("Tukey's bisquare: rows far from the formula count nothing, up to a third of them may be wrong"),
    "absolute": Loss(
        "the mean absolute error: the median of the target at each place",
        lambda f, y: np.abs(f - y),
        lambda f, y: np.sign(f - y),
        lambda f, y: 1.0 / _bounded(f - y, y),
        is_centred=True,
        measure="mean absolute error",
    ),
    "quantile": _quantile(0.5),
    "relative": Loss(
        "the mean squared relative error, (f - y)²/y²",
        lambda f, y: (f - y) ** 2 / _squares_of(y),
        lambda f, y: 2.0 * (f - y) / _squares_of(y),
        lambda f, y: 2.0 / _squares_of(y),
        lambda f, y: 2.0 / _squares_of(y),
        domain=lambda y: bool(np.any(y != 0)),
        needs="not zero everywhere",
        is_square=True,
        measure="mean squared relative error",
    ),
    "log-cosh": Loss(
        "log cosh of the residual: squared below 1, in proportion beyond, in the target's own units",
        _log_cosh,
        lambda f, y: np.tanh(f - y),
        lambda f, y: np.tanh(np.maximum(np.abs(f - y), 1e-9)) / np.maximum(np.abs(f - y), 1e-9),
        lambda f, y: 1.0 / np.cosh(np.clip(f - y, -300.0, 300.0)) ** 2,
        is_centred=True,
        measure="mean log-cosh loss",
    ),
    "poisson": Loss(
        "half the Poisson deviance, for counts: the formula is their mean",
        _poisson,
        lambda f, y: 1.0 - y / np.maximum(f, _least_mean(y)),
        lambda f, y: 1.0 / np.maximum(f, _least_mean(y)),
        lambda f, y: y / np.maximum(f, _least_mean(y)) ** 2,
        mean_is_nats=True,
        domain=lambda y: bool((y >= 0).all() and (y > 0).any()),
        needs="counts of at least 0, not all 0",
        measure="mean half deviance",
    ),
    "logistic": Loss(
        "the log loss of a yes (1) or no (0): the formula is the logit of its chance",
        _log_loss,
        lambda f, y: sigmoid(f) - y,
        _sigmoid_slope,
        lambda f, y: sigmoid(f) * sigmoid(-f),
        mean_is_nats=True,
        domain=lambda y: bool(((y >= 0) & (y <= 1)).all()),
        needs="between 0 (no) and 1 (yes)",
        link=sigmoid,
        measure="mean log loss",
    ),
}
"""Losses by name; `quantile:0.9` is that of another quantile."""


def own_loss(function: Callable[[Any, Any], Any]) -> Loss:
    """A user's own loss of each row, `function(y, f)` -> [N], in NumPy or JAX, which is slower than the others.

    It must be least where the formula meets the target. Its slope is JAX's where it is made of JAX, in double precision;
    else it is differentiated in numbers.
    """

    def value(f: FloatArray, y: FloatArray) -> FloatArray:
        found = np.asarray(_doubly(function, y, f), dtype=np.float64)
        if found.shape != y.shape:
            raise ValueError(f"loss must give one number for each of {len(y)} rows, got shape {found.shape}")
        return found

    def slope(f: FloatArray, y: FloatArray) -> FloatArray:
        if _is_jax(function(y[:1], f[:1])):
            return _jax_slope(function, y, f)
        step = STEP * (float(np.std(y)) or 1.0)
        return (value(f + step, y) - value(f - step, y)) / (2.0 * step)

    def curvature(f: FloatArray, y: FloatArray) -> FloatArray:
        scale = float(np.std(y)) or 1.0
        residual = np.where(np.abs(f - y) < LEAST_SHARE * scale, LEAST_SHARE * scale, f - y)
        return np.maximum(slope(y + residual, y) / residual, 1e-9)

    return Loss("the user's own, differentiated in numbers", value, slope, curvature)


def _is_jax(value: Any) -> bool:
    """Whether an array is one of JAX's, without importing it."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def _doubly(function: Callable[[Any, Any], Any], y: FloatArray, f: FloatArray) -> Any:
    """A user's loss, in double precision where it is made of JAX, which computes in single precision unless told."""
    found = function(y, f)
    if not _is_jax(found):
        return found
    import jax

    with jax.enable_x64(True):
        return np.asarray(function(y, f))


def _jax_slope(function: Callable[[Any, Any], Any], y: FloatArray, f: FloatArray) -> FloatArray:
    """The slope of a loss of each row by its own value [N]: rows do not meet, so one product with ones gives all."""
    import jax

    with jax.enable_x64(True):
        values = jax.numpy.asarray(f)
        return np.asarray(jax.jvp(lambda v: function(y, v), (values,), (jax.numpy.ones_like(values),))[1])


def find_loss(loss: Any) -> Loss:
    """The loss of a name of `LOSSES`, of `quantile:q`, or of a callable; a ValueError says what is allowed."""
    if callable(loss):
        return own_loss(loss)
    if isinstance(loss, str):
        name, _, number = loss.partition(":")
        if name == "quantile" and number:
            try:
                q = float(number)
            except ValueError:
                q = math.nan
            if not 0.0 < q < 1.0:
                raise ValueError(f"loss={loss!r}: the quantile must lie between 0 and 1, as in quantile:0.9")
            return _quantile(q)
        if loss in LOSSES:
            return LOSSES[loss]
    raise ValueError(
        f"loss={loss!r} is not allowed; it must be one of {list(LOSSES)}, quantile:q such as quantile:0.9, "
        "or a function of (y, f) that gives the loss of each row"
    )


def is_reweighed(loss: Any) -> bool:
    """Whether a loss is met by weights that follow from the formula found so far."""
    return not (isinstance(loss, str) and loss == "squared")


def working(loss: Any, f: FloatArray, y: FloatArray, *, explained: bool) -> tuple[FloatArray, FloatArray]:
    """Target and weights [N] of the least squares that stand for a loss around the values `f` of a formula.

    As long as nothing is `explained`, what lies far off may be what is to be found: then losses that forgive large
    residuals weigh as Huber's does, which forgets no row.
    """
    entry = find_loss(loss)
    if entry.value is None:
        return y, robust_weights(loss, f - y, y, explained=explained)
    assert entry.slope is not None and entry.curvature is not None
    f = np.where(np.isfinite(f), f, np.median(y))
    if not explained and entry.link is None and not entry.mean_is_nats and loss != "relative":
        scale = scale_of(f - y, y)
        return y, huber((f - y) / scale) if scale > 0 else np.ones(len(y))
    weights = entry.curvature(f, y)
    return f - entry.slope(f, y) / weights, weights
