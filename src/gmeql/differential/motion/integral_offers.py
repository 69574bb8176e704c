"""Terms of all equations on offer at once in integral form, before any system has shown where it leads.

What `joint` does around a system that was followed through time needs one that leads somewhere near. In integral form the
terms of an equation are columns from the beginning, those of different equations stand in blocks, and the choice among
them is the same: a term that several equations share counts once, constants that may be equal are.

Legend: `R` rows of an equation, `E` equations, `C` columns: a term in an equation each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.joint import Offers, score_gains
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.systems import System, without_poles
from gmeql.differential.motion.terms import found_terms
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.products import split_terms


def offers_in_integral_form(motion: Motion, system: System, proposed: Sequence[Sequence[Node]]) -> Offers:
    """Columns for the terms of the system, those on offer for any equation, and those of the equations `proposed`."""
    rows, E = motion.rows, motion.n_equations
    known = [*motion.library, *motion.scaled]
    first = [root for of_state in proposed for root in of_state[: MOTION.terms.of_others]]
    everywhere = [*known, *without_poles(motion, found_terms([*system.equations, *first], known))]
    R = len(rows.left)
    share = np.sqrt(motion.pieces.points / R)  # rows overlap: together they are worth as much as the points
    equation, terms, coefficients, columns = [], [], [], []
    for j, root in enumerate(system.equations):
        there = {term: coefficient for coefficient, term in split_terms(root)}
        others = [*everywhere, *without_poles(motion, found_terms(proposed[j], everywhere))]
        for term in dict.fromkeys([*there, *others]):
            with np.errstate(all="ignore"):
                values = Expression(term, rows.names)(rows.X)
            if np.isfinite(values).all() and values.any():
                column = np.zeros((E, R))
                column[j] = share * rows.right(j, values)
                columns.append(column.ravel())
                equation.append(j)
                terms.append(term)
                coefficients.append(there.get(term, 0.0))
    A, b = np.column_stack(columns), share * (rows.left / rows.error).T.ravel()
    values = np.array(coefficients)
    residual = A @ values - b
    gains = score_gains(A, residual, A[:, values != 0])
    points = motion.pieces.points * E
    return Offers(system, np.array(equation), tuple(terms), values, A, residual, gains, points, noise=1.0)
