"""The constants of each group's own as the report shows them: a row for each group, with intervals and units.

Legend: `V` columns of the user's table, `G` groups, `K` own constants of one formula.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gmeql.formula.nodes import Constant, Variable, leaves
from gmeql.formula.printing.notation import number_text, round_constant
from gmeql.knowledge.of_groups import GroupsKnowledge
from gmeql.model.certainty.intervals import constant_intervals
from gmeql.report.constants import errors_of
from gmeql.report.numbers import with_same_decimals
from gmeql.search.groups.table import own_columns

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.knowledge.knowledge import Knowledge
    from gmeql.model.certainty.intervals import ConstantInterval
    from gmeql.search.groups.table import OwnConstants
    from gmeql.tables.training import Training

MAX_GROUPS = 100
"""Groups that the page lists; groups.csv has all."""
MAX_CONSTANTS = 200
"""Constants, of all groups together, up to which intervals are computed: the time grows with their square."""


def n_columns(training: Training, own: OwnConstants | None) -> int:
    """How many columns are the user's; the own constants of groups stand behind them."""
    own_count = 0 if own is None or training.groups is None else int(own.values.shape[1])
    return int(training.X.shape[1]) - own_count


def group_view(
    expression: Expression,
    training: Training,
    own: OwnConstants | None,
    *,
    loss: str = "squared",
    knowledge: Knowledge | None = None,
) -> dict[str, Any] | None:
    """Headings and rows of the table of own constants; None where the formula has none.

    `training` are the rows as the formula sees them, own constants behind the table's columns.
    """
    if own is None or training.groups is None:
        return None
    n_variables = n_columns(training, own)
    used = own_columns(expression.root, n_variables)
    if not used:
        return None
    units = knowledge.units_of_own(expression.root) if isinstance(knowledge, GroupsKnowledge) else {}
    names = [expression.names[n_variables + k] for k in used]
    unit_texts = [str(units[n_variables + k]) if units.get(n_variables + k) is not None else "" for k in used]
    known = _intervals(expression, training, own, n_variables, loss)
    rows = [
        [label, *(_value(float(own.values[g, k]), known.get((k, g))) for k in used)]
        for g, label in enumerate(own.labels[:MAX_GROUPS])
    ]
    more = len(own.labels) - len(rows)
    return {
        "column": own.column,
        "names": [
            f"{name} [{unit}]" if unit and unit != "1" else name for name, unit in zip(names, unit_texts, strict=True)
        ],
        "rows": rows,
        "with_intervals": bool(known),
        "more": f"{more} more groups stand in groups.csv." if more > 0 else "",
    }


def _intervals(
    expression: Expression, training: Training, own: OwnConstants, n_variables: int, loss: str
) -> dict[tuple[int, int], ConstantInterval]:
    """Intervals of own constants by column and group, all constants of the formula fitted together; empty where too many."""
    used = own_columns(expression.root, n_variables)
    if len(used) * len(own.labels) > MAX_CONSTANTS:
        return {}
    assert training.groups is not None
    X = own.indicators(training.X[:, :n_variables], own.codes(list(training.groups)))
    written = own.written_out(expression, n_variables)
    try:
        weights, errors = training.weights, errors_of(training)
        found = constant_intervals(written, X, training.y, sample_weight=weights, errors=errors, loss=loss)
    except ValueError:
        return {}
    by_place = {item.position: item for item in found}
    place, result = 0, {}
    for leaf in leaves(expression.root):
        if isinstance(leaf, Constant):
            place += 1
        elif isinstance(leaf, Variable) and leaf.index >= n_variables:
            for g in range(len(own.labels)):
                if place + g in by_place:
                    result[leaf.index - n_variables, g] = by_place[place + g]
            place += len(own.labels)
    return result


def _value(value: float, interval: ConstantInterval | None) -> str:
    """A value with its half interval, and as many digits as that allows."""
    if interval is None or not math.isfinite(interval.standard_error):
        return number_text(round_constant(value))
    half = (interval.high - interval.low) / 2
    shown, width = with_same_decimals((value, half), half)
    return f"{shown} ± {width}"
