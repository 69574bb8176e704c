"""Constants are shown to the digits that the rows know, and the shown formula predicts what the formula does."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.certainty import shown as shown_module
from gmeql.model.certainty.shown import shown_digits, with_shown_digits
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from judged_fronts import judged


def formula(text: str, *names: str) -> Expression:
    return Expression(parse_tree(text, names), names)


def shown(expression: Expression, X: np.ndarray, y: np.ndarray, **options) -> Expression:
    digits = shown_digits(FrontMember(expression, 1.0, expression.complexity, 0.0, 0), X, y, **options)
    return expression if digits is None else expression.with_digits(digits)


def as_read(expression: Expression) -> Expression:
    return formula(str(expression), *expression.names)


def line(
    rng: np.random.Generator, n: int, noise: float, start: float = 0.0
) -> tuple[np.ndarray, np.ndarray, Expression]:
    X = rng.uniform(start, start + 10.0, (n, 1))
    y = 0.7314 * X[:, 0] - 3.2 + noise * rng.normal(size=n)
    slope, level = np.polyfit(X[:, 0], y, 1)
    return X, y, formula(f"{float(slope)!r}*x - {-float(level)!r}", "x")


@pytest.mark.parametrize(("noise", "start"), [(1.0, 0.0), (0.1, 0.0), (0.01, 0.0), (1.0, 1950.0)])
def test_rounding_costs_a_small_share_of_what_the_constants_errors_cost(noise, start):
    """Each constant costs unseen rows 1/N of the squared error; a level beside the slope over a year needs more digits."""
    worst = 0.0
    for seed in range(20):
        X, y, fitted = line(np.random.default_rng(seed), 40, noise, start)
        moved = np.mean((as_read(shown(fitted, X, y))(X) - fitted(X)) ** 2)
        worst = max(worst, moved / (2 / 40 * np.mean((y - fitted(X)) ** 2)))
    assert worst < 0.101


def test_few_rows_are_shown_few_digits_and_many_rows_more():
    lengths = []
    for n, noise in ((12, 2.0), (100, 0.5), (4000, 0.1)):
        X, y, fitted = line(np.random.default_rng(0), n, noise)
        lengths.append(len(str(shown(fitted, X, y))))
    assert lengths == sorted(set(lengths)) and lengths[0] <= len("0.73*x - 3.2") + 1


def test_no_factor_vanishes_and_no_root_appears_by_rounding():
    rng = np.random.default_rng(1)
    X = rng.uniform(1.0, 9.0, (15, 1))
    expression = formula("1.01234567*x**0.50123456 + 2.9876543", "x")
    assert str(shown(expression, X, expression(X) + rng.normal(size=15))) == "1.01*x**0.501 + 3"
    nearer = formula("1.00000321*x + 2.9876543", "x")
    assert str(shown(nearer, X, nearer(X) + rng.normal(size=15))) == "x + 3"


def test_a_formula_without_noise_keeps_the_digits_it_has():
    X = np.linspace(1.0, 5.0, 30)[:, None]
    expression = formula("3.14159265*x + 0.25", "x")
    assert str(shown(expression, X, expression(X))) == str(expression)


def test_digits_stay_with_a_front_and_its_numbers_stay_whole():
    X, y, fitted = line(np.random.default_rng(3), 40, 0.5)
    beaten = [FrontMember(formula("0.6123456*x1 - 2.1234567", "x1"), 2.0, 5, 0.0, -1)]
    before = judged(X, y, fitted.exact().replace("x", "x1"))
    front = with_shown_digits(replace(before, others=tuple(beaten)), X, y, None)
    texts = [str(m) for m in front]
    assert texts != [str(m) for m in before] and all(
        a.expression == b.expression for a, b in zip(front, before, strict=True)
    )
    for again in (Front.from_dict(front.to_dict()), pickle.loads(pickle.dumps(front))):  # noqa: S301
        assert [str(m) for m in again] == texts and [m.latex() for m in again] == [m.latex() for m in front]
        assert [m.expression.exact() for m in again] == [m.expression.exact() for m in before]
    assert [str(one) for one in front.others] == ["0.61*x1 - 2.12"]


@pytest.mark.parametrize("digits", [[], [3, 3, 3], [0, 3], [3, 18], [3, True], "33", 3])
def test_digits_of_a_file_are_checked(digits):
    data = formula("2.5*x + 1.5", "x").to_dict()
    with pytest.raises(ValueError, match="digits"):
        Expression.from_dict(data | {"digits": digits})


def test_counts_and_classes_have_digits_by_their_likelihood():
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 2.0, (200, 1))
    expression = formula("0.51234567*x + 1.01234567", "x")
    y = (rng.random(200) < 1 / (1 + np.exp(-expression(X)))).astype(float)
    assert shown(expression, X, y, loss="logistic").digits == (2, 3)


def test_digits_told_late_are_those_of_the_rows_as_they_were(monkeypatch):
    X, y, fitted = line(np.random.default_rng(3), 40, 0.5)
    beaten = [FrontMember(formula("0.6123456*x1 - 2.1234567", "x1"), 2.0, 5, 0.0, -1)]
    before = replace(judged(X, y, fitted.exact().replace("x", "x1")), others=tuple(beaten))
    at_once = with_shown_digits(before, X, y, None)
    asked, plain = [], shown_module._digits

    def counted(*given):
        asked.append(given)
        return plain(*given)

    monkeypatch.setattr(shown_module, "_digits", counted)
    late = with_shown_digits(before, X, y, None, late=True)
    assert not asked and [m.expression for m in late] == [m.expression for m in at_once]
    X[:], y[:] = 0.0, 1.0  # the table is the user's
    assert str(late[-1]) == str(at_once[-1]) and len(asked) == 1
    assert [str(one) for one in (*late, *late.others)] == [str(one) for one in (*at_once, *at_once.others)]
