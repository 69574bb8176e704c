"""Formulas as flat programs and back: the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

import random_trees
from gmeql.fitters import reference
from gmeql.fitters.programs import (
    MAX_CONSTANTS,
    MAX_NODES,
    POWER_FITTED,
    POWER_WHOLE,
    ProgramTooLong,
    from_expression,
    BELOW_THE_LEAST,
    input_slots,
    replace_constants,
    stack,
    to_node,
)
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build

X = random_trees.rows()
SLOTS, POSITIVE = input_slots(X)
x, y, z = (Variable(i) for i in range(3))
call = random_trees.call


def run(root: Node, fixed: tuple[int, ...] = ()) -> tuple[np.ndarray, object]:
    """Output of a formula's program on all rows, and the program."""
    program = from_expression(root, 3, fixed)
    with np.errstate(all="ignore"):
        return reference.evaluate(program.code, program.start, program.n_free, SLOTS)[0], program


def close(actual: np.ndarray, expected: np.ndarray, rows: np.ndarray, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(actual[rows], expected[rows], rtol=rtol)


@given(random_trees.expressions(protected=False))
def test_a_program_computes_its_formula(expression: Expression) -> None:
    try:
        output, program = run(expression.root)
    except ProgramTooLong:
        assume(False)
    rows = random_trees.comparable(expression, X) & random_trees.all_parts_finite(expression, X)
    close(output, expression(X), rows)
    assert program.n_free == len(program.start) == len(program.leaves)


@given(random_trees.expressions(protected=False))
def test_back_to_a_formula(expression: Expression) -> None:
    try:
        program = from_expression(expression.root, 3)
    except ProgramTooLong:
        assume(False)
    again = Expression(to_node(program.code, program.length, program.start, 3), expression.names)
    rows = random_trees.comparable(expression, X) & random_trees.all_parts_finite(expression, X)
    close(again(X), expression(X), rows)


@given(random_trees.expressions(protected=False))
def test_new_constants_come_to_the_right_places(expression: Expression) -> None:
    """Constants moved through the program and through the tree give the same numbers."""
    try:
        program = from_expression(expression.root, 3)
    except ProgramTooLong:
        assume(False)
    moved = program.start * 1.03125
    again = replace_constants(expression, program, moved)
    with np.errstate(all="ignore"):
        output, _ = reference.evaluate(program.code, moved, program.n_free, SLOTS)
    rows = random_trees.comparable(again, X) & random_trees.all_parts_finite(again, X)
    close(output, again(X), rows)


def test_input_slots() -> None:
    assert SLOTS.shape == (7, len(X)) and (SLOTS[3] == 1).all() and not POSITIVE.any()
    slots, positive = input_slots(np.abs(X) * [1, -1, 1])
    assert positive.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(slots[4], np.log(np.abs(X[:, 0])))
    assert np.isnan(slots[5]).all() and slots.flags.c_contiguous


def test_nothing_has_a_logarithm_far_below_all_others() -> None:
    slots, positive = input_slots(np.array([[0.0, 0.0, -1.0], [2.0, 0.0, 0.0], [5.0, 0.0, 3.0]]))
    assert positive.tolist() == [1, 0, 0]
    np.testing.assert_allclose(slots[4], [np.log(2.0) - BELOW_THE_LEAST, np.log(2.0), np.log(5.0)])
    assert np.isnan(slots[5:]).all()


def test_a_constant_factor_takes_no_node() -> None:
    _, program = run(call("add", call("mul", 2.0, x), call("mul", y, 3.0)))
    assert program.code.tolist() == [[1], [0], [1], [0], [1]] and program.start.tolist() == [2.0, 3.0]


def test_whole_exponents_are_structure_and_others_constants() -> None:
    _, whole = run(call("pow", x, 3.0))
    assert whole.code[0].tolist() == [POWER_WHOLE] and whole.code[2].tolist() == [3] and whole.n_free == 0
    _, fitted = run(call("pow", x, 1.5))
    assert fitted.code[0].tolist() == [POWER_FITTED] and fitted.start.tolist() == [1.5]


def test_a_leaf_alone_is_a_program() -> None:
    assert run(x)[0].tolist() == X[:, 0].tolist()
    assert run(Constant(2.5))[0].tolist() == [2.5] * len(X)
    assert run(call("mul", 2.0, x))[0].tolist() == (2 * X[:, 0]).tolist()


def test_fixed_constants_go_behind_the_free_ones() -> None:
    root = call("add", call("mul", 2.0, x), call("mul", 3.0, y), 4.0)
    output, program = run(root, fixed=(0, 2))
    assert program.n_free == 1 and program.leaves == (1, 0, 2) and program.start.tolist() == [3.0, 2.0, 4.0]
    np.testing.assert_allclose(output, 2 * X[:, 0] + 3 * X[:, 1] + 4)


def test_programs_that_are_too_long_are_refused() -> None:
    with pytest.raises(ProgramTooLong, match=str(MAX_CONSTANTS)):
        from_expression(Call("add", tuple(call("mul", 2.0, x) for _ in range(MAX_CONSTANTS + 1))), 3)
    deep: Node = x
    for _ in range(MAX_NODES + 1):
        deep = call("sin", deep)
    with pytest.raises(ProgramTooLong, match=str(MAX_NODES)):
        from_expression(deep, 3)


def test_a_product_of_fitted_powers_reads_as_one() -> None:
    """Π over the variables is exp of a weighted sum of logarithms; the formula shows powers."""
    code = np.array([[1, 13], [4, 7], [5, 7], [0, -1], [1, -1]], np.int16)
    node = to_node(code, 2, np.array([2.0, -0.5]), 3)
    assert str(Expression(node, ("x", "y", "z"))) == str(
        Expression(build("mul", build("pow", x, Constant(2.0)), build("pow", y, Constant(-0.5))), ("x", "y", "z"))
    )
    positive = np.abs(X) + 0.1
    slots, _ = input_slots(positive)
    expected, _ = reference.evaluate(code, np.array([2.0, -0.5]), 2, slots)
    np.testing.assert_allclose(Expression(node, ("x", "y", "z"))(positive), expected, rtol=1e-12)


def test_stacked_programs_are_padded() -> None:
    programs = [from_expression(call("sin", call("mul", 2.0, x)), 3), from_expression(call("add", x, y, z), 3)]
    codes, lengths, n_free, start = stack(programs)
    assert codes.shape == (2, 5, MAX_NODES) and lengths.tolist() == [1, 2] and n_free.tolist() == [1, 0]
    assert start.shape == (2, MAX_CONSTANTS) and start[0, 0] == 2.0 and not start[1].any()


def test_parameters_stand_in_several_places_and_are_fitted_once() -> None:
    a, b = Variable(3), Variable(4)
    root = build(
        "add", build("mul", a, build("sin", build("mul", b, x))), build("mul", a, build("sin", build("mul", b, y)))
    )
    program = from_expression(root, 3, (), parameters=(1.5, 0.7))
    assert sorted(program.leaves) == [-2, -1] and program.n_free == 2
    expected = 1.5 * (np.sin(0.7 * X[:, 0]) + np.sin(0.7 * X[:, 1]))
    found, slopes = reference.evaluate(program.code, program.start, program.n_free, SLOTS)
    np.testing.assert_allclose(found, expected)
    place = program.leaves.index(-1)
    np.testing.assert_allclose(slopes[:, place], expected / 1.5)  # the slope by a is the sum over its places
    held = from_expression(root, 3, {-1}, parameters=(1.5, 0.7))
    assert held.n_free == 1 and held.leaves == (-2, -1)


def test_a_parameter_of_one_place_takes_no_node() -> None:
    program = from_expression(build("mul", Variable(3), build("sin", x)), 3, (), parameters=(2.0,))
    assert program.length == 2
    power = from_expression(Call("pow", (x, Variable(3))), 3, (), parameters=(1.5,))
    assert power.code[0].tolist() == [POWER_FITTED]


def test_a_formula_with_names_in_the_places_of_constants() -> None:
    program = from_expression(build("mul", Constant(2.5), build("sin", x)), 3)
    node = to_node(program.code, program.length, [Variable(7)], 3)
    assert node == build("mul", Variable(7), build("sin", x))
