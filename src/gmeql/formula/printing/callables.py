"""A formula as a function of a table, over NumPy, JAX or PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gmeql.formula.nodes import evaluate, row_values
from gmeql.formula.printing.markup import to_text
from gmeql.formula.printing.notation import Formula


def to_numpy(expression: Formula) -> Callable[[Any], np.ndarray]:
    """A function of X [N, V] -> [N] over NumPy, float64."""

    def formula(X: Any) -> np.ndarray:
        return row_values(expression.root, expression.names, X)

    formula.__doc__ = to_text(expression)
    return formula


def to_jax(expression: Formula) -> Callable[[Any], Any]:
    """A compiled, differentiable function of X [..., V] -> [...] over JAX, in the precision of X."""
    import jax
    import jax.numpy as jnp

    def formula(X: Any) -> Any:
        X = jnp.asarray(X)
        X = X if jnp.issubdtype(X.dtype, jnp.floating) else X.astype(float)
        value = evaluate(expression.root, lambda i: X[..., i], lambda v: jnp.asarray(v, dtype=X.dtype), jnp)
        return jnp.broadcast_to(value, X.shape[:-1])

    formula.__doc__ = to_text(expression)
    compiled: Callable[[Any], Any] = jax.jit(formula)
    return compiled


def to_torch(expression: Formula) -> Callable[[Any], Any]:
    """A differentiable function of X [..., V] -> [...] over PyTorch, in the precision and on the device of X."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("export('torch') needs PyTorch: pip install torch") from error

    def formula(X: Any) -> Any:
        X = torch.as_tensor(X)
        X = X if X.is_floating_point() else X.to(torch.float64)
        constant = lambda v: torch.as_tensor(v, dtype=X.dtype, device=X.device)  # noqa: E731
        value = evaluate(expression.root, lambda i: X[..., i], constant, torch)
        return torch.broadcast_to(value, X.shape[:-1])

    formula.__doc__ = to_text(expression)
    return formula
