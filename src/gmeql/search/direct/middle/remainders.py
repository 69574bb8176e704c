"""Compiled: what a target leaves of small formulas, told apart by hash; two that are left alike are terms of the target.

Where y = c0 + c1 f + c2 g, what is left of f without its mean and its part along y is a multiple of what is left of g. So one
pass over the formulas sees all pairs. Where y = (c0 + c1 f)/(c2 + c3 g), the same holds of f and y g; where there is a term
more that is known, its part is left out as well. Where y = c0 f^c1 g^c2, it holds of the logarithms.

`R` rows, `K` formulas with values kept, `M` formulas in all, `D` directions. The *entry* 2m is formula m, the entry 2m + 1 is
that times the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import boolean, float64, int64
from numpy.typing import NDArray

from gmeql.fitters.compiled import compiled, inner, part
from gmeql.search.direct.middle.kernels import LEAST_DEVIATION, ROW, combine, find_or_insert, form_key

LEAST_LEFT = 1e-4
"""What must be left of a formula, relative to its size. Formulas that are a constant up to a trace are alike in what is left
of them, and would be terms of anything."""
ALIKE = 1e-8
"""Of values that are one but for a factor, relative to the largest: keys know them to 5e-7 ..."""
LAST_DIGITS = 1e-13
"""... and what rounding may add, relative to what the digits were lost of."""
SAME_FORM = 1e-6
"""Up to which two formulas have one form, on two sides of the border of a key."""


@part(float64(ROW, float64[:, ::1], int64, ROW))
def leave(values, along, n_along, out):
    """Into `out` [R] values without their mean and their parts along the first so many of some directions [D, R], which are
    orthonormal and without mean; how much that is of their size."""
    n = len(values)
    mean = size = rest = 0.0
    for i in range(n):
        mean += values[i] / n
        size = max(size, abs(values[i]))
    for i in range(n):
        out[i] = values[i] - mean
    for d in range(n_along):
        share = 0.0
        for i in range(n):
            share += out[i] * along[d, i]
        for i in range(n):
            out[i] -= share * along[d, i]
    for i in range(n):
        rest = max(rest, abs(out[i]))
    return rest / size if size > 0.0 else 0.0


@part(boolean(ROW, ROW, float64))
def are_one(a, b, alike):
    """Whether a [R] is b times a factor, up to `alike` times its largest value."""
    highest = factor = off = largest = 0.0
    for i in range(len(a)):
        if abs(b[i]) > highest:
            highest = abs(b[i])
            factor = a[i] / b[i]
        largest = max(largest, abs(a[i]))
    for i in range(len(a)):
        off = max(off, abs(a[i] - factor * b[i]))
    return off <= alike * largest


@inner()
def values_of(entry, of_logarithms, formulas, values, target, out):
    """Values [R] of an entry, or logarithms of their sizes, into `out`; whether it has any."""
    m = entry >> 1
    if m < len(values):
        for i in range(len(out)):
            out[i] = values[m, i]
    elif not combine(formulas[m, 0], values[formulas[m, 1]], values[max(formulas[m, 2], 0)], out):
        return False
    if entry & 1:
        for i in range(len(out)):
            out[i] *= target[i]
    if of_logarithms:
        for i in range(len(out)):
            if out[i] == 0.0:
                return False
            out[i] = math.log(abs(out[i]))
    return True


def pairs_left_alike(
    formulas: NDArray[np.int32],
    values: NDArray[np.float64],
    target: NDArray[np.float64],
    signs: NDArray[np.float64],
    *,
    beside: Sequence[NDArray[np.float64]] = (),
    with_fractions: bool = False,
    of_logarithms: bool = False,
    most: int,
) -> NDArray[np.int64]:
    """Entries [H, 2], at most so many, that may be the two terms of a target [R], `beside` others with values [R] each; where
    they are `of_logarithms`, those of the formulas are its terms.

    `formulas` [M, 3] are what their numbers say, the first of them with `values` [K, R].
    """
    along = directions(target, beside)
    if along is None:
        return np.empty((0, 2), np.int64)
    n = 1 + with_fractions
    slots = 1 << max(2 * n * len(formulas) - 1, 1).bit_length()
    keys, places, hits = np.zeros(slots, np.uint64), np.empty(slots, np.int32), np.empty((most, 2), np.int64)
    scratch = tuple(np.empty((4, len(target))))
    given = np.ascontiguousarray(target), along, signs
    return hits[: int(pass_over(formulas, values, *given, keys, places, hits, n, of_logarithms, scratch))]


def directions(target: NDArray[np.float64], beside: Sequence[NDArray[np.float64]] = ()) -> NDArray[np.float64] | None:
    """What parts are left out along [D, R]: orthonormal, without mean, the target's last. None of a constant, and of what follows
    from what stands beside it: these tell nothing."""
    known = np.array([*beside, target])
    deviations = known - known.mean(axis=1, keepdims=True)
    along, told = np.linalg.qr(deviations.T)
    tells = (np.abs(np.diag(told)) > LEAST_DEVIATION * np.abs(known).max(axis=1)).all()
    return np.ascontiguousarray(along.T) if tells else None


@compiled()
def pass_over(formulas, values, target, along, signs, keys, places, hits, n_entries, of_logarithms, scratch):
    """`pairs_left_alike` with rows to work in; how many there are."""
    one, other, left, beside = scratch
    n_hits, n_along = 0, len(along)
    for m in range(len(formulas)):
        for times in range(n_entries):
            entry = 2 * m + times
            if not values_of(entry, of_logarithms, formulas, values, target, one):
                continue
            share = leave(one, along, n_along, left)
            if not share > LEAST_LEFT:
                continue
            key = form_key(left, signs)
            if key == np.uint64(0):
                continue
            first = np.int64(find_or_insert(keys, places, key, entry))
            if first < 0 or n_hits == len(hits) or not values_of(first, of_logarithms, formulas, values, target, other):
                continue
            lost = 1.0 / share + 1.0 / leave(other, along, n_along, beside)
            if not are_one(left, beside, ALIKE + LAST_DIGITS * lost):
                continue
            if (first & 1) == times:  # c0 + c1 f is no other formula than f, and y (c0 + c1 f) none than y f
                values_of(entry - times, of_logarithms, formulas, values, target, one)
                values_of(first - times, of_logarithms, formulas, values, target, other)
                leave(one, along, n_along - 1, left)  # the target's comes last
                leave(other, along, n_along - 1, beside)
                if are_one(left, beside, SAME_FORM):
                    continue
            hits[n_hits, 0] = first
            hits[n_hits, 1] = entry
            n_hits += 1
    return n_hits
