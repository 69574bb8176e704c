"""`gmeql.invariant`: functions of the states that stay constant along trajectories.

A sum H = Σ c φ(x) of a few terms is wanted whose values hardly change along each trajectory, although they would change
much if the states were drawn independently of each other: the smallest generalised eigenvalue of the two covariances. The
second one rules out what is constant trivially.

Legend: `G` points of the curves, `K` terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion, measure
from gmeql.differential.motion.systems import plain
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.formula.calculus import expand
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, tree_complexity
from gmeql.formula.operators import get_operator
from gmeql.search.polish.scoring import length_in_nats

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Invariant:
    """A conserved quantity; `str()` is its formula."""

    expression: Expression
    variation: float
    """How much it varies along a trajectory, relative to how much it would over independent states."""
    drift: float
    """Root mean square of its derivative by time, from the exact derivatives of the formula and the curves' slopes,
    relative to the sum of what its parts change by."""

    def __call__(self, X: Any) -> FloatArray:
        return self.expression(X)

    def __str__(self) -> str:
        return str(self.expression)


def invariant(
    X: Any,
    t: Any,
    *,
    feature_names: Sequence[str] | None = None,
    functions: Collection[str] | None = None,
    max_terms: int = MOTION.invariant.terms,
) -> Invariant:
    """A quantity that the states `X` [N, S] measured at times `t` [N] conserve; lists of both for several trajectories.

    Sums of up to `max_terms` products, sines, cosines, exponentials, inverses and logarithms of the states are tried;
    `functions` limits them by name. Where nothing is conserved, a `ValueError` says so.

    >>> t = np.linspace(0, 6, 60)
    >>> print(invariant(np.column_stack([np.cos(2 * t), -2 * np.sin(2 * t)]), t, feature_names=["q", "v"]))
    q**2 + 0.25*v**2
    """
    motion = measure(check_trajectories(X, t, names=feature_names), functions=functions)
    if len(motion.columns.names) < 2:
        raise ValueError("a conserved quantity of one state would be constant; give at least two states")
    numbers = MOTION.invariant
    terms, within, apart = _covariances(motion, functions)
    noise = numbers.noise_share * float(motion.relative_noise.max())
    best: tuple[float, float, Node] | None = None
    quietest = _quietest(within, apart, max_terms)
    for chosen, ratio, weights in quietest:
        if ratio > numbers.largest:
            continue
        root = _sum([terms[k] for k in chosen], weights / _scale(apart)[list(chosen)])
        floor = max(ratio, noise, numbers.exact)
        length = length_in_nats(
            2.0 * math.log(floor), len(chosen), tree_complexity(root), n_rows=motion.trajectories.points
        )
        if best is None or length < best[0]:
            best = (length, ratio, root)
    if best is None:
        least = min(ratio for _, ratio, _ in quietest)
        raise ValueError(
            f"nothing is conserved along these trajectories: the quietest sum varies by {least:.2g} of what it would over "
            "independent states; try more states or terms"
        )
    expression = Expression(plain(best[2]), motion.columns.names)
    return Invariant(expression, best[1], _drift(motion, expression))


def _covariances(motion: Motion, functions: Collection[str] | None) -> tuple[list[Node], FloatArray, FloatArray]:
    """Terms, and their covariances along the trajectories and over states drawn independently, both [K, K]."""
    X = motion.rows.X
    logarithm: list[Node] = [Call("log", (Variable(j),)) for j in range(X.shape[1]) if (X[:, j] > 0).all()]
    if functions is not None and "log" not in {get_operator(name).name for name in functions}:
        logarithm = []
    rng = np.random.default_rng(0)
    mixed = np.column_stack([rng.permutation(column) for column in X.T])
    terms, along, apart = [], [], []
    for term in [*(node for node in motion.library if node != Constant(1.0)), *logarithm]:
        expression = Expression(term, motion.columns.names)
        values, others = expression(X), expression(mixed)
        if np.isfinite(values).all() and np.isfinite(others).all() and others.std() > 0:
            terms.append(term)
            along.append(_centred(motion, values))
            apart.append(others - others.mean())
    A, B = np.column_stack(along), np.column_stack(apart)
    return terms, A.T @ A / len(A), B.T @ B / len(B)


def _centred(motion: Motion, values: FloatArray) -> FloatArray:
    """Values [G] less their mean along each trajectory."""
    parts = np.split(values, np.cumsum([len(curve.t) for curve in motion.curves])[:-1])
    return np.concatenate([part - part.mean() for part in parts])


def _scale(apart: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.diag(apart)))


def _quietest(within: FloatArray, apart: FloatArray, most: int) -> list[tuple[tuple[int, ...], float, FloatArray]]:
    """For each number of terms the sums that vary least: terms, relative variation, weights of the scaled terms."""
    scale = _scale(apart)
    W, B = within / np.outer(scale, scale), apart / np.outer(scale, scale)
    K = len(W)
    beam: list[tuple[int, ...]] = [()]
    found = []
    for _ in range(min(most, K)):
        tried = sorted({tuple(sorted((*subset, k))) for subset in beam for k in range(K) if k not in subset})
        index = np.array(tried)
        pairs = index[:, :, None], index[:, None, :]
        root = np.linalg.inv(np.linalg.cholesky(B[pairs] + 1e-9 * np.eye(index.shape[1])))
        values, vectors = np.linalg.eigh(root @ W[pairs] @ root.swapaxes(1, 2))
        ratios = np.sqrt(np.maximum(values[:, 0], 0.0))
        order = np.argsort(ratios, kind="stable")[: MOTION.invariant.beam]
        beam = [tried[k] for k in order]
        for k in order[: MOTION.terms.kept]:
            found.append((tried[k], float(ratios[k]), root[k].T @ vectors[k][:, 0]))
    return found


def _sum(terms: Sequence[Node], weights: FloatArray) -> Node:
    """The weighted sum, its first coefficient 1."""
    coefficients = (weights / weights[0]).tolist()
    return build("add", *(build("mul", Constant(c), term) for c, term in zip(coefficients, terms, strict=True)))


def _drift(motion: Motion, expression: Expression) -> float:
    """Root mean square of Σ_j D(H, x_j) x_j' along the curves, relative to the sizes of its parts.

    The slopes x_j' are columns behind those of the states.
    """
    V = len(expression.names)
    slopes = np.concatenate([curve.slopes for curve in motion.curves])
    table, names = np.hstack([motion.rows.X, slopes]), (*expression.names, *(f"{n}'" for n in motion.columns.measured))
    parts = [
        Expression(expand(Call("mul", (Call("D", (expression.root, Variable(j))), Variable(V + j)))), names)(table)
        for j in range(slopes.shape[1])
    ]
    sizes = sum(float(np.sqrt(np.mean(part**2))) for part in parts)
    return float(np.sqrt(np.mean(np.sum(parts, axis=0) ** 2))) / sizes if sizes > 0 else 0.0
