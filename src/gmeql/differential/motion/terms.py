"""Sums of terms: products of the columns, and parts that the search found, weighed in integral form.

The best sums of one, two, three, ... terms are found by carrying many on at a time (a beam): whatever order terms enter
in, none is lost for coming late.

Legend: `R` rows, `K` terms on offer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.weak import WeakRows
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls, transform, tree_complexity
from gmeql.formula.operators import get_operator
from gmeql.formula.products import new_terms, write_product

FloatArray = NDArray[np.float64]
ONE = Constant(1.0)


def monomials(columns: Sequence[int]) -> list[Node]:
    """1 and all products of columns, up to the largest degree that gives a bearable number of them.

    >>> [str(Expression(m, ("x", "y"))) for m in monomials([0, 1])][:6]
    ['1', 'x', 'y', 'x**2', 'x*y', 'y**2']
    """
    found: list[Node] = [ONE]
    for degree in range(1, MOTION.terms.degree + 1):
        more: list[Node] = []
        for chosen in combinations_with_replacement(columns, degree):
            exponents: dict[Node, float] = {Variable(column): float(chosen.count(column)) for column in chosen}
            more.append(write_product(1.0, exponents))
        if degree > 1 and len(found) + len(more) > MOTION.terms.most_terms:
            break
        found += more
    return found


def single_functions(columns: Sequence[int], allowed: Collection[str] | None = None) -> list[Node]:
    """Sine, cosine, decaying exponential and inverse of each column, as far as `allowed` names them (None: all)."""
    found: list[Node] = []
    for column in map(Variable, columns):
        found += [Call("sin", (column,)), Call("cos", (column,)), Call("exp", (Call("neg", (column,)),))]
        found.append(Call("div", (ONE, column)))
    names = None if allowed is None else {get_operator(name).name for name in allowed}
    return [node for node in found if names is None or all(call.operator in {*names, "neg"} for call in calls(node))]


def with_coefficient(term: Node, coefficient: float) -> Node:
    """A term times a number; the term 1 is that number."""
    return Call("mul", (Constant(coefficient), term)) if term != ONE else Constant(coefficient)


def found_terms(roots: Iterable[Node], known: Sequence[Node]) -> list[Node]:
    """Terms of formulas that are not on offer yet, in the order of the formulas."""
    return new_terms(roots, known, most=MOTION.terms.found_terms)


def best_sums(rows: WeakRows, j: int, terms: Sequence[Node], largest: int = MOTION.terms.largest) -> list[Node]:
    """The best sums of each number of terms up to the `largest` for equation `j`, simplest first, with coefficients."""
    with np.errstate(all="ignore"):
        values = np.column_stack([Expression(term, rows.names)(rows.X) for term in terms])
    usable = np.isfinite(values).all(axis=0)
    terms = [term for term, good in zip(terms, usable, strict=True) if good]
    A, b = rows.right(j, values[:, usable]), rows.left[:, j] / rows.error[:, j]
    length = np.sqrt((A**2).sum(axis=0))
    kept = np.flatnonzero(length > 0)
    terms, A = [terms[k] for k in kept], A[:, kept] / length[kept]
    sums = []
    complexity = np.array([tree_complexity(term) for term in terms])
    for chosen in _best_subsets(A, b, kinds(terms), complexity, rows.points, largest):
        coefficients = np.linalg.lstsq(A[:, chosen], b, rcond=None)[0] / length[kept][chosen]
        parts = [build("mul", Constant(c), terms[k]) for c, k in zip(coefficients.tolist(), chosen, strict=True)]
        sums.append(Call("add", tuple(parts)) if len(parts) > 1 else parts[0])
    return sums


def outline(root: Node, every: float = 2.0) -> Node:
    """The structure alone: every constant 2, so that formulas that differ in constants only are one."""
    return transform(root, lambda leaf: Constant(every) if isinstance(leaf, Constant) else leaf)


def kinds(terms: Sequence[Node]) -> NDArray[np.intp]:
    """[K] a number for each term; terms that differ in constants only have the same."""
    numbers: dict[Node, int] = {}
    return np.array([numbers.setdefault(outline(term), len(numbers)) for term in terms], dtype=np.intp)


def _best_subsets(
    A: FloatArray, b: FloatArray, kind: NDArray[np.intp], complexity: NDArray[np.intp], points: int, largest: int
) -> list[list[int]]:
    """Columns of A [R, K], of length 1, whose sums come closest to b [R]: the best few of each size up to the `largest`.

    No two columns of a sum are of one `kind` [K]: fits adapt the constants inside terms. Where sums come closer than the
    noise, by which both sides are divided, being closer says little; so those of the shortest description, by the
    `complexity` [K] of terms and the number of measured `points`, are handed on, too.
    """
    K = A.shape[1]
    gram, right = A.T @ A + 1e-13 * np.eye(K), A.T @ b
    beam: list[tuple[int, ...]] = [()]
    best: list[list[int]] = []
    for size in range(1, min(largest, K, len(b) - 1) + 1):
        tried = sorted(
            {
                tuple(sorted((*subset, k)))
                for subset in beam
                for k in np.flatnonzero(~np.isin(kind, kind[list(subset)])).tolist()
            }
        )
        if not tried:
            break
        index = np.array(tried)
        grams = gram[index[:, :, None], index[:, None, :]]
        targets = right[index]
        try:
            explained = (targets * np.linalg.solve(grams, targets[..., None])[..., 0]).sum(axis=1)
        except np.linalg.LinAlgError:
            break
        explained = np.where(explained <= (1 + 1e-9) * (b @ b), explained, -np.inf)  # else it is rounding
        left = np.maximum(b @ b - explained, 0.0) / len(b)
        length = 0.5 * points * np.log1p(left) + MOTION.system.node_cost * complexity[index].sum(axis=1)
        closest = _first_of_each(kind[index], left, MOTION.terms.beam)
        shortest = _first_of_each(kind[index], length, MOTION.terms.kept)
        scaled = len(set(kind.tolist())) < K and size <= len(MOTION.terms.kept_scaled)
        kept = MOTION.terms.kept_scaled[size - 1] if scaled else MOTION.terms.kept
        best += [list(tried[place]) for place in dict.fromkeys([*closest[:kept], *shortest])]
        beam = [tried[place] for place in dict.fromkeys([*closest, *shortest])]
        if not beam:
            break
    return best


def _first_of_each(kinds: NDArray[np.intp], cost: FloatArray, most: int) -> list[int]:
    """Places of the least `cost` [T] among sums of terms of the same `kinds` [T, n], the least first, at most so many."""
    chosen: dict[tuple[int, ...], int] = {}
    for place in np.argsort(cost, kind="stable").tolist():
        if len(chosen) == most or not np.isfinite(cost[place]):
            break
        chosen.setdefault(tuple(kinds[place].tolist()), place)
    return list(chosen.values())
