"""A smooth surrogate of the data: a Gaussian process over a linear trend, asked for its error and its slopes.

Positive columns, and a target of one sign, are read by their logarithms where these do not spread too far: a product of
powers is a plane there. Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gmeql.search.symmetries.config import SYMMETRIES


class OutOfTime(Exception):
    """The time for looking is over; what was found stands."""


@dataclass(frozen=True)
class Surrogate:
    """What a surrogate says of a target: its error on left-out rows in units of the spread, its slopes [N, V].

    `reading` is how table and target were read: the function of the target by its place, and whether columns whose
    logarithms lie unevenly were taken as they are. `level_error` is the error of a constant, read and counted alike.
    """

    error: float
    slopes: np.ndarray
    reading: tuple[int, bool] = (0, False)
    level_error: float = math.inf

    @property
    def is_hopeless(self) -> bool:
        """Whether it has understood nothing: where few rows make up the target's spread, any has a small error beside that."""
        return not self.error < min(SYMMETRIES.hopeless, SYMMETRIES.hardly * self.level_error)


def fit_surrogate(
    table: np.ndarray,
    target: np.ndarray,
    *,
    units: np.ndarray,
    spread: float,
    out_of_time: Callable[[], bool] = lambda: False,
    reading: tuple[int, bool] | None = None,
) -> Surrogate | None:
    """The best surrogate of the target [N] over the table [N, V], or None where no error is finite.

    `units` [N] turn a difference of the target into one of the raw target, whose standard deviation is `spread`. `reading`
    is the one to fit alone, where that applies: what served one table best serves a smaller one.
    """
    best = Surrogate(math.inf, np.empty(0))
    with np.errstate(all="ignore"):  # what is not finite has an error that is not finite either
        possible = [place for place, kind in enumerate(_HEIGHTS) if kind.applies(target)]
        alone = reading if reading is not None and reading[0] in possible else None
        for heights in possible if alone is None else [alone[0]]:
            # where neither the logarithm nor the target itself is understood at all, neither is its square
            is_vain = alone is None and heights == _SQUARE and best.is_hopeless
            if not best.error < SYMMETRIES.good and not is_vain:
                as_it_is = alone is not None and alone[1]
                best = _better(best, table, target, (heights, as_it_is), units / spread, out_of_time)
        if alone is None and not best.error < SYMMETRIES.good and _has_uneven_logarithms(table):
            best = _better(best, table, target, (best.reading[0], True), units / spread, out_of_time)
    return best if math.isfinite(best.error) else None


def _better(
    best: Surrogate,
    table: np.ndarray,
    target: np.ndarray,
    reading: tuple[int, bool],
    units: np.ndarray,
    out_of_time: Callable[[], bool],
) -> Surrogate:
    """The surrogate of a reading where its error is less than that of the best so far, which else remains."""
    kind = _HEIGHTS[reading[0]]
    values = kind.values(target)
    if not np.isfinite(values).all():  # squares of a large target
        return best
    coordinates, inner = _coordinates(table, only_even=reading[1])
    residuals, rise = _gaussian_process(coordinates, values, out_of_time)
    inverse = 1 / kind.slope(target)
    error = typical(residuals * inverse * units)
    if not error < best.error:
        return best
    level_error = typical((values - values.mean()) * inverse * units)
    return Surrogate(error, rise * inverse[:, None] * inner, reading, level_error)


@dataclass(frozen=True)
class _Heights:
    """What the surrogate is fitted to: a smooth function of the target."""

    values: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    applies: Callable[[np.ndarray], bool]


_HEIGHTS = (
    _Heights(
        lambda t: np.log(np.abs(t)),
        lambda t: 1 / t,
        lambda t: is_one_sign(t) and (_ratio(t) < SYMMETRIES.largest_ratio**2 or _is_even_in_logarithms(np.abs(t))),
    ),
    _Heights(lambda t: t, np.ones_like, lambda t: True),
    _Heights(np.square, lambda t: 2 * t, lambda t: is_one_sign(t)),
)

_SQUARE = 2
"""Place of the square among them."""


def is_by_logarithm(reading: tuple[int, bool]) -> bool:
    """Whether a surrogate of this reading is fitted to the logarithm of the target."""
    return reading[0] == 0


def is_one_sign(values: np.ndarray) -> bool:
    """Whether all values are positive or all negative."""
    return bool((values > 0).all() or (values < 0).all())


def _ratio(values: np.ndarray) -> float:
    """Largest size over smallest."""
    size = np.abs(values)
    return float(size.max() / max(size.min(), 1e-300))


def _is_even_in_logarithms(sizes: np.ndarray) -> bool:
    """Whether positive values spread over magnitudes as much below their median as above it: no few of them are tiny."""
    low, middle, high = np.log(np.quantile(sizes, SYMMETRIES.even_quantiles))
    below, above = middle - low, high - middle
    return bool(below > 0 and above > 0 and max(below, above) < SYMMETRIES.even * min(below, above))


def typical(values: np.ndarray) -> float:
    """Root mean square without the largest tenth: a surrogate is weak in the corners."""
    squares = np.sort(values**2)
    share, of = SYMMETRIES.typical_share
    return math.sqrt(float(squares[: max(1, len(squares) * share // of)].mean()))


def _coordinates(table: np.ndarray, *, only_even: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Columns by their logarithm where they are positive, and the slope of that coordinate to the column.

    `only_even`: not those whose logarithms lie unevenly, as of a column drawn evenly between 0 and something.
    """
    coordinates, inner = table.copy(), np.ones_like(table)
    for j in range(table.shape[1]):
        column = table[:, j]
        even = (column > 0).all() and _is_even_in_logarithms(column)
        if even or ((column > 0).all() and _ratio(column) < SYMMETRIES.largest_ratio and not only_even):
            coordinates[:, j], inner[:, j] = np.log(column), 1 / column
    return coordinates, inner


def _has_uneven_logarithms(table: np.ndarray) -> bool:
    """Whether some column is read by a logarithm that lies unevenly."""
    return any(
        (x > 0).all() and _ratio(x) < SYMMETRIES.largest_ratio and not _is_even_in_logarithms(x) for x in table.T
    )


def _gaussian_process(
    Z: np.ndarray, heights: np.ndarray, out_of_time: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian process over a linear trend: leave-one-out residuals [N] and slopes at the rows [N, V]."""
    from scipy.linalg import cho_solve

    spread = Z.std(axis=0)
    spread[spread == 0] = 1.0
    U = (Z - Z.mean(axis=0)) / spread
    height = float(np.std(heights)) or 1.0
    v = (heights - heights.mean()) / height
    trend = np.column_stack([np.ones(len(v)), U])
    coefficients = np.linalg.lstsq(trend, v, rcond=None)[0]
    rest = v - trend @ coefficients
    if np.abs(rest).max() < SYMMETRIES.plane:  # a plane: a product of powers, read by logarithms
        return rest * height, np.broadcast_to(coefficients[1:] * height / spread, Z.shape)
    n_learning = SYMMETRIES.learning_rows
    lengths, amplitude, noise = _learn_lengths(U[:n_learning], rest[:n_learning], out_of_time)
    scaled = U / lengths
    kernel = amplitude * _gaussian(scaled)
    factor = _factor(kernel, noise, amplitude)
    weights = cho_solve(factor, rest)
    residuals = weights / np.diag(_inverse(factor[0]))
    # d k(u, u') / d u_i = k (u'_i - u_i) / length_i²
    slopes = (kernel @ (weights[:, None] * U) - U * (kernel @ weights)[:, None]) / lengths**2 + coefficients[1:]
    return residuals * height, slopes * height / spread


def _factor(kernel: np.ndarray, noise: float, amplitude: float) -> tuple[np.ndarray, bool]:
    """The Cholesky factor of the damped kernel matrix, damped more where rounding leaves it not positive definite."""
    from scipy.linalg import LinAlgError, cho_factor

    *jitters, last = SYMMETRIES.jitters
    for jitter in jitters:
        try:
            return cho_factor(kernel + (noise + jitter * amplitude) * np.eye(len(kernel)), lower=True)  # type: ignore[no-any-return]
        except LinAlgError:
            continue
    return cho_factor(kernel + (noise + last * amplitude) * np.eye(len(kernel)), lower=True)  # type: ignore[no-any-return]


def _inverse(factor: np.ndarray) -> np.ndarray:
    """The inverse of a matrix [N, N] from its lower Cholesky factor: a third of the work of solving for every unit vector."""
    from scipy.linalg.lapack import dpotri

    lower = dpotri(factor, lower=1)[0]  # what stands above its diagonal is left as it was
    strictly = np.tril(lower, -1)
    return np.asarray(strictly + strictly.T + np.diag(np.diag(lower)))


def _gaussian(scaled: np.ndarray) -> np.ndarray:
    """exp(-|u - u'|²/2) of all pairs of rows, [N, N]."""
    squares = (scaled**2).sum(axis=1)
    kernel: np.ndarray = np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0.0))
    return kernel


def _learn_lengths(U: np.ndarray, rest: np.ndarray, out_of_time: Callable[[], bool]) -> tuple[np.ndarray, float, float]:
    """Length per coordinate, amplitude and noise of most likelihood, with a weak prior on the lengths.

    The minimum of rᵀ K⁻¹ r / 2 + log|K| / 2 + c Σ (log length - middle)² over logarithms, K the damped kernel matrix.
    """
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
    from scipy.optimize import minimize

    n, d = U.shape
    size = float(rest.std()) + 1e-12
    columns, rows = np.triu_indices(n, 1)  # all matrices here are symmetric: what stands below the diagonal is enough,
    below = rows + n * columns  # column after column, as LAPACK has it
    squares = np.stack([(U[rows, i] - U[columns, i]) ** 2 for i in range(d)])
    middle, prior = SYMMETRIES.middle_length, SYMMETRIES.length_prior
    damped = np.zeros((n, n), order="F")
    flat = damped.T.reshape(-1)

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        if out_of_time():
            raise OutOfTime
        precision, amplitude, noise = np.exp(-2 * p[:d]), math.exp(2 * p[d]), math.exp(2 * p[d + 1])
        kernel = amplitude * np.exp(-0.5 * (precision @ squares))
        flat[below] = kernel
        flat[:: n + 1] = amplitude + noise
        factor, failed = dpotrf(damped, lower=1, clean=0)
        if failed:
            return SYMMETRIES.not_definite, np.zeros_like(p)
        weights = dpotrs(factor, rest, lower=1)[0]
        value = 0.5 * rest @ weights + np.log(np.diag(factor)).sum() + prior * np.sum((p[:d] - middle) ** 2)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        trace = 0.5 * float(np.trace(inverse) - weights @ weights)
        weighed = (inverse.T.reshape(-1)[below] - weights[rows] * weights[columns]) * kernel
        slopes = precision * (squares @ weighed)
        gradient = np.array([*slopes, 2 * (weighed.sum() + amplitude * trace), 2 * noise * trace])
        gradient[:d] += 2 * prior * (p[:d] - middle)
        return float(value), gradient

    level = math.log(size)
    sizes = (SYMMETRIES.amplitude_bounds, SYMMETRIES.noise_bounds)
    bounds = [SYMMETRIES.length_bounds] * d + [(level + low, level + high) for low, high in sizes]
    options = {"maxiter": SYMMETRIES.learning_steps, "ftol": SYMMETRIES.learning_tolerance}
    ends = []
    for length in (middle, SYMMETRIES.short_length) if d <= 2 else (middle,):
        start = np.array([length] * d + [level + SYMMETRIES.amplitude_start, level + SYMMETRIES.noise_start])
        ends.append(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options))
    best = min(ends, key=lambda found: found.fun).x
    return np.exp(best[:d]), math.exp(2 * best[d]), math.exp(2 * best[d + 1])
