"""DSR: deep symbolic regression by risk-seeking policy gradients (Petersen et al., ICLR 2021).

A recurrent policy writes an expression token by token in prefix order, seeing the parent and the sibling of the token
it writes next. Constraints act while it writes: lengths, no trigonometric function inside another, no function of its
own inverse, no power of a power, not only constants below a function, few constants. Constants are fitted for every
expression; the reward is 1 / (1 + NRMSE); the policy follows the gradient of the best five percent of each batch with
an entropy bonus.

Numbers are those of the paper and its published configuration (LSTM of 32 units started at zero, batches of 1,000,
Adam at 5e-4, risk factor 0.05, lengths 4 to 30, and the priors on arity and length and the fading entropy bonus that
the authors added later: they solve Nguyen-1 from a third of the samples). Where we leave it: up to six constants, not
three, because with three the problems b2, b3, b4 and b7 cannot be written; constants by Levenberg-Marquardt instead
of L-BFGS; on a device they are fitted in single precision on at most `fit_rows` rows, and the reward is then taken
over all rows. The best expression is refitted in double precision.

`DSRConfig.constants` says who fits: `"device"` (JAX, everything in one batch, any accelerator) or `"cpu"` (the
library's compiled fitter, each different expression once); `"auto"` takes the device path on accelerators and for
small tables.

Shapes: T tasks, B expressions of a batch, L tokens, N rows, K constants, Q tokens in the library.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gmeql.evaluation.baselines import Budget, Curve, Result, Task, mean_absolute_error, refit
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.operators import WHOLE_POWERS, get_operator

PAPER_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "sqrt", "square", "cube", "pow4", "pow5", "pow6")
"""The GMEQL paper's elementary functions: every truth b1-b8 fits into 30 tokens."""
NGUYEN_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log")
"""The function set of the Nguyen benchmarks in Petersen et al."""
PAPER_SAMPLES = 2_000_000
"""Expressions of one run in the published configuration."""

_TRIGONOMETRIC = ("sin", "cos")
_INVERSE = {"exp": "log", "log": "exp", "sqrt": "square", "square": "sqrt"}


@dataclass(frozen=True)
class DSRConfig:
    """Numbers of the method; sources in brackets."""

    functions: tuple[str, ...] = PAPER_FUNCTIONS
    use_constants: bool = True
    batch_size: int = 1000  # [paper, Table 4]
    risk: float = 0.05  # [paper: epsilon]
    learning_rate: float = 5e-4  # [paper]
    entropy_weight: float = 0.03  # [published configuration; paper: 0.005 without decay]
    entropy_decay: float = 0.7  # [published configuration, Landajuela et al. 2021: the bonus fades along the text]
    uniform_arity: bool = True  # [published configuration: prior that levels the number of tokens per arity]
    soft_length: tuple[float, float] | None = (10.0, 5.0)  # [published configuration: preferred length and its spread]
    hidden_units: int = 32  # [published configuration: LSTM, one layer, zeros]
    min_length: int = 4  # [paper]
    max_length: int = 30  # [paper]
    max_constants: int = 6  # [published configuration: 3; see above]
    fit_steps: int = 8  # Levenberg-Marquardt steps of an expression
    fit_rows: int = 100  # rows that fit the constants on a device
    constants: str = "auto"
    stop_below: float = 1e-10  # relative RMSE, after the refit in double precision, that ends a run
    check_every: int = 10  # batches between looks at the clock and points of the curve

    def __post_init__(self) -> None:
        for name in self.functions:
            if get_operator(name).arity not in (1, 2):
                raise ValueError(f"functions must take one or two arguments, {name!r} does not")
        if not any(get_operator(name).arity == 2 for name in self.functions):
            raise ValueError("functions must hold at least one of two arguments, such as 'add'")
        if not 1 <= self.min_length <= self.max_length:
            raise ValueError(f"need 1 <= min_length <= max_length, got {self.min_length} and {self.max_length}")
        if not 0 < self.risk <= 1:
            raise ValueError(f"risk must lie in (0, 1], got {self.risk}")
        if self.constants not in ("auto", "device", "cpu"):
            raise ValueError(f"constants must be 'auto', 'device' or 'cpu', got {self.constants!r}")


class _Library(NamedTuple):
    """Token numbers: functions, then variables, then the constant; `empty` stands for no parent or no sibling."""

    names: tuple[str, ...]
    arity: tuple[int, ...]
    variables: int

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def empty(self) -> int:
        return len(self.names)

    @property
    def constant(self) -> int:
        return self.names.index("const") if "const" in self.names else -1

    @property
    def first_variable(self) -> int:
        return self.names.index("x0")


def _library(config: DSRConfig, variables: int) -> _Library:
    functions = tuple(get_operator(name).name for name in config.functions)
    names = functions + tuple(f"x{v}" for v in range(variables)) + (("const",) if config.use_constants else ())
    arity = tuple(get_operator(name).arity for name in functions) + (0,) * (len(names) - len(functions))
    return _Library(names, arity, variables)


# --- the policy --------------------------------------------------------------------------------------------------


def initial_policy(config: DSRConfig, library: _Library, seed: int) -> dict[str, np.ndarray]:
    """LSTM weights zero, output weights Glorot: the first batch is uniform over what the constraints allow."""
    rng = np.random.default_rng([seed, 30])
    inputs, hidden, size = 2 * (library.size + 1), config.hidden_units, library.size
    limit = math.sqrt(6 / (hidden + size))
    return {
        "kernel": np.zeros((inputs + hidden, 4 * hidden), np.float32),
        "bias": np.zeros(4 * hidden, np.float32),
        "output": rng.uniform(-limit, limit, (hidden, size)).astype(np.float32),
        "output_bias": np.zeros(size, np.float32),
    }


def _cell(policy: Any, state: Any, parent: Any, sibling: Any, size: int) -> Any:
    """One LSTM step (forget bias 1) and the logits of the next token."""
    import jax
    import jax.numpy as jnp

    c, h = state
    x = jnp.concatenate([jax.nn.one_hot(parent, size + 1), jax.nn.one_hot(sibling, size + 1), h], axis=-1)
    i, g, f, o = jnp.split(x @ policy["kernel"] + policy["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (c, h), h @ policy["output"] + policy["output_bias"]


def prior(config: DSRConfig, library: _Library) -> np.ndarray:
    """Logits [L, Q] added to the policy's: level the arities, and favour lengths around `soft_length`."""
    arity = np.array(library.arity)
    table = np.zeros((config.max_length, library.size), np.float32)
    if config.uniform_arity:
        table -= np.log([np.sum(arity == a) for a in arity])
    if config.soft_length is not None:
        location, scale = config.soft_length
        t = np.arange(config.max_length)
        bend = -((t - location) ** 2) / (2 * scale**2)
        table[:, arity == 0] += np.where(t < location, bend, 0.0)[:, None]
        table[:, arity == 2] += np.where(t > location, bend, 0.0)[:, None]
    return table


class Batch(NamedTuple):
    """Sampled expressions and what the policy saw; leading axis L, then B. `tokens` is `empty` after the end."""

    tokens: Any
    parents: Any
    siblings: Any
    allowed: Any


def sample(policy: Any, key: Any, usable: Any, config: DSRConfig, library: _Library) -> Batch:
    """Draw a batch of expressions from one policy under the constraints. `usable` [Q] switches tokens off."""
    import jax
    import jax.numpy as jnp

    B, L, Q, empty = config.batch_size, config.max_length, library.size, library.empty
    arity = jnp.array(library.arity)
    terminal = arity == 0
    trigonometric = jnp.array([name in _TRIGONOMETRIC for name in library.names] + [False])
    pointless = jnp.array(
        [
            [
                _INVERSE.get(parent) == child or (parent in WHOLE_POWERS and child in WHOLE_POWERS)
                for child in library.names
            ]
            for parent in (*library.names, "")
        ]
    )
    unary = jnp.array([a == 1 for a in library.arity] + [False])
    tokens_range = jnp.arange(Q)
    is_constant = tokens_range == library.constant
    depth = L // 2 + 1  # of the stack of second children still to write
    levels = jnp.arange(depth)
    gumbel = jax.random.gumbel(key, (L, B, Q))

    def step(carry: Any, inputs: Any) -> Any:
        state, stack_parent, stack_sibling, stack_trig, height, parent, sibling, trig, first, constants, alive = carry
        noise, t, bend = inputs
        allowed = jnp.broadcast_to(usable, (B, Q))
        allowed &= (t + 1 + height)[:, None] + arity <= L
        allowed &= ~(terminal & ((height == 0) & (t + 1 < config.min_length))[:, None])
        allowed &= ~(trigonometric[:Q] & trig[:, None])
        allowed &= ~pointless[parent]
        only_constants = unary[parent] | (sibling == library.constant)
        allowed &= ~(is_constant & (only_constants | (constants >= config.max_constants))[:, None])
        state, logits = _cell(policy, state, parent, sibling, Q)
        token = jnp.argmax(jnp.where(allowed, logits + bend + noise, -jnp.inf), axis=-1)
        seen = Batch(jnp.where(alive, token, empty), parent, sibling, allowed)

        top = levels == (height - 1)[:, None]
        stack_sibling = jnp.where(top & first[:, None], token[:, None], stack_sibling)
        a = arity[token]
        pushed = (levels == height[:, None]) & (a == 2)[:, None]
        stack_parent = jnp.where(pushed, token[:, None], stack_parent)
        stack_sibling = jnp.where(pushed, empty, stack_sibling)
        stack_trig = jnp.where(pushed, trig[:, None], stack_trig)
        pop_parent, pop_sibling = (jnp.sum(jnp.where(top, s, 0), axis=1) for s in (stack_parent, stack_sibling))
        ended = a == 0
        alive &= ~(ended & (height == 0))
        carry = (
            state,
            stack_parent,
            stack_sibling,
            stack_trig,
            jnp.maximum(height + (a == 2) - ended, 0),
            jnp.where(ended, pop_parent, token),
            jnp.where(ended, pop_sibling, empty),
            jnp.where(ended, jnp.any(top & stack_trig, axis=1), trig | trigonometric[token]),
            a == 2,
            constants + (token == library.constant),
            alive,
        )
        return carry, seen

    zeros = jnp.zeros((B, config.hidden_units))
    blank = jnp.full((B,), empty)
    start = (
        (zeros, zeros),
        jnp.zeros((B, depth), int),
        jnp.zeros((B, depth), int),
        jnp.zeros((B, depth), bool),
        jnp.zeros(B, int),
        blank,
        blank,
        jnp.zeros(B, bool),
        jnp.zeros(B, bool),
        jnp.zeros(B, int),
        jnp.ones(B, bool),
    )
    _, batch = jax.lax.scan(step, start, (gumbel, jnp.arange(L), jnp.asarray(prior(config, library))))
    return batch


def log_likelihood(policy: Any, batch: Batch, config: DSRConfig, library: _Library) -> tuple[Any, Any]:
    """Log-probability and entropy, each [B], that the policy gives to the expressions of a batch."""
    import jax
    import jax.numpy as jnp

    Q = library.size

    def step(state: Any, inputs: tuple[Batch, Any, Any]) -> Any:
        seen, bend, weight = inputs
        state, logits = _cell(policy, state, seen.parents, seen.siblings, Q)
        alive = seen.tokens != library.empty
        log_p = jax.nn.log_softmax(jnp.where(seen.allowed, logits + bend, -1e9))
        chosen = jnp.take_along_axis(log_p, jnp.minimum(seen.tokens, Q - 1)[:, None], axis=1)[:, 0]
        entropy = -jnp.sum(jnp.where(seen.allowed, jnp.exp(log_p) * log_p, 0.0), axis=1)
        return state, (jnp.where(alive, chosen, 0.0), jnp.where(alive, weight * entropy, 0.0))

    zeros = jnp.zeros((batch.tokens.shape[1], config.hidden_units))
    decay = config.entropy_decay ** np.arange(config.max_length)
    inputs = (batch, jnp.asarray(prior(config, library)), jnp.asarray(decay, jnp.float32))
    _, (log_p, entropy) = jax.lax.scan(step, (zeros, zeros), inputs)
    return log_p.sum(0), entropy.sum(0)


def _policy_step(policy: Any, moments: Any, batch: Batch, rewards: Any, config: DSRConfig, library: _Library) -> Any:
    """One Adam step along the risk-seeking gradient (paper, eq. 2): the best `risk` share, baseline its worst."""
    import jax
    import jax.numpy as jnp

    count = max(2, round(config.risk * config.batch_size))
    best, index = jax.lax.top_k(rewards, count)
    elite = Batch(*(part[:, index] for part in batch))

    def loss(policy: Any) -> Any:
        log_p, entropy = log_likelihood(policy, elite, config, library)
        return -jnp.mean((best - best[-1]) * log_p) - config.entropy_weight * jnp.mean(entropy)

    gradient = jax.grad(loss)(policy)
    first, second, number = moments
    number = number + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)
    rate = config.learning_rate * jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
    policy = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), policy, first, second)
    return policy, (first, second, number)


# --- evaluation and constants on a device ------------------------------------------------------------------------


class Links(NamedTuple):
    """Where children and parents stand in the prefix text, leading axis L. The first child of t is t + 1."""

    second: Any  # position of the second child
    parent: Any
    is_second: Any  # whether a token is the second child of its parent
    constant: Any  # which constant a token is (0, 1, ...), meaningful for constant tokens


def links(tokens: Any, library: _Library) -> Links:
    """Tree links of prefix expressions; tokens [L, ...]."""
    import jax
    import jax.numpy as jnp

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


def evaluate(tokens: Any, tree: Links, constants: Any, X: Any, library: _Library, slopes: bool) -> Any:
    """Values [T, B, N] of prefix expressions and, with `slopes`, their derivative by every constant [K, T, B, N].

    tokens [L, T, B], constants [K, T, B], X [T, N, V]. Each row of an expression is a tree with one output, so one
    pass from the root down gives all derivatives at once.
    """
    import jax
    import jax.numpy as jnp

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


def fit_constants(tokens: Any, tree: Links, X: Any, y: Any, config: DSRConfig, library: _Library) -> Any:
    """Constants [K, T, B] of every expression by Levenberg-Marquardt from 1; y [T, N]."""
    import jax
    import jax.numpy as jnp

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


def rewards_of(tokens: Any, tree: Links, constants: Any, X: Any, y: Any, library: _Library) -> tuple[Any, Any]:
    """Reward 1 / (1 + NRMSE) and MAE, each [T, B]; 0 and inf where an expression is not finite."""
    import jax.numpy as jnp

    error = evaluate(tokens, tree, constants, X, library, slopes=False) - y[:, None, :]
    nrmse = jnp.sqrt(jnp.mean(error**2, axis=-1)) / jnp.std(y, axis=-1)[:, None]
    mae = jnp.mean(jnp.abs(error), axis=-1)
    sound = jnp.isfinite(nrmse)
    return jnp.where(sound, 1 / (1 + nrmse), 0.0), jnp.where(sound, mae, jnp.inf)


@functools.cache
def _compiled(config: DSRConfig, library: _Library) -> Any:
    """Compiled parts: sample for T policies, fit and reward a batch, train T policies."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def draw(policies: Any, keys: Any, usable: Any) -> Batch:
        return jax.vmap(lambda p, k, u: sample(p, k, u, config, library))(policies, keys, usable)

    @jax.jit
    def judge(batch: Batch, X_fit: Any, y_fit: Any, X: Any, y: Any) -> Any:
        tokens = jnp.moveaxis(batch.tokens, 1, 0)  # [T, L, B] -> [L, T, B]
        tree = links(tokens, library)
        if library.constant >= 0:
            constants = fit_constants(tokens, tree, X_fit, y_fit, config, library)
        else:
            constants = jnp.ones((1, *tokens.shape[1:]))
        rewards, mae = rewards_of(tokens, tree, constants, X, y, library)
        best = jnp.argmax(rewards, axis=1)
        rows = jnp.arange(rewards.shape[0])
        return rewards, rewards[rows, best], mae[rows, best], tokens[:, rows, best].T, constants[:, rows, best].T

    @jax.jit
    def learn(policies: Any, moments: Any, batch: Batch, rewards: Any) -> Any:
        return jax.vmap(lambda p, m, b, r: _policy_step(p, m, b, r, config, library))(policies, moments, batch, rewards)

    @jax.jit
    def split(keys: Any) -> Any:
        pairs = jax.vmap(jax.random.split)(keys)
        return pairs[:, 0], pairs[:, 1]

    return draw, judge, learn, split


# --- a run -------------------------------------------------------------------------------------------------------


def expression_of(tokens: Any, constants: Any, names: tuple[str, ...], library: _Library) -> Expression:
    """The expression of one prefix text; constants in the order of their tokens."""
    stack: list[Any] = []
    written = [int(t) for t in tokens if int(t) != library.empty]
    left = [float(c) for c in constants][: sum(t == library.constant for t in written)]
    for token in reversed(written):
        if token == library.constant:
            stack.append(Constant(left.pop()))
        elif library.arity[token] == 0:
            stack.append(Variable(token - library.first_variable))
        else:
            args = tuple(stack.pop() for _ in range(library.arity[token]))
            stack.append(Call(library.names[token], args))
    return Expression(stack.pop(), names)


def _fits_on_device(config: DSRConfig, rows: int) -> bool:
    if config.constants != "auto":
        return config.constants == "device"
    import jax

    return jax.default_backend() != "cpu" or not config.use_constants or rows <= 32


class _HostJudge:
    """Rewards through the library's compiled constant fitter; every different expression is fitted once."""

    def __init__(self, tasks: Sequence[Task], config: DSRConfig, library: _Library) -> None:
        self.tasks, self.config, self.library = tasks, config, library
        self.known: list[dict[bytes, tuple[float, float, np.ndarray]]] = [{} for _ in tasks]

    def __call__(self, batch: Batch) -> tuple[np.ndarray, ...]:
        all_tokens = np.asarray(batch.tokens)  # [T, L, B]
        rewards = np.zeros((len(self.tasks), all_tokens.shape[2]))
        best: list[tuple[float, float, np.ndarray, np.ndarray]] = []
        for t, task in enumerate(self.tasks):
            columns = all_tokens[t].T.astype(np.int16)
            unique, inverse = np.unique(columns, axis=0, return_inverse=True)
            new = [row for row in unique if row.tobytes() not in self.known[t]]
            for row, found in zip(new, self._fit(task, new), strict=True):
                self.known[t][row.tobytes()] = found
            scored = [self.known[t][row.tobytes()] for row in unique]
            values = np.array([s[0] for s in scored])
            rewards[t] = values[inverse.reshape(-1)]
            top = int(np.argmax(values))
            best.append((scored[top][0], scored[top][1], unique[top], scored[top][2]))
        width = max((len(b[3]) for b in best), default=0)
        constants = np.stack([np.pad(b[3], (0, width - len(b[3]))) for b in best])
        return (
            rewards,
            np.array([b[0] for b in best]),
            np.array([b[1] for b in best]),
            np.stack([b[2] for b in best]),
            constants,
        )

    def _fit(self, task: Task, rows: list[np.ndarray]) -> list[tuple[float, float, np.ndarray]]:
        from gmeql import fitters
        from gmeql.fitters import programs

        names, width = task.names or (), task.X.shape[1]
        expressions = [expression_of(row, [1.0] * self.config.max_constants, names, self.library) for row in rows]
        tapes = [programs.from_expression(e.root, width) for e in expressions]
        inputs, _ = programs.input_slots(task.X)
        deviation = float(np.std(task.y)) or 1.0
        fitted = fitters.fit(tapes, None, inputs, task.y, max_steps=self.config.fit_steps)
        found = []
        for e, tape, own, loss in zip(expressions, tapes, fitted.constants, fitted.losses, strict=True):
            if not np.isfinite(loss):
                found.append((0.0, math.inf, np.asarray(e.constants)))
                continue
            best = programs.replace_constants(e, tape, own)
            reward = 1 / (1 + math.sqrt(max(float(loss), 0.0)) / deviation)
            found.append((reward, mean_absolute_error(best, task.X, task.y), np.asarray(best.constants)))
        return found


@dataclass
class _Best:
    reward: float = -1.0
    mae: float = math.inf
    tokens: np.ndarray | None = None
    constants: np.ndarray | None = None
    solved_at: int = 0  # expressions drawn when the refitted best became exact; 0: not yet


def fit(tasks: Sequence[Task], budget: Budget, config: DSRConfig | None = None) -> list[Result]:
    """Train one policy per task, all side by side. `budget.candidates` counts sampled expressions of a task."""
    import jax
    import jax.numpy as jnp

    config = config or DSRConfig()
    started = time.perf_counter()
    if len({len(task.y) for task in tasks}) != 1:
        raise ValueError("the tasks of one DSR call need equally many rows; call once per size")
    variables = max(task.X.shape[1] for task in tasks)
    library = _library(config, variables)
    usable = np.ones((len(tasks), library.size), bool)
    X = np.zeros((len(tasks), len(tasks[0].y), variables), np.float32)
    for t, task in enumerate(tasks):
        X[t, :, : task.X.shape[1]] = task.X
        usable[t, library.first_variable + task.X.shape[1] : library.first_variable + variables] = False
    y = np.stack([task.y for task in tasks]).astype(np.float32)
    few = min(config.fit_rows, X.shape[1])
    data = [jnp.asarray(a) for a in (X[:, :few], y[:, :few], X, y)]
    draw, judge_on_device, learn, split = _compiled(config, library)
    on_device = _fits_on_device(config, X.shape[1])
    judge_on_host = None if on_device else _HostJudge(tasks, config, library)

    starts = [initial_policy(config, library, task.seed) for task in tasks]
    policies = {name: jnp.stack([jnp.asarray(p[name]) for p in starts]) for name in starts[0]}
    zeros = jax.tree.map(jnp.zeros_like, policies)
    moments = (zeros, zeros, jnp.zeros(len(tasks)))
    keys = jnp.stack([jax.random.key(task.seed, impl="threefry2x32") for task in tasks])
    tokens_usable = jnp.asarray(usable)
    best = [_Best() for _ in tasks]
    drawn, points = 0, []
    batches = -(-budget.candidates // config.batch_size)
    for number in range(batches):
        keys, draws = split(keys)
        batch = draw(policies, draws, tokens_usable)
        outcome = judge_on_device(batch, *data) if judge_on_host is None else judge_on_host(batch)
        policies, moments = learn(policies, moments, batch, jnp.asarray(outcome[0], jnp.float32))
        drawn += config.batch_size
        _note_best(best, tasks, outcome[1:], drawn, config, library)
        if number % config.check_every == 0 or number == batches - 1:
            points.append((drawn, time.perf_counter() - started, [b.mae for b in best]))
        if all(b.solved_at for b in best) or time.perf_counter() - started > budget.seconds:
            points.append((drawn, time.perf_counter() - started, [b.mae for b in best]))
            break
    seconds = (time.perf_counter() - started) / len(tasks)
    results = []
    for t, (task, b) in enumerate(zip(tasks, best, strict=True)):
        expression = expression_of(b.tokens, b.constants, task.names or (), library)
        curve = Curve(
            tuple(p[0] for p in points), tuple(p[1] / len(tasks) for p in points), tuple(float(p[2][t]) for p in points)
        )
        results.append(
            Result(
                "dsr",
                task.seed,
                refit(expression, task.X, task.y),
                curve,
                seconds,
                b.solved_at or drawn,
                dataclasses.asdict(config),
            )
        )
    return results


def _note_best(
    best: list[_Best], tasks: Sequence[Task], outcome: Any, drawn: int, config: DSRConfig, library: _Library
) -> None:
    """Keep the best expression of each task; a good one is refitted in double precision to see whether it is exact."""
    rewards, maes, tokens, constants = (np.asarray(part) for part in outcome)
    for t, (b, task) in enumerate(zip(best, tasks, strict=True)):
        if b.solved_at or rewards[t] <= b.reward:
            continue
        b.reward, b.mae, b.tokens, b.constants = float(rewards[t]), float(maes[t]), tokens[t], constants[t]
        if b.reward > 1 - 1e-4:
            exact = refit(expression_of(b.tokens, b.constants, task.names or (), library), task.X, task.y)
            error = np.sqrt(np.mean((exact(task.X) - task.y) ** 2)) / (np.std(task.y) or 1.0)
            if error < config.stop_below:
                b.solved_at, b.mae = drawn, mean_absolute_error(exact, task.X, task.y)
