"""What a figure of the paper is here: the cells it needs, the paper's words, what was measured, the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.plan import BudgetPlan
from gmeql.evaluation.paper.records import Record

Records = dict[str, Record]
"""Records by the key of their cell."""


@dataclass(frozen=True)
class Finding:
    """What was measured: rows for the machine, sentences for people, and how it stands to the paper."""

    rows: list[dict[str, Any]]
    words: list[str]
    agreement: str  # "agrees", "differs", "partly", "undecided", "too few runs", "not comparable", "not measured"


@dataclass(frozen=True)
class Figure:
    """One table or figure of the paper; the page shows a table's rows instead of its picture."""

    name: str
    title: str
    paper_says: str
    cells: Callable[[BudgetPlan], list[Cell]]
    measure: Callable[[BudgetPlan, Records], Finding]
    draw: Callable[[BudgetPlan, Records, Any], None]
    size: tuple[float, float] = (6.0, 4.0)
    also: tuple[str, ...] = ()  # other names `only` accepts
    is_table: bool = False
