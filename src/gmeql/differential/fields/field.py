"""`GMEQLField`: a partial differential equation from gridded data.

1. derivatives become columns (`derivatives.py`);
2. sums of products of fields and derivatives are selected in integral form (`selection.py`, `weak.py`);
3. the search of `GMEQLRegressor` looks for formulas of any form on the same columns; its terms join those on offer, and
   their coefficients are estimated in integral form, too;
4. all of them make one front of misfit against complexity for each field.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.derivatives import METHODS, Jets, take_derivatives
from gmeql.differential.fields.grid import FloatArray, Grid, read_grid
from gmeql.differential.fields.model_file import StoredField, load_field, save_field
from gmeql.differential.fields.plots import Slices, fields_figure, slices
from gmeql.differential.fields.selection import Sum, best_sums, fit_sum
from gmeql.differential.fields.simulation import simulate
from gmeql.differential.fields.terms import Term, found_terms, library, noise_gain, term_rows
from gmeql.differential.fields.weak import Bumps
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build, transform
from gmeql.formula.products import split_terms
from gmeql.formula.simplify import simplify
from gmeql.model.fit.fitting import InterruptedWarning, run_search
from gmeql.model.fit.parameters import rebuilt, to_plain
from gmeql.model.fit.preparation import prepare
from gmeql.model.fit.progress import ProgressDisplay
from gmeql.model.pareto.front import Front
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class GMEQLField(BaseEstimator):  # type: ignore[misc]  # untyped
    """Find u_t = F(u, u_x, u_xx, ..., x) for fields on a grid.

    Parameters
    ----------
    order : int or None, default=None
        Highest derivative by space; None takes 4 in one dimension and 2 in two and three.
    derivative : {"auto", "spectral", "finite", "polynomial"}, default="auto"
        How derivatives are taken; "auto" goes by noise and periodicity.
    periodic : bool, list of bool or "auto", default="auto"
        Whether each axis of space closes on itself.
    coordinates : bool or "auto", default="auto"
        Whether the law may hold the coordinates themselves; "auto" says no along periodic axes.
    functions : list of str or None, default=None
        Operators of the open-form search; None takes the standard set. An empty list leaves that search out.
    max_time : float or None, default=60.0
        Seconds for the open-form searches, all fields together.
    max_candidates : int or None, default=None
        Formulas they may try, for each field; None takes 20,000.
    n_jobs, random_state, verbose
        As for `GMEQLRegressor`.

    Attributes
    ----------
    equations_ : list of Expression
        The right side of each field's law, over the columns of `column_names_`.
    fronts_ : list of Front
        For each field all laws that nothing simpler beats; losses are residuals in integral form, relative to u_t.
    column_names_ : tuple of str
        Coordinates, fields and derivatives: x, u, u_x, u_xx, ...
    noise_ : tuple of float
        Standard deviation of each field's noise, as estimated.

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0, 1, 41)
    >>> u = np.exp(-0.3 * t) * np.sin(x)[:, None] + np.exp(-1.2 * t) * np.cos(2 * x)[:, None]
    >>> print(GMEQLField(functions=[]).fit(u, x=x, t=t))
    u_t = 0.3*u_xx
    """

    def __init__(
        self,
        *,
        order: int | None = None,
        derivative: str = "auto",
        periodic: Any = "auto",
        coordinates: bool | str = "auto",
        functions: Sequence[str] | None = None,
        max_time: float | None = 60.0,
        max_candidates: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.derivative = derivative
        self.periodic = periodic
        self.coordinates = coordinates
        self.functions = functions
        self.max_time = max_time
        self.max_candidates = max_candidates
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, u: Any, x: Any = None, t: Any = None) -> GMEQLField:
        """Find the law of every field.

        `u` is an array [*space, time], a list or dictionary of such arrays (several fields), or an xarray object; `x` the
        coordinates of space, a list of them for several axes; `t` the times. Grids are evenly spaced. Ctrl-C ends the
        search and keeps what was found.
        """
        self._check()
        grid = read_grid(u, x, t, periodic=self.periodic)
        order = FIELDS.orders[grid.dimensions - 1] if self.order is None else int(self.order)
        jets = take_derivatives(grid, order, self.derivative)
        bumps = Bumps(grid, jets.smooth, order)
        terms = library(jets, grid, order, [k for k in range(grid.dimensions) if self._may_use(grid, k)])
        rows = np.stack([term_rows(term, bumps, jets, grid) for term in terms], axis=1)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        begun = time.monotonic()
        fronts, picks = [], []
        self._interrupted = False
        for f in range(len(grid.names)):
            left = bumps.left(grid.values[f])
            sums = best_sums(rows, left, bumps.fold)
            members = [(s, [terms[k] for k in s.terms]) for s in sums]
            spent = time.monotonic() - begun
            share = None if self.max_time is None else (self.max_time - spent) / (len(grid.names) - f)
            try:
                members += self._open_form(f, grid, jets, bumps, terms, rows, left, share, seed + f)
            except KeyboardInterrupt:  # before its first formula; the sums are there
                self._interrupted = True
            front, pick = _front(members, f, grid, jets, bumps, left)
            fronts.append(front)
            picks.append(pick)
        if self._interrupted:
            warnings.warn("interrupted; keeping the laws found so far", InterruptedWarning, stacklevel=2)
        self._grid: Grid | None = grid
        self._keep(
            StoredField(
                {},
                grid.names,
                jets.names,
                order,
                grid.periodic[:-1],
                tuple(map(float, jets.noise)),
                tuple(fronts),
                tuple(picks),
            )
        )
        return self

    def _check(self) -> None:
        if self.derivative not in METHODS:
            raise ValueError(f"derivative={self.derivative!r} is unknown; one of {', '.join(METHODS)}")
        if self.order is not None and not 1 <= self.order <= 6:
            raise ValueError(f"order={self.order!r} must be a whole number from 1 to 6, or None")
        for name in ("max_time", "max_candidates"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive or None, got {value!r}")
        if self.coordinates not in (True, False, "auto"):
            raise ValueError(f"coordinates={self.coordinates!r} must be True, False or 'auto'")

    def _open_form(
        self,
        f: int,
        grid: Grid,
        jets: Jets,
        bumps: Bumps,
        terms: list[Term],
        rows: FloatArray,
        left: FloatArray,
        seconds: float | None,
        seed: int,
    ) -> list[tuple[Sum, list[Term]]]:
        """Formulas of any form, their terms weighed in integral form, alone and together with those on offer."""
        if (self.functions is not None and not self.functions) or self._interrupted:
            return []
        columns = [c for c in range(len(jets.names)) if c >= grid.dimensions or self._may_use(grid, c)]
        X, y = _scattered(jets, columns, jets.rates[f], seed)
        config = SearchConfig(
            functions=None if self.functions is None else tuple(self.functions),
            max_time=None if seconds is None else max(seconds, FIELDS.least_seconds),
            max_candidates=self.max_candidates or FIELDS.first_candidates,
            max_complexity=FIELDS.max_complexity,
            n_jobs=self.n_jobs,
            polished_at_end=FIELDS.polished,
        )
        with self._display(grid.names[f]) as display:
            callbacks = [display.update] if display is not None else []
            data = prepare(X, y, names=tuple(jets.names[c] for c in columns))
            result = run_search(data, config=config, seed=seed % (2**31 - 1), callbacks=callbacks)
        self._interrupted = result.interrupted
        roots = [_over(m.expression.root, columns) for m in result.front]
        new = found_terms(reversed(roots), terms, jets)
        if not new:
            return []
        everything = [*terms, *new]
        all_rows = np.hstack([rows, np.stack([term_rows(term, bumps, jets, grid) for term in new], axis=1)])
        finite = np.isfinite(all_rows).all(axis=0)
        place = {term.root: k for k, term in enumerate(everything)}
        found = []
        for root in roots:
            chosen = [place.get(term) for _, term in split_terms(root)]
            if all(k is not None and finite[k] for k in chosen) and len(set(chosen)) == len(chosen):
                found.append(fit_sum(all_rows, left, bumps.fold, [k for k in chosen if k is not None]))
        found += best_sums(np.where(finite, all_rows, 0.0), left, bumps.fold)
        return [(s, [everything[k] for k in s.terms]) for s in found]

    def _display(self, field: str) -> AbstractContextManager[ProgressDisplay | None]:
        if not self.verbose:
            return nullcontext()
        return ProgressDisplay("lines" if self.verbose >= 2 else "auto", title=f"law of {field}", budget="")

    def _may_use(self, grid: Grid, axis: int) -> bool:
        return not grid.periodic[axis] if self.coordinates == "auto" else bool(self.coordinates)

    def _keep(self, found: StoredField) -> None:
        self._order = found.order
        self.fronts_, self.selected_ = list(found.fronts), list(found.selected)
        self.field_names_, self.column_names_ = found.fields, found.columns
        self.noise_, self.periodic_ = found.noise, found.periodic
        self.equations_ = [front[k].expression for front, k in zip(self.fronts_, self.selected_, strict=True)]

    def _data(self, u: Any, x: Any, t: Any) -> Grid:
        """The grid that was given, or that of `fit`."""
        check_is_fitted(self, "equations_")
        if u is not None:
            return read_grid(u, x, t, periodic=list(self.periodic_))
        grid: Grid | None = getattr(self, "_grid", None)
        if grid is None:
            raise ValueError("a loaded model holds no data; give u, x and t")
        return grid

    # --- using -------------------------------------------------------------------------------------------------------

    def predict(self, u: Any = None, x: Any = None, t: Any = None) -> FloatArray:
        """The law's u_t on a grid, [F, *space, T]; on that of `fit` where none is given."""
        grid = self._data(u, x, t)
        jets = take_derivatives(grid, self._order, self.derivative)
        X = np.stack([column.reshape(-1) for column in jets.columns], axis=1)
        return np.stack([e(X).reshape(grid.values.shape[1:]) for e in self.equations_])

    def score(self, u: Any = None, x: Any = None, t: Any = None) -> float:
        """Share of u_t that the laws explain, in integral form: 1 minus the squared residual over the squared left side."""
        grid = self._data(u, x, t)
        jets = take_derivatives(grid, self._order, self.derivative)
        bumps = Bumps(grid, jets.smooth, self._order)
        missed = total = 0.0
        for field, expression in zip(grid.values, self.equations_, strict=True):
            left = bumps.left(field)
            right = np.zeros_like(left)
            for coefficient, root in split_terms(expression.root):
                known = found_terms([root], [], jets)
                right = right + coefficient * term_rows(known[0], bumps, jets, grid)
            missed += float(((right - left) ** 2).sum())
            total += float((left**2).sum())
        return 1.0 - missed / total if total > 0 else 0.0

    def simulate(self, u0: Any = None, t: Any = None, *, data: tuple[Any, Any, Any] | None = None) -> FloatArray:
        """The laws integrated from `u0` [F, *space] (the first data where none is given) at times `t`: [F, *space, T].

        On the grid of `fit`, or of other `data` (u, x, t), as a loaded model needs them. Ends of axes that are not periodic
        follow the data.
        """
        grid = self._data(*(data or (None, None, None)))
        times = grid.axes[-1] if t is None else np.asarray(t, dtype=float)
        if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
            raise ValueError("t must be two or more increasing times")
        start = grid.values[..., 0] if u0 is None else np.asarray(u0, dtype=float)
        if start.shape == grid.values.shape[1:-1]:
            start = start[None]
        if start.shape != grid.values.shape[:-1]:
            raise ValueError(
                f"u0 must have shape {grid.values.shape[:-1]}, as the data of fit at one time, got {start.shape}"
            )
        return simulate(self.equations_, grid, start, times, self._order)

    def slices(self, u: Any = None, x: Any = None, t: Any = None) -> tuple[Grid, Slices, FloatArray]:
        """The grid, its fields at a few times over the first axis of space, and the same of the laws' simulation."""
        grid = self._data(u, x, t)
        followed = simulate(self.equations_, grid, grid.values[..., 0], grid.axes[-1], self._order)
        return grid, slices(grid, grid.values), slices(grid, followed)[2]

    def plot_fields(self, u: Any = None, x: Any = None, t: Any = None) -> Figure:
        """Simulated fields over measured ones at a few times, of the data of `fit` where none are given."""
        return fields_figure(*self.slices(u, x, t))

    def plot_front(self, field: int = 0) -> Figure:
        """Misfit in integral form against complexity of one field's laws, the chosen one marked."""
        from gmeql.model.plots import front_figure

        check_is_fitted(self, "equations_")
        return front_figure(self.fronts_[field], self.selected_[field])

    def sympy(self) -> list[Any]:
        """The right sides as SymPy expressions."""
        check_is_fitted(self, "equations_")
        return [e.sympy() for e in self.equations_]

    def latex(self) -> list[str]:
        """The laws as LaTeX."""
        check_is_fitted(self, "equations_")
        return [f"{n}_t = {e.latex()}" for n, e in zip(self.field_names_, self.equations_, strict=True)]

    def export(self, format: str) -> list[Any]:
        """The right sides in one of the formats of `Expression.export`, as functions of the columns."""
        check_is_fitted(self, "equations_")
        return [e.export(format) for e in self.equations_]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the laws to a JSON file that `load` reads: fronts and plain parameters, no data."""
        check_is_fitted(self, "equations_")
        save_field(
            path,
            StoredField(
                to_plain(self.get_params(deep=False)), self.field_names_, self.column_names_, self._order, self.periodic_,
                self.noise_, tuple(self.fronts_), tuple(self.selected_),
            ),
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GMEQLField:
        """Read laws that `save` wrote. No code runs whatever is in the file; a bad one is a `StorageError`."""
        stored = load_field(path)
        model = rebuilt(cls, cls._get_param_names(), stored.parameters, path)
        model._keep(stored)
        return model

    def __str__(self) -> str:
        """The laws, one to a line; `repr` stays scikit-learn's."""
        if not hasattr(self, "equations_"):
            return repr(self)
        return "\n".join(f"{n}_t = {e}" for n, e in zip(self.field_names_, self.equations_, strict=True))


def _scattered(jets: Jets, columns: Sequence[int], rate: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Columns and u_t at points of the grid away from its ends, for the open-form search."""
    inner = tuple(slice(m, size - m) for m, size in zip(jets.margin, rate.shape, strict=True))
    y = rate[inner].reshape(-1)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[: FIELDS.search_points])
    return np.stack([jets.columns[c][inner].reshape(-1)[chosen] for c in columns], axis=1), y[chosen]


def _over(root: Node, columns: Sequence[int]) -> Node:
    """A formula over chosen columns as one over all."""
    return transform(root, lambda leaf: Variable(columns[leaf.index]) if isinstance(leaf, Variable) else leaf)


def _front(
    members: Sequence[tuple[Sum, list[Term]]], f: int, grid: Grid, jets: Jets, bumps: Bumps, left: FloatArray
) -> tuple[Front, int]:
    """All sums as a front of misfit against complexity, and the place of the one that the data support."""
    gains: dict[Node, FloatArray] = {}
    made, price = [], {}
    for s, terms in members:
        for term in terms:
            if term.root not in gains:
                gains[term.root] = noise_gain(term, bumps, jets, grid)
        parts = [build("mul", Constant(float(c)), term.root) for c, term in zip(s.coefficients, terms, strict=True)]
        expression = Expression(simplify(build("add", *parts) if len(parts) > 1 else parts[0]), jets.names)
        made.append(Member(expression, max(s.residual, 1e-300), expression.complexity))
        noise = _noise_of_rows(s, [gains[term.root] for term in terms], f, jets, bumps, left)
        price[expression.root] = s.nats(bumps.independent, noise)
    front = Front.from_members(made, rows=bumps.independent, target_spread=1.0, target_largest=1.0)
    best = min(front, key=lambda m: (price[m.expression.root], m.complexity))
    return front, best.index


def _noise_of_rows(s: Sum, gains: Sequence[FloatArray], f: int, jets: Jets, bumps: Bumps, left: FloatArray) -> float:
    """What the fields' noise makes of both sides of a law, relative to the left one."""
    sigma = np.array(jets.noise)
    squares = (sigma[f] * bumps.length((*(0,) * bumps.grid.dimensions, 1))) ** 2
    for coefficient, gain in zip(s.coefficients, gains, strict=True):
        squares += float(((coefficient * gain * sigma) ** 2).sum())
    size = float(np.linalg.norm(left))
    return float(np.sqrt(squares * len(left)) / size) if size > 0 else 0.0
