"""Values, constants and rewards of a whole batch of prefix expressions on a device.

Shapes: T tasks, B expressions of a batch, L tokens, N rows, K constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gmeql.evaluation.baselines.dsr.config import DSRConfig, Library
from gmeql.formula.operators import get_operator


class Links(NamedTuple):
    """Where children and parents stand in the prefix text, leading axis L. The first child of t is t + 1."""

    second: Any  # position of the second child
    parent: Any
    is_second: Any  # whether a token is the second child of its parent
    constant: Any  # which constant a token is (0, 1, ...), meaningful for constant tokens


def links(tokens: Any, library: Library) -> Links:
    """Tree links of prefix expressions; tokens [L, ...]."""
    L = tokens.shape[0]
    arity = jnp.array([*library.arity, 0])[tokens]

    def step(sizes: Any, inputs: Any) -> Any:
        t, a = inputs
        one = sizes[jnp.minimum(t + 1, L)]
        second = jnp.clip(t + 1 + one, 0, L)
        two = jnp.take_along_axis(sizes, second[None], axis=0)[0]
        size = 1 + jnp.where(a > 0, one, 0) + jnp.where(a > 1, two, 0)
        return sizes.at[t].set(size), jnp.where(a > 1, second, L)

    sizes = jnp.zeros((L + 1, *tokens.shape[1:]), int)
    _, second = jax.lax.scan(step, sizes, (jnp.arange(L), arity), reverse=True)
    positions = jnp.arange(L).reshape(L, *[1] * (tokens.ndim - 1))
    hits = second[:, None] == positions[None]  # [t, s]: s is the second child of t
    is_second = hits.any(0)
    parent = jnp.where(is_second, jnp.argmax(hits, axis=0), jnp.maximum(positions - 1, 0))
    constant = jnp.cumsum(tokens == library.constant, axis=0) - 1
    return Links(second, parent, is_second, constant)


def evaluate(tokens: Any, tree: Links, constants: Any, X: Any, library: Library, slopes: bool) -> Any:
    """Values [T, B, N] of prefix expressions and, with `slopes`, their derivative by every constant [K, T, B, N].

    tokens [L, T, B], constants [K, T, B], X [T, N, V]. Each row of an expression is a tree with one output, so one
    pass from the root down gives all derivatives at once.
    """
    L, T, B = tokens.shape
    N = X.shape[1]
    functions = library.names[: library.first_variable]
    K = constants.shape[0]

    def up(carry: Any, inputs: Any) -> Any:
        values, a = carry
        t, token, second, number = inputs
        b = jnp.take_along_axis(values, second[None, :, :, None], axis=0)[0]
        token = token[:, :, None]
        own = jnp.take_along_axis(constants, jnp.clip(number, 0, K - 1)[None], axis=0)[0][:, :, None]
        value = jnp.where(token == library.constant, own, 0.0) * jnp.ones_like(a)
        for v in range(library.variables):
            value = jnp.where(token == library.first_variable + v, X[:, None, :, v], value)
        slope_a, slope_b = jnp.zeros_like(a), jnp.zeros_like(a)
        for number_of, name in enumerate(functions):
            operator = get_operator(name)
            args = (a, b)[: operator.arity]
            value = jnp.where(token == number_of, operator.natural(jnp, *args), value)
            if slopes:
                partial = operator.partials(jnp, *args)
                slope_a = jnp.where(token == number_of, partial[0], slope_a)
                if operator.arity == 2:
                    slope_b = jnp.where(token == number_of, partial[1], slope_b)
        values = jax.lax.dynamic_update_index_in_dim(values, value, t, 0)
        return (values, value), (slope_a, slope_b) if slopes else None

    zero = jnp.zeros((T, B, N), X.dtype)
    start = (jnp.zeros((L + 1, T, B, N), X.dtype), zero)
    (_, prediction), partials = jax.lax.scan(
        up, start, (jnp.arange(L), tokens, tree.second, tree.constant), reverse=True
    )
    if not slopes:
        return prediction

    def down(adjoints: Any, inputs: Any) -> Any:
        t, parent, is_second = inputs
        index = parent[None, :, :, None]
        through = jnp.where(is_second[:, :, None], *(jnp.take_along_axis(p, index, axis=0)[0] for p in partials[::-1]))
        adjoint = jnp.where(t == 0, 1.0, jnp.take_along_axis(adjoints, index, axis=0)[0] * through)
        return jax.lax.dynamic_update_index_in_dim(adjoints, adjoint, t, 0), None

    adjoints, _ = jax.lax.scan(down, jnp.zeros((L, T, B, N), X.dtype), (jnp.arange(L), tree.parent, tree.is_second))
    is_constant = tokens == library.constant
    columns = []
    for k in range(K):
        mine = is_constant & (tree.constant == k)
        position = jnp.argmax(mine, axis=0)
        column = jnp.take_along_axis(adjoints, position[None, :, :, None], axis=0)[0]
        columns.append(jnp.where(mine.any(0)[:, :, None], column, 0.0))
    return prediction, jnp.stack(columns)


def _solve(matrix: list[list[Any]], right: list[Any]) -> list[Any]:
    """Gaussian elimination of a small symmetric positive system, written out: a batch runs as plain arithmetic."""
    size = len(right)
    matrix, right = [row[:] for row in matrix], right[:]
    for i in range(size):
        for j in range(i + 1, size):
            factor = matrix[j][i] / matrix[i][i]
            for k in range(i + 1, size):
                matrix[j][k] = matrix[j][k] - factor * matrix[i][k]
            right[j] = right[j] - factor * right[i]
    solution: list[Any] = [None] * size
    for i in reversed(range(size)):
        known = sum(matrix[i][k] * solution[k] for k in range(i + 1, size))
        solution[i] = (right[i] - known) / matrix[i][i]
    return solution


def fit_constants(tokens: Any, tree: Links, X: Any, y: Any, config: DSRConfig, library: Library) -> Any:
    """Constants [K, T, B] of every expression by Levenberg-Marquardt from 1; y [T, N]."""
    K = config.max_constants
    _, T, B = tokens.shape

    def normal(constants: Any) -> Any:
        prediction, J = evaluate(tokens, tree, constants, X, library, slopes=True)
        residual = prediction - y[:, None, :]
        loss = jnp.mean(residual**2, axis=-1)
        sound = jnp.isfinite(loss) & jnp.isfinite(J).all(axis=(0, -1))
        J = jnp.where(sound[None, :, :, None], J, 0.0)
        residual = jnp.where(sound[:, :, None], residual, 0.0)
        half = {(i, j): jnp.sum(J[i] * J[j], axis=-1) for i in range(K) for j in range(i + 1)}
        products = jnp.stack([jnp.stack([half[max(i, j), min(i, j)] for j in range(K)]) for i in range(K)])
        return jnp.where(sound, loss, jnp.inf), products, jnp.sum(J * residual[None], axis=-1)

    def step(_: Any, carry: Any) -> Any:
        constants, loss, products, right, damping = carry
        matrix = [[products[i, j] for j in range(K)] for i in range(K)]
        for i in range(K):
            matrix[i][i] = jnp.where(products[i, i] > 0, products[i, i] * (1 + damping) + 1e-12, 1.0)
        move = jnp.stack(_solve(matrix, [right[i] for i in range(K)]))
        trial = constants - jnp.where(jnp.isfinite(move), move, 0.0)
        trial_loss, trial_products, trial_right = normal(trial)
        better = trial_loss < loss
        return (
            jnp.where(better, trial, constants),
            jnp.where(better, trial_loss, loss),
            jnp.where(better, trial_products, products),
            jnp.where(better, trial_right, right),
            jnp.where(better, damping * 0.1, damping * 10.0),
        )

    start = jnp.ones((K, T, B), X.dtype)
    carry = (start, *normal(start), jnp.full((T, B), 1e-2, X.dtype))
    return jax.lax.fori_loop(0, config.fit_steps, step, carry)[0]


def rewards_of(tokens: Any, tree: Links, constants: Any, X: Any, y: Any, library: Library) -> tuple[Any, Any]:
    """Reward 1 / (1 + NRMSE) and MAE, each [T, B]; 0 and inf where an expression is not finite."""
    error = evaluate(tokens, tree, constants, X, library, slopes=False) - y[:, None, :]
    nrmse = jnp.sqrt(jnp.mean(error**2, axis=-1)) / jnp.std(y, axis=-1)[:, None]
    mae = jnp.mean(jnp.abs(error), axis=-1)
    sound = jnp.isfinite(nrmse)
    return jnp.where(sound, 1 / (1 + nrmse), 0.0), jnp.where(sound, mae, jnp.inf)
