"""Fitting constants: one contract for every engine, SciPy as the judge."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fitting_problems import FORMULAS, NAMES, data, problems, scaled, x, y, z
from host_cuda import COMPILER, HostDriver
from random_trees import call
from scipy.optimize import least_squares

from gmeql.fitters import CONVERGED, NOT_FINITE, STEPS_SPENT, fit, reference
from gmeql.fitters.cuda import driver
from gmeql.fitters.programs import Program, from_expression, input_slots, replace_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.registration import register_operator, unregister_operator

ENGINES = ("cpu", "reference", "device")
every_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(autouse=True)
def no_card_needed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accelerator's kernel, compiled for the processor."""
    if request.node.callspec.params.get("engine") == "device" if hasattr(request.node, "callspec") else False:
        if COMPILER is None:
            pytest.skip("no C++ compiler here")
        monkeypatch.setattr(driver, "drivers", lambda: (HostDriver(), HostDriver()))


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
def test_a_power_has_a_value_where_its_column_is_nothing(engine: str) -> None:
    """`3*x**1.37` had none beside a row with x = 0, nor had `c*(y*x)**b` or `x**z`."""
    rng = np.random.default_rng(5)
    X = np.column_stack([np.tile(np.arange(8.0), 8), rng.uniform(1, 3, 64)])
    slots, _ = input_slots(X)
    inner = build("div", Variable(0), Constant(2.5))
    roots = {
        "alone": build("mul", Constant(3.0), build("pow", Variable(0), Constant(1.37))),
        "inside": build("div", Constant(5.0), build("add", Constant(1.0), build("pow", inner, Constant(0.7)))),
        "of a column": build("mul", Constant(2.0), build("pow", Variable(0), build("mul", Constant(0.4), Variable(1)))),
    }
    for name, root in roots.items():
        program = from_expression(root, 2)
        truth = Expression(root, ("x", "y"))(X)
        start = program.start[None, :] * 1.1
        result = fit([program], start, slots, truth, engine=engine, max_steps=60, tolerance=1e-13)
        assert np.isfinite(truth).all() and result.losses[0] < 1e-18, name
    falling = from_expression(build("pow", Variable(0), Constant(-0.5)), 2)
    assert fit([falling], None, slots, X[:, 1], engine=engine).codes[0] == NOT_FINITE


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
