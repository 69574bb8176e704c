"""EQL: the equation learner network (Martius & Lampert 2016; Sahoo et al. 2018; Kim et al. 2020).

Each hidden layer multiplies its input by a weight matrix and feeds the sums to elementary functions; the output is a
weighted sum of the last layer. Weights are driven to zero by the smoothed L0.5 norm, small ones are cut, the rest are
tuned without the norm, and what is left is read off as an expression.

Numbers follow Kim et al. and the code published with it: two hidden layers, RMSProp, 2,000 steps at ten times the
rate, 10,000 steps at the rate, pruning below 0.01, 10,000 steps at a tenth of the rate without the norm. Where we leave
it: every column of X is divided by its largest magnitude and y by its standard deviation (Kim's data live on [-1, 1]),
which the expression undoes; a run whose loss stops being finite starts again from new weights inside the same budget
(theirs starts the whole run again); division units follow Sahoo et al., with the denominator's threshold falling as
1/sqrt(step + 1) and a penalty on denominators below it.

Shapes: T tasks (one network each), N rows, V columns, U units of a layer, S sums of a layer (a binary unit takes two).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.evaluation.baselines import Budget, Curve, Result, Task
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.operators import get_operator

KIM_UNITS = (("one", 2), ("id", 4), ("square", 4), ("sin", 2), ("exp", 2), ("sigmoid", 2), ("mul", 2))
"""The units of a hidden layer in Kim et al.'s benchmark."""

PAPER_UNITS = (
    ("one", 2),
    ("id", 4),
    ("square", 4),
    ("cube", 2),
    ("sin", 2),
    ("cos", 2),
    ("sqrt", 2),
    ("mul", 2),
    ("div", 2),
)
"""Units over the GMEQL paper's elementary functions: with two layers every truth b1-b8 can be written."""


@dataclass(frozen=True)
class _Unit:
    """function(scale * sum) * gain, as Kim et al. scale theirs so that weights of order 0.1 matter."""

    arity: int = 1
    scale: float = 1.0
    gain: float = 1.0


_UNITS = {
    "one": _Unit(),
    "id": _Unit(),
    "square": _Unit(),
    "cube": _Unit(),
    "sin": _Unit(scale=4 * math.pi),
    "cos": _Unit(scale=4 * math.pi),
    "sqrt": _Unit(),
    "exp": _Unit(gain=1 / math.e),  # (exp(x) - 1) / e
    "sigmoid": _Unit(scale=20.0),
    "mul": _Unit(arity=2, gain=10.0),
    "div": _Unit(arity=2),
}


@dataclass(frozen=True)
class EQLConfig:
    """Numbers of the method; sources in brackets."""

    units: tuple[tuple[str, int], ...] = PAPER_UNITS
    hidden_layers: int = 2  # [Kim: L = 2]
    learning_rate: float = 1e-2  # [Kim's code]
    warmup_share: float = 2000 / 22000  # [Kim's code: 2,000 steps at 10 x the rate]
    main_share: float = 10000 / 22000  # [Kim's code: 10,000 steps at the rate]
    regularisation: float = 5e-3  # [Kim's code]
    smoothing: float = 0.05  # [Kim's code: below it the L0.5 norm is a polynomial]
    prune_below: float = 0.01  # [Kim's code]
    init_first: float = 0.1  # [Kim's code: std of the first, middle and last weights]
    init_middle: float = 0.5
    init_last: float = 1.0
    decay: float = 0.9  # RMSProp, TensorFlow's defaults
    epsilon: float = 1e-10
    division_penalty: float = 1.0  # [Sahoo et al., eq. 5: added with weight one]
    gradient_limit: float = 1e3  # guards one wild step; no effect on healthy runs
    curve_points: int = 100

    def __post_init__(self) -> None:
        unknown = [name for name, _ in self.units if name not in _UNITS]
        if unknown or not self.units:
            raise ValueError(f"units must name some of {', '.join(_UNITS)}, got {[name for name, _ in self.units]}")
        if self.hidden_layers < 1:
            raise ValueError(f"hidden_layers must be at least 1, got {self.hidden_layers}")
        if not 0 <= self.warmup_share + self.main_share <= 1:
            raise ValueError("warmup_share and main_share must add up to at most 1; the rest is the tuning phase")

    @property
    def flat_units(self) -> tuple[str, ...]:
        """Every unit of a layer by name."""
        return tuple(name for name, count in self.units for _ in range(count))


PAPER_STEPS = 22_000
"""Training steps of one run in Kim et al.'s code."""


def smoothed_l05(weights: Any, smoothing: float) -> Any:
    """Sum of sqrt(|w|), with |w| replaced below `smoothing` a by -w^4/(8 a^3) + 3 w^2/(4 a) + 3 a/8 (Kim, eq. 4)."""
    import jax.numpy as jnp

    size = jnp.abs(weights)
    inner = jnp.minimum(size, smoothing)
    smooth = -(inner**4) / (8 * smoothing**3) + 3 * inner**2 / (4 * smoothing) + 3 * smoothing / 8
    return jnp.sum(jnp.sqrt(jnp.where(size < smoothing, smooth, jnp.maximum(size, smoothing))))


def _layer(sums: Any, units: tuple[str, ...], threshold: Any) -> tuple[Any, Any]:
    """Unit outputs [N, U] of the sums [N, S], and the division penalty."""
    import jax
    import jax.numpy as jnp

    outputs, penalty, column = [], 0.0, 0
    for name in units:
        unit = _UNITS[name]
        a = sums[:, column] * unit.scale
        b = sums[:, column + 1] if unit.arity == 2 else a
        column += unit.arity
        if name == "one":
            out = jnp.ones_like(a)
        elif name == "id":
            out = a
        elif name == "square":
            out = a**2
        elif name == "cube":
            out = a**3
        elif name == "sin":
            out = jnp.sin(a)
        elif name == "cos":
            out = jnp.cos(a)
        elif name == "sqrt":  # sqrt(|a|), flat below 1e-4: the slope stays finite
            out = jnp.sqrt(jnp.maximum(jnp.abs(a), 1e-4))
        elif name == "exp":
            out = jnp.expm1(jnp.minimum(a, 30.0))
        elif name == "sigmoid":
            out = jax.nn.sigmoid(a)
        elif name == "mul":
            out = a * b
        else:  # Sahoo et al., eq. 4 and 5: a/b above the threshold, else 0, and a penalty for small denominators
            divides = b > threshold
            out = jnp.where(divides, a / jnp.where(divides, b, 1.0), 0.0)
            penalty = penalty + jnp.mean(jnp.maximum(threshold - b, 0.0))
        outputs.append(out * unit.gain)
    return jnp.stack(outputs, axis=1), penalty


def _network(weights: list[Any], X: Any, units: tuple[str, ...], threshold: Any) -> tuple[Any, Any]:
    """Prediction [N] of one network and its division penalty."""
    hidden, penalty = X, 0.0
    for matrix in weights[:-1]:
        hidden, more = _layer(hidden @ matrix, units, threshold)
        penalty = penalty + more
    return (hidden @ weights[-1])[:, 0], penalty


def _chunk(config: EQLConfig) -> Any:
    """Compiled: some training steps of T networks. Phase numbers are arguments, so one compilation serves all."""
    return _compiled_chunk(
        dataclasses.replace(  # these are used on the host alone
            config,
            learning_rate=0.0,
            regularisation=0.0,
            prune_below=0.0,
            init_first=0.0,
            init_middle=0.0,
            init_last=0.0,
        )
    )


@functools.cache
def _compiled_chunk(config: EQLConfig) -> Any:
    import jax
    import jax.numpy as jnp

    units = config.flat_units

    def loss(weights: list[Any], X: Any, y: Any, masks: list[Any], strength: Any, threshold: Any) -> Any:
        masked = [w * m for w, m in zip(weights, masks, strict=True)]
        prediction, penalty = _network(masked, X, units, threshold)
        norm = sum(smoothed_l05(w, config.smoothing) for w in weights)
        mse = jnp.mean((prediction - y) ** 2)
        return mse + strength * norm + config.division_penalty * penalty

    def step(carry: Any, _: Any, X: Any, y: Any, masks: Any, rate: Any, strength: Any, fresh: Any) -> Any:
        weights, squares, number, restarts = carry
        threshold = 1.0 / jnp.sqrt(number + 1.0)
        value, gradient = jax.value_and_grad(loss)(weights, X, y, masks, strength, threshold)
        sound = jnp.isfinite(value)
        for g in gradient:
            sound &= jnp.isfinite(g).all()
        limit = config.gradient_limit
        gradient = [jnp.clip(jnp.nan_to_num(g), -limit, limit) for g in gradient]
        squares = [config.decay * s + (1 - config.decay) * g**2 for s, g in zip(squares, gradient, strict=True)]
        moves = [rate * g / jnp.sqrt(s + config.epsilon) for s, g in zip(squares, gradient, strict=True)]
        moved = [w - move for w, move in zip(weights, moves, strict=True)]
        roll = restarts % 7 + 1  # other weights than the first ones, without a random draw inside the loop
        weights = [jnp.where(sound, w, jnp.roll(f, roll)) for w, f in zip(moved, fresh, strict=True)]
        squares = [jnp.where(sound, s, jnp.ones_like(s)) for s in squares]
        return (weights, squares, number + 1, restarts + ~sound), None

    @functools.partial(jax.jit, static_argnames="steps")
    def chunk(state: Any, X: Any, y: Any, masks: Any, fresh: Any, rate: Any, strength: Any, *, steps: int) -> Any:
        def one(state: Any, X: Any, y: Any, masks: Any, fresh: Any) -> Any:
            body = functools.partial(step, X=X, y=y, masks=masks, rate=rate, strength=strength, fresh=fresh)
            state, _ = jax.lax.scan(body, state, None, length=steps)
            masked = [w * m for w, m in zip(state[0], masks, strict=True)]
            prediction, _ = _network(masked, X, units, 1.0 / jnp.sqrt(state[2] + 1.0))
            return state, jnp.mean(jnp.abs(prediction - y))

        return jax.vmap(one)(state, X, y, masks, fresh)

    return chunk


def _initial_weights(config: EQLConfig, columns: int, seeds: Sequence[int]) -> list[np.ndarray]:
    """Truncated normal weights (redrawn beyond two standard deviations), one set per seed, drawn on the host."""
    units = config.flat_units
    sums = sum(_UNITS[name].arity for name in units)
    shapes = [(columns, sums)] + [(len(units), sums)] * (config.hidden_layers - 1) + [(len(units), 1)]
    deviations = [config.init_first] + [config.init_middle] * (config.hidden_layers - 1) + [config.init_last]
    from scipy.stats import truncnorm

    networks = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 20])
        networks.append(
            [
                truncnorm.rvs(-2, 2, size=shape, random_state=rng) * d
                for shape, d in zip(shapes, deviations, strict=True)
            ]
        )
    return [np.stack(layer).astype(np.float32) for layer in zip(*networks, strict=True)]


def fit(tasks: Sequence[Task], budget: Budget, config: EQLConfig | None = None) -> list[Result]:
    """Train one network per task, all side by side. `budget.candidates` counts training steps."""
    import jax.numpy as jnp

    config = config or EQLConfig()
    started = time.perf_counter()
    rows = {len(task.y) for task in tasks}
    if len(rows) != 1:
        raise ValueError(f"the tasks of one EQL call need equally many rows, got {sorted(rows)}; call once per size")
    columns = max(task.X.shape[1] for task in tasks)
    x_scales = np.ones((len(tasks), columns))
    y_scales = np.array([np.std(task.y) or 1.0 for task in tasks])
    X = np.zeros((len(tasks), rows.pop(), columns), np.float32)  # missing columns stay zero and are masked below
    for t, task in enumerate(tasks):
        width = task.X.shape[1]
        x_scales[t, :width] = np.maximum(np.abs(task.X).max(axis=0), 1e-12)
        X[t, :, :width] = task.X / x_scales[t, :width]
    y = np.stack([task.y for task in tasks]) / y_scales[:, None]

    fresh = _initial_weights(config, columns, [task.seed for task in tasks])
    masks = [np.ones_like(w) for w in fresh]
    for t, task in enumerate(tasks):
        masks[0][t, task.X.shape[1] :] = 0.0
    warmup = round(config.warmup_share * budget.candidates)
    main = round(config.main_share * budget.candidates)
    phases = [  # steps, rate, regularisation
        (warmup, 10 * config.learning_rate, config.regularisation),
        (main, config.learning_rate, config.regularisation),
        (budget.candidates - warmup - main, config.learning_rate / 10, 0.0),
    ]
    chunk = _chunk(config)
    data = jnp.asarray(X), jnp.asarray(y, jnp.float32)
    start = [jnp.asarray(w * m) for w, m in zip(fresh, masks, strict=True)]
    state = (start, [jnp.ones_like(w) for w in start], jnp.zeros(len(tasks)), jnp.zeros(len(tasks), jnp.int32))
    device_masks, device_fresh = [jnp.asarray(m) for m in masks], start
    size = max(1, budget.candidates // config.curve_points)
    done, points = 0, []
    for number, (steps, rate, strength) in enumerate(phases):
        if number == 2:  # cut small weights, then tune the others without the norm
            masks = [m * (np.abs(np.asarray(w)) > config.prune_below) for m, w in zip(masks, state[0], strict=True)]
            device_masks = [jnp.asarray(m, jnp.float32) for m in masks]
            state = (state[0], [jnp.ones_like(w) for w in state[0]], *state[2:])
        left = steps
        while left > 0 and time.perf_counter() - started < budget.seconds:
            count = min(size, left)
            state, mae = chunk(state, *data, device_masks, device_fresh, rate, strength, steps=count)
            left, done = left - count, done + count
            points.append((done, time.perf_counter() - started, np.asarray(mae, float) * y_scales))
    weights = [np.asarray(w, float) * m for w, m in zip(state[0], masks, strict=True)]
    seconds = (time.perf_counter() - started) / len(tasks)
    results = []
    for t, task in enumerate(tasks):
        expression = read_off([w[t] for w in weights], task.names or (), x_scales[t], y_scales[t], config)
        curve = Curve(
            tuple(p[0] for p in points),
            tuple(p[1] / len(tasks) for p in points),
            tuple(float(p[2][t]) if np.isfinite(p[2][t]) else math.inf for p in points),
        )
        results.append(Result("eql", task.seed, expression, curve, seconds, done, dataclasses.asdict(config)))
    return results


# --- from weights to an expression ------------------------------------------------------------------------------


def _scaled(factor: float, node: Any) -> Any:
    if isinstance(node, Constant):
        return Constant(factor * node.value)
    if factor == 1.0:
        return node
    if isinstance(node, Call) and node.operator == "mul" and isinstance(node.args[0], Constant):
        return Call("mul", (Constant(factor * node.args[0].value), *node.args[1:]))
    if isinstance(node, Call) and node.operator == "add":  # a factor of a sum goes to its terms: no constant twice
        return Call("add", tuple(_scaled(factor, term) for term in node.args))
    return Call("mul", (Constant(factor), node))


def _sum(terms: list[Any]) -> Any:
    """Sum of nodes; constants are gathered into one term."""
    flat: list[Any] = []
    for term in terms:
        flat.extend(term.args if isinstance(term, Call) and term.operator == "add" else (term,))
    total = sum(term.value for term in flat if isinstance(term, Constant))
    others = [term for term in flat if not isinstance(term, Constant)]
    merged: dict[Any, float] = {}
    for term in others:  # equal terms (two identity units that carry the same variable) become one
        factor, body = _split(term)
        merged[body] = merged.get(body, 0.0) + factor
    nodes = [_scaled(factor, body) for body, factor in merged.items() if factor != 0.0]
    if total != 0.0 or not nodes:
        nodes.append(Constant(float(total)))
    return nodes[0] if len(nodes) == 1 else Call("add", tuple(nodes))


def _split(node: Any) -> tuple[float, Any]:
    """A product's constant factor and the rest."""
    if isinstance(node, Call) and node.operator == "mul" and isinstance(node.args[0], Constant):
        return node.args[0].value, node.args[1] if len(node.args) == 2 else Call("mul", node.args[1:])
    return 1.0, node


def _unit_node(name: str, a: Any, b: Any) -> Any:
    """One unit of its input sums. Factors move out of powers and products, so that no constant stands there twice."""
    unit = _UNITS[name]
    a = _scaled(unit.scale, a)
    if name == "one":
        return Constant(1.0)
    if name == "id":
        return a
    if isinstance(a, Constant) and (unit.arity == 1 or isinstance(b, Constant)):
        return _constant_unit(name, a.value, b.value)
    if name == "exp":
        return _sum([_scaled(unit.gain, Call("exp", (a,))), Constant(-unit.gain)])
    if name == "sigmoid":  # 1 / (1 + exp(-a))
        return Call("div", (Constant(1.0), _sum([Call("exp", (_scaled(-1.0, a),)), Constant(1.0)])))
    factor_a, rest_a = _split(a)
    factor_b, rest_b = _split(b)
    if name in ("square", "cube"):
        return _scaled(factor_a ** (2 if name == "square" else 3), Call(name, (rest_a,)))
    if name == "mul":
        if isinstance(a, Constant) or isinstance(b, Constant):
            a, b = (a, b) if isinstance(a, Constant) else (b, a)
            return _scaled(unit.gain * a.value, b)
        body = Call("square", (rest_a,)) if rest_a == rest_b else Call("mul", (rest_a, rest_b))
        return _scaled(unit.gain * factor_a * factor_b, body)
    if name == "div":
        if isinstance(b, Constant):
            return _scaled(1.0 / b.value if b.value else 0.0, a)
        if isinstance(a, Constant):
            return _scaled(a.value / factor_b, Call("div", (Constant(1.0), rest_b))) if a.value else Constant(0.0)
        return _scaled(factor_a / factor_b, Call("div", (rest_a, rest_b)))
    if name == "sqrt":
        return _scaled(math.sqrt(abs(factor_a)), Call("sqrt", (rest_a,), protected=True))
    return Call(name, (a,))


def _constant_unit(name: str, a: float, b: float) -> Constant:
    """A unit whose inputs are all constant; what is not finite (0/0 in a dead division unit) counts as 0."""
    operator = {"exp": "exp", "sigmoid": "exp"}.get(name, name)
    args = (-a,) if name == "sigmoid" else (a, b)[: _UNITS[name].arity]
    with np.errstate(all="ignore"):
        value = float(get_operator(operator).protected(np, *(np.float64(v) for v in args)))
    if name == "exp":
        value -= 1.0
    if name == "sigmoid":
        value = 1.0 / (1.0 + value)
    if name == "div" and b <= 0:
        value = 0.0
    return Constant(value * _UNITS[name].gain if math.isfinite(value) else 0.0)


def read_off(
    weights: list[np.ndarray], names: tuple[str, ...], x_scales: np.ndarray, y_scale: float, config: EQLConfig
) -> Expression:
    """The expression that one trained network computes, in the units of the data; zero weights leave no trace."""
    units = config.flat_units
    nodes: list[Any] = [_scaled(1.0 / float(x_scales[i]), Variable(i)) for i in range(len(names))]
    for matrix in weights[:-1]:
        column, outputs = 0, []
        for name in units:
            pair = []
            for _ in range(_UNITS[name].arity):
                column_weights = matrix[: len(nodes), column]
                pair.append(_sum([_scaled(float(w), n) for w, n in zip(column_weights, nodes, strict=True) if w != 0]))
                column += 1
            outputs.append(_unit_node(name, pair[0], pair[-1]))
        nodes = outputs
    last = weights[-1][:, 0] * y_scale
    return Expression(_sum([_scaled(float(w), n) for w, n in zip(last, nodes, strict=True) if w != 0]), tuple(names))
