"""The opponents: their parts against slow, obvious versions, and each on an easy published case it must solve."""

import contextlib
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from gmeql.evaluation.baselines import Budget, Task, fit, mean_absolute_error, refit
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable

jax = pytest.importorskip("jax")
jnp = jax.numpy

from gmeql.evaluation.baselines import dsr, eql, gp  # noqa: E402


def uniform_table(seed, columns, rows, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, (rows, columns))


# --- the interface ------------------------------------------------------------------------------------------------


def test_unknown_method_and_bad_tasks_are_refused_by_name():
    X = uniform_table(0, 2, 10)
    with pytest.raises(ValueError, match="known: eql, dsr, gp"):
        fit("nets", [Task(X, X[:, 0])], Budget(1))
    with pytest.raises(ValueError, match="finite"):
        Task(X, np.full(10, np.nan))
    with pytest.raises(ValueError, match="shape"):
        Task(X, np.zeros(9))
    with pytest.raises(ValueError, match="one name per column"):
        Task(X, X[:, 0], names=("a",))
    with pytest.raises(ValueError, match="candidates"):
        Budget(0)
    assert fit("eql", [], Budget(1)) == []


def test_refit_reaches_double_precision_and_never_makes_worse():
    X = uniform_table(1, 1, 50, 0, 5)
    wave = Expression(Call("mul", (Constant(1.19), Call("sin", (Call("mul", (Constant(1.12), Variable(0))),)))), ("t",))
    y = 1.2 * np.sin(1.1 * X[:, 0])
    assert mean_absolute_error(refit(wave, X, y), X, y) < 1e-12
    exact = wave.with_constants((1.2, 1.1))
    assert refit(exact, X, y).constants == exact.constants
    outside = Expression(Call("log", (Call("sub", (Variable(0), Constant(9.0))),)), ("t",))
    assert mean_absolute_error(outside, X, y) == math.inf


def test_refit_moves_every_constant_along_its_own_slope():
    """Columns of the finite differences in the order of the constants: a mixed-up one would not arrive here."""
    X = uniform_table(2, 2, 80, 0.5, 2)
    a, b = Variable(0), Variable(1)
    root = Call(
        "add",
        (
            Call("mul", (Constant(0.9), Call("square", (a,)))),
            Call("div", (Constant(2.2), Call("add", (b, Constant(0.8))))),
            Call("mul", (Constant(-0.4), Call("cos", (Call("mul", (Constant(2.9), b)),)))),
        ),
    )
    rough = Expression(root, ("a", "b"))
    truth = rough.with_constants((1.1, 2.0, 1.0, -0.5, 3.0))
    np.testing.assert_allclose(refit(rough, X, truth(X)).constants, truth.constants, rtol=1e-10)


# --- EQL -------------------------------------------------------------------------------------------------------------


def test_smoothed_norm_joins_smoothly_and_counts_weights():
    a = 0.05
    near = [float(eql.smoothed_l05(jnp.array([w]), a)) for w in (a - 1e-4, a + 1e-4)]
    assert abs(near[0] - near[1]) < 1e-3
    slope = jax.grad(lambda w: eql.smoothed_l05(w, a))
    assert abs(float(slope(jnp.array([a - 1e-5]))[0]) - float(slope(jnp.array([a + 1e-5]))[0])) < 1e-2
    assert float(slope(jnp.array([0.0]))[0]) == 0.0  # the plain root would be infinite here
    assert np.isclose(float(eql.smoothed_l05(jnp.array([4.0, -9.0]), a)), 5.0)


@pytest.mark.parametrize("units", [eql.KIM_UNITS, eql.PAPER_UNITS], ids=["kim", "paper"])
def test_expression_read_off_computes_what_the_network_computes(units):
    config = eql.EQLConfig(units=units)
    weights = [w[0].astype(float) for w in eql._initial_weights(config, 2, [3])]
    rng = np.random.default_rng(0)
    weights = [w * (rng.random(w.shape) < 0.3) for w in weights]
    x_scales, y_scale = np.array([2.0, 0.5]), 3.0
    X = uniform_table(2, 2, 40, 0.2, 1.0)
    with jax.enable_x64(True):
        scaled = [jnp.asarray(w) for w in weights]
        expected, _ = eql._network(scaled, jnp.asarray(X / x_scales), config.flat_units, 0.0)
    expression = eql.read_off(weights, ("a", "b"), x_scales, y_scale, config)
    got = expression(X)
    fine = np.isfinite(got)  # a denominator below zero divides in the formula and is cut in the network
    assert fine.mean() > 0.5
    if units is eql.KIM_UNITS:
        np.testing.assert_allclose(got, y_scale * np.asarray(expected), rtol=1e-7, atol=1e-7)


def test_division_unit_cuts_and_punishes_small_denominators():
    sums = jnp.array([[1.0, 2.0], [1.0, 0.01], [1.0, -1.0]])
    out, penalty = eql._layer(sums, ("div",), 0.1)
    np.testing.assert_allclose(out[:, 0], [0.5, 0.0, 0.0])
    np.testing.assert_allclose(float(penalty), (0.09 + 1.1) / 3, rtol=1e-6)


def test_pruned_weights_leave_no_trace_in_the_formula():
    config = eql.EQLConfig(units=(("id", 1), ("square", 1)), hidden_layers=1)
    weights = [np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0], [3.0]])]
    expression = eql.read_off(weights, ("a", "b"), np.ones(2), 1.0, config)
    assert expression.variables == (1,)
    np.testing.assert_allclose(expression(np.array([[5.0, 0.5]])), [3.0])


def test_eql_solves_the_square_of_kim_et_al():
    """x**2 on [-1, 1], 256 rows: the first non-trivial case of Kim et al. 2020 (benchmark.py)."""
    tasks = [Task(X, X[:, 0] ** 2, seed=s) for s, X in enumerate(uniform_table(s, 1, 256) for s in range(2))]
    results = fit("eql", tasks, Budget(4_000), eql.EQLConfig(units=eql.KIM_UNITS))
    X = uniform_table(99, 1, 100, -2, 2)
    errors = [
        mean_absolute_error(refit(r.expression, t.X, t.y), X, X[:, 0] ** 2) for r, t in zip(results, tasks, strict=True)
    ]
    assert sum(error < 1e-9 for error in errors) >= 1
    assert results[0].curve.mae[-1] < results[0].curve.mae[0]
    assert results[0].candidates == 4_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "truth", "needed"),
    [
        (1, lambda x: x[:, 0] ** 2, 14),
        (1, lambda x: np.sin(2 * np.pi * x[:, 0]), 10),
        (2, lambda x: x[:, 0] * x[:, 1], 16),
        (3, lambda x: x[:, 0] ** 2 + x[:, 1] - 2 * x[:, 2], 12),
    ],
    ids=["square", "sine", "product", "square and sum"],
)
def test_eql_reaches_the_published_share_of_twenty_trials(columns, truth, needed):
    """The benchmark of Kim et al. 2020 with its own numbers of steps; extrapolation to [-2, 2] as there."""
    tasks = [Task(X, truth(X), seed=s) for s, X in enumerate(uniform_table(s, columns, 256) for s in range(20))]
    results = fit("eql", tasks, Budget(eql.PAPER_STEPS), eql.EQLConfig(units=eql.KIM_UNITS))
    X = uniform_table(99, columns, 1000, -2, 2)
    errors = [
        mean_absolute_error(refit(r.expression, t.X, t.y), X, truth(X)) for r, t in zip(results, tasks, strict=True)
    ]
    assert sum(error < 1e-6 for error in errors) >= needed


# --- DSR -------------------------------------------------------------------------------------------------------------

SMALL = dsr.DSRConfig(
    batch_size=400,
    max_length=14,
    functions=("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "square", "sqrt", "cube"),
    max_constants=2,
)


@pytest.fixture(scope="module")
def drawn():
    library = dsr._library(SMALL, 2)
    policy = {k: jnp.asarray(v) for k, v in dsr.initial_policy(SMALL, library, 0).items()}
    batch = jax.jit(lambda key: dsr.sample(policy, key, jnp.ones(library.size, bool), SMALL, library))
    return library, policy, batch(jax.random.key(0))


def text(tokens, library):
    return [library.names[t] for t in tokens if t != library.empty]


def subtree(words, library, start):
    """End of the subtree that starts at a position of a prefix text."""
    open_slots, position = 1, start
    while open_slots:
        open_slots += library.arity[library.names.index(words[position])] - 1
        position += 1
    return position


def test_every_drawn_expression_keeps_every_constraint(drawn):
    library, _, batch = drawn
    tokens = np.asarray(batch.tokens).T
    assert len({tuple(row) for row in tokens}) > 300
    for row in tokens:
        words = text(row, library)
        assert SMALL.min_length <= len(words) <= SMALL.max_length
        assert subtree(words, library, 0) == len(words), "an incomplete or overlong text"
        assert words.count("const") <= SMALL.max_constants
        for t, word in enumerate(words):
            arity = library.arity[library.names.index(word)]
            inside = words[t + 1 : subtree(words, library, t)]
            children = [inside[0]] if arity else []
            if arity == 2:
                children.append(words[subtree(words, library, t + 1)])
            if word in ("sin", "cos"):
                assert not {"sin", "cos"} & set(inside)
            assert dsr._INVERSE.get(word) not in children
            assert not (word in dsr._POWERS and set(children) & set(dsr._POWERS))
            assert not children or set(children) != {"const"}


def test_parents_and_siblings_are_those_of_the_tree(drawn):
    library, _, batch = drawn
    for b in range(50):
        words = text(np.asarray(batch.tokens)[:, b], library)
        names = (*library.names, None)
        for t, word in enumerate(words):
            arity = library.arity[library.names.index(word)]
            if arity:
                assert names[int(batch.parents[t + 1, b])] == word
                assert names[int(batch.siblings[t + 1, b])] is None
            if arity == 2:
                second = subtree(words, library, t + 1)
                assert names[int(batch.parents[second, b])] == word
                assert names[int(batch.siblings[second, b])] == words[t + 1]


def test_log_likelihood_is_the_probability_of_drawing():
    config = dsr.DSRConfig(functions=("add", "sin"), batch_size=20_000, min_length=1, max_length=3, max_constants=1)
    library = dsr._library(config, 1)
    policy = {k: jnp.asarray(v) for k, v in dsr.initial_policy(config, library, 0).items()}
    policy["output_bias"] = jnp.array([0.3, -0.5, 0.8, 0.0])
    batch = dsr.sample(policy, jax.random.key(1), jnp.ones(library.size, bool), config, library)
    log_p, entropy = dsr.log_likelihood(policy, batch, config, library)
    tokens, first, counts = np.unique(np.asarray(batch.tokens).T, axis=0, return_index=True, return_counts=True)
    p = np.exp(np.asarray(log_p))[first]
    assert np.isclose(p.sum(), 1.0, atol=1e-4), "every text this short should have been drawn"
    deviation = np.sqrt(config.batch_size * p * (1 - p)) + 1
    assert np.all(np.abs(counts - config.batch_size * p) < 5 * deviation)
    assert np.all(np.asarray(entropy) >= 0)


def test_device_evaluation_and_slopes_match_expressions(drawn):
    library, _, batch = drawn
    X = uniform_table(4, 2, 20, 0.5, 1.5)
    constants = np.random.default_rng(5).uniform(0.5, 1.5, (SMALL.max_constants, 1, SMALL.batch_size))
    with jax.enable_x64(True):
        tokens = batch.tokens[:, None, :]
        tree = dsr.links(tokens, library)
        values, slopes = dsr.evaluate(tokens, tree, jnp.asarray(constants), jnp.asarray(X)[None], library, True)
        plain = dsr.evaluate(tokens, tree, jnp.asarray(constants), jnp.asarray(X)[None], library, False)
    compared = 0
    for b in range(SMALL.batch_size):
        expression = dsr.expression_of(np.asarray(batch.tokens)[:, b], constants[:, 0, b], ("a", "b"), library)
        expected = expression(X)
        nearby = expression(X * (1 + 1e-12))  # the sine of a huge number is no test of anything
        tame = np.isfinite(expected).all() and np.abs(expected).max() < 1e3
        if not tame or not np.allclose(nearby, expected, 1e-9, 1e-9):
            continue
        np.testing.assert_allclose(values[0, b], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_array_equal(values[0, b], plain[0, b])
        own = np.array(expression.constants)
        for k in range(len(own)):
            step = np.zeros(len(own))
            step[k] = 1e-6
            numeric = (expression.with_constants(own + step)(X) - expression.with_constants(own - step)(X)) / 2e-6
            if np.isfinite(numeric).all() and np.abs(numeric).max() < 1e3:
                np.testing.assert_allclose(slopes[k, 0, b], numeric, rtol=2e-4, atol=2e-4)
                compared += 1
    assert compared > 50


@pytest.mark.parametrize("where", ["device", "cpu"])
def test_constants_are_fitted_for_every_expression(where):
    """c * sin(c * x0) + c * x1, written out as tokens, against its generating constants."""
    library = dsr._library(dsr.DSRConfig(), 2)
    number = library.names.index
    words = ["add", "mul", "const", "sin", "mul", "const", "x0", "mul", "const", "x1"]
    row = np.full(30, library.empty)
    row[: len(words)] = [number(w) for w in words]
    X = uniform_table(6, 2, 80, 0, 2)
    y = 1.3 * np.sin(1.2 * X[:, 0]) + 0.7 * X[:, 1]
    config = dsr.DSRConfig(fit_steps=15)
    if where == "device":
        tokens = jnp.asarray(row)[:, None, None]
        tree = dsr.links(tokens, library)
        data = jnp.asarray(X, jnp.float32)[None], jnp.asarray(y, jnp.float32)[None]
        found = np.asarray(dsr.fit_constants(tokens, tree, *data, config, library))[:3, 0, 0]
        rewards, _ = dsr.rewards_of(tokens, tree, jnp.ones((6, 1, 1)), *data, library)
        error = np.sqrt(np.mean((np.sin(X[:, 0]) + X[:, 1] - y) ** 2)) / np.std(y)
        np.testing.assert_allclose(float(rewards[0, 0]), 1 / (1 + error), rtol=1e-5)
    else:
        judge = dsr._HostJudge([Task(X, y)], config, library)
        ((reward, mae, found),) = judge._fit(Task(X, y), [row])
        assert reward > 1 - 1e-6 and mae < 1e-5
    np.testing.assert_allclose(found, [1.3, 1.2, 0.7], rtol=1e-3)


def test_policy_moves_towards_the_rewarded():
    config = dsr.DSRConfig(
        functions=("add", "mul"),
        use_constants=False,
        batch_size=200,
        min_length=1,
        max_length=7,
        learning_rate=0.02,
        entropy_weight=0.0,
    )
    library = dsr._library(config, 1)
    policy = {k: jnp.asarray(v) for k, v in dsr.initial_policy(config, library, 0).items()}
    zeros = jax.tree.map(jnp.zeros_like, policy)
    moments, share, key = (zeros, zeros, jnp.zeros(())), [], jax.random.key(0)
    step = jax.jit(lambda p, m, b, r: dsr._policy_step(p, m, b, r, config, library))
    draw = jax.jit(lambda p, k: dsr.sample(p, k, jnp.ones(library.size, bool), config, library))
    for _ in range(25):
        key, sub = jax.random.split(key)
        batch = draw(policy, sub)
        products = jnp.mean(batch.tokens == library.names.index("mul"), axis=0)
        policy, moments = step(policy, moments, batch, products + 0.3 * jax.random.uniform(sub, products.shape))
        share.append(float(products.mean()))
    assert share[-1] > 2 * share[0]


def test_dsr_solves_nguyen_1():
    """x**3 + x**2 + x on [-1, 1], 20 rows, Petersen et al.'s function set: solved there in every run."""
    tasks = [
        Task(X, X[:, 0] ** 3 + X[:, 0] ** 2 + X[:, 0], seed=s) for s, X in ((s, uniform_table(s, 1, 20)) for s in (1,))
    ]
    config = dsr.DSRConfig(functions=dsr.NGUYEN_FUNCTIONS, use_constants=False)
    results = fit("dsr", tasks, Budget(150_000), config)
    X = uniform_table(99, 1, 50, -2, 2)
    for result in results:
        assert mean_absolute_error(result.expression, X, X[:, 0] ** 3 + X[:, 0] ** 2 + X[:, 0]) < 1e-9
        assert result.candidates < 150_000


@pytest.mark.slow
@pytest.mark.parametrize(("power", "needed"), [(3, 5), (4, 5), (5, 4)], ids=["nguyen-1", "nguyen-2", "nguyen-3"])
def test_dsr_solves_the_first_nguyen_problems(power, needed):
    def truth(X):
        return sum(X[:, 0] ** k for k in range(1, power + 1))

    tasks = [Task(X, truth(X), seed=s) for s, X in ((s, uniform_table(s, 1, 20)) for s in range(5))]
    config = dsr.DSRConfig(functions=dsr.NGUYEN_FUNCTIONS, use_constants=False)
    results = fit("dsr", tasks, Budget(1_000_000), config)
    X = uniform_table(99, 1, 50)
    assert sum(mean_absolute_error(r.expression, X, truth(X)) < 1e-9 for r in results) >= needed


# --- GP --------------------------------------------------------------------------------------------------------------


def test_gp_solves_an_easy_sum_and_prints_what_it_computes():
    pytest.importorskip("gplearn")
    X = uniform_table(0, 2, 100)
    task = Task(X, X[:, 0] * X[:, 0] + X[:, 1], seed=0)
    functions = ("add", "sub", "mul")
    (result,) = fit("gp", [task], Budget(300 * 20), gp.GPConfig(population=300, functions=functions))
    assert mean_absolute_error(result.expression, X, task.y) < 1e-9
    assert np.all(np.diff(result.curve.mae) <= 0)
    (again,) = fit("gp", [task], Budget(300 * 20), gp.GPConfig(300, functions, generations_between_checks=3))
    assert again.expression == result.expression, "looking at the clock must not change the run"


def test_gp_in_a_hurry_evolves_as_gplearn_does(monkeypatch):
    pytest.importorskip("gplearn")
    X = uniform_table(3, 2, 60, 1, 5)
    task = Task(X, np.sqrt(1.3 + 1.2 * X[:, 1] / X[:, 0]), seed=5)
    config = gp.GPConfig(population=150)
    (hurried,) = fit("gp", [task], Budget(150 * 8), config)
    monkeypatch.setattr(gp, "_hurried", contextlib.nullcontext)
    (plain,) = fit("gp", [task], Budget(150 * 8), config)
    assert hurried.expression == plain.expression
    np.testing.assert_allclose(hurried.curve.mae, plain.curve.mae, rtol=1e-12)


def test_gp_program_becomes_the_expression_it_is():
    functions = pytest.importorskip("gplearn.functions")
    table = functions._function_map
    X = uniform_table(1, 2, 30, -2, 2)
    program = [table["add"], table["sqrt"], 0, table["mul"], 1.5, table["div"], 1, table["sub"], 0, 0]
    expected = np.sqrt(np.abs(X[:, 0])) + 1.5 * 1.0  # x1 / (x0 - x0): gplearn's guard gives 1
    np.testing.assert_allclose(gp.expression_of(program, X, ("a", "b"))(X), expected)


# --- the published cases ---------------------------------------------------------------------------------------------


def test_published_cases_count_only_formulas_that_hold_elsewhere():
    """benchmarks/paper_claims.py: a good fit on the training rows is not enough."""
    path = Path(__file__).parents[2] / "benchmarks" / "paper_claims.py"
    spec = importlib.util.spec_from_file_location("paper_claims", path)
    claims = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(claims)
    x = Variable(0)

    def line(what, name, root):
        return {"what": what, "name": name, "seed": 0, "expression": Expression(root, ("x",)).to_dict()}

    square = Call("mul", (x, x))
    cubic = Call("add", (Call("mul", (x, square)), Call("add", (square, x))))
    assert claims.is_found(line("dsr", "Nguyen-1", cubic)) and not claims.is_found(line("dsr", "Nguyen-1", square))
    assert claims.is_found(line("eql", "x^2", Call("mul", (Constant(0.97), square)))), "constants are refitted"
    assert not claims.is_found(line("eql", "x^2", Call("sin", (square,)))), "x^2 only near zero"
    X, y = claims.rows("eql", "x y/2 + z/2", 3)
    np.testing.assert_allclose(y, X[:, 0] * X[:, 1] / 2 + X[:, 2] / 2)
    assert np.abs(claims.rows("eql", "x", 0, fresh=True)[0]).max() > 1.9, "judged where it was not trained"
