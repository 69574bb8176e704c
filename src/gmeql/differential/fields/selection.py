"""Which terms a law has: the best sums of every number of terms, and how many of them the data support.

Legend: `R` rows, `K` terms on offer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.grid import FloatArray


@dataclass(frozen=True)
class Sum:
    """Terms with coefficients: how far they miss the left side, relative to its size."""

    terms: tuple[int, ...]
    coefficients: FloatArray
    residual: float
    judged: float
    """The same on rows that were not fitted."""

    def nats(self, independent: float, noise: float = 0.0) -> float:
        """Description length: residuals of independent rows, and a price for each term.

        A sum that misses less than `noise`, what the fields' noise makes of its rows, fits the noise.
        """
        miss = max(self.judged, self.residual, FIELDS.floor, noise)
        return independent * math.log(miss) + FIELDS.term_nats * len(self.terms)


def fit_sum(A: FloatArray, b: FloatArray, fold: FloatArray, terms: Sequence[int]) -> Sum:
    """Coefficients of certain terms by least squares."""
    columns = A[:, list(terms)]
    coefficients = _solve(columns, b)
    size = float(np.linalg.norm(b)) or 1.0
    residual = float(np.linalg.norm(columns @ coefficients - b)) / size
    missed = 0.0
    for k in np.unique(fold):
        kept = fold != k
        if kept.sum() <= len(terms) or kept.all():
            continue
        part = columns[~kept] @ _solve(columns[kept], b[kept]) - b[~kept]
        missed += float(part @ part)
    return Sum(tuple(terms), coefficients, residual, math.sqrt(missed) / size)


def _solve(columns: FloatArray, b: FloatArray) -> FloatArray:
    scale = np.linalg.norm(columns, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(np.linalg.lstsq(columns / scale, b, rcond=1e-12)[0] / scale)


def best_sums(A: FloatArray, b: FloatArray, fold: FloatArray) -> list[Sum]:
    """The best sum of one, two, ... terms: built up, many carried on at a time, and cut down from all terms.

    Built up, no term is lost for coming late; cut down, none for being of use only together with others.
    """
    scale = np.linalg.norm(A, axis=0)
    usable = np.flatnonzero((scale > 0) & np.isfinite(scale))
    normal = A[:, usable] / scale[usable]
    gram, right = normal.T @ normal, normal.T @ b
    beam: list[tuple[int, ...]] = [()]
    chosen = []
    for _ in range(min(FIELDS.most_terms, len(usable))):
        explained: dict[tuple[int, ...], float] = {}
        for s in beam:
            explained |= {tuple(sorted((*s, k))): value for k, value in _explained_with(gram, right, s)}
        beam = sorted(explained, key=lambda s: (-explained[s], s))[: FIELDS.beam]
        chosen.append(beam[0])
    chosen += _cut_down(gram, right)
    return [fit_sum(A, b, fold, [int(usable[k]) for k in terms]) for terms in dict.fromkeys(chosen)]


def _cut_down(gram: FloatArray, right: FloatArray) -> list[tuple[int, ...]]:
    """All terms, less the one that is missed least, and so on; those of bearable length."""
    kept = list(range(len(right)))
    found = []
    while len(kept) > 1:
        inverse = np.linalg.inv(gram[np.ix_(kept, kept)] + FIELDS.ridge * np.eye(len(kept)))
        loss = (inverse @ right[kept]) ** 2 / np.diag(inverse)
        del kept[int(np.argmin(loss))]
        if len(kept) <= FIELDS.most_terms:
            found.append(tuple(kept))
    return found


def _explained_with(gram: FloatArray, right: FloatArray, chosen: tuple[int, ...]) -> list[tuple[int, float]]:
    """Each further column, and the squared length of the left side that it and the chosen ones explain together."""
    others = [k for k in range(len(right)) if k not in chosen]
    if not chosen:
        return [(k, float(right[k] ** 2 / gram[k, k])) for k in others]
    index = list(chosen)
    inner = gram[np.ix_(index, index)] + FIELDS.ridge * np.eye(len(index))
    solved = np.linalg.solve(inner, np.column_stack([right[index], gram[np.ix_(index, others)]]))
    base = float(right[index] @ solved[:, 0])
    left = right[others] - gram[np.ix_(others, index)] @ solved[:, 0]
    size = np.diag(gram)[others] - np.einsum("ki,ik->k", gram[np.ix_(others, index)], solved[:, 1:])
    gains = np.where(size > FIELDS.dependent, left**2 / np.maximum(size, FIELDS.dependent), 0.0)
    return [(k, base + float(gain)) for k, gain in zip(others, gains, strict=True)]
