"""One formula of a front with its figures and its form in files.

Everything here is pure: no formula is changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.expression import Expression
from gmeql.model.pareto.rules import SELECTION
from gmeql.search.judging.deferred import OUTLOOK, Deferred, OutlookField, carried
from gmeql.search.judging.outlook import Outlook

if TYPE_CHECKING:
    from gmeql.search.events import Member

MAX_OWN = 1_000_000
"""Constants of groups' own that a file may claim."""


@dataclass(frozen=True)
class FrontMember:
    """One formula of a front with its figures. Calling it evaluates it; `str()` is the readable formula."""

    expression: Expression
    loss: float
    """Root mean squared error on the training rows, in the target's units."""
    complexity: int
    score: float
    """Drop of log(loss) per unit of complexity against the next simpler member; 0 for the simplest."""
    index: int
    """Position on the front; what `predict(X, index=...)` takes. -1 for a formula beyond the front."""
    outlook: OutlookField = OUTLOOK
    """What it promises on unseen rows; None where nobody looked (fronts of earlier versions, method "paper")."""
    n_own: int = 0
    """Constants of groups' own that it has, all groups together."""

    @property
    def marked(self) -> Outlook | None:
        """The outlook as one that may have been marked, by who asks for marks alone; None also where nobody asked for it yet:
        then nothing was."""
        outlook = carried(self)
        return None if isinstance(outlook, Deferred) else outlook

    @property
    def is_shrunk(self) -> bool:
        """Whether its factors are drawn towards 0, since least squares would follow the noise."""
        return self.marked is not None and self.marked.freedom is not None

    @property
    def is_unmoved(self) -> bool:
        """Whether its constants follow all rows but outliers (`unmoved.py`)."""
        return self.marked is not None and self.marked.outliers > 0

    @property
    def is_by_steps(self) -> bool:
        """Whether it is chosen by what it says from one row to the next (`series.py`)."""
        return self.marked is not None and self.marked.by_steps

    @property
    def is_rounded(self) -> bool:
        """Whether it is chosen since the rows do not refute its round exponents (`exponents.py`)."""
        return self.marked is not None and self.marked.rounded

    @property
    def is_by_chance(self) -> bool:
        """Whether it is chosen since chance does as well as what would be chosen in its place (`chance.py`)."""
        return self.marked is not None and self.marked.by_chance > 0

    @property
    def is_supported(self) -> bool:
        """Whether its gain over simpler ones does not rest on few rows."""
        return self.outlook is None or self.outlook.support >= SELECTION.least_support

    @property
    def is_settled(self) -> bool:
        """Whether it is the choice whatever the front's own rule says: of rows without outliers, of a series, in round
        exponents, or where chance does as well as a longer one."""
        return self.is_unmoved or self.is_by_steps or self.is_rounded or self.is_by_chance

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        return self.expression(np.asarray(X, dtype=float))

    def __str__(self) -> str:
        return str(self.expression)

    def sympy(self) -> Any:
        """The formula as a SymPy object."""
        return self.expression.sympy()

    def latex(self) -> str:
        """The formula as LaTeX."""
        return self.expression.latex()

    def export(self, format: str) -> Any:
        """The formula in one of the export formats of `Expression.export`."""
        return self.expression.export(format)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; score and place follow from the front it stands on."""
        return (
            {"expression": self.expression.to_dict(), "loss": self.loss, "complexity": self.complexity}
            | ({} if self.outlook is None else {"outlook": self.outlook.to_dict()})
            | ({} if not self.n_own else {"n_own": self.n_own})
        )

    @classmethod
    def from_dict(cls, data: Any, *, index: int, where: str) -> FrontMember:
        """Read `to_dict`'s output, trusting nothing; `where` names the place in messages."""
        entry = checked_fields(data, where, {"expression", "loss", "complexity"}, optional={"outlook", "n_own"})
        expression = Expression.from_dict(entry["expression"])
        loss = checked_number(entry["loss"], f"{where}.loss", low=0.0)
        complexity = entry["complexity"]
        if type(complexity) is not int or complexity != expression.complexity:
            raise ValueError(f"{where}.complexity is {complexity!r}, but its expression has {expression.complexity}")
        outlook = Outlook.from_dict(entry["outlook"], f"{where}.outlook") if "outlook" in entry else None
        n_own = entry.get("n_own", 0)
        if type(n_own) is not int or not 0 <= n_own <= MAX_OWN:
            raise ValueError(f"{where}.n_own must be a whole number from 0 to {MAX_OWN}")
        return cls(expression, loss, complexity, 0.0, index, outlook, n_own)


def beyond_front(member: Member | FrontMember) -> FrontMember:
    """A formula as one that is not on the front."""
    return FrontMember(member.expression, float(member.loss), member.expression.complexity, 0.0, -1)


def checked_fields(
    data: Any, where: str, names: set[str], *, optional: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    """`data` if it is an object with these fields, and none but the optional ones besides."""
    if not isinstance(data, dict) or set(data) - optional != names:
        raise ValueError(f"{where} must be an object with exactly the fields {sorted(names)}")
    return data


def checked_number(value: Any, where: str, *, low: float) -> float:
    """`value` as a number, finite and at least `low`."""
    if type(value) not in (int, float) or not math.isfinite(value) or value < low:
        raise ValueError(f"{where} must be a finite number of at least {low:g}")
    return float(value)


def score_beside(simpler: Sequence[FrontMember], member: FrontMember, floor: float) -> float:
    """`-Δ log(loss) / Δ complexity` beside the last, 0 beside none; below rounding level losses count as that."""
    last = simpler[-1] if simpler else member
    drop = math.log(max(last.loss, floor)) - math.log(max(member.loss, floor))
    return drop / max(member.complexity - last.complexity, 1)
