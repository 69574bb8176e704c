"""One column at a time: y = f(x) + h(z) g(x), with h from a small library and f and g anything smooth.

A sum over two columns has too many possible terms to choose from. But whatever f and g are, they lie in the span of some
forty functions of x, so that a single least squares fit tells whether h is right (variable projection, Golub and Pereyra
1973, with h's inner constants outside and f and g inside). Once it is, f and g are known on every row, and each is a sum of
few terms of one column.

Legend: `N` rows, `K` functions of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, leaves, row_values, transform
from gmeql.network.families import FunctionSet
from gmeql.search.direct.choice import TermChoice
from gmeql.search.direct.library import TUNED, Factor, Library, library
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.term_sums import TermSum, orthonormal
from gmeql.search.polish.scoring import JudgedRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SectionsConfig:
    """Numbers of the method."""

    rows: int = 300
    few_rows: int = 150
    degree: int = 20  # of the polynomials among the functions of x
    spanned: float = 1e-10  # singular values below this share of the largest span nothing
    tried: int = 4  # functions h whose inner constants are fitted, those that leave least
    steps: int = 40  # of such a fit
    first_steps: int = 10  # after which it must leave
    promising: float = 0.1  # share of the error that it began with, to go on
    ridge: float = 1e-12  # added to the normal equations by which the h are ranked
    held: float = 1e-6  # error, relative to the target's spread, from which h is taken for right
    told: float = 1e-5  # error of a sum of one column, relative to the spread of g, from which it is taken for it
    told_rest: float = 30.0  # ... and of f, relative to what the fit leaves
    rounding: float = 1e-12
    dropped: float = 1e-8  # share of the target's spread below which a term is rounding
    beams: tuple[int, ...] = (12, 12, 8)  # sums of each length with none, one and two tuned terms
    least_seconds: float = 0.1


SECTIONS = SectionsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums f(x) + h(z) g(x) of a table of two columns, where they are the target. Draws nothing at random."""
    n = min(len(table.y), SECTIONS.rows)
    if table.n_columns != 2 or n < SECTIONS.few_rows or not functions.allows({"add", "mul"}):
        return
    if effort.seconds < SECTIONS.least_seconds:
        return
    few = DirectTable(table.X[:n], table.y[:n], table.weights[:n])
    libraries = [library(few.X[:, [j]], functions.allows) for j in range(2)]
    for outer in (1, 0):
        found = _outer_function(few, outer, libraries, effort.out_of_time)
        if found is not None:
            root = _written(few, 1 - outer, found, libraries[1 - outer], effort.on_trail().out_of_time)
            if root is not None:
                yield root
                return


def _span(x: FloatArray, terms: Library) -> FloatArray:
    """An orthonormal basis [N, K] of what a smooth function of a column may be: its plain functions, and polynomials."""
    middle, half = (x.max() + x.min()) / 2, np.ptp(x) / 2
    polynomials = np.polynomial.chebyshev.chebvander((x - middle) / half, SECTIONS.degree)
    return orthonormal(np.hstack([polynomials, *terms.of_columns()]), SECTIONS.spanned)


def _outer_function(
    table: DirectTable, outer: int, libraries: Sequence[Library], out_of_time: Callable[[], bool]
) -> tuple[Node, FloatArray] | None:
    """The function h of the outer column, over all columns of the table, and the span of the inner one; None: no such."""
    x, z = table.X[:, 1 - outer], table.X[:, outer]
    if not (np.ptp(x) > 0 and np.ptp(z) > 0):
        return None
    span = _span(x, libraries[1 - outer])
    left = table.y - span @ (span.T @ table.y)
    held = SECTIONS.held * table.spread
    if float(np.std(left)) < held or out_of_time():
        return None  # a function of the inner column alone: others see it
    factors = libraries[outer].factors[1:]
    errors = _errors(np.stack([factor.values for factor in factors]), span, left)
    for place in np.argsort(errors, kind="stable")[: SECTIONS.tried]:
        factor = factors[int(place)]
        node, error = factor.node, _error(factor.values, span, left)
        if factor.group in TUNED and error > held and not out_of_time():
            node, error = _tuned(factor, z, span, left)
        if error <= held:
            return _over(outer, [node])[0], span
    return None


def _errors(h: FloatArray, span: FloatArray, left: FloatArray) -> FloatArray:
    """Roughly the error for each of many h [F, N]: by normal equations, all of them from two products of matrices.

    With B the span, (hB)'(hB) and B'(hB) are sums over rows of h² and h times the products of B's columns.
    """
    n_rows, k = span.shape
    centred = h - h.mean(axis=1, keepdims=True)  # what is constant times B is in the span
    sizes = np.sqrt(np.mean(centred**2, axis=1))
    usable = np.isfinite(sizes) & (sizes > 0)
    centred = centred[usable] / sizes[usable, None]
    products = (span[:, :, None] * span[:, None, :]).reshape(n_rows, k * k)
    inside = (centred @ products).reshape(-1, k, k)
    grams = (centred**2 @ products).reshape(-1, k, k) - inside @ inside
    towards = (centred * left) @ span
    scale = np.sqrt(np.maximum(np.einsum("fkk->fk", grams), SECTIONS.ridge))
    grams = grams / (scale[:, :, None] * scale[:, None, :]) + SECTIONS.ridge * np.eye(k)
    towards = towards / scale
    explained = np.sum(towards * np.linalg.solve(grams, towards[:, :, None])[:, :, 0], axis=1)
    errors = np.full(len(h), np.inf)
    errors[usable] = np.sqrt(np.maximum(float(left @ left) - explained, 0.0) / n_rows)
    return errors


def _error(h: FloatArray, span: FloatArray, left: FloatArray) -> float:
    """Root mean square of what [B, h B] leaves of the target, given what B leaves."""
    return float(np.sqrt(np.mean(_rest(h, span, left) ** 2)))


def _rest(h: FloatArray, span: FloatArray, left: FloatArray) -> FloatArray:
    columns = h[:, None] * span
    columns = columns - span @ (span.T @ columns)
    if not np.isfinite(columns).all():
        return np.full(len(left), np.inf)
    if not (np.abs(columns).max(axis=0) > 0).any():
        return left
    basis = orthonormal(columns, SECTIONS.spanned)
    return np.asarray(left - basis @ (basis.T @ left))


def _tuned(factor: Factor, z: FloatArray, span: FloatArray, left: FloatArray) -> tuple[Node, float]:
    """A function with the inner constants that leave least, and the error then."""
    from scipy.optimize import least_squares

    start = [leaf.value for leaf in leaves(factor.node) if isinstance(leaf, Constant)]

    def put(constants: FloatArray) -> Node:
        given = iter(constants.tolist())
        return transform(factor.node, lambda leaf: Constant(next(given)) if isinstance(leaf, Constant) else leaf)

    def rest(constants: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            h = row_values(put(constants), ("z",), z[:, None])
        return np.nan_to_num(_rest(h, span, left), nan=1e300, posinf=1e300)

    scale, before = np.maximum(np.abs(start), 1e-3), _error(factor.values, span, left)
    constants, error = np.array(start), math.inf
    for steps in (SECTIONS.first_steps, SECTIONS.steps - SECTIONS.first_steps):
        fit = least_squares(rest, constants, x_scale=scale, max_nfev=steps, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        constants, error = fit.x, float(np.sqrt(np.mean(fit.fun**2)))
        if error > SECTIONS.promising * before:
            break
    return put(constants), error


# --- f and g --------------------------------------------------------------------------------------------------------------


def _written(
    table: DirectTable,
    inner: int,
    found: tuple[Node, FloatArray],
    terms: Library,
    out_of_time: Callable[[], bool],
) -> Node | None:
    """The sum with f and g as sums of terms of the inner column; None where either is none."""
    h, span = found
    values, k = table.values(h), span.shape[1]
    g = _beside_span(values, span, table, inner, terms, out_of_time)
    if g is None:
        inside = span @ _solved(np.hstack([span, values[:, None] * span]), table.y)[0][k:]
        g = _as_terms(inside, SECTIONS.told * float(np.std(inside)), table, inner, terms, out_of_time)
    if g is None:
        return None
    # with g known f is what is left, to many more digits
    solved, rest = _solved(np.column_stack([span, *(values * table.values(term) for term in g)]), table.y)
    beside, error = span @ solved[:k], float(np.sqrt(np.mean(rest**2)))
    f = _as_terms(
        beside, SECTIONS.told_rest * max(error, SECTIONS.rounding * table.spread), table, inner, terms, out_of_time
    )
    if f is None:
        return None
    both = [*f, *(build("mul", h, term) for term in g)]
    columns = np.column_stack([table.values(term) for term in both])
    factors, _ = _solved(columns, table.y)
    seen = np.abs(factors) * np.abs(columns).max(axis=0) > SECTIONS.dropped * table.spread
    if not seen.any():
        return None
    factors, _ = _solved(columns[:, seen], table.y)
    both = [term for term, kept in zip(both, seen, strict=True) if kept]
    return build("add", *(build("mul", Constant(float(c)), term) for c, term in zip(factors, both, strict=True)))


def _beside_span(
    h: FloatArray,
    span: FloatArray,
    table: DirectTable,
    inner: int,
    terms: Library,
    out_of_time: Callable[[], bool],
) -> list[Node] | None:
    """1 and plain terms of the inner column that times h are the target beside anything smooth; None: there are none."""
    left = table.y - span @ (span.T @ table.y)
    allowed = SECTIONS.told_rest * max(_error(h, span, left), SECTIONS.rounding * table.spread)
    span = orthonormal(np.column_stack([span, h]), SECTIONS.spanned)
    left = left - span @ (span.T @ left)
    if float(np.sqrt(np.mean(left**2))) < allowed:
        return [Constant(1.0)]
    x = table.X[:, inner]
    products = h * terms.values
    terms = terms.of_values(products - (products @ span) @ span.T)
    rows = JudgedRows.of(x[:, None], left, np.ones_like(left), ["x0"])
    best = _first_within(terms, rows, allowed, [~terms.plain & ~terms.tuned, ~terms.tuned], out_of_time)
    return None if best is None else _over(inner, [Constant(1.0), *(term.node for term in best.terms)])


def _solved(columns: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factors of least squares, and what they leave."""
    sizes = np.sqrt(np.mean(columns**2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    factors = np.asarray(np.linalg.lstsq(columns / sizes, target, rcond=1e-14)[0] / sizes)
    return factors, np.asarray(target - columns @ factors)


def _as_terms(
    values: FloatArray,
    allowed: float,
    table: DirectTable,
    inner: int,
    terms: Library,
    out_of_time: Callable[[], bool],
) -> list[Node] | None:
    """Terms of the inner column that add up to values [N] within an error, 1 among them where it is needed."""
    if float(np.sqrt(np.mean(values**2))) < allowed:
        return []
    if float(np.std(values)) < allowed:
        return [Constant(1.0)]
    x = table.X[:, inner]
    rows = JudgedRows.of(x[:, None], values, table.weights, ["x0"])
    powers, every = ~terms.plain & ~terms.tuned, np.ones(len(terms), bool)
    best = _first_within(terms, rows, allowed, [powers, ~terms.tuned, ~terms.plain, every], out_of_time)
    if best is None:
        return None
    return _over(inner, [term.node for term in best.terms] + [Constant(1.0)] * (abs(best.factors[-1]) > allowed))


def _first_within(
    terms: Library,
    rows: JudgedRows,
    allowed: float,
    tiers: Sequence[NDArray[np.bool_]],
    out_of_time: Callable[[], bool],
) -> TermSum | None:
    """The shortest sum within an error, of terms from several vocabularies; None where there is none."""
    best: TermSum | None = None
    for used in tiers:
        if not used.any() or out_of_time():
            continue
        beams = SECTIONS.beams if terms.tuned[used].any() else SECTIONS.beams[:1]
        for each in TermChoice(terms, used, rows, beams=beams).run(out_of_time):
            if best is not None and len(each.terms) >= len(best.terms):
                break
            if math.sqrt(each.loss) < allowed:
                best = each
                break
    return best


def _over(column: int, nodes: Sequence[Node]) -> list[Node]:
    """Functions of one column, over that column of a table."""
    return [transform(node, lambda leaf: Variable(column) if isinstance(leaf, Variable) else leaf) for node in nodes]
