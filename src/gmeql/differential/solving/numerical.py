"""Numerical solutions of a problem, one after the other: every branch, every start, every way to fill what is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev

from gmeql.differential.solving.collocation import (
    ChebyshevSolution,
    Contradiction,
    NoConvergence,
    Undetermined,
    gauss_points,
    open_directions,
    padded,
    solve_collocation,
)
from gmeql.differential.solving.config import NUMERICAL, SOLVE
from gmeql.differential.solving.initial import Trajectory, initial_values, state_jets, trajectories
from gmeql.differential.solving.problem import Condition, FloatArray, Jet, Problem


@dataclass(frozen=True)
class NumericalSolution:
    """Values of a solution on a box, which may be shorter than the one asked for."""

    problem: Problem
    """The problem it solves: with conditions that were filled, on the box where it exists."""
    source: ChebyshevSolution | Trajectory
    error: float
    """Roughly, relative to its size."""
    filled: str = ""
    """What was assumed beyond the conditions."""

    def values(self, points: FloatArray) -> FloatArray:
        """Values of every function at points [P, d]: [F, P]; what is rounding beside the largest is 0."""
        values = self.source.values(points)
        largest = np.abs(values).max(axis=1, keepdims=True)
        return np.where(np.abs(values) > NUMERICAL.tail * largest, values, 0.0)


def missing_conditions(problem: Problem) -> list[Jet]:
    """Derivatives at the first point of the conditions that would complete them (ordinary equations)."""
    lacking = sum(problem.orders) - len(problem.conditions)
    if lacking <= 0:
        return []
    import sympy

    places = [c.face[0] for c in problem.conditions]
    place = places[0] if places else sympy.nsimplify(problem.box[0][0])
    given = {Jet(j.function, j.orders, j.place) for c in problem.conditions for j in c.jets}
    open_jets = [Jet(jet.function, jet.orders, (place,)) for jet in state_jets(problem)]
    return [jet for jet in open_jets if jet not in given][:lacking]


def filled_problems(problem: Problem) -> Iterator[tuple[Problem, str]]:
    """The problem with simple values for conditions that were not given, the simplest first."""
    import sympy

    jets = missing_conditions(problem)
    ranks = range(len(SOLVE.fillings))
    for picks in sorted(product(ranks, repeat=len(jets)), key=lambda p: (sum(p), p)):
        values = [sympy.Rational(str(SOLVE.fillings[k])) for k in picks]
        more = []
        for jet, value in zip(jets, values, strict=True):
            name = problem.names[jet.function] + "'" * jet.orders[0]
            more.append(
                Condition(jet.symbol - value, (jet,), jet.place or (), f"{name}({(jet.place or ('',))[0]}) = {value}")
            )
        yield replace(problem, conditions=(*problem.conditions, *more)), ", ".join(c.given for c in more)


def numerical_solutions(problem: Problem) -> Iterator[NumericalSolution]:
    """Solutions of a problem without parameters. Raises where conditions contradict, or leave a field open."""
    if not problem.is_ordinary:
        yield _boundary_solution(problem)
        return
    missing = missing_conditions(problem)
    failed: Exception | None = None
    found = False
    for filled, text in filled_problems(problem):
        try:
            for solution in _ordinary_solutions(filled):
                found = True
                yield replace(solution, filled=text)
        except (Contradiction, NoConvergence) as error:
            failed = error
    if not found:
        if failed is not None and not missing:
            raise failed
        raise NoConvergence("no numerical solution was found; give another domain, or conditions that choose one")


def _ordinary_solutions(problem: Problem) -> Iterator[NumericalSolution]:
    start = initial_values(problem)
    if start is None:
        yield _boundary_solution(problem)
        return
    any_found = False
    for trajectory in trajectories(problem, start):
        any_found = True
        yield _to_rounding(problem, trajectory)
    if not any_found:  # singular at the initial point: the equation as a whole may still determine a solution
        yield _boundary_solution(problem)


def _to_rounding(problem: Problem, trajectory: Trajectory) -> NumericalSolution:
    """A trajectory taken on by Newton's method on Chebyshev polynomials; itself, where that does not converge."""
    shorter = replace(problem, box=((trajectory.low, trajectory.high),))
    best: NumericalSolution | None = None
    for n in NUMERICAL.ode_sizes:
        start = interpolated(trajectory, shorter, n)
        try:
            solution, misfit = solve_collocation(shorter, n, start)
        except (NoConvergence, np.linalg.LinAlgError, ValueError):
            continue
        if misfit > NUMERICAL.contradiction and len(problem.conditions) > sum(problem.orders):
            raise Contradiction(_misfit_text(misfit))
        if _distance(solution, trajectory, shorter) > NUMERICAL.same:
            continue  # Newton's method went to another solution
        if best is None or solution.tail < best.error:
            best = NumericalSolution(shorter, solution, solution.tail)
        if solution.tail <= NUMERICAL.tail:
            break
    if best is None or best.error > NUMERICAL.good_tail:
        return NumericalSolution(shorter, trajectory, 1e-11)
    return best


def interpolated(trajectory: Trajectory, problem: Problem, n: int) -> FloatArray:
    """Chebyshev coefficients [F, n] of a trajectory."""
    points = gauss_points(n, *problem.box[0])
    low, high = problem.box[0]
    t = (2 * points - low - high) / (high - low)
    return np.linalg.solve(chebyshev.chebvander(t, n - 1), trajectory.values(points[:, None]).T).T


def _distance(solution: ChebyshevSolution, trajectory: Trajectory, problem: Problem) -> float:
    points = gauss_points(50, *problem.box[0])[:, None]
    values = trajectory.values(points)
    return float(np.abs(solution.values(points) - values).max() / max(np.abs(values).max(), 1e-300))


def _boundary_solution(problem: Problem) -> NumericalSolution:
    """By collocation alone, from a few starts where the equation is not linear."""
    sizes = {1: NUMERICAL.ode_sizes, 2: NUMERICAL.plane_sizes}.get(len(problem.variables), NUMERICAL.space_sizes)
    best: NumericalSolution | None = None
    misfit = np.inf
    for n in sizes:
        for start in _starts(problem, n, best):
            try:
                solution, misfit = solve_collocation(problem, n, start)
            except (NoConvergence, np.linalg.LinAlgError, ValueError):
                continue
            if misfit <= NUMERICAL.contradiction:
                break
        else:
            continue
        best = NumericalSolution(problem, solution, max(solution.tail, misfit * 1e-2))
        if solution.tail <= NUMERICAL.tail:
            break
    if best is None:
        if np.isfinite(misfit):
            raise Contradiction(_misfit_text(misfit))
        raise NoConvergence("no numerical solution was found; give another domain, or initial values")
    assert isinstance(best.source, ChebyshevSolution)
    n = max(sizes[1], best.source.coefficients.shape[1])
    if not problem.is_ordinary and open_directions(problem, best.source, n):
        raise Undetermined(
            "equation and conditions leave the solution open; give values on more faces of the domain (ics)"
        )
    return best


def _starts(problem: Problem, n: int, best: NumericalSolution | None) -> Iterator[FloatArray]:
    """Coefficients to start Newton's method from: the coarser solution, a function that meets the conditions, constants."""
    shape = (len(problem.names), *(n,) * len(problem.variables))
    if best is not None and isinstance(best.source, ChebyshevSolution):
        yield padded(best.source, n)
    conditions_only = replace(problem, residuals=(), jets=problem.jets)
    start = _meets_conditions(conditions_only, n)
    if start is not None:
        yield start
    for value in (0.0, 1.0, -1.0):
        start = np.zeros(shape)
        start.reshape(len(problem.names), -1)[:, 0] = value
        yield start


def _meets_conditions(problem: Problem, n: int) -> FloatArray | None:
    """The smoothest small function that meets the conditions, whatever the equation."""
    low = min(n, 4)
    try:
        solution, _ = solve_collocation(problem, low)
    except (NoConvergence, np.linalg.LinAlgError, ValueError):
        return None
    return padded(solution, n)


def _misfit_text(misfit: float) -> str:
    return (
        "equation and conditions contradict each other: no function meets them together "
        f"(the best one misses them by {misfit:.1g} of their size); take a condition back, or mend one"
    )


def sample_points(box: Sequence[tuple[float, float]], count: int) -> FloatArray:
    """Points inside a box that the search sees [count, d]: evenly spaced along one variable, spread over several.

    Ends are left out: a solution such as sin(x)/x has no value there.
    """
    low, high = np.array(box, dtype=float).T
    if len(low) == 1:
        return np.asarray(low + (high - low) * ((np.arange(count) + 0.5) / count)[:, None])
    from scipy.stats import qmc  # slow to import, and only partial differential equations ask for it

    return np.asarray(low + qmc.Halton(len(low), scramble=False).random(count + 1)[1:] * (high - low))
