"""The one rule of "solved": rough constants and ballast are forgiven, another formula is not."""

from gmeql.evaluation.paper.cells import Cell, table
from gmeql.evaluation.paper.judging import judge_expression, judge_structure
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable


def times(c, node):
    return Call("mul", (Constant(c), node))


B1 = [times(0.8, Call("cube", (Variable(0),))), times(0.9, Call("square", (Variable(1),))), times(1.2, Variable(2))]


def verdict_of(root, problem="b1", noise=0.0, names=("x1", "x2", "x3")):
    cell = Cell(problem, "gmeql", noise=noise)
    return judge_expression(Expression(root, names), cell, *table(cell))[0]


def test_truth_with_rough_constants_or_ballast_is_solved():
    rough = [times(0.79, B1[0].args[1]), times(0.93, B1[1].args[1]), times(1.19, Variable(2))]
    assert verdict_of(Call("add", tuple(rough))).solved
    ballast = (*rough, times(3e-3, Call("sin", (Variable(0),))), Constant(0.01))
    assert verdict_of(Call("add", ballast)).solved


def test_what_only_the_cutting_found_is_not_solved():
    """Near the data, but the refit alone is not exact: pruning would find b8's truth in it."""
    ratio = Call("div", (Variable(1), Variable(0)))
    inside = Call(
        "add",
        (
            Constant(1.3),
            Call(
                "mul",
                (
                    ratio,
                    Call(
                        "cos", (times(0.3, Call("sqrt", (Call("sqrt", (Call("div", (Variable(2), Variable(1))),)),))),)
                    ),
                ),
            ),
        ),
    )
    assert not verdict_of(Call("sqrt", (inside,)), "b8").solved
    far = Call("add", tuple(times(3.0 * c.args[0].value, c.args[1]) for c in B1))
    assert "from the data" in verdict_of(far).reason


def test_protected_reading_of_the_truth_is_solved():
    inside = Call("add", (Constant(1.29), times(1.21, Call("div", (Variable(1), Variable(0)), protected=True))))
    assert verdict_of(Call("sqrt", (inside,), protected=True), "b8").solved


def test_a_good_fit_that_is_not_the_truth_is_not_solved():
    assert not verdict_of(Call("add", tuple(B1[:2]))).solved
    wide = Call("add", tuple(times(0.1, Call("sin", (times(0.1 * k, Variable(0)),))) for k in range(1, 30)))
    assert not verdict_of(wide).solved


def test_with_noise_the_structure_decides():
    assert verdict_of(Call("add", tuple(B1)), noise=0.1).solved
    assert not verdict_of(Call("add", (*B1[:2], times(1.2, Call("sqrt", (Variable(2),))))), noise=0.1).solved


def structure_of(root, problem="b1", names=("x1", "x2", "x3")):
    cell = Cell(problem, "gmeql")
    return judge_structure(Expression(root, names), cell, *table(cell))[0]


def test_structure_asks_for_the_wiring_and_not_for_the_constants():
    far = Call("add", tuple(times(-3.0 * c.args[0].value, c.args[1]) for c in B1))
    assert not verdict_of(far).solved
    assert structure_of(far).solved
    assert not structure_of(Call("add", tuple(B1[:2]))).solved
    wave = Call("mul", (times(1.2, Call("sin", (times(2.5, Variable(0)),))), Call("cos", (times(0.4, Variable(1)),))))
    assert structure_of(
        wave, "b6", ("x1", "x2")
    ).solved  # from its own constants another wave's minimum, from 1 this one


def test_a_guard_that_acts_inside_ballast_alone_is_no_veto():
    never = Call("div", (Variable(0), Call("sub", (Variable(1), Variable(1)))), protected=True)
    guarded = Call("add", (*B1, times(1e-3, never)))
    assert verdict_of(guarded).solved
    assert structure_of(guarded).solved
    active = Call(
        "add",
        (*B1[:2], times(1.2, Call("sqrt", (Call("mul", (Variable(2), Variable(2), Constant(-1.0))),), protected=True))),
    )
    assert "outside its domain" in verdict_of(active).reason
