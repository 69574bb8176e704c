"""The words that options take come from the tables, and from nowhere else."""

from __future__ import annotations

import pytest

from gmeql.cli.choices import CALLABLE_FORMATS, complete, formats, require, words
from gmeql.cli.exits import USAGE, Exit
from gmeql.evaluation.paper.plan import BUDGETS
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable
from gmeql.formula.printing.export import EXPORTS
from gmeql.model.fit.methods import METHODS
from gmeql.model.pareto.rules import RULES
from gmeql.search.config import DEVICES
from gmeql.search.losses.losses import LOSSES


@pytest.mark.parametrize(
    ("option", "table"),
    [("method", METHODS), ("selection", RULES), ("loss", LOSSES), ("device", DEVICES), ("budget", BUDGETS)],
)
def test_words_are_those_of_the_table(option, table) -> None:
    assert words(option) == list(table)


def test_a_format_is_offered_where_it_can_be_printed() -> None:
    assert set(formats()) | CALLABLE_FORMATS == set(EXPORTS)
    expression = Expression(Variable(0), ("a",))
    for name in formats():
        assert not callable(expression.export(name)) or name == "sympy"


def test_a_word_is_taken_completed_or_refused_with_the_others() -> None:
    assert require("loss", "huber") == "huber"
    assert complete("loss")("s") == ["squared"] and complete("format")("") == formats()
    with pytest.raises(Exit, match="--loss 'cubic': unknown; one of squared, huber") as ended:
        require("loss", "cubic")
    assert ended.value.code == USAGE
