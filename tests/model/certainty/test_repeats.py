"""Formulas beyond the front that say what another one says, written another way, are listed once."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.certainty.alternatives import alternatives
from gmeql.model.certainty.repeats import without_repeats
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember

NAMES = ("a", "bonn", "ulm", "jena")


def front_of(X: np.ndarray, y: np.ndarray, *texts: str, beaten: tuple[str, ...]) -> Front:
    def member(text: str) -> FrontMember:
        expression = Expression(parse_tree(text, NAMES), NAMES)
        loss = float(np.sqrt(np.mean((expression(X) - y) ** 2)))
        return FrontMember(expression, loss, expression.complexity, 0.0, 0)

    figures = {"rows": len(y), "target_spread": float(y.std()), "target_largest": float(np.abs(y).max())}
    return Front.from_members(map(member, texts), **figures, beaten=map(member, beaten))


def table(rng: np.random.Generator, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.column_stack([rng.uniform(1, 5, 90), np.eye(3)[rng.integers(0, kinds, 90)]])
    y = (1.5 + 0.66 * X[:, 1]) * X[:, 0] + 2.4 + 0.3 * rng.standard_normal(90)
    return X, y


def test_one_function_in_two_columns_of_a_category_is_listed_once(rng: np.random.Generator) -> None:
    """`a*town=Bonn` in one, `a*town=Ulm` in the other: each had a third of the evidence."""
    X, y = table(rng, 2)
    coded = ("2.16*a - 0.66*a*ulm + 2.4", "a*(1.503 + 0.658*bonn) + 2.399", "0.66*a*bonn + 1.5*(a + 1.6)")
    front = front_of(X, y, "1.5*a + 0.66*a*bonn + 2.4", beaten=(*coded, "1.7*a + 2.1*bonn + 1.6"))
    assert len(alternatives(front, 10)) > 2
    found = without_repeats(front, X)
    assert [str(m.expression) for m in found.others] == ["1.7*a + 2.1*bonn + 1.6"]
    assert alternatives(found, 10)[0].expression == front[0].expression


def test_with_a_third_kind_they_are_two(rng: np.random.Generator) -> None:
    X, y = table(rng, 3)
    front = front_of(X, y, "1.5*a + 0.66*a*bonn + 2.4", beaten=("2.16*a - 0.66*a*ulm + 2.4",))
    assert without_repeats(front, X) == front


def test_of_formulas_beyond_the_front_the_first_stays(rng: np.random.Generator) -> None:
    X, y = table(rng, 2)
    front = front_of(X, y, "6.9", beaten=("1.7*a + 2.1*bonn + 1.6", "1.7*a - 2.1*ulm + 3.7"))
    assert [str(m.expression) for m in without_repeats(front, X).others] == [str(front.others[0].expression)]


@pytest.mark.parametrize("other", ["2*sin(a/1000) - 1", "0.002*a - 1 + 0.00000001*a**2"])
def test_what_is_alike_on_these_rows_alone_is_no_repetition(other: str, rng: np.random.Generator) -> None:
    X = table(rng, 2)[0]
    y = 0.002 * X[:, 0] - 1 + 1e-9 * rng.standard_normal(90)
    front = front_of(X, y, "0.002*a - 1", beaten=(other,))
    assert without_repeats(front, X).others == front.others
