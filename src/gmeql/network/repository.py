"""The elite repository: a fixed number of slots, sorted by loss, no two equal expressions.

Section 4.2 of the paper. Written once over an array namespace `xp`: `numpy` for the fitted search, `jax.numpy`
inside the compiled steps of method "paper". An empty slot has loss `inf`; empty slots come last.

Shapes: K slots, B candidates. `items` is an array or a dictionary of arrays with leading axis K: whatever an elite
carries.

>>> import numpy as np
>>> elites = empty(2, {"choices": np.zeros(3, int)})
>>> marks = np.array([[1, 0], [2, 0], [1, 0]], np.uint32)
>>> elites = insert(elites, np.array([3.0, 2.0, 1.0]), marks, {"choices": np.arange(9).reshape(3, 3)})
>>> elites.losses.tolist(), elites.items["choices"][0].tolist()
([1.0, 2.0], [6, 7, 8])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gmeql.formula.domains import Array, Namespace


class Repository(NamedTuple):
    """The elites, best first."""

    losses: Array
    """[K], ascending; `inf` marks an empty slot."""
    fingerprints: Array
    """[K, 2] uint32, the hash of each elite's expression."""
    items: Any
    """Array or dictionary of arrays with leading axis K."""


def empty(capacity: int, example: Any, xp: Namespace = np, dtype: Any = None) -> Repository:
    """A repository of `capacity` empty slots whose items look like `example` (one item, no leading axis)."""
    if capacity < 1:
        raise ValueError(f"capacity must be at least 1, got {capacity!r}")
    items = _map(lambda leaf: xp.zeros((capacity, *xp.shape(leaf)), dtype=leaf.dtype), example)
    losses = xp.full((capacity,), xp.inf, dtype=dtype or float)
    return Repository(losses, xp.zeros((capacity, 2), dtype=xp.uint32), items)


def size(repository: Repository, xp: Namespace = np) -> Array:
    """Number of filled slots."""
    return xp.sum(xp.isfinite(repository.losses))


def insert(repository: Repository, losses: Array, fingerprints: Array, items: Any, xp: Namespace = np) -> Repository:
    """Offer B candidates; the best K of old and new with distinct expressions stay.

    Of equal expressions the lowest loss stays, of equal losses the one that was there first. A loss of nan or inf
    never enters. The repository's own losses need not be sorted beforehand, so a caller may have refreshed them.
    """
    capacity = repository.losses.shape[0]
    losses = xp.concatenate([repository.losses, losses.astype(repository.losses.dtype)])
    losses = xp.where(xp.isfinite(losses), losses, xp.inf)
    marks = xp.concatenate([repository.fingerprints, fingerprints])
    if xp is np:
        loses = _repeated(losses, marks)
    else:
        loses = _repeated_by_pairs(losses, marks, capacity, xp)
    losses = xp.where(loses, xp.inf, losses)

    order = xp.argsort(losses, stable=True)[:capacity]
    losses = losses[order]
    marks = xp.where(xp.isfinite(losses)[:, None], marks[order], xp.uint32(0))
    merged = _map(lambda old, new: xp.concatenate([old, new.astype(old.dtype)])[order], repository.items, items)
    return Repository(losses, marks, merged)


def _repeated(losses: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Which of K + B expressions have an equal one with a lower loss, or the same loss and an earlier place."""
    order = np.argsort(losses, kind="stable")
    keys = np.ascontiguousarray(marks[order]).view(np.uint64)[:, 0]
    _, first = np.unique(keys, return_index=True)
    loses = np.ones(len(losses), bool)
    loses[order[first]] = False
    return loses


def _repeated_by_pairs(losses: Array, marks: Array, capacity: int, xp: Namespace) -> Array:
    """`_repeated` as a compiled step can say it: elites are distinct, so only pairs with a candidate, [B, K + B]."""
    position = xp.arange(losses.shape[0])
    same = (marks[capacity:, None, 0] == marks[None, :, 0]) & (marks[capacity:, None, 1] == marks[None, :, 1])
    first = (losses[None, :] < losses[capacity:, None]) | (
        (losses[None, :] == losses[capacity:, None]) & (position[None, :] < position[capacity:, None])
    )
    candidate_loses = xp.any(same & first, axis=1)
    elite_loses = xp.any((same & ~first)[:, :capacity], axis=0)
    return xp.concatenate([elite_loses, candidate_loses])


DRAW_LAWS = ("rank", "released")
"""How elites are drawn: by rank^-exponent, the best the likeliest (section 4.2 of the paper); or as the authors' released
code does it, by (K - rank)^exponent with ranks from 0, which is nearly even: of 400 the best gets 0.6 %, not 40 %."""


def power_law(capacity: int, exponent: float, law: str = "rank") -> np.ndarray:
    """Unnormalised cumulative weights of K slots, [K]: of the ranks 1..K, best first, under the law "rank"; of the places
    1..K from the worst up under the law "released". Either way the first entries serve any number of filled slots."""
    if law not in DRAW_LAWS:
        raise ValueError(f"law must be one of {', '.join(DRAW_LAWS)}, got {law!r}")
    places = np.arange(1, capacity + 1, dtype=float)
    return np.cumsum(places ** (exponent if law == "released" else -exponent))


def rank_probabilities(count: int, exponent: float) -> np.ndarray:
    """Probability of each rank when `count` slots are filled: proportional to rank^-exponent.

    >>> rank_probabilities(2, 1.0).round(3).tolist()
    [0.667, 0.333]
    """
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    probabilities: np.ndarray = weights / weights.sum()
    return probabilities


def draw(repository: Repository, uniforms: Array, exponent: float, xp: Namespace = np, law: str = "rank") -> Array:
    """Slots drawn by a power law over the filled ranks, one per uniform in [0, 1); -1 where nothing is stored.

    `law` is one of `DRAW_LAWS`.
    """
    cumulative = xp.asarray(power_law(repository.losses.shape[0], exponent, law), dtype=uniforms.dtype)
    return draw_by(repository, uniforms, cumulative, law == "released", xp)


def draw_by(
    repository: Repository, uniforms: Array, cumulative: Array, worst_up: Array | bool, xp: Namespace = np
) -> Array:
    """`draw` with the weights of `power_law` as data, so that laws may differ within one compiled program.

    The inverse of the cumulative weights, so a draw uses exactly one uniform. `worst_up`: places count from the worst.
    """
    count = size(repository, xp)
    target = uniforms * cumulative[xp.maximum(count - 1, 0)]
    places = xp.minimum(xp.sum(cumulative <= target[..., None], axis=-1), count - 1)
    return xp.where(count > 0, xp.where(worst_up, count - 1 - places, places), -1)


def take(repository: Repository, slots: Array) -> Any:
    """The items in the given slots."""
    return _map(lambda leaf: leaf[slots], repository.items)


def _map(function: Callable[..., Any], items: Any, *others: Any) -> Any:
    if isinstance(items, dict):
        return {key: _map(function, value, *(other[key] for other in others)) for key, value in items.items()}
    return function(items, *others)
