"""`GMEQLDynamics`: laws of motion from trajectories, with scikit-learn's manners and PySINDy's names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gmeql.differential.motion.exports import export, lines
from gmeql.differential.motion.measured import Columns, Motion, measure
from gmeql.differential.motion.model_file import StoredMotion, load_motion, save_motion
from gmeql.differential.motion.simulation import DivergedWarning, simulate
from gmeql.differential.motion.systems import SystemFront, SystemMember
from gmeql.differential.motion.trajectories import Trajectories, check_trajectories
from gmeql.formula.expression import Expression
from gmeql.model.fit.fitting import InterruptedWarning, deferred_interrupt
from gmeql.model.fit.parameters import rebuilt, to_plain
from gmeql.model.pareto.front import Front
from gmeql.search.config import SearchConfig

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FloatArray = NDArray[np.float64]
RULES = ("best", "accurate", "simple")
ARROWS = 18
"""Arrows of a phase portrait along each axis."""
PATIENCE = 40_000
"""Candidates without a better formula after which the search for one state's equation ends."""


class GMEQLDynamics(BaseEstimator):  # type: ignore[misc]  # untyped
    """Find the differential equations that move the states of measured trajectories.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 looks for x' = f(x, u), 2 for y'' = f(y, y', u): the slopes need not be measured.
    with_time : bool, default=False
        Whether the equations may depend on the time itself.
    functions : list of str, default=None
        Names of the operators that equations may use, as in `GMEQLRegressor`.
    max_time : float or None, default=60.0
        Seconds for everything. The search ends sooner where a system meets the measurements exactly.
    max_candidates : int or None, default=None
        Formulas the search may try, all states together: the reproducible budget; use `max_time=None` with it.
    max_complexity : int or None, default=None
        Of the search's formulas.
    model_selection : {"best", "accurate", "simple"}, default="best"
        "best" takes the system of the shortest description, judged on the trajectories.
    feature_names : list of str, default=None
        Names of the states; a data frame brings its own.
    n_jobs : int or None, default=None
        Threads of the search; None and -1 use every core.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.
    verbose : int, default=0
        0 is silent, 1 shows live progress, 2 writes plain lines; on stderr.
    callbacks : callable or list of callables, default=None
        Called with each `Progress` of the search; it stops when one returns True.

    Attributes
    ----------
    equations_ : list of Expression
        The right side for every state (for its slope's slope where `order=2`).
    fronts_ : list of Front
        For every state the formulas that nothing simpler beats in the integral form of its equation.
    systems_ : SystemFront
        Whole systems that nothing simpler beats on the trajectories; `selected_index_` is the chosen one.
    noise_ : ndarray
        Estimated standard deviation of the measurements of each state.
    candidates_, seconds_, stop_reason_
        What the search tried, how long it took, why it ended.

    Examples
    --------
    >>> t = np.linspace(0, 4, 60)
    >>> model = GMEQLDynamics(max_candidates=2000, max_time=None, random_state=0)
    >>> model.fit(3.0 * np.exp(-0.5 * t), t).print()
    x1' = -0.5*x1
    """

    def __init__(
        self,
        order: int = 1,
        *,
        with_time: bool = False,
        functions: Sequence[str] | None = None,
        max_time: float | None = 60.0,
        max_candidates: int | None = None,
        max_complexity: int | None = None,
        model_selection: str = "best",
        feature_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None = None,
    ) -> None:
        self.order = order
        self.with_time = with_time
        self.functions = functions
        self.max_time = max_time
        self.max_candidates = max_candidates
        self.max_complexity = max_complexity
        self.model_selection = model_selection
        self.feature_names = feature_names
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, t: Any, x_dot: Any = None, u: Any = None) -> GMEQLDynamics:
        """Search for equations of the states `X` [N, S] measured at the times `t` [N].

        For several trajectories give lists of arrays: each may have its own times and number of points. `t` may be one
        number, the step between points. `x_dot` [N, S] are measured slopes, `u` [N, U] inputs that act on the states.
        Ctrl-C ends the search and keeps what was found.
        """
        from gmeql.differential.motion.discovery import discover

        config = self._config()
        trajectories = check_trajectories(X, t, x_dot, u, names=self.feature_names)
        with deferred_interrupt() as pressed:
            motion = measure(trajectories, order=self.order, with_time=self.with_time, functions=self.functions)
        callbacks = self.callbacks or []
        found = discover(
            motion,
            config=config,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            callbacks=[callbacks] if callable(callbacks) else list(callbacks),
            verbose=self.verbose,
            stopped=pressed.is_set(),
        )
        if found.interrupted:
            warnings.warn("interrupted; keeping the systems found so far", InterruptedWarning, stacklevel=2)
        self.n_features_in_ = len(motion.columns.measured)
        self.noise_ = motion.relative_noise * trajectories.spread
        self.candidates_, self.seconds_, self.stop_reason_ = found.candidates, found.seconds, found.reason
        self._motion: Motion | None = motion
        selected = found.systems.select(self.model_selection).index
        self._keep(motion.columns, found.systems, list(found.fronts), selected)
        return self

    def _keep(self, columns: Columns, systems: SystemFront, fronts: list[Front], selected: int) -> None:
        self.columns_ = columns
        self.systems_, self.fronts_, self.selected_index_ = systems, fronts, selected
        self.equations_ = list(systems[selected].equations)

    def _config(self) -> SearchConfig:
        """The search's settings; a `ValueError` names the first parameter that is not allowed."""
        allowed: list[tuple[str, bool, str]] = [
            ("order", self.order in (1, 2) and type(self.order) is int, "1 or 2"),
            ("with_time", isinstance(self.with_time, bool), "True or False"),
            ("model_selection", self.model_selection in RULES, f"one of {list(RULES)}"),
        ]
        for name, good, text in allowed:
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r} is not allowed; it must be {text}")
        if self.max_time is None and self.max_candidates is None:
            raise ValueError("max_time=None and max_candidates=None give the search no end; set one of them")
        return SearchConfig(
            functions=None if self.functions is None else tuple(self.functions),
            max_time=self.max_time,
            max_candidates=self.max_candidates,
            max_complexity=SearchConfig.max_complexity if self.max_complexity is None else self.max_complexity,
            n_jobs=self.n_jobs,
            patience=PATIENCE,
        )

    # --- using -------------------------------------------------------------------------------------------------------

    def _member(self, index: int | None) -> SystemMember:
        check_is_fitted(self, "systems_")
        member: SystemMember = self.systems_[self.selected_index_ if index is None else index]
        return member

    def predict(self, X: Any, u: Any = None, t: Any = None, *, index: int | None = None) -> FloatArray:
        """How fast the states change [N, S] at states `X`, inputs `u` and, where the equations need it, times `t`.

        `X` holds all states: with `order=2` the measured ones and then their slopes. `index` takes another system of the
        front.
        """
        member = self._member(index)
        parts = [_table(X, len(self.columns_.states), "X")]
        if self.columns_.inputs:
            parts.append(_table(u, len(self.columns_.inputs), "u"))
        if self.columns_.with_time:
            parts.append(_table(t, 1, "t"))
        if len({len(part) for part in parts}) != 1:
            raise ValueError("X, u and t must have as many rows; give one of each for every point")
        table = np.hstack(parts)
        return np.column_stack([equation(table) for equation in member.equations])

    def simulate(self, x0: Any, t: Any, u: Any = None, *, index: int | None = None) -> FloatArray:
        """States [T, Z] at the times `t` [T], from `x0` at the first of them; see `simulation.simulate`."""
        member = self._member(index)
        return simulate(self.columns_, [equation.root for equation in member.equations], x0, t, u)

    def score(self, X: Any, t: Any, x_dot: Any = None, u: Any = None) -> float:
        """R² of the measured states as the system, started at each trajectory's smoothed first point, simulates them.

        With slopes `x_dot` R² of those, as in PySINDy. A simulation that runs away has minus infinity.
        """
        trajectories = self._trajectories(X, t, x_dot, u)
        if x_dot is not None:
            times = [p.t for p in trajectories] if self.columns_.with_time else [None] * len(trajectories.pieces)
            predicted = [self.predict(p.X, p.inputs, s) for p, s in zip(trajectories, times, strict=True)]
            measured = [p.slopes for p in trajectories if p.slopes is not None]
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DivergedWarning)
                predicted = [path[:, : self.n_features_in_] for _, path in self._simulated(trajectories)]
            measured = [p.X for p in trajectories]
        together = np.concatenate(predicted)
        if not np.isfinite(together).all():
            return -np.inf
        from sklearn.metrics import r2_score  # slow to import, and no search asks for it

        return float(r2_score(np.concatenate(measured), together, multioutput="uniform_average"))

    def _trajectories(self, X: Any, t: Any, x_dot: Any, u: Any) -> Trajectories:
        check_is_fitted(self, "systems_")
        trajectories = check_trajectories(X, t, x_dot, u, names=self.columns_.measured)
        if len(trajectories.inputs) != len(self.columns_.inputs):
            raise ValueError(f"u must have {len(self.columns_.inputs)} columns, as in fit")
        return trajectories

    def _simulated(self, trajectories: Trajectories, finer: int = 1) -> list[tuple[FloatArray, FloatArray]]:
        """Times and simulated states of every trajectory, from the start of its smooth curve."""
        motion = measure(trajectories, order=self.columns_.order, with_time=self.columns_.with_time)
        found = []
        for piece, curve in zip(trajectories, motion.curves, strict=True):
            start = np.concatenate([curve.X[0], curve.slopes[0]]) if self.columns_.order == 2 else curve.X[0]
            t = piece.t if finer == 1 else np.linspace(piece.t[0], piece.t[-1], finer * len(piece))
            u = None
            if self.columns_.inputs:
                u = np.column_stack([np.interp(t, piece.t, column) for column in piece.inputs.T])
            found.append((t, self.simulate(start, t, u)))
        return found

    # --- forms -------------------------------------------------------------------------------------------------------

    def print(self) -> None:
        """Print the equations, one a line."""
        check_is_fitted(self, "systems_")
        print("\n".join(lines(self.columns_, self.equations_)))

    def __str__(self) -> str:
        """What `print` shows of a fitted model; `repr` stays scikit-learn's."""
        if not hasattr(self, "systems_"):
            return repr(self)
        return "\n  ".join([f"{type(self).__name__}:", *lines(self.columns_, self.equations_)])

    def equations(self, index: int | None = None) -> list[str]:
        """The right sides as text, as PySINDy's method of that name."""
        return [str(equation) for equation in self._member(index).equations]

    def sympy(self, index: int | None = None) -> list[Any]:
        """The system as SymPy equations of functions of time."""
        return list(self.export("sympy", index))

    def latex(self, index: int | None = None) -> str:
        """The system as aligned LaTeX."""
        return str(self.export("latex", index))

    def export(self, format: str, index: int | None = None) -> Any:
        """The system as "text", "sympy", "latex", "python" (for `solve_ivp`), "jax" (for diffrax), "c" or "json"."""
        return export(self.columns_, self._member(index).equations, format)

    # --- figures -----------------------------------------------------------------------------------------------------

    def courses(
        self, X: Any = None, t: Any = None, u: Any = None
    ) -> tuple[list[tuple[FloatArray, FloatArray]], list[tuple[FloatArray, FloatArray]]]:
        """Times and states of every trajectory, measured and as simulated; of the data of `fit` where none are given."""
        trajectories = self._shown(X, t, u)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergedWarning)  # the picture shows it
            simulated = self._simulated(trajectories, finer=4)
        return [(piece.t, piece.X) for piece in trajectories], simulated

    def flow(
        self, states: Sequence[int] = (0, 1), X: Any = None, t: Any = None, u: Any = None
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Where the system leads in the plane of two states: a grid of both, and how fast each changes there [n, n].

        What else the equations depend on stands at its mean.
        """
        trajectories = self._shown(X, t, u)
        names, chosen = self.columns_.states, [int(k) for k in states]
        if len(names) < 2:
            raise ValueError("a phase portrait needs two states; this system has one")
        if len(chosen) != 2 or not all(0 <= k < len(names) for k in chosen):
            raise ValueError(f"states={states!r} must be two numbers from 0 to {len(names) - 1}")
        table = measure(trajectories, order=self.columns_.order, with_time=self.columns_.with_time).rows.X
        low, high = table[:, chosen].min(axis=0), table[:, chosen].max(axis=0)
        first, second = (np.linspace(a, b, ARROWS) for a, b in zip(low, high, strict=True))
        grid = np.repeat(table.mean(axis=0)[None, :], ARROWS**2, axis=0)
        grid[:, chosen[0]], grid[:, chosen[1]] = (axis.ravel() for axis in np.meshgrid(first, second, indexing="ij"))
        roots = self.columns_.whole(tuple(equation.root for equation in self.equations_))
        slopes = [Expression(roots[k], self.columns_.names)(grid).reshape(ARROWS, ARROWS) for k in chosen]
        return (first, second), (slopes[0], slopes[1])

    def plot_trajectories(self, X: Any = None, t: Any = None, u: Any = None) -> Figure:
        """Simulated curves over measured points, of the data of `fit` where none are given."""
        from gmeql.differential.motion.plots import trajectories_figure

        return trajectories_figure(self.columns_.measured, *self.courses(X, t, u))

    def plot_phase(self, X: Any = None, t: Any = None, u: Any = None, *, states: Sequence[int] = (0, 1)) -> Figure:
        """Where the system leads in the plane of two states, with measured points and simulated curves."""
        from gmeql.differential.motion.plots import phase_figure

        axes, slopes = self.flow(states, X, t, u)
        chosen = [int(k) for k in states]
        measured, simulated = self.courses(X, t, u)
        shown = measured if max(chosen) < len(self.columns_.measured) else simulated
        return phase_figure(
            [self.columns_.states[k] for k in chosen],
            axes,
            slopes,
            [part[:, chosen] for _, part in shown],
            [path[:, chosen] for _, path in simulated],
        )

    def plot_front(self) -> Figure:
        """Loss against complexity of the systems, the chosen one marked."""
        from gmeql.differential.motion.plots import systems_figure

        check_is_fitted(self, "systems_")
        return systems_figure(self.systems_, self.selected_index_)

    def _shown(self, X: Any, t: Any, u: Any) -> Trajectories:
        if X is not None:
            return self._trajectories(X, t, None, u)
        check_is_fitted(self, "systems_")
        motion: Motion | None = getattr(self, "_motion", None)
        if motion is None:
            raise ValueError("a loaded model holds no trajectories; give X and t")
        return motion.trajectories

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file that `load` reads: equations, fronts and plain parameters, no data."""
        check_is_fitted(self, "systems_")
        parameters = to_plain(self.get_params(deep=False))
        save_motion(
            path,
            StoredMotion(
                parameters, self.columns_, tuple(self.fronts_), self.systems_, self.selected_index_, self.candidates_,
                self.seconds_,
            ),
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GMEQLDynamics:
        """Read a model that `save` wrote. No code runs whatever is in it; a bad file is a `StorageError`."""
        stored = load_motion(path)
        model = rebuilt(cls, cls._get_param_names(), stored.parameters, path)
        model.n_features_in_ = len(stored.columns.measured)
        model.candidates_, model.seconds_ = stored.candidates, stored.seconds
        model._keep(stored.columns, stored.systems, list(stored.fronts), stored.selected)
        return model


def _table(values: Any, count: int, name: str) -> FloatArray:
    if values is None:
        raise ValueError(f"{name} is missing; give {count} column{'s' * (count != 1)}")
    table = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None] if count == 1 else table[None, :]
    if table.ndim != 2 or table.shape[1] != count:
        raise ValueError(f"{name} must have shape [points, {count}], got {table.shape}")
    return table
