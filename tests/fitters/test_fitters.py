"""Fitting constants: one contract for every engine, opcodes against the operator table, SciPy as the judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import least_squares

from gmeql.fitters import CONVERGED, NOT_FINITE, STEPS_SPENT, fit, reference
from gmeql.fitters import device as device_engine
from gmeql.fitters.cpu import fit_arrays
from gmeql.fitters.cpu import fit_batches as cpu_fit_batches
from gmeql.fitters.kernel import BLOCK, KEPT, jacobian_one
from gmeql.fitters.programs import (
    MAX_CONSTANTS,
    POWER_FITTED,
    POWER_WHOLE,
    Program,
    from_expression,
    input_slots,
    replace_constants,
    stack,
)
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable
from gmeql.formula.operators import OPERATORS, Operator, get_operator
from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.network.architecture import Architecture
from gmeql.search.candidates import Candidates
from gmeql.search.config import IslandConfig
from gmeql.search.island import Island
from gmeql.search.tried import TriedStructures
from random_trees import call

ENGINES = ("cpu", "reference", "device")
every_engine = pytest.mark.parametrize("engine", ENGINES)
ROWS = BLOCK + 37  # more than one block of the CPU kernel and no multiple of one
x, y, z = (Variable(i) for i in range(3))
NAMES = ("x", "y", "z")


families_of = device_engine._families_of


@pytest.fixture(autouse=True)
def one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile all operators into every batch of the device engine: fewer compilations, so quicker tests."""
    monkeypatch.setattr(device_engine, "_families_of", lambda ops: frozenset(device_engine._FAMILIES))


@pytest.fixture
def few_families(monkeypatch: pytest.MonkeyPatch, one_family: None) -> None:
    """For tests of sums, quotients and whole powers alone, which compile in a moment."""
    monkeypatch.setattr(device_engine, "_families_of", lambda ops: frozenset({"whole"}))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Positive rows and their slots."""
    X = np.random.default_rng(5).uniform(0.3, 2.0, (ROWS, 3))
    return X, input_slots(X)[0]


def scaled(c: float, node: Node) -> Node:
    return Call("mul", (Constant(c), node))


FORMULAS: dict[str, Node] = {
    "line": call("add", scaled(1.5, x), scaled(-0.7, y), 0.3),
    "wave": call("mul", 2.0, call("sin", scaled(1.3, x)), call("cos", scaled(0.8, y))),
    "quotient": call("div", call("add", x, 0.5), call("add", scaled(1.2, y), scaled(0.4, z))),
    "difference": call("sub", scaled(2.0, call("sqrt", x)), scaled(0.5, call("log", call("add", y, 0.2)))),
    "decay": call("mul", 1.7, call("exp", scaled(-0.9, x))),
    "fitted power": call("mul", 0.8, call("pow", x, 1.7), call("pow", y, -0.6)),
    "general power": call("mul", 1.1, call("pow", call("add", x, 0.4), scaled(0.9, y))),
    "whole powers": call("add", scaled(0.5, call("pow", x, -2.0)), scaled(0.3, call("pow", y, 3.0))),
    "table powers": call(
        "add", scaled(0.5, call("square", x)), scaled(0.3, call("cube", y)), scaled(0.1, call("pow4", z)),
        scaled(0.05, call("pow5", x)),
    ),
    "inverse functions": call("add", call("atan", scaled(1.4, x)), call("asin", scaled(0.4, y))),
    "angles": call("add", call("acos", scaled(0.3, x)), scaled(0.01, call("pow6", y)), call("inv", call("add", z, 0.1))),
    "tanh": call("mul", 2.0, call("tanh", call("add", scaled(1.4, x), -0.8))),
    "abs and neg": call("neg", call("abs", call("add", x, -0.05))),
    "no constants": call("mul", x, y),
    "shared in twelve nodes": call(
        "add", *(scaled(0.2 + 0.1 * i, call("sin", call("mul", v, w))) for i, (v, w) in enumerate([(x, y), (y, z), (x, z)])),
        scaled(0.7, call("exp", call("neg", z))), scaled(-0.3, x), 0.9,
    ),
}  # fmt: skip


def problems(jitter: float = 0.05) -> tuple[list[Program], np.ndarray, np.ndarray, list[np.ndarray]]:
    """Every formula with starts off its truth; targets of each."""
    X, slots = data()
    programs = [from_expression(root, 3) for root in FORMULAS.values()]
    starts = np.zeros((len(programs), MAX_CONSTANTS))
    rng = np.random.default_rng(11)
    for b, program in enumerate(programs):
        starts[b, : len(program.start)] = program.start * (1 + jitter * rng.standard_normal(len(program.start)))
    targets = [Expression(root, NAMES)(X) for root in FORMULAS.values()]
    return programs, slots, starts, targets


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_steps", [0, 1, 3, 12])
@pytest.mark.parametrize("engine", ["cpu", "device"])
def test_engines_agree_to_rounding(engine: str, max_steps: int) -> None:
    """One common target that no formula meets, so that losses do not end at rounding level."""
    programs, slots, starts, targets = problems()
    target = targets[0] + 0.1 * np.cos(9 * slots[0])
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(target))
    expected = reference.fit(programs, starts, slots, target, weights, max_steps=max_steps, tolerance=1e-12)
    result = fit(programs, starts, slots, target, weights, engine=engine, max_steps=max_steps, tolerance=1e-12)
    np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-9)
    assert np.isfinite(result.losses).all()
    if max_steps < 12:  # later on, which step first gains less than the tolerance is a matter of rounding
        np.testing.assert_allclose(result.constants, expected.constants, rtol=1e-7, atol=1e-9)
        assert result.steps.tolist() == expected.steps.tolist()
        assert result.codes.tolist() == expected.codes.tolist()


def test_equal_weights_and_many_rows_take_other_paths_to_the_same_fit() -> None:
    """Weights of 1 save products with them; more rows than the kernel keeps are computed anew in each pass."""
    programs, slots, starts, targets = problems()
    times = KEPT * BLOCK // slots.shape[1] + 2
    target = targets[0] + 0.1 * np.cos(9 * slots[0])
    options = dict(max_steps=3, tolerance=1e-12)
    expected = reference.fit(programs, starts, slots, target, **options)
    equal = fit(programs, starts, slots, target, **options)
    nearly = fit(programs, starts, slots, target, np.full(len(target), 3.0), **options)
    many = fit(programs, starts, np.tile(slots, times), np.tile(target, times), **options)
    for result in (equal, nearly, many):
        np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-9)
        np.testing.assert_allclose(result.constants, expected.constants, rtol=1e-7, atol=1e-9)
        assert result.steps.tolist() == expected.steps.tolist()


def test_parts_that_are_read_twice_and_parts_that_are_not_read() -> None:
    """Networks share nodes, which formulas cannot; random tapes of smooth operators against forward slopes."""
    rng = np.random.default_rng(8)
    X, slots = data()
    n_slots = len(slots)
    operators = [
        get_operator(name).opcode for name in ("add", "sub", "mul", "div", "sin", "cos", "square", "tanh", "id")
    ]
    for _ in range(60):
        length = int(rng.integers(2, 12))
        code = np.full((5, length), -1)
        n_constants = 0
        for k in range(length):
            code[0, k] = rng.choice(operators)
            for side in (0, 1):
                code[1 + side, k] = (
                    rng.integers(n_slots + k) if rng.random() < 0.4 or not k else n_slots + rng.integers(k)
                )
                if rng.random() < 0.5:
                    code[3 + side, k], n_constants = n_constants, n_constants + 1
            if code[0, k] > 4 or code[0, k] == 0:
                n_constants -= code[4, k] >= 0
                code[4, k] = -1
        constants = rng.uniform(0.3, 1.5, n_constants)
        with np.errstate(all="ignore"):
            values, slopes = reference.evaluate(code, constants, n_constants, slots)
        _, output, jacobian = walk(code.astype(np.int16), constants, slots)
        usable = np.isfinite(values) & (np.abs(values) < 1e6) & (np.abs(slopes) < 1e8).all(axis=1)
        np.testing.assert_allclose(output[usable], values[usable], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(jacobian.T[usable], slopes[usable], rtol=1e-6, atol=1e-6)


@every_engine
def test_truths_are_recovered(engine: str) -> None:
    programs, slots, starts, targets = problems(0.03)
    for b, program in enumerate(programs):
        result = fit([program], starts[b : b + 1], slots, targets[b], engine=engine, max_steps=30, tolerance=1e-12)
        scale = np.mean(targets[b] ** 2)
        assert result.losses[0] < 1e-20 * scale, list(FORMULAS)[b]
        n = len(program.start)
        np.testing.assert_allclose(result.constants[0, :n], program.start, rtol=1e-6)


@every_engine
def test_fits_as_well_as_scipy(engine: str) -> None:
    programs, slots, starts, targets = problems()
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.5, 2.0, slots.shape[1])
    for name in ("wave", "decay", "tanh", "line"):
        b = list(FORMULAS).index(name)
        program, n = programs[b], len(programs[b].start)
        target = targets[b] + 0.05 * rng.standard_normal(slots.shape[1])

        def residual(c: np.ndarray, program: Program = program, target: np.ndarray = target) -> np.ndarray:
            output, _ = reference.evaluate(program.code, c, program.n_free, slots)
            return np.sqrt(weights) * (output - target)

        judge = least_squares(residual, starts[b, :n], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        result = fit([program], starts[b : b + 1], slots, target, weights, engine=engine, max_steps=40, tolerance=1e-13)
        np.testing.assert_allclose(result.losses[0], 2 * judge.cost / weights.sum(), rtol=1e-9)
        np.testing.assert_allclose(result.constants[0, :n], judge.x, rtol=1e-4)


@every_engine
def test_a_weight_counts_as_so_many_rows(engine: str) -> None:
    programs, slots, starts, targets = problems()
    target = targets[0] + 0.1 * np.cos(9 * slots[0])
    times = np.random.default_rng(1).permutation(np.resize([0, 2, 1, 3, 0, 0, 1], len(target)))
    options = dict(engine=engine, max_steps=6, tolerance=1e-12)
    weighted = fit(programs, starts, slots, target, times.astype(float), **options)
    repeated = fit(programs, starts, np.repeat(slots, times, axis=1), np.repeat(target, times), **options)
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-8)


@every_engine
def test_fixed_constants_stay(engine: str) -> None:
    X, slots = data()
    root = call("add", call("mul", 2.0, call("sin", scaled(1.5, x))), scaled(0.5, y), 0.25)
    program = from_expression(root, 3, fixed=(1, 3))
    target = 3.0 * np.sin(1.5 * X[:, 0]) + 0.75 * X[:, 1] + 0.25
    result = fit([program], None, slots, target, engine=engine, max_steps=20)
    fitted = replace_constants(Expression(root, NAMES), program, result.constants[0])
    assert fitted.constants[1] == 1.5 and fitted.constants[3] == 0.25
    np.testing.assert_allclose(fitted.constants, [3.0, 1.5, 0.75, 0.25], rtol=1e-8)
    assert result.losses[0] < 1e-20


@every_engine
def test_bad_candidates_are_inf_and_leave_the_others_alone(engine: str) -> None:
    X, slots = data()
    slots = np.array(slots)
    slots[2] = 0.0
    bad = [
        call("log", call("mul", -1.0, x)),
        call("div", 1.0, call("mul", 2.0, z)),
        call("sqrt", call("add", x, -5.0)),
        call("exp", call("mul", 1e4, x)),
        call("asin", call("add", x, 3.0)),
        call("pow", call("mul", -1.0, x), 0.5),
        call("sin", call("mul", 1e9, x)),
    ]
    good = [scaled(1.0, x), call("add", scaled(1.0, x), scaled(1.0, y))]
    programs = [from_expression(root, 3) for root in [good[0], *bad, good[1]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(programs, None, slots, 2 * X[:, 0], engine=engine, max_steps=10)
    finite = np.isfinite(result.losses)
    if engine == "reference":  # NumPy's sine knows no limit
        finite[-2] = False
    assert finite.tolist() == [True, *[False] * len(bad), True]
    assert (result.codes[1:-2] == NOT_FINITE).all() and (result.losses[~np.isfinite(result.losses)] == np.inf).all()
    np.testing.assert_allclose(result.constants[0, 0], 2.0, rtol=1e-8)
    np.testing.assert_allclose(result.constants[-1, :2], [2.0, 0.0], atol=1e-8)


@every_engine
def test_a_start_inside_the_domain_never_ends_outside(engine: str) -> None:
    """Steps into a non-finite region are rejected, not taken."""
    X, slots = data()
    program = from_expression(call("mul", 1.0, call("sqrt", call("add", scaled(1.0, x), 0.0))), 3)
    start = np.array([[1.0, 0.5, 0.1]])
    result = fit([program], start, slots, -np.sqrt(np.maximum(X[:, 0] - 0.5, 0)), engine=engine, max_steps=15)
    assert np.isfinite(result.losses[0]) and np.isfinite(result.constants[0]).all()
    output, _ = reference.evaluate(program.code, result.constants[0], program.n_free, slots)
    assert np.isfinite(output).all()


@every_engine
def test_codes_say_how_it_ended(engine: str) -> None:
    programs, slots, starts, targets = problems(0.3)
    b = list(FORMULAS).index("tanh")
    spent = fit([programs[b]], starts[b : b + 1], slots, targets[b], engine=engine, max_steps=1)
    done = fit([programs[b]], starts[b : b + 1], slots, targets[b], engine=engine, max_steps=100)
    assert spent.codes.tolist() == [STEPS_SPENT] and spent.steps.tolist() == [2]
    assert done.codes.tolist() == [CONVERGED] and done.losses[0] < spent.losses[0]


def test_unknown_engine() -> None:
    with pytest.raises(ValueError, match="engine must be 'cpu', 'device' or 'reference', got 'tpu'"):
        fit([], None, np.zeros((1, 1)), np.zeros(1), engine="tpu")


def test_the_number_of_threads_changes_nothing() -> None:
    programs, slots, starts, targets = problems()
    programs, starts = programs * 4, np.tile(starts, (4, 1))
    one = fit(programs, starts, slots, targets[0], max_steps=5, n_threads=1)
    two = fit(programs, starts, slots, targets[0], max_steps=5, n_threads=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_hopeless_candidates_end_early_and_screened_ones_see_few_rows() -> None:
    programs, slots, starts, targets = problems()
    codes, lengths, n_free, _ = stack(programs)
    ones = np.ones(slots.shape[1])
    options = dict(max_steps=20, tolerance=1e-12)
    free = fit_arrays(codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, **options)
    hopeless = fit_arrays(codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, hopeless=1e-9, **options)
    assert hopeless.steps.sum() < free.steps.sum()
    screened = fit_arrays(
        codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, hopeless=1e-9, screen_rows=16, **options
    )
    few = fit_arrays(
        codes, lengths, n_free, starts.copy(), np.ascontiguousarray(slots[:, :16]), 50 + targets[0][:16], ones[:16],
        hopeless=1e-9, **options,
    )  # fmt: skip
    worse = few.losses >= 2e-9
    assert worse.any()
    np.testing.assert_array_equal(screened.losses[worse], few.losses[worse])


def test_a_glance_at_rows_that_vary_more_than_all_loses_nothing() -> None:
    """The loss to beat is that on all rows; rows ten times as large must not be held to it."""
    _, slots = data()
    scale = np.where(np.arange(ROWS) < ROWS // 4, 10.0, 1.0)
    slots[0] = scale * (slots[0] - slots[0].mean())
    target = slots[0] + 0.5 * scale * np.cos(40 * slots[1])
    program = from_expression(scaled(1.0, x), 3)
    arrays = [np.repeat(a, 2, axis=0) for a in stack([program])]
    whole = fit_arrays(*(a.copy() for a in arrays), slots, target, np.ones(ROWS), max_steps=5, tolerance=1e-9)
    goal = 1.2 * whole.losses[0]
    glance = fit_arrays(
        *arrays, slots, target, np.ones(ROWS), max_steps=5, tolerance=1e-9, hopeless=goal, screen_rows=ROWS // 4
    )
    few = fit_arrays(
        *(a.copy() for a in stack([program])), np.ascontiguousarray(slots[:, : ROWS // 4]), target[: ROWS // 4],
        np.ones(ROWS // 4), max_steps=5, tolerance=1e-9,
    )  # fmt: skip
    assert few.losses[0] > 2 * goal  # by its loss alone it would have been given up
    np.testing.assert_allclose(glance.losses, whole.losses, rtol=1e-6)


@every_engine
def test_user_operators_take_the_slower_path(engine: str) -> None:
    register_operator("softsign", lambda xp, u: u / (1 + abs(u)), derivative=lambda xp, u: 1 / (1 + abs(u)) ** 2)
    try:
        X, slots = data()
        program = from_expression(call("mul", 1.0, call("softsign", scaled(1.0, x))), 3)
        target = 2.0 * (1.5 * X[:, 0]) / (1 + 1.5 * X[:, 0])
        result = fit([program], None, slots, target, engine=engine, max_steps=30)
        assert result.losses[0] < 1e-18
    finally:
        unregister_operator("softsign")


# --- opcodes against the table ----------------------------------------------------------------------------------------

SIMPLE = [operator for operator in OPERATORS.values() if not operator.is_user_defined and not operator.is_dense]


def one_node(op: int, binary: bool, exponent: int = 0) -> np.ndarray:
    """A program of one node: both inputs carry a constant where the operator reads them."""
    return np.array([[op], [0], [1 if binary else exponent], [0], [1 if binary else -1]], np.int16)


def domain_inputs(operator: Operator) -> np.ndarray:
    """Seven slots, as three columns have: the operator's arguments first."""
    rng = np.random.default_rng(4)
    domains = operator._domains_for((0,) * operator.arity)
    rows = []
    for domain in domains:
        low, high = max(domain.low, -6.0), min(domain.high, 6.0)
        rows.append(rng.uniform(low + 1e-3, high - 1e-3, ROWS))
    rows += [rows[0]] * (7 - len(rows))
    return np.ascontiguousarray(rows)


def walk(code: np.ndarray, constants: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Output, output again with slopes, and Jacobian of the compiled kernel."""
    padded = np.zeros((5, 96), np.int16)
    padded[:, : code.shape[1]] = code
    held = np.zeros(MAX_CONSTANTS)
    held[: len(constants)] = constants
    n_free = len(constants)
    plain, output = np.empty(inputs.shape[1]), np.empty(inputs.shape[1])
    jacobian = np.zeros((MAX_CONSTANTS, inputs.shape[1]))
    jacobian_one(padded, code.shape[1], held, 0, inputs, plain, jacobian)
    jacobian_one(padded, code.shape[1], held, n_free, inputs, output, jacobian)
    return plain, output, jacobian[:n_free]


@pytest.mark.parametrize("operator", SIMPLE, ids=lambda operator: operator.name)
def test_kernel_opcodes_are_the_table(operator: Operator) -> None:
    inputs = domain_inputs(operator)
    binary = operator.arity == 2
    code = one_node(operator.opcode, binary)
    constants = np.array([0.9, 0.8])[: operator.arity]
    args = [c * row for c, row in zip(constants, inputs, strict=False)]
    expected = operator.natural(np, *args)
    slopes = [p * row for p, row in zip(operator.partials(np, *args), inputs, strict=False)]
    plain, output, jacobian = walk(code, constants, inputs)
    np.testing.assert_array_equal(plain, output)
    np.testing.assert_allclose(output, expected, rtol=4e-15, atol=4e-16)
    np.testing.assert_allclose(jacobian, slopes, rtol=1e-13, atol=1e-14)


def test_device_opcodes_are_the_table() -> None:
    """After no step the loss tells how far the values are from the table's; slopes are held against it by the fits."""
    for operator in SIMPLE:
        inputs = domain_inputs(operator)
        code = one_node(operator.opcode, operator.arity == 2)
        constants = np.array([0.9, 0.8])[: operator.arity]
        expected = operator.natural(np, *[c * row for c, row in zip(constants, inputs, strict=False)])
        program = Program(code, constants, operator.arity, tuple(range(operator.arity)))
        result = device_engine.fit([program], None, inputs, expected, max_steps=0)
        assert result.losses[0] <= (1e-14 * np.abs(expected).max() + 1e-15) ** 2, operator.name


@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 3, 7, 12])
def test_whole_powers(exponent: int) -> None:
    inputs = np.array([[-2.5, -1.0, -0.3, 0.2, 1.0, 3.5]])
    plain, output, jacobian = walk(one_node(POWER_WHOLE, False, exponent), np.array([1.25]), inputs)
    u = 1.25 * inputs[0]
    np.testing.assert_allclose(output, u**exponent, rtol=1e-14)
    np.testing.assert_allclose(jacobian[0], exponent * u ** (exponent - 1.0) * inputs[0], rtol=1e-14)


def test_fitted_powers() -> None:
    inputs = np.array([[0.01, 0.3, 1.0, 2.5, 40.0, -1.0]])
    code = np.array([[POWER_FITTED], [0], [0], [0], [1]], np.int16)
    plain, output, jacobian = walk(code, np.array([1.2, -1.7]), inputs)
    u = 1.2 * inputs[0, :5]
    np.testing.assert_allclose(output[:5], u**-1.7, rtol=1e-13)
    np.testing.assert_allclose(jacobian[0, :5], -1.7 * u**-2.7 * inputs[0, :5], rtol=1e-13)
    np.testing.assert_allclose(jacobian[1, :5], u**-1.7 * np.log(u), rtol=1e-12, atol=1e-14)
    assert np.isnan(output[5])


def test_kernel_functions_over_their_whole_range() -> None:
    rng = np.random.default_rng(0)
    cases = {
        "sin": np.concatenate([rng.uniform(-50, 50, 2000), rng.uniform(-1e6, 1e6, 500), [0.0, np.pi, -np.pi / 2]]),
        "exp": np.concatenate([rng.uniform(-30, 30, 2000), rng.uniform(-690, 690, 500), [0.0]]),
        "log": np.concatenate([10 ** rng.uniform(-300, 300, 2000), rng.uniform(0.5, 2.0, 500), [1.0]]),
        "tanh": np.concatenate([rng.uniform(-3, 3, 2000), rng.uniform(-400, 400, 500)]),
    }
    for name, values in cases.items():
        operator = get_operator(name)
        plain, _, _ = walk(one_node(operator.opcode, False), np.array([1.0]), values[None])
        np.testing.assert_allclose(plain, operator.natural(np, values), rtol=1e-14, atol=2e-16, err_msg=name)
    outside = np.array([[2e6, np.inf, np.nan]])
    for name in ("sin", "cos", "exp"):
        plain, _, _ = walk(one_node(get_operator(name).opcode, False), np.array([1.0]), outside)
        assert not np.isfinite(plain).any(), name


# --- the device engine ------------------------------------------------------------------------------------------------


def test_only_families_that_occur_are_compiled() -> None:
    def families(*names: str) -> set[str]:
        return set(families_of(np.array([[get_operator(name).opcode for name in names]])))

    assert families("add", "square", "div") == set()
    assert families("add", "cos") == {"trigonometric"}
    assert families("log", "atan") == {"exponential", "inverse"}
    assert families_of(np.array([POWER_WHOLE, POWER_FITTED])) == {"whole", "exponential"}


def test_compilations_are_bounded_by_padded_sizes(few_families: None) -> None:
    _, slots, _, targets = problems()
    program = from_expression(FORMULAS["line"], 3)
    device_engine.fit([program] * 3, None, slots, targets[0], max_steps=1)
    before = device_engine.compilations()
    for n, rows, steps in ((1, 293, 2), (7, 290, 3), (16, 257, 1), (11, 300, 4)):
        device_engine.fit([program] * n, None, slots[:, :rows], targets[0][:rows], max_steps=steps, tolerance=1e-3 / n)
    assert device_engine.compilations() == before
    device_engine.fit([program] * 17, None, slots, targets[0], max_steps=1)
    assert device_engine.compilations() == before + 1


def test_device_cuts_large_batches_and_row_blocks(monkeypatch: pytest.MonkeyPatch, few_families: None) -> None:
    programs, slots, starts, targets = problems()
    names = list(FORMULAS)
    mine = [names.index(name) for name in ("line", "whole powers", "quotient", "abs and neg")] * 10
    programs, starts = [programs[b] for b in mine], starts[mine]
    whole = fit(programs, starts, slots, targets[0], max_steps=3)
    monkeypatch.setattr(device_engine, "ROW_BLOCK", 128)
    monkeypatch.setattr(device_engine, "BATCHES", (16,))
    parts = fit(programs, starts, slots, targets[0], engine="device", max_steps=3)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-8, atol=1e-18)
    assert parts.steps.tolist() == whole.steps.tolist()


def test_mixed_precision_ends_in_double(few_families: None) -> None:
    _, slots, _, targets = problems()
    program = from_expression(FORMULAS["line"], 3)
    start = np.array([[1.0, 1.0, 1.0]])
    options = dict(max_steps=8, tolerance=1e-12)
    narrow = device_engine.fit([program], start, slots, targets[0], precision="float32", **options)
    mixed = device_engine.fit([program], start, slots, targets[0], precision="mixed", **options)
    assert mixed.losses[0] < 1e-20 < narrow.losses[0] < 1e-10
    with pytest.raises(ValueError, match="precision must be one of float64, float32, mixed, got 'half'"):
        device_engine.fit([program], start, slots, targets[0], precision="half", **options)


def test_no_accelerator_on_a_plain_machine() -> None:
    import jax

    assert device_engine.available() == (jax.default_backend() != "cpu")


# --- the device engine in the search ------------------------------------------------------------------------------------


def drawn_jobs() -> list[tuple[Candidates, np.ndarray, np.ndarray, np.ndarray, float]]:
    """Candidates of two islands over tables of one and three columns, each with a target of its own."""
    jobs = []
    few, many = (("id", "square", "mul"), ("add",)), (("id", "cube", "square"), ("add", "mul"))
    for n_variables, layers, hopeless in ((3, few, np.inf), (1, many, 0.1)):
        X = np.random.default_rng(n_variables).uniform(0.5, 2.0, (100, n_variables))
        island = Island(Architecture(n_variables, layers), "identity", IslandConfig(candidates_per_step=12), 1,
                        np.array([5], np.uint64))  # fmt: skip
        island.inputs = input_slots(X)[0]
        batch = island.draw(TriedStructures(8), 40, 0)
        assert len(batch.lengths) > 0
        jobs.append((batch, island.inputs, np.cos(X.sum(axis=1)), np.linspace(0.5, 1.5, 100), hopeless))
    return jobs


def test_candidates_of_several_islands_are_fitted_side_by_side(
    few_families: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_engine, "_FAMILIES", {"whole": device_engine._FAMILIES["whole"]})
    here, there = drawn_jobs(), drawn_jobs()
    options = dict(max_steps=2, tolerance=1e-12, screen_rows=40)
    cpu_fit_batches(here, **options, n_threads=1)
    device_engine.fit_batches(there, **options)
    for (mine, *_), (other, *_) in zip(here, there, strict=True):
        np.testing.assert_allclose(other.losses, mine.losses, rtol=1e-8)
        np.testing.assert_allclose(other.constants, mine.constants, rtol=1e-6, atol=1e-9)
        assert other.codes.tolist() == mine.codes.tolist() and other.steps.tolist() == mine.steps.tolist()


SHARED = """
import json, sys
import jax, numpy as np
from gmeql.fitters import device
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.fitters.programs import from_expression, input_slots
assert len(jax.devices()) == int(sys.argv[1])
X = np.random.default_rng(0).uniform(0.5, 2, (50, 2))
x, y = Variable(0), Variable(1)
root = Call("add", (Call("mul", (Constant(1.0), Call("square", (x,)))), Call("mul", (Constant(1.0), y))))
starts = np.random.default_rng(1).normal(size=(70, 2))
result = device.fit([from_expression(root, 2)] * 70, starts, input_slots(X)[0], X.sum(axis=1), max_steps=3)
print(json.dumps([a.tolist() for a in result]))
"""


@pytest.mark.slow
def test_several_devices_share_a_batch_and_change_nothing() -> None:
    outputs = []
    for count in (1, 4):
        flags = f"--xla_force_host_platform_device_count={count}"
        environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", SHARED, str(count)]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1] and len(json.loads(outputs[0])[1]) == 70
