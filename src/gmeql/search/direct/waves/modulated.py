"""One wave with sums before and beside it: y = P(x) + Q(x) cos(w u + p), as in x1 + x2 + x1*x2*cos(1.2*x3).

A periodogram (`waves.py`) sees a wave of many turns whose factor keeps its sign. Here P and Q may be any polynomial, and
the wave may have less than one turn: only its frequency is scanned (`projection.py`), of every column and of simple
functions of columns. Q gets one degree after the other: with a degree too many, x Q(x) sin(wx) stands in for a change of w,
and w is not determined.

What the best frequencies leave is the criterion: rounding, and the few terms that are needed are picked out of all
(`vocabulary.py`), or far less than the best of as many frequencies leaves of noise, and terms are chosen (`choice.py`).

Legend: `N` rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.fractions.polynomials import monomials, power_product
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.choice import TERMS, TermChoice, best_inexact, best_of
from gmeql.search.direct.terms.column_functions import BRIEF_TERMS
from gmeql.search.direct.terms.library import Library, library, vocabulary
from gmeql.search.direct.terms.term_sums import TermSum
from gmeql.search.direct.waves.projection import MODULATED, FloatArray, Terms, WaveFit, determined, fits, refined
from gmeql.search.direct.waves.waves import POWERS, angles_of, node_values
from gmeql.search.polish.scoring import JudgedRows

BEFORE = replace(BRIEF_TERMS, powers=(1, -1), mixed=(1, -1), kinds=("exp -x", "log"))
"""What may stand before a wave besides polynomials."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum with one wave that is the target, or one that stands out from noise. Draws nothing at random."""
    behind = next(_behind_a_power(table, functions, effort), None)
    if behind is not None:
        yield behind
        return
    n = min(len(table.y), MODULATED.rows)
    if not 1 <= table.n_columns <= MODULATED.max_columns or n < MODULATED.few_rows:
        return
    if not functions.allows({"sin", "cos", "add", "mul"}) or not np.isfinite(table.X).all():
        return
    if not np.ptp(table.y[:n]) > 0:
        return
    readings = {name: y[:n] for name, y in direct_readings(table.y, functions).items()}
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    turns = np.arange(
        MODULATED.turns_step, min(MODULATED.most_turns, n / MODULATED.rows_per_turn), MODULATED.turns_step
    )
    best: WaveFit | None = None
    left, trimmed = effort.seconds, 0
    for terms, angles in _looks(table.X[:n], functions):
        cost = _cost(terms, len(angles), len(turns), len(readings))
        if left < cost or effort.out_of_time():
            break
        left -= cost
        is_long = len(angles) > table.n_columns and not effort.is_quick
        for fit in fits(terms, angles, readings, turns, effort.out_of_time if is_long else lambda: False):
            if fit.is_near and trimmed < MODULATED.trimmed and not effort.out_of_time():
                fit, trimmed = determined(fit, readings[fit.reading]), trimmed + 1
            if fit.is_exact:
                root = _written(fit, readings[fit.reading])
                root = None if root is None else DIRECT_READINGS[fit.reading].invert(root, sign)
                if root is not None and table.error(root) < VOCABULARY.verified:
                    yield root
                    return
            elif fit.reading == PLAIN and fit.is_clear and (best is None or fit.length < best.length):
                best = fit
    can_choose = left >= MODULATED.seconds_per_choice and not effort.is_quick and not effort.out_of_time()
    size = math.sqrt(float(np.mean(table.y[:n] ** 2)))
    if best is not None and can_choose and best.noise * size < TERMS.gain * table.unexplained * table.spread:
        yield from _chosen(best, table, functions, effort)


def _behind_a_power(table: DirectTable, functions: FunctionSet, effort: Effort) -> Iterator[Node]:
    """Of a table of one column: a sum of the briefest terms with one wave, behind a power of the column, as behind a slit:
    sin(u)**2/u**2 is 1 - cos(2 u) behind a square."""
    n = min(len(table.y), MODULATED.rows)
    needed = {"sin", "cos", "add", "mul", "div", "pow"}
    if table.n_columns != 1 or n < MODULATED.few_rows or not functions.allows(needed):
        return
    X = table.X[:n]
    if not (np.isfinite(X).all() and (X != 0).all() and np.ptp(table.y[:n]) > 0):
        return
    turns = np.arange(
        MODULATED.turns_step, min(MODULATED.most_turns, n / MODULATED.rows_per_turn), MODULATED.turns_step
    )
    left, known = effort.seconds, _angles(X, functions)
    for degree, angles in product(
        MODULATED.degrees_behind, (known[:1],) if effort.is_quick else (known[:1], known[1:])
    ):
        terms = Terms.of(X, *([power_product((d,)) for d in range(degree + 1)],) * 2)
        for power in MODULATED.powers_behind if angles else ():
            left -= _cost(terms, len(angles), len(turns), 1)
            if left < 0 or effort.out_of_time():
                return
            target = table.y[:n] * X[:, 0] ** power
            for fit in fits(terms, angles, {PLAIN: target}, turns, effort.out_of_time):
                written = _written(fit, target) if fit.is_exact else None
                root = None if written is None else build("div", written, build("pow", Variable(0), Constant(power)))
                if root is not None and table.error(root) < VOCABULARY.verified:
                    yield root
                    return


def _looks(X: FloatArray, functions: FunctionSet) -> Iterator[tuple[Terms, list[tuple[Node, FloatArray]]]]:
    """Terms with the angles whose waves they are tried with, the cheapest first."""
    n_columns, known = X.shape[1], _angles(X, functions)
    for some in (known[:n_columns], known[n_columns:]):
        for degree in MODULATED.degrees:
            terms = _polynomials(X, degree)
            if terms is not None and some:
                yield terms, some
        for most in MODULATED.most_before if some else ():
            yield _plain_terms(X, functions, most), some


def _angles(X: FloatArray, functions: FunctionSet) -> list[tuple[Node, FloatArray]]:
    """Columns, and simple functions of them, that waves may be of, with their values [N]."""
    columns: list[Node] = [Variable(j) for j in range(X.shape[1])]
    others = [node for node in angles_of(X, functions) if node not in columns]
    if functions.allows({"div"}):
        others += [build("div", a, b) for a, b in permutations(columns, 2)]
    values = ((node, node_values(node, X)) for node in (*columns, *others))
    return [(node, u) for node, u in values if np.isfinite(u).all() and np.ptp(u) > 0]


def _polynomials(X: FloatArray, degree: int) -> Terms | None:
    """Polynomials before the wave of a degree, and beside it of as high a degree as the rows allow; None: of none."""
    n, n_columns = X.shape
    before = monomials(n_columns, degree)
    room = n / MODULATED.rows_per_term - 2 * len(before) - 1
    alone = [
        tuple(d * (i == j) for i in range(n_columns)) for d in range(1, MODULATED.alone + 1) for j in range(n_columns)
    ]
    for highest in range(max(degree, MODULATED.beside), degree - 1, -1):
        if highest > degree and math.comb(n_columns + highest, highest) > min(room, MODULATED.most_beside):
            continue
        lower = monomials(n_columns, highest)
        for some in (list(dict.fromkeys([*lower, *alone])), lower):
            if len(some) <= room:
                return Terms.of(X, *([power_product(term) for term in terms] for terms in (some, before)))
    return None


def _plain_terms(X: FloatArray, functions: FunctionSet, most_before: int) -> Terms:
    """Fractions, roots, exponentials and logarithms among what stands beside the wave and before it."""
    room = int(len(X) / MODULATED.rows_per_term) - 1
    numbers = (
        replace(BRIEF_TERMS, most_terms=min(MODULATED.most_beside, room // 2)),
        replace(BEFORE, most_terms=min(most_before, room // 4)),
    )
    terms = [vocabulary(X, functions.allows, numbers=some) for some in numbers]
    return Terms.of(X, *([some.node(m) for m in range(len(some))] for some in terms))


def _cost(terms: Terms, n_angles: int, n_turns: int, n_readings: int) -> float:
    """Seconds of one core that a scan of some angles takes, with the fits of its best frequencies."""
    n, a, b = terms.n_scanned, len(terms.beside), len(terms.before)
    scan = MODULATED.seconds_per_value + MODULATED.seconds_per_product * (a + b + n_readings) * b
    return n * (n_angles * n_turns * scan + MODULATED.seconds_per_square * (a**2 + MODULATED.tried * (2 * b) ** 2))


# --- formulas -----------------------------------------------------------------------------------------------------------


def _written(fit: WaveFit, target: FloatArray) -> Node | None:
    """The few terms, of those beside the wave, before it and before the wave a quarter turn on, that are the target."""
    terms, angle = fit.terms, fit.frequency * fit.u + fit.phase
    cosine, sine = fit.waves()
    nodes = [
        *(build("mul", node, cosine) for node in terms.before),
        *terms.beside,
        *(build("mul", node, sine) for node in terms.before),
    ]
    columns = [
        terms.before_values * np.cos(angle)[:, None],
        terms.beside_values,
        terms.before_values * np.sin(angle)[:, None],
    ]
    found = Span(np.hstack(columns).T, nodes.__getitem__).sparse(target)
    return None if found is None else sum_of(found)


def _chosen(fit: WaveFit, table: DirectTable, functions: FunctionSet, effort: Effort) -> list[Node]:
    """Short sums of powers of columns, with the wave before some of them, that are better than the best formula so far.

    Terms that are not needed leave the frequency uncertain: it is fitted anew with those that were chosen.
    """
    n = len(fit.u)
    rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], [f"x{i}" for i in range(table.n_columns)])
    found: list[TermSum] = []
    terms = None
    for _ in range(MODULATED.choices):
        terms = library(table.X[:n], functions.allows, numbers=POWERS, waves=fit.waves(), are_held=True)
        choice = TermChoice(terms, ~terms.plain, rows, beams=MODULATED.beams, by_pairs=False)
        sums = list(choice.run(effort.out_of_time))
        found += sums
        again = _with_terms(fit, best_of(sums, rows, len(terms)), terms, rows)
        if again is None or effort.out_of_time():
            break
        fit = again
    return best_inexact(found, table, rows, 0 if terms is None else len(terms))


def _with_terms(fit: WaveFit, chosen: TermSum | None, terms: Library, rows: JudgedRows) -> WaveFit | None:
    """The wave with no more than the terms that were chosen; None where it stands before none of them."""
    waves = fit.waves()
    numbers = [] if chosen is None else [term.number for term in chosen.terms]
    factors = [[terms.factors[i].node for i in terms.parts[m]] for m in numbers]
    before = [build("mul", *(node for node in some if node not in waves)) for some in factors if set(some) & set(waves)]
    beside = [build("mul", *some) for some in factors if not set(some) & set(waves)]
    if not before:
        return None
    few = Terms.of(rows.X, [Constant(1.0), *beside], list(dict.fromkeys(before)))
    target = rows.target / math.sqrt(float(rows.target @ rows.target))
    return refined(few, PLAIN, fit.angle, fit.u, target, fit.frequency, fit.n_tried)
