"""Parts of formulas pinned and forbidden: read without evaluating, found in any order, written out again."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.expression import Expression
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.runs.steering import Steering, contains, merge, operators_in, parse
from gmeql.search.events import Member
from gmeql.tables.read import Training, read
from judged_fronts import judged


@pytest.mark.parametrize(
    ("whole", "part", "found"),
    [
        ("a*b + sin(a)", "sin(a)", True),
        ("2*b*a", "a*b", True),
        ("a/b", "a/b", True),
        ("a*b", "a/b", False),
        ("sin(a*b)", "b*a", True),
        ("a**2", "a*a", False),
        ("square(a)", "a**2", True),
        ("a - b", "b - a", False),
        ("1 + a + b", "a + b", True),
        ("sin(a)", "sin(b)", False),
        ("3*a", "3*a", True),
        ("3*a", "4*a", False),
    ],
)
def test_parts_are_found_whatever_their_order(whole, part, found):
    assert contains(parse(whole, ["a", "b"]), parse(part, ["a", "b"])) is found


@pytest.mark.parametrize(
    "text",
    ["", "a b", "__import__('os')", "a.b", "a[0]", "lambda: 1", "a if b else 1", "sin", "sin(a, b)", "'x'", "1_0j", "q",
             "a" * 400, "(" * 250 + "a", "`q`", "column_in_backticks_3", "9**9**9**9", "True"]
)  # fmt: skip
def test_text_that_is_no_formula_is_refused(text):
    if text == "9**9**9**9":  # read as a tree, never computed while reading
        assert parse(text, ["a"]).depth > 1
        return
    with pytest.raises(ConfigError):
        parse(text, ["a", "b"])


def test_names_of_any_kind_stand_in_backticks():
    assert parse("`flow rate`/`<b>`", ["<b>", "flow rate"]).variables == (0, 1)


def table() -> Training:
    return read(b"a,b,y\n1,2,3\n2,3,5\n4,5,9\n", name="t.csv").select("y")


def steering(**settings) -> Steering:
    return Steering.of(FitSettings(**settings), ("a", "b"))


def test_a_pinned_part_is_a_column_and_is_written_out_again():
    pinned = steering(pin=("a*b",))
    wide = pinned.extend(table())
    np.testing.assert_array_equal(wide.X[:, 2], wide.X[:, 0] * wide.X[:, 1])
    found = Expression(Call("sin", (Variable(2),)), wide.names)
    assert str(pinned.write_out(found, ("a", "b"))) == "sin(a*b)"


def test_a_part_without_a_finite_value_names_the_row():
    with pytest.raises(ConfigError, match="no finite value in row 2 of t.csv"):
        steering(pin=("log(a - 1)",)).extend(table())
    with pytest.raises(ConfigError, match="at most"):
        steering(pin=("a",) * 9)


def test_forbidden_functions_leave_the_set_and_forbidden_parts_the_front():
    forbidding = steering(forbid=("sin", "a*b"))
    assert forbidding.active and not steering().active
    assert forbidding.functions(None, ("add", "sin")) == ("add",) and steering().functions(None, ("add",)) is None
    with pytest.raises(ConfigError, match="no function is left"):
        forbidding.functions(("sin",), ())
    kept = merge(
        [Member(parse(text, ["a", "b"]), 1.0, 0) for text in ("sin(a)", "2*b*a", "a + b")], forbidding, ("a", "b")
    )
    assert [str(member.expression) for member in kept] == ["a + b"] and kept[0].complexity == 3


def test_operators_of_a_formula():
    assert operators_in(parse("sin(a)*b + 1", ["a", "b"])) == {"sin", "mul", "add"}


def test_a_pinned_part_and_its_neighbours_are_one_product():
    names = ("speed", "grip")
    pinned = Steering((parse("speed/grip", names),), frozenset(), ())
    wide = (*names, "(speed/grip)")
    product = Expression(Call("mul", (Constant(2.0), Variable(0), Variable(2))), wide)
    assert str(pinned.write_out(product, names)) == "2*speed**2/grip"
    cube = Expression(Call("add", (Call("mul", (Variable(0), Variable(2))), Call("cube", (Variable(2),)))), wide)
    assert str(pinned.write_out(cube, names)) == "speed**2/grip + (speed/grip)**3"
    square = Expression(Call("mul", (Variable(2), Variable(2))), wide)
    assert str(pinned.write_out(square, names)) == "speed**2/grip**2"
    forbidding = Steering(pinned.pins, frozenset({"pow", "square"}), ())
    assert str(forbidding.write_out(product, names)) == "2*speed*speed/grip"


def test_a_formula_need_not_say_more_than_a_forbidden_one(rng: np.random.Generator) -> None:
    """Of a run without `exp` a line was chosen that errs 1.4 times as much as the parabola beside it on unseen rows: that said
    no more than the exponential, which was forbidden."""
    X = rng.uniform(1, 3, (90, 1))
    y = 0.9 * np.exp(0.8 * X[:, 0]) + 0.3 + 0.05 * rng.normal(size=90)
    slope, level = np.polyfit(X[:, 0], y, 1)
    e, d, c, b, a = np.polyfit(X[:, 0], y, 4).tolist()
    quartic = f"{a!r} + {b!r}*x1 + {c!r}*x1**2 + {d!r}*x1**3 + {e!r}*x1**4"
    front = judged(X, y, f"{slope:.15g}*x1 + {level:.15g}", "0.9*exp(0.8*x1) + 0.3", quartic)
    kept = merge(front, steering(forbid=("exp",)), ("x1",))
    (exponential,) = [m for m in front if "exp" in str(m)]
    last, before = kept[-1].outlook, front[-1].outlook
    assert [str(m.expression) for m in kept] == [str(m) for m in front if m is not exponential] and len(kept) == 3
    assert before.support < 2 < last.support and exponential.complexity in dict(before.gains)
    assert exponential.complexity not in dict(last.gains) and last.support == min(z for _, z in last.gains)
    assert merge(front, steering(), ("x1",))[-1].outlook == before
