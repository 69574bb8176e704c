"""Fractions of polynomials by linear algebra: y = P(x)/Q(x) is a null vector of [P(x), -y Q(x)].

Degrees rise until the matrix of all monomials, those below the line times -y, has a null space. The smallest degrees
that keep it give one null vector; terms that are not needed are dropped, and the rest is the formula, exact to rounding.
The same is done for readings of the target, so that roots and exponentials of fractions are seen too.

Under noise there is no null space. There the vector of least misfit, with rows divided by the last denominator
(Sanathanan and Koerner 1963), is a start for the refit of its constants by Levenberg-Marquardt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gmeql.formula.nodes import Node, build, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.fractions.polynomials import (
    Monomial,
    MonomialTable,
    Polynomial,
    divided,
    monomials,
    term_by_term,
    values,
    written,
)
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class RationalConfig:
    """Numbers of the method; "tried" on fractions of degree up to 6 and on smooth functions that are none."""

    max_columns: int = 5
    max_degree: int = 8
    max_degree_alone: int = 12
    """... of a single column."""
    max_box_degree: tuple[int, ...] = (0, 4, 3)
    """Highest degree of each column by itself, for tables of one, two and three columns."""
    many_columns: int = 3
    """Columns from which a lower degree below the line is tried too."""
    rows_per_unknown: float = 2.5
    spare_rows: int = 40
    """Rows beyond those that decide the vector: with `rows_per_unknown` these many are used."""
    seconds_per_cube: float = 5e-9
    """What a decomposition takes for each cubed unknown on one core, with some to spare (measured)."""
    null: float = 1e-14
    """Singular values below this share of the largest are rounding (tried: below 1e-15 where there is a null space)."""
    far_from_null: float = 1e-10
    """Estimated reciprocal condition, which takes no decomposition, from which on no singular value can be that small: the
    estimate is off by no more than the number of unknowns, a hundred, and some (Higham 1987)."""
    rounding: float = 1e-16
    gap: float = 1e7
    """The next larger one must be this much larger than the last, or than rounding: a smooth function that is no fraction
    has no such gap (tried: 1e4 to 1e6 for sine, tanh, logarithms and roots on four ranges, 1e8 and more for fractions)."""
    exact: float = 1e-10
    """Error of the formula, relative to the target's spread, that is taken for exact before constants are refitted."""
    dropped: tuple[float, ...] = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0)
    """Shares of the largest term below which all terms are dropped together, the first that keeps the fit."""
    dropped_singly: int = 40
    """Terms up to which each is tried by itself."""
    noisy_degree: int = 4
    noisy_unknowns: int = 14
    noisy_steps: int = 4
    noisy_kept: int = 2
    """Fractions proposed where none is exact, of so low degrees and few unknowns, after so many reweighted steps."""
    noisy_gain: float = 0.9
    """Share of the error of the best formula so far that such a fraction must reach."""


RATIONAL = RationalConfig()

Ratio = tuple[Polynomial, Polynomial]
"""Above and below the line."""


@dataclass(frozen=True)
class _Shape:
    """Monomials above and below the line."""

    above: tuple[Monomial, ...]
    below: tuple[Monomial, ...]

    @property
    def n_unknowns(self) -> int:
        return len(self.above) + len(self.below)

    def kept(self, keep: np.ndarray) -> _Shape:
        """The shape with some of its terms only."""
        n = len(self.above)
        above = tuple(m for m, k in zip(self.above, keep[:n], strict=True) if k)
        return _Shape(above, tuple(m for m, k in zip(self.below, keep[n:], strict=True) if k))


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Fractions of polynomials that are the target, or that fit it best where none is exact. Draws nothing at random."""
    has_fractions = functions.allows({"div"})
    if not 1 <= table.n_columns <= RATIONAL.max_columns or not functions.allows({"add", "mul"}):
        return
    sizes = np.abs(table.X).max(axis=0)
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        return
    X, sign = table.X / sizes, 1.0 if table.y.mean() >= 0 else -1.0
    columns = MonomialTable(X)
    readings = {n: target for n, target in direct_readings(table.y, functions).items() if n not in _FRACTIONS_TOO}
    for name, target in readings.items():
        effort_left = replace(effort, seconds=effort.seconds / (2 if name == PLAIN else 2 * len(readings)))
        ratio = exact_ratio(X, target, has_fractions, effort_left, columns)
        if ratio is not None:
            yield DIRECT_READINGS[name].invert(written_ratio(*ratio, sizes, written), sign)
            return
        if effort.out_of_time():
            return
    if has_fractions and not effort.is_quick:
        for ratio in _fitting_ratios(replace(table, X=X)):
            yield written_ratio(*ratio, sizes, term_by_term)


_FRACTIONS_TOO = ("inv", "inv_square")
"""Readings that are fractions where another one is."""


# --- exact fractions --------------------------------------------------------------------------------------------------


def exact_ratio(
    X: FloatArray, target: FloatArray, has_fractions: bool, effort: Effort, columns: MonomialTable | None = None
) -> Ratio | None:
    """The fraction of least degree that is the target on all rows, if there is one; `columns` are monomials on these rows that
    others asked for."""
    n_rows, n_columns = X.shape
    most = min(
        (effort.seconds / RATIONAL.seconds_per_cube) ** (1 / 3),
        (n_rows - RATIONAL.spare_rows) / RATIONAL.rows_per_unknown,
    )
    columns = columns or MonomialTable(X)
    for box, degree, below in _degrees(n_columns):
        whole = _shape(n_columns, degree, below if has_fractions else 0, box)
        if whole.n_unknowns > most:
            continue
        if effort.out_of_time():
            break
        if not _has_null_space(whole, columns, target):
            continue
        shapes = _smaller(n_columns, degree, box, has_fractions, below)
        ratio = _sparse(next(s for s in shapes if _has_null_space(s, columns, target)), X, target)
        if ratio is not None:
            return ratio
    return None


def _degrees(n_columns: int) -> list[tuple[bool, int, int]]:
    """Degrees above and below the line to try, of all columns together or (True) of each, by how many unknowns they make.

    Of many columns a fraction that has less below than above has far fewer unknowns.
    """
    limits = RATIONAL.max_box_degree
    highest = limits[n_columns - 1] if n_columns <= len(limits) else 0
    most = RATIONAL.max_degree_alone if n_columns == 1 else RATIONAL.max_degree
    together = [(False, degree, degree) for degree in range(1, most + 1)]
    each = [(True, degree, degree) for degree in range(1, highest + 1)]
    if n_columns >= RATIONAL.many_columns:
        together += [(False, degree, degree - 2) for degree in range(3, most + 1)]
    return sorted(
        together + each, key=lambda d: _n_monomials(n_columns, d[1], d[0]) + _n_monomials(n_columns, d[2], d[0])
    )


def _n_monomials(n_columns: int, degree: int, box: bool) -> int:
    return (degree + 1) ** n_columns if box else math.comb(n_columns + degree, degree)


def _shape(n_columns: int, above: int, below: int, box: bool) -> _Shape:
    return _Shape(tuple(monomials(n_columns, above, box=box)), tuple(monomials(n_columns, below, box=box)))


def _smaller(n_columns: int, degree: int, box: bool, has_fractions: bool, most_below: int) -> list[_Shape]:
    """All shapes up to a degree, by how many unknowns they have: the first that holds has one null vector."""
    below = range(most_below + 1) if has_fractions else (0,)
    shapes = [_shape(n_columns, p, q, box) for p in range(degree + 1) for q in below if p + q > 0]
    return sorted(shapes, key=lambda shape: shape.n_unknowns)


def _matrix(shape: _Shape, X: FloatArray, target: FloatArray) -> FloatArray:
    """[P(x), -y Q(x)], [N, M]."""
    return np.hstack([values(list(shape.above), X), -target[:, None] * values(list(shape.below), X)])


def _has_null_space(shape: _Shape, columns: MonomialTable, target: FloatArray) -> bool:
    """Whether some of the rows leave a vector free that all of them may leave free."""
    from scipy.linalg.lapack import dgeqrf, dtrcon

    m = shape.n_unknowns
    n_rows = min(len(target), int(RATIONAL.rows_per_unknown * m) + RATIONAL.spare_rows)
    matrix = np.empty((m, n_rows))
    columns.write(shape.above, matrix[: len(shape.above)])
    columns.write(shape.below, matrix[len(shape.above) :])
    matrix[len(shape.above) :] *= -target[:n_rows]
    sizes = np.sqrt(np.einsum("mn,mn->m", matrix, matrix))
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        return False
    triangle = dgeqrf((matrix / sizes[:, None]).T, lwork=32 * m, overwrite_a=1)[0][:m]
    if dtrcon(triangle)[0] > RATIONAL.far_from_null:
        return False
    singular = np.linalg.svd(np.triu(triangle), compute_uv=False)
    return bool(singular[-1] <= RATIONAL.null * singular[0])


def _sizes(matrix: FloatArray) -> FloatArray:
    """Root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(matrix**2, axis=0)))


def _sparse(shape: _Shape, X: FloatArray, target: FloatArray) -> Ratio | None:
    """The fraction with as few terms as keep it exact; None where what is left does not stand out from rounding."""
    matrix = _matrix(shape, X, target)
    vector = _last_vector(matrix)[0]
    terms = np.abs(vector) * _sizes(matrix)
    for share in RATIONAL.dropped:
        smaller = shape.kept(terms > share * terms.max())
        found = _exact_vector(smaller, X, target)
        if found is not None:
            break
    else:
        return None
    shape, vector = smaller, found
    if shape.n_unknowns <= RATIONAL.dropped_singly:
        for i in np.argsort(np.abs(vector) * _sizes(_matrix(shape, X, target))):
            if (place := _place(shape, smaller, int(i))) is None:
                continue
            fewer = shape.kept(np.arange(shape.n_unknowns) != place)
            found = _exact_vector(fewer, X, target)
            if found is not None:
                shape, vector = fewer, found
    return _split(shape, vector)


def _last_vector(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients [M] of least misfit, and the singular values of the matrix with columns of size 1."""
    sizes = _sizes(matrix)
    _, singular, vectors = np.linalg.svd(np.linalg.qr(matrix / sizes, mode="r"))
    return np.asarray(vectors[-1] / sizes), singular


def _place(shape: _Shape, before: _Shape, i: int) -> int | None:
    """Where term `i` of an earlier shape stands in one with fewer terms; None where one side would be empty."""
    n = len(before.above)
    side, term = (shape.above, before.above[i]) if i < n else (shape.below, before.below[i - n])
    return None if len(side) < 2 else side.index(term) + (0 if i < n else len(shape.above))


def _exact_vector(shape: _Shape, X: FloatArray, target: FloatArray) -> FloatArray | None:
    """The null vector of a shape, where its fraction is the target on all rows and stands out from rounding."""
    if not shape.above or not shape.below:
        return None
    vector, singular = _last_vector(_matrix(shape, X, target))
    if len(singular) > 1 and singular[-2] < RATIONAL.gap * max(singular[-1], RATIONAL.rounding * singular[0]):
        return None
    with np.errstate(all="ignore"):
        error = float(np.sqrt(np.mean((_ratio_values(_split(shape, vector), X) - target) ** 2)))
    return vector if error < RATIONAL.exact * float(np.std(target)) else None


def _split(shape: _Shape, vector: FloatArray) -> Ratio:
    n = len(shape.above)
    above = dict(zip(shape.above, vector[:n].tolist(), strict=True))
    return above, dict(zip(shape.below, vector[n:].tolist(), strict=True))


def _ratio_values(ratio: Ratio, X: FloatArray) -> FloatArray:
    above, below = (values(list(part), X) @ np.array(list(part.values())) for part in ratio)
    return np.asarray(above / below)


# --- the best fractions under noise -----------------------------------------------------------------------------------


def _fitting_ratios(table: DirectTable) -> list[Ratio]:
    """Fractions of few unknowns that fit better than anything so far, the most economical first."""
    found: list[tuple[float, int, Ratio]] = []
    n_rows = len(table.y)
    for shape in _smaller(table.n_columns, RATIONAL.noisy_degree, False, True, RATIONAL.noisy_degree):
        if shape.n_unknowns > min(RATIONAL.noisy_unknowns, n_rows // 4) or len(shape.below) < 2:
            continue
        ratio = _reweighted(shape, table)
        if ratio is None:
            continue
        with np.errstate(all="ignore"):
            squares = ((_ratio_values(ratio, table.X) - table.y) / table.spread) ** 2
            loss = float(np.average(squares, weights=table.weights))
        if 0 < loss < (RATIONAL.noisy_gain * table.unexplained) ** 2:
            if loss < RATIONAL.exact**2:  # so few rows are no proof, but no noise either: what is rounding goes
                ratio, loss = _without_rounding(ratio, table.X), RATIONAL.exact**2
            found.append((n_rows * math.log(loss) + shape.n_unknowns * math.log(n_rows), len(found), ratio))
    return [ratio for *_, ratio in sorted(found)[: RATIONAL.noisy_kept]]


def _without_rounding(ratio: Ratio, X: FloatArray) -> Ratio:
    """The same without terms that are rounding beside the largest on their side of the line."""

    def kept(part: Polynomial) -> Polynomial:
        terms = np.abs(list(part.values())) * _sizes(values(list(part), X))
        return {m: c for (m, c), term in zip(part.items(), terms, strict=True) if term > RATIONAL.exact * terms.max()}

    return kept(ratio[0]), kept(ratio[1])


def _reweighted(shape: _Shape, table: DirectTable) -> Ratio | None:
    """The vector of least misfit of P/Q itself, by dividing rows by the last Q a few times."""
    matrix, below = _matrix(shape, table.X, table.y), values(list(shape.below), table.X)
    if not (np.isfinite(matrix).all() and (_sizes(matrix) > 0).all()):
        return None
    weights, vector = np.sqrt(table.weights), np.zeros(shape.n_unknowns)
    for _ in range(RATIONAL.noisy_steps):
        vector, _ = _last_vector(matrix * weights[:, None])
        denominator = np.abs(below @ vector[len(shape.above) :])
        if not denominator.min() > 0:
            return None
        weights = np.sqrt(table.weights) * float(np.median(denominator)) / denominator
    return _split(shape, vector)


# --- written ----------------------------------------------------------------------------------------------------------


def written_ratio(above: Polynomial, below: Polynomial, sizes: FloatArray, form: Callable[[Polynomial], Node]) -> Node:
    """The fraction over the columns in their own sizes, as one or with what is whole before it, whichever is shorter.

    It is divided through so that a coefficient below the line is 1. The last digits are rounding: what is left is a start
    for the refit of all constants.
    """
    above, below = _unscaled(above, sizes), _unscaled(below, sizes)
    lead = min(below.values(), key=abs) if len(below) > 1 else next(iter(below.values()))
    above, below = ({m: c / lead for m, c in part.items()} for part in (above, below))

    def fraction(part: Polynomial) -> Node:
        return build("div", form(_rounded(part)), form(_rounded(below)))

    mixed = [build("add", form(_rounded(whole)), fraction(rest)) for whole, rest in divided(above, below)]
    return min([fraction(above), *mixed], key=tree_complexity)


def _rounded(polynomial: Polynomial) -> Polynomial:
    return {m: float(f"{c:.13g}") for m, c in polynomial.items()}


def _unscaled(polynomial: Polynomial, sizes: Sequence[float] | FloatArray) -> Polynomial:
    return {m: c / math.prod(float(s) ** e for s, e in zip(sizes, m, strict=True)) for m, c in polynomial.items()}
