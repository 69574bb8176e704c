"""How well the data determine the constants of a formula and the next measurement: intervals of both.

Legend: `N` rows, `K` free constants of one expression, `D` directions of the constants that the data determine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.model.certainty.linearised import (
    FittedRows,
    Linearised,
    Model,
    by_constants,
    linearised,
    linearised_by_loss,
    slopes_at,
    sum_of_squares,
)
from gmeql.search.losses.converging import converged
from gmeql.search.losses.effective import InputErrors
from gmeql.search.losses.losses import Loss, find_loss
from gmeql.search.losses.magnitudes import magnitudes

FloatArray = NDArray[np.float64]
MOST_FAR = 512
"""Errors of outliers that prediction intervals go by."""
_OF_OUTLIERS = frozenset({"far", "far_share", "shift"})


@dataclass(frozen=True)
class ConstantInterval:
    """What the data say about one constant of a formula."""

    position: int
    """Index into `expression.constants`."""
    value: float
    standard_error: float
    """`inf` when the data do not determine the constant."""
    low: float
    high: float
    level: float


def constant_intervals(
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    errors: InputErrors | None = None,
    loss: Any = "squared",
    level: float = 0.95,
    method: str = "jacobian",
    resamples: int = 200,
    seed: int = 0,
    exponents: bool = False,
) -> tuple[ConstantInterval, ...]:
    """Confidence intervals of the constants of `expression`, which must have been fitted to `X`, `y`.

    `method="jacobian"` linearises the formula at its constants: covariance `s² (JᵀWJ)⁻¹` with `s²` the residual sum of
    squares over `N - K` and Student's t with `N - K` degrees of freedom (Seber and Wild, Nonlinear Regression, 2003,
    section 5.1). The intervals lie around the least squares estimate: a constant that was rounded to a number that
    people write is not in the middle of its interval, and one step of Gauss and Newton leads there.

    Under a `loss` that weighs rows, they count as they do in it, and `s` is what Huber's asymptotic variance asks for:
    `s² = c² Σψ²/(N - K) / mean(ψ')²` with the influence `ψ` of each row, `c` for what few rows lack, and as many degrees of
    freedom as rows count, `Σψ' - K` (Robust Statistics, 1981, section 7.6).

    `method="bootstrap"` refits the constants on `resamples` draws of the rows and takes percentiles: slower, right also
    where the formula is far from linear in its constants. Where inputs have `errors`, residuals are those over the root of
    the effective variance (`search/losses/effective.py`), which moves with the constants. Plain exponents (2, 0.5, ...) and
    factors of ±1 count as structure unless `exponents` is True. Losses that are no weighted squares have intervals of
    their own (`linearised_by_loss`), around the constants themselves.
    """
    _check_level(level)
    if (entry := find_loss(loss)).value is not None:
        return _intervals_by_loss(expression, (X, y, sample_weight), entry, level, method, resamples, seed, exponents)
    rows = FittedRows.of(expression, X, y, sample_weight, loss, errors)
    y, weight = rows.y, rows.weight
    values = np.asarray(expression.constants, dtype=float)
    free = np.flatnonzero(np.ones(len(values), bool) if exponents else free_constants(expression))
    if len(free) == 0:
        return ()
    _check_rows(len(y), len(free))
    model = by_constants(expression, free, rows.X, rows)
    if method == "jacobian":
        fitted = linearised(expression, free, rows)
        with np.errstate(all="ignore"):
            before, after = (sum_of_squares(model(values[free] + s) - y, weight) for s in (0.0, fitted.step))
        # where the formula is so far from linear that the step leads astray, the constants stay the middle
        centre = values[free] + fitted.step if after <= before else values[free]
        deviations, low, high = _linear_intervals(fitted, centre, level)
    elif method == "bootstrap":
        deviations, low, high = _bootstrap_intervals(model, values[free], y, weight, level, resamples, seed)
    else:
        raise ValueError(f'method={method!r} is unknown; use "jacobian" or "bootstrap"')
    return _listed(free, values, (deviations, low, high), level)


def _listed(
    free: NDArray[np.intp], values: FloatArray, bounds: tuple[FloatArray, ...], level: float
) -> tuple[ConstantInterval, ...]:
    return tuple(
        ConstantInterval(int(p), float(values[p]), float(e), float(a), float(b), level)
        for p, e, a, b in zip(free, *bounds, strict=True)
    )


def _intervals_by_loss(
    expression: Expression,
    rows: tuple[ArrayLike, ArrayLike, ArrayLike | None],
    loss: Loss,
    level: float,
    method: str,
    resamples: int,
    seed: int,
    exponents: bool,
) -> tuple[ConstantInterval, ...]:
    """Intervals of constants that minimise a loss that is no weighted squared error."""
    X, y = (np.asarray(part, dtype=float) for part in rows[:2])
    weight = np.ones(len(y)) if rows[2] is None else np.asarray(rows[2], dtype=float)
    X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    values = np.asarray(expression.constants, dtype=float)
    free = np.flatnonzero(np.ones(len(values), bool) if exponents else free_constants(expression))
    if len(free) == 0:
        return ()
    _check_rows(len(y), len(free))
    if method == "jacobian":
        fitted = linearised_by_loss(expression, free, X, y, weight / weight.mean(), loss)
        return _listed(free, values, _linear_intervals(fitted, values[free], level), level)
    if method != "bootstrap":
        raise ValueError(f'method={method!r} is unknown; use "jacobian" or "bootstrap"')

    def refitted(counts: FloatArray) -> FloatArray:
        root = converged(expression.root, X, y, weight * counts, loss)[0]
        return np.asarray(expression.with_root(root).constants)[free]

    return _listed(free, values, _percentiles(refitted, len(y), level, resamples, seed), level)


def prediction_interval(
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    X_new: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    loss: Any = "squared",
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """Between which values the target of each row of `X_new` lies with probability `level`: low [N] and high [N].

    `expression` must have been fitted to `X`, `y`; see `PredictionBasis.interval`.
    """
    return PredictionBasis.of(expression, X, y, sample_weight=sample_weight, loss=loss).interval(X_new, level=level)


@dataclass(frozen=True)
class PredictionBasis:
    """What prediction intervals of a fitted formula need of the rows it was fitted to."""

    expression: Expression
    free: tuple[int, ...]
    """Indices into `expression.constants` of the constants that were fitted."""
    spread: float
    """Standard deviation of the errors: root of their sum of squares over the degrees of freedom. Under a loss that
    weighs rows that of the rows that count: `Σψr/Σψ'` is the variance of normal errors whatever the loss."""
    freedom: int
    """Degrees of freedom, `N - K`; of the `N` rows that count, under a loss that weighs them."""
    root: FloatArray
    """[D, K], with `(JᵀWJ)⁻¹ = rootᵀ root`; directions that the data do not determine are left out."""
    far: tuple[float, ...] = ()
    """Errors, target less formula, of rows that do not count in the spread since they are outliers, in rising order, ..."""
    far_share: float = 0.0
    """... their share of all rows, ..."""
    shift: float = 0.0
    """... and the mean error of the others."""
    sizes: tuple[float, float] | None = None
    """Where rows of a target over many magnitudes count by their own size, that size of which `spread` is an error, and the
    least that a row counts by: errors are then in proportion to the prediction."""

    @classmethod
    def of(
        cls,
        expression: Expression,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        loss: Any = "squared",
        errors: InputErrors | None = None,
    ) -> PredictionBasis:
        """The basis of `expression`, which must have been fitted to `X`, `y` by `loss`."""
        if (entry := find_loss(loss)).value is not None and not entry.is_centred:
            name = loss if isinstance(loss, str) else "own"
            raise ValueError(f"under the {name} loss errors are not normal and of one size everywhere")
        free = np.flatnonzero(free_constants(expression))
        rows = FittedRows.of(expression, X, y, sample_weight, loss, errors)
        _check_rows(len(rows.y), len(free))
        if entry.value is None:
            fitted = linearised(expression, free, rows)
        else:
            fitted = linearised_by_loss(expression, free, rows.X, rows.y, rows.weight, entry)
        # in units of the errors' own spread, as the covariance of the constants is not
        root = fitted.root * (fitted.spread / fitted.error_spread) if fitted.error_spread > 0 else fitted.root
        found = cls(expression, tuple(map(int, free)), fitted.error_spread, fitted.freedom, root)
        by_size = entry.value is None and errors is None
        return replace(found, sizes=sizes_counted(rows.y, rows.weight)) if by_size else found

    @classmethod
    def or_reason(
        cls,
        expression: Expression,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        loss: Any,
        errors: InputErrors | None = None,
    ) -> PredictionBasis | str:
        """The same, or the reason why there is none."""
        try:
            return cls.of(expression, X, y, sample_weight=sample_weight, loss=loss, errors=errors)
        except ValueError as error:
            return str(error)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description without the formula, which stands on its front."""
        plain = {"free": list(self.free), "spread": self.spread, "freedom": self.freedom, "root": self.root.tolist()}
        outliers = {"far": list(self.far), "far_share": self.far_share, "shift": self.shift}
        return plain | (outliers if self.far else {}) | ({"sizes": list(self.sizes)} if self.sizes else {})

    @classmethod
    def from_dict(cls, data: Any, expression: Expression) -> PredictionBasis:
        """Read `to_dict`'s output, trusting nothing: `ValueError` for the first field that is wrong."""
        if not isinstance(data, dict) or set(data) - _OF_OUTLIERS - {"sizes"} != {"free", "spread", "freedom", "root"}:
            raise ValueError("bases: each must be an object with the fields free, spread, freedom and root")
        free, root, constants = data["free"], data["root"], len(expression.constants)
        if not isinstance(free, list) or not all(type(k) is int and 0 <= k < constants for k in free):
            raise ValueError(f"bases: free must be a list of indices from 0 to {constants - 1}")
        if type(data["freedom"]) is not int or data["freedom"] < 1:
            raise ValueError("bases: freedom must be a whole number of at least 1")
        if not isinstance(root, list) or len(root) > len(free) or not all(_is_row(row, len(free)) for row in root):
            raise ValueError(f"bases: root must be a list of lists of {len(free)} finite numbers")
        if not _is_row([data["spread"]], 1) or data["spread"] < 0:
            raise ValueError("bases: spread must be a finite number of at least 0")
        sizes = data.get("sizes")
        if sizes is not None and not (_is_row(sizes, 2) and sizes[0] > 0 and sizes[1] >= 0):
            raise ValueError("bases: sizes must be two finite numbers, the first above 0, the other of at least 0")
        numbers = np.array(root, dtype=float).reshape(len(root), len(free))
        found = cls(expression, tuple(free), float(data["spread"]), data["freedom"], numbers, *_checked_outliers(data))
        return found if sizes is None else replace(found, sizes=(float(sizes[0]), float(sizes[1])))

    def interval(self, X: ArrayLike, *, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Low [N] and high [N] for the target of each row of `X`.

        `ŷ ± t s sqrt(1 + xᵀ (JᵀWJ)⁻¹ x)` with `x` the slopes of the formula by its constants at the row and `t` of
        Student's distribution (Seber and Wild, Nonlinear Regression, 2003, section 5.1). That is right for errors that
        are normal and everywhere of one size, where the formula has the right structure: that it may have another is
        not part of it. Where some rows are outliers, `far`, a fresh row is one as often: its error is such a one or one
        of those, and as much of this mixture lies beyond each end. Of a target over many magnitudes errors are in proportion
        to the prediction.
        """
        from scipy.special import stdtrit  # Student's t; scipy.stats takes most of a second to import

        _check_level(level)
        X = np.asarray(X, dtype=float)
        free = np.array(self.free, dtype=np.intp)
        values, slopes = slopes_at(self.expression, free, X)
        with np.errstate(all="ignore"):
            sizes = 1.0 if self.sizes is None else np.maximum(np.abs(values), self.sizes[1]) / self.sizes[0]
            spreads = self.spread * np.hypot(sizes, np.linalg.norm(slopes @ self.root.T, axis=1))
            if self.far:
                return tuple(values + self._quantile(0.5 + side * level / 2, spreads) for side in (-1, 1))  # type: ignore[return-value]
            half = stdtrit(self.freedom, 0.5 + level / 2) * spreads
        return values - half, values + half

    def _quantile(self, chance: float, spreads: FloatArray) -> FloatArray:
        """Below which error [N] a fresh row lies with this chance, outliers among them.

        With `k` of `m` outliers below it, the others leave `(chance - share k/m) / (1 - share)` below it: the least
        error that lies above both is the one.
        """
        from scipy.special import stdtrit

        below = np.arange(len(self.far) + 1) / len(self.far)
        usual = np.clip((chance - self.far_share * below) / (1.0 - self.far_share), 0.0, 1.0)
        quantiles = np.where(usual > 0.0, stdtrit(self.freedom, usual), -np.inf)
        least = np.full(len(spreads), np.inf)
        for outlier, quantile in zip((-np.inf, *self.far), quantiles, strict=True):
            reached = quantile * spreads if math.isfinite(quantile) else quantile
            least = np.minimum(least, np.maximum(outlier, self.shift + reached))
        return least


def _checked_outliers(data: dict[str, Any]) -> tuple[tuple[float, ...], float, float]:
    """Errors of outliers, their share and the mean error of the others, of a file that is not trusted."""
    if not _OF_OUTLIERS & set(data):
        return (), 0.0, 0.0
    if not set(data) >= _OF_OUTLIERS or not isinstance(data["far"], list) or not 0 < len(data["far"]) <= MOST_FAR:
        raise ValueError(f"bases: far must be a list of 1 to {MOST_FAR} numbers, with far_share and shift beside it")
    if not _is_row(data["far"], len(data["far"])) or data["far"] != sorted(data["far"]):
        raise ValueError("bases: far must hold finite numbers in rising order")
    if not _is_row([data["far_share"], data["shift"]], 2) or not 0 < data["far_share"] < 1:
        raise ValueError("bases: far_share must be a number between 0 and 1, shift a finite one")
    return tuple(map(float, data["far"])), float(data["far_share"]), float(data["shift"])


def _is_row(row: Any, length: int) -> bool:
    """Whether this is a list of so many finite numbers."""
    numbers = isinstance(row, list) and len(row) == length and all(type(x) in (int, float) for x in row)
    return numbers and all(map(math.isfinite, row))


def sizes_counted(y: FloatArray, weight: FloatArray) -> tuple[float, float] | None:
    """The size of which an error as large is a loss of as much, where rows [N] of a target over many magnitudes count by their
    own with `weight` [N]; and the least size that counts. None for any other target."""
    relative = magnitudes(y)
    if relative is None:
        return None
    sizes = relative * float(np.abs(y).max())
    return math.sqrt(float(np.average(sizes**2, weights=weight))), float(sizes.min())


Bounds = tuple[FloatArray, FloatArray, FloatArray]


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie between 0 and 1, for example 0.95")


def _check_rows(rows: int, constants: int) -> None:
    if rows <= constants:
        raise ValueError(f"intervals of {constants} constants need more rows than that; got {rows} with weight")


def _linear_intervals(fitted: Linearised, theta: FloatArray, level: float) -> Bounds:
    from scipy.special import stdtrit

    # Each column by its largest entry, for units of 1e±100 as above.
    peaks = np.abs(fitted.root).max(axis=0, initial=0.0)
    peaks[peaks == 0] = 1.0
    errors = fitted.spread * peaks * np.sqrt(np.sum((fitted.root / peaks) ** 2, axis=0))
    errors = np.where(fitted.undetermined, np.inf, errors)
    half = stdtrit(fitted.freedom, 0.5 + level / 2) * errors
    return errors, theta - half, theta + half


def _bootstrap_intervals(
    model: Model, theta: FloatArray, y: FloatArray, weight: FloatArray, level: float, resamples: int, seed: int
) -> Bounds:
    from scipy.optimize import least_squares

    scale = max(float(np.abs(y).max()), np.finfo(float).tiny)
    units = np.where(theta != 0, np.abs(theta), 1.0)

    def refitted(counts: FloatArray) -> FloatArray:
        root = np.sqrt(weight * counts)

        def residual(scaled: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                values = root * (model(scaled * units) - y) / scale
            return np.where(np.isfinite(values), values, 1e6)

        return np.asarray(
            least_squares(residual, theta / units, method="lm", max_nfev=100 * (len(theta) + 1)).x * units
        )

    return _percentiles(refitted, len(y), level, resamples, seed)


def _percentiles(refitted: Model, n_rows: int, level: float, resamples: int, seed: int) -> Bounds:
    """Standard errors and percentiles of constants refitted on draws of the rows, told by how often each row counts."""
    if resamples < 2:
        raise ValueError(f"resamples={resamples!r} must be at least 2; 200 gives usable percentiles")
    rng = np.random.default_rng(seed)
    draws = [
        refitted(np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows).astype(float)) for _ in range(resamples)
    ]
    sample = np.asarray(draws)
    tail = 50 * (1 - level)
    low, high = np.percentile(sample, [tail, 100 - tail], axis=0)
    return sample.std(axis=0, ddof=1), low, high
