"""What was known before the search, as the report states it: the unit of every constant, what is kept and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.knowledge.knowledge import Knowledge


def unit_texts(expression: Expression, knowledge: Knowledge | None) -> list[str]:
    """The unit of each constant, as in `Expression.constants`; empty where no units are known."""
    units = [] if knowledge is None else knowledge.units_of_constants(expression.root)
    return ["breaks the units" if unit is None else str(unit) for unit in units]


def kept_lines(expression: Expression, knowledge: Knowledge | None) -> list[str]:
    """One line for each thing that was known: whether the formula keeps it, and by proof or on points."""
    if knowledge is None:
        return []
    lines = []
    if knowledge.units is not None:
        keeps = knowledge.keeps_units(expression.root)
        lines.append("The units agree." if keeps else "The units do not agree.")
    if knowledge.template is not None:
        lines.append(f"It has the form {knowledge.template.text}.")
    for constraint, verdict in knowledge.verdicts(expression.root):
        if not verdict.holds:
            how = "broken" if verdict.proven or not constraint.needs_values else "not shown to hold"
        elif not constraint.needs_values:
            how = "kept"
        else:
            how = "guaranteed by interval arithmetic" if verdict.proven else "kept on 10,000 points"
        lines.append(f"{constraint.text()}: {how}.")
    return lines
