"""The relaxed GMEQL network in JAX: forward pass, hard pass and mean absolute error.

Section 3 of the paper. Everything is written for one network; callers batch over instances and seeds with `vmap`.

Shapes: C connections, M the most choices of a connection, W weights (one per connection, then one per dense input),
N rows, V variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture

Array = Any


def forward(architecture: Architecture, selections: Array, weights: Array, columns: Array) -> Array:
    """Outputs of one network: selections [C, M], weights [W], columns [V, N] -> [n_outputs, N].

    The input of a connection is I = w ([O_1 ... O_M] · V), where O are the outputs of the layer below (section 3). The
    weight is folded into the selection first, so that a layer's inputs, those of its Σ nodes included, are one matrix
    product and the gradient of the weights needs no pass over the rows.
    """
    ones = jnp.ones_like(columns[:1])
    outputs = jnp.concatenate([columns, *(constant * ones for constant in architecture.constants)])
    coefficients = selections * weights[: architecture.n_connections, None]
    for layer in architecture.layer_slices[1:]:
        below = outputs if architecture.skip else outputs[-_width_below(architecture, layer) :]
        nodes = _layer(architecture, layer, coefficients, weights, below)
        outputs = jnp.concatenate([outputs, nodes]) if architecture.skip else nodes
    return outputs[-architecture.n_outputs :]


def mean_absolute_error(
    architecture: Architecture, selections: Array, weights: Array, columns: Array, targets: Array
) -> Array:
    """MAE of one network (equation 1), targets [n_outputs, N]; several outputs count alike."""
    return jnp.mean(jnp.abs(targets - forward(architecture, selections, weights, columns)))


def hard_selections(architecture: Architecture, choices: Array, dtype: Any) -> Array:
    """One-hot selections of a hard structure: choices [C] -> [C, M]."""
    return jax.nn.one_hot(choices, architecture.max_choices, dtype=dtype)


def choices_of(architecture: Architecture, log_selections: Array) -> Array:
    """The hard structure of an instance: the choice with the largest share, [..., C, M] -> int32 [..., C]."""
    real = jnp.where(architecture.choice_mask, log_selections, -jnp.inf)
    return jnp.argmax(real, axis=-1).astype(jnp.int32)


def _width_below(architecture: Architecture, layer: slice) -> int:
    slices = architecture.layer_slices
    below = slices[slices.index(layer) - 1]
    return int(below.stop - below.start)


def _layer(architecture: Architecture, layer: slice, coefficients: Array, weights: Array, below: Array) -> Array:
    """Outputs of one layer's nodes from the outputs they may choose from, [nodes, N]."""
    numbers = range(layer.start, layer.stop)
    operators = [get_operator(architecture.node_operator[node]) for node in numbers]
    dense_width = _width_below(architecture, layer)
    rows, owners = [], []
    for node, operator in zip(numbers, operators, strict=True):
        if operator.name == "sum":
            weight_ids = architecture.dense_of(node)[1]
            reach = jnp.zeros((1, below.shape[0] - dense_width), below.dtype)
            rows.append(jnp.concatenate([reach, weights[None, weight_ids[0] : weight_ids[-1] + 1]], axis=1))
            owners.append(node)
        elif not operator.is_dense:
            ids = architecture.connections_of(node)
            rows.append(coefficients[ids[0] : ids[-1] + 1, : below.shape[0]])
            owners += [node] * len(ids)
    inputs = _unstack(_select(jnp.concatenate(rows), below)) if rows else ()
    nodes = []
    for node, operator in zip(numbers, operators, strict=True):
        if operator.name == "prod":
            weight_ids = architecture.dense_of(node)[1]
            exponents = weights[weight_ids[0] : weight_ids[-1] + 1]
            nodes.append(_power_product(below[-dense_width:], exponents))
            continue
        mine = [row for row, owner in zip(inputs, owners, strict=True) if owner == node]
        nodes.append(operator.protected(jnp, *mine) if operator.name != "sum" else mine[0])
    return _stack(nodes)


def _power_product(below: Array, exponents: Array) -> Array:
    """The dense Π node: product of the layer below, each to its own exponent, through the protected power."""
    power, multiply = get_operator("pow"), get_operator("mul")
    factors = power.protected(jnp, below, exponents[:, None] * jnp.ones_like(below))
    result = factors[0]
    for factor in factors[1:]:
        result = multiply.protected(jnp, result, factor)
    return result


def _select(coefficients: Array, below: Array) -> Array:
    """Inputs of a layer: [inputs, choices] x [choices, N]. Full precision also where tensor cores would round."""
    return jnp.einsum("cl,ln->cn", coefficients, below, precision=jax.lax.Precision.HIGHEST)


def _stack(rows: Sequence[Array]) -> Array:
    """`jnp.stack` on the first axis, in a form that stays free of transposes under `vmap`."""
    return jnp.concatenate([row[None] for row in rows])


def _unstack(stacked: Array) -> tuple[Array, ...]:
    """The rows of an array, by `split`, whose gradient is a concatenation.

    The gradient of indexing row by row pads every row's gradient to the whole array and adds them up; on a CPU that took
    half the time of a training step.
    """
    return tuple(row[0] for row in jax.lax.split(stacked, (1,) * stacked.shape[0], axis=0))
