"""What `gmeql.solve` returns: a front of closed forms with residual and proof, or a clear no."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression


APPROXIMATION = "approximation"
"""How the verdict about a formula begins that is no solution."""


@dataclass(frozen=True)
class Solution:
    """Formulas of all unknown functions together."""

    names: tuple[str, ...]
    expressions: tuple[Expression, ...]
    """Each over the variables, then the parameters."""
    forms: tuple[Any, ...]
    """SymPy forms in the person's own symbols; exact where `proven`."""
    complexity: int
    residual: float
    """Largest absolute residual of the equations on the domain."""
    misfit: float
    """Largest absolute misfit of the conditions."""
    proven: bool
    """Whether SymPy objects were shown to make equation and conditions vanish identically."""
    verdict: str
    """The same in words: proven, verified numerically to ..., or an approximation."""

    @property
    def expression(self) -> Expression:
        """The formula of the first unknown function."""
        return self.expressions[0]

    def sympy(self) -> Any:
        """The SymPy form; a dictionary by name where there are several unknown functions."""
        return self.forms[0] if len(self.forms) == 1 else dict(zip(self.names, self.forms, strict=True))

    def latex(self) -> str:
        """LaTeX of the equation(s) that define the solution."""
        import sympy

        return r" \\ ".join(f"{n} = {sympy.latex(f)}" for n, f in zip(self.names, self.forms, strict=True))

    def __call__(self, X: Any) -> Any:
        """Values of the first unknown function at rows of variables and parameters [N, V]."""
        return self.expression(X)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} = {form if self.proven else expression}"
            for name, form, expression in zip(self.names, self.forms, self.expressions, strict=True)
        )


@dataclass(frozen=True, repr=False)
class Solutions(Sequence[Solution]):
    """Front of residual against complexity, simplest first; `best` is the one to use."""

    members: tuple[Solution, ...]
    equation: str
    domain: str
    candidates: int
    seconds: float
    reason: str
    """Why the search ended."""
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Columns of `rows`: the variables, then the parameters."""
    rows: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)), compare=False)
    """Points [N, V] at which the solution in numbers was taken, and ..."""
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)), compare=False)
    """... its values [N, F] there."""

    @overload
    def __getitem__(self, index: int) -> Solution: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Solution, ...]: ...
    def __getitem__(self, index: int | slice) -> Solution | tuple[Solution, ...]:
        return self.members[index]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.members)

    @property
    def proven(self) -> bool:
        """Whether a closed form was found and proven."""
        return self.best.proven

    @property
    def is_closed_form(self) -> bool:
        """Whether the best one is a solution to the last digit, proven or verified in numbers."""
        return not self.best.verdict.startswith(APPROXIMATION)

    @property
    def best(self) -> Solution:
        """The simplest proven solution; else the last member, which misses equation and conditions least."""
        return next((member for member in self.members if member.proven), self.members[-1])

    def sympy(self) -> Any:
        """The best solution as SymPy object(s)."""
        return self.best.sympy()

    def latex(self) -> str:
        """The best solution as LaTeX."""
        return self.best.latex()

    def to_frame(self) -> Any:
        """The front as a polars data frame."""
        import polars

        return polars.DataFrame(self.records())

    def records(self) -> list[dict[str, Any]]:
        """The front as plain data, one entry for each member."""
        return [
            {
                "complexity": m.complexity,
                "residual": m.residual,
                "misfit": m.misfit,
                "proven": m.proven,
                "verdict": m.verdict,
                "formula": str(m),
            }
            for m in self
        ]

    def __str__(self) -> str:
        best = self.best
        if self.is_closed_form:
            lines = [str(best), f"  {best.verdict}"]
        else:
            lines = [
                f"no closed form was found ({self.candidates} formulas tried in {self.seconds:.0f} s: {self.reason})",
                f"  best approximation on {self.domain}: {best}",
                f"  largest residual {best.residual:.1e}, conditions missed by {best.misfit:.1e}",
            ]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        head = f"{len(self)} solutions of {self.equation} on {self.domain}\n"
        head += f"{'complexity':>10}  {'residual':>9}  {'misfit':>9}  proven  formula"
        lines = [
            f"{m.complexity:>10d}  {m.residual:>9.1e}  {m.misfit:>9.1e}  {'yes' if m.proven else 'no':>6}  {m}"
            for m in self
        ]
        return "\n".join([head, *lines])
