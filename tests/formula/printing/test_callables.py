"""Functions over NumPy, JAX and PyTorch compute the value."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from exported_formulas import assert_agrees
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable
from random_trees import NAMES, call, expressions, rows

x1, x2, x3 = (Variable(i) for i in range(3))


@settings(max_examples=12)
@given(expressions())
def test_jax_computes_the_value(expression: Expression) -> None:
    import jax

    X = rows()
    formula = expression.export("jax")
    with jax.enable_x64(True):
        values = np.asarray(formula(X))
    assert values.dtype == np.float64
    assert_agrees(expression, values, X)
    single = np.asarray(formula(X.astype(np.float32)))
    assert single.dtype == np.float32
    same = np.all(X.astype(np.float32) == X, axis=1)
    Xs = X.astype(np.float32).astype(float)
    assert same.sum() < len(X)
    assert_agrees(expression, single, Xs, rtol=1e-5, precision=np.float32)


def test_jax_has_gradients() -> None:
    import jax

    expression = Expression(call("mul", call("pow", x1, 2.0), call("sin", x2)))
    gradient = jax.grad(lambda row: expression.export("jax")(row))(np.array([-1.5, 0.5], np.float32))
    expected = [expression.diff(i)(np.array([[-1.5, 0.5]]))[0] for i in range(2)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


@given(expressions())
def test_numpy_callable_computes_the_value(expression: Expression) -> None:
    np.testing.assert_array_equal(expression.export("numpy")(rows()), expression(rows()))


def test_torch_computes_the_value() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    check_torch(torch)


def test_torch_export_over_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path through the export, over a module that answers with NumPy as PyTorch would."""

    class Tensor(np.ndarray):
        device = "cpu"

        def is_floating_point(self) -> bool:
            return bool(np.issubdtype(self.dtype, np.floating))

        def to(self, dtype: Any) -> Any:
            return self.astype(dtype)

    stand_in = types.ModuleType("torch")
    words = "sin cos sqrt exp log tanh arcsin arccos arctan abs sign where clip ones_like broadcast_to float64".split()
    for word in words:
        setattr(stand_in, word, getattr(np, word))
    stand_in.as_tensor = lambda data, dtype=None, device=None: np.asarray(data, dtype).view(Tensor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    check_torch(stand_in)


def check_torch(torch: Any) -> None:
    X = np.abs(rows())
    for root in (
        call("add", call("mul", 0.5, call("pow", x1, 3.0)), call("sqrt", call("sub", x2, 9.0), protected=True)),
        call("div", call("log", x1, protected=True), call("sin", x3), protected=True),
        call("mul", call("asin", x1, protected=True), call("exp", call("tanh", x2))),
        Constant(2.0),
    ):
        expression = Expression(root, NAMES)
        with np.errstate(all="ignore"):
            values = np.asarray(expression.export("torch")(torch.as_tensor(X)))
        np.testing.assert_allclose(values, expression(X), rtol=1e-12)
    assert np.asarray(Expression(x1, NAMES).export("torch")(torch.as_tensor([[1, 2, 3]]))).dtype == np.float64


def test_torch_missing_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        Expression(x1).export("torch")
