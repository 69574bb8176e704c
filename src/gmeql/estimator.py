"""`GMEQLRegressor`: the scikit-learn face of the library.

`__init__` stores, `fit` validates and delegates: `inputs` checks what it was given, `fitting` runs one search per
target, `front` chooses. What was learnt ends in an underscore.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gmeql.formula.expression import Expression
from gmeql.formula.printing.spreadsheet import to_spreadsheet
from gmeql.model.checkpoint import data_hash
from gmeql.model.front import Front, FrontMember
from gmeql.model.inputs import TrainingRows, check_rows, check_training, column_names
from gmeql.model.intervals import ConstantInterval, PredictionBasis, constant_intervals
from gmeql.model.model_file import StoredModel, load_model, save_model
from gmeql.model.parameters import check_parameters, from_plain, to_plain
from gmeql.model.pictures import Pictures
from gmeql.model.ranges import RangeWarning, column_ranges, rows_outside
from gmeql.model.storage import StorageError
from gmeql.model.targets import as_list, one_or_list, target_names

if TYPE_CHECKING:
    from gmeql.model.fitting import RunResult
    from gmeql.search.config import SearchConfig
    from gmeql.search.events import Progress


class GMEQLRegressor(Pictures, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Find a formula for `y` in the columns of `X`.

    Parameters
    ----------
    method : {"fitted", "paper", "released"}, default="fitted"
        "fitted" searches with constants of each formula's own. "paper" is Algorithm 1 of the GMEQL paper, "released"
        the same with the settings of its authors' code; both train one network with shared weights.
    functions : list of str, default=None
        Names of the operators a formula may use, such as `["+", "*", "sin"]`; None takes the standard set.
    architecture : Architecture, str or list of lists of str, default=None
        The network: layers of operator names, or the name of a preset. None builds one from `functions`.
    max_time : float or None, default=30.0
        Seconds the search may take, all targets together. The search ends sooner when a formula is exact. Compiling
        the kernels, once per machine, is not counted.
    max_candidates : int or None, default=None
        Formulas the search may try, all targets together. The reproducible budget: the same seed and number give the
        same result; use `max_time=None` with it.
    max_complexity : int or None, default=None
        Formulas more complex than this are not kept; None takes the default of `SearchConfig`.
    loss : {"squared", "huber", "robust"}, default="squared"
        What the constants minimise: the mean squared error; Huber's loss, which outliers move less; or Tukey's bisquare,
        for which rows far from the formula count nothing (up to a third of them may be wrong).
    model_selection : {"best", "accurate", "simple", "validation"} or callable, default="best"
        How the formula is chosen from the front, see `Front.select`. "validation" keeps a quarter of the rows from the
        search to judge by.
    n_jobs : int or None, default=None
        Threads; None and -1 use every core. Inside `joblib.parallel_config("ray")`, "dask" or "loky", workers of that
        backend instead. With `max_candidates` the result does not depend on it.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where constants are fitted: "cpu", "gpu" (any accelerator that JAX sees) or "auto", which takes what was measured
        to be faster (docs/performance.md). On an accelerator islands draw more candidates at a time, so the same seed
        gives another search than on the CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.
    verbose : int, default=0
        0 is silent, 1 shows live progress (terminal or notebook), 2 writes plain lines. All on stderr.
    warm_start : bool, default=False
        Whether `fit` on the same data goes on where the last one ended, with a new budget.
    checkpoint : path or None, default=None
        Folder where the search saves its state every `checkpoint_interval` seconds and at the end. When it holds a
        state of the same data and settings, `fit` goes on from it.
    checkpoint_interval : float, default=30.0
        Seconds between checkpoints.
    callbacks : callable or list of callables, default=None
        Called with each `Progress` event; the search stops when one returns True.

    Attributes
    ----------
    expression_ : Expression
        The chosen formula (a list of them when `y` has several columns).
    front_ : Front
        All formulas that nothing simpler beats (a list when `y` has several columns).
    selected_index_ : int
        Position of the chosen formula on the front (a list when `y` has several columns).
    candidates_ : int
        Number of formulas that were tried.
    seconds_ : float
        Time the search took.
    stop_reason_ : str
        Why the search ended (a list when `y` has several columns).
    history_ : dict of arrays
        `elapsed`, `candidates` and best `loss` during the search (a list when `y` has several columns).
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of those columns, when they had names.
    feature_ranges_ : ndarray of shape (n_features_in_, 2)
        Smallest and largest value of each of those columns; `predict` warns beyond them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 3, (50, 2))
    >>> model = GMEQLRegressor(max_candidates=5000, max_time=None, random_state=0).fit(X, 2.5 * X[:, 0] * X[:, 1])
    >>> print(model.expression_)
    2.5*x1*x2
    """

    def __init__(
        self,
        method: str = "fitted",
        *,
        functions: Sequence[str] | None = None,
        architecture: Any = None,
        max_time: float | None = 30.0,
        max_candidates: int | None = None,
        max_complexity: int | None = None,
        loss: str = "squared",
        model_selection: str | Callable[[Front], int | FrontMember] = "best",
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 30.0,
        callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.method = method
        self.functions = functions
        self.architecture = architecture
        self.max_time = max_time
        self.max_candidates = max_candidates
        self.max_complexity = max_complexity
        self.loss = loss
        self.model_selection = model_selection
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.callbacks = callbacks

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> GMEQLRegressor:
        """Search for formulas of `y` in the columns of `X`.

        `X` is an array or a data frame [N, V], `y` [N] or [N, targets], `sample_weight` [N] of at least 0. Ctrl-C ends
        the search and keeps what was found; a second one gives up.
        """
        check_parameters(self.get_params(deep=False))
        rows, target_columns = check_training(self, X, y, sample_weight)
        searched, held_out = rows.split() if self.model_selection == "validation" else (rows, None)
        self._keep_results(self._search(searched), held_out, target_columns)
        self._prediction_bases = self._bases(searched)
        self.feature_ranges_ = column_ranges(rows.X)
        return self

    def _search(self, rows: TrainingRows) -> list[RunResult]:
        from gmeql.model.fitting import search_targets

        names = column_names(self)
        data = data_hash(rows.X, rows.targets, rows.weight, names) if self.warm_start else ""
        earlier: list[RunResult] | None = None
        if self.warm_start and getattr(self, "_warm_data", None) == data:
            earlier = self._warm
        results = search_targets(
            rows,
            names,
            method=self.method,
            config=self._config(),
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            callbacks=self._callbacks(),
            verbose=self.verbose,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            checkpoint_seconds=self.checkpoint_interval,
            earlier=earlier,
        )
        if self.warm_start:
            self._warm_data: str = data
            self._warm: list[RunResult] = results
        return results

    def _config(self) -> SearchConfig:
        from gmeql.search.config import SearchConfig

        return SearchConfig(
            functions=None if self.functions is None else tuple(self.functions),
            architecture=self.architecture,
            max_time=self.max_time,
            max_candidates=self.max_candidates,
            loss=self.loss,
            n_jobs=self.n_jobs,
            device=self.device,
            max_complexity=SearchConfig.max_complexity if self.max_complexity is None else self.max_complexity,
        )

    def _callbacks(self) -> list[Callable[[Progress], Any]]:
        if self.callbacks is None:
            return []
        return [self.callbacks] if callable(self.callbacks) else list(self.callbacks)

    def _keep_results(
        self, results: list[RunResult], held_out: TrainingRows | None, target_columns: int | None
    ) -> None:
        selected = []
        for j, result in enumerate(results):
            judged: dict[str, Any] = {}
            if held_out is not None:
                judged = {"X": held_out.X, "y": held_out.targets[:, j], "sample_weight": held_out.weight}
            selected.append(result.front.select(self.model_selection, **judged).index)
        self._target_columns = target_columns
        self.candidates_ = sum(r.candidates for r in results)
        self.seconds_ = float(sum(r.seconds for r in results))
        self.stop_reason_ = one_or_list([r.reason for r in results])
        self.history_ = one_or_list([r.history.to_arrays() for r in results])
        self._keep_fronts([r.front for r in results], selected)

    def _keep_fronts(self, fronts: Sequence[Front], selected: Sequence[int]) -> None:
        self.front_ = one_or_list(fronts)
        self.selected_index_ = one_or_list(selected)
        self.expression_ = one_or_list([f[k].expression for f, k in zip(fronts, selected, strict=True)])

    # --- predicting --------------------------------------------------------------------------------------------------

    def predict(self, X: Any, index: int | Sequence[int] | None = None) -> NDArray[np.float64]:
        """The formula's value for every row of `X`: [N], or [N, targets] when `y` had two dimensions.

        `index` takes another member of the front (one index per target where there are several). Where a formula is not
        defined, such as the logarithm of a negative number, the value is nan. A data frame may lack columns that the
        formula does not use. Rows outside the ranges of `fit` are a `RangeWarning`.
        """
        check_is_fitted(self)
        expressions = self._expressions(index)
        used = {column for expression in expressions for column in expression.variables}
        X = check_rows(self, X, used)
        outside = rows_outside(X, getattr(self, "feature_ranges_", None), used)
        if outside is not None:
            warnings.warn(outside.text(column_names(self)), RangeWarning, stacklevel=2)
        values = [expression(X) for expression in expressions]
        return values[0] if self._target_columns is None else np.column_stack(values)

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between which values the targets of the rows of `X` lie with probability `level`: low and high, each shaped
        as `predict` gives them.

        For the chosen formula, with errors that are normal and of one size everywhere; see
        `gmeql.model.intervals.PredictionBasis`. After `fit` only: a loaded model holds nothing of the rows it was fitted
        to.
        """
        check_is_fitted(self)
        bases = getattr(self, "_prediction_bases", None)
        if bases is None:
            raise ValueError(
                "a loaded model holds nothing of the rows it was fitted to, so it has no prediction intervals; fit it, or "
                "use gmeql.model.intervals.prediction_interval(model.expression_, X, y, X_new) with those rows"
            )
        reasons = [basis for basis in bases if isinstance(basis, str)]
        if reasons:
            raise ValueError(f"no prediction intervals: {reasons[0]}")
        X = check_rows(self, X, {column for e in self._expressions() for column in e.variables})
        lows, highs = zip(*(basis.interval(X, level=level) for basis in bases), strict=True)
        if self._target_columns is None:
            return lows[0], highs[0]
        return np.column_stack(lows), np.column_stack(highs)

    def _bases(self, rows: TrainingRows) -> list[PredictionBasis | str]:
        """What prediction intervals of each target's formula need, or the reason why it has none."""
        found: list[PredictionBasis | str] = []
        for j, expression in enumerate(self._expressions()):
            try:
                found.append(PredictionBasis.of(expression, rows.X, rows.targets[:, j], sample_weight=rows.weight))
            except ValueError as error:
                found.append(str(error))
        return found

    def _fronts(self) -> list[Front]:
        check_is_fitted(self)
        fronts: list[Front] = as_list(self.front_)
        return fronts

    def _expressions(self, index: int | Sequence[int] | None = None) -> list[Expression]:
        fronts = self._fronts()
        if index is None:
            chosen = as_list(self.selected_index_)
        elif isinstance(index, Integral) and not isinstance(index, bool):
            chosen = [int(index)] * len(fronts)
        elif isinstance(index, Iterable) and not isinstance(index, str):
            chosen = list(index)
        else:
            raise ValueError(f"index={index!r} must be a whole number, or a list with one per target")
        if len(chosen) != len(fronts):
            raise ValueError(f"index has {len(chosen)} entries for {len(fronts)} targets; give one for each")
        return [front[k].expression for front, k in zip(fronts, chosen, strict=True)]

    # --- the formula in other forms ----------------------------------------------------------------------------------

    @property
    def equations_(self) -> Any:
        """The front as a data frame (a list of them when `y` has several columns)."""
        if not hasattr(self, "front_"):
            raise AttributeError("equations_ is available after fit")
        return one_or_list([front.to_frame() for front in self._fronts()])

    def sympy(self, index: int | Sequence[int] | None = None) -> Any:
        """The chosen formula, or that of another `index`, as a SymPy expression (a list for several targets)."""
        return one_or_list([e.sympy() for e in self._expressions(index)])

    def latex(self, index: int | Sequence[int] | None = None) -> Any:
        """The formula as LaTeX (a list for several targets)."""
        return one_or_list([e.latex() for e in self._expressions(index)])

    def export(
        self, format: str, index: int | Sequence[int] | None = None, *, table: Sequence[str] | None = None
    ) -> Any:
        """The formula as source code, text or callable: "python", "numpy", "jax", "c", "latex", "json", ...

        `table` belongs to "spreadsheet": all column names of the sheet, in its order, so that the formula refers to the
        right cells; a model of `gmeql fit` knows those of its file, and else the columns of `fit` stand in A, B, C, ...
        """
        expressions = self._expressions(index)
        if format == "spreadsheet":
            columns = table if table is not None else getattr(self, "table_columns_", None)
            return one_or_list([to_spreadsheet(expression, columns) for expression in expressions])
        if table is not None:
            raise ValueError(f'table belongs to format "spreadsheet", not to {format!r}; leave it out')
        return one_or_list([expression.export(format) for expression in expressions])

    def intervals(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        index: int | Sequence[int] | None = None,
        level: float = 0.95,
        method: str = "jacobian",
        resamples: int = 200,
        seed: int = 0,
    ) -> tuple[ConstantInterval, ...] | list[tuple[ConstantInterval, ...]]:
        """Confidence intervals of the formula's constants on the rows it was fitted to, see `constant_intervals`."""
        check_is_fitted(self)
        X = check_rows(self, X)
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        found: tuple[ConstantInterval, ...] | list[tuple[ConstantInterval, ...]] = one_or_list(
            [
                constant_intervals(
                    expression,
                    X,
                    targets[:, j],
                    sample_weight=sample_weight,
                    level=level,
                    method=method,
                    resamples=resamples,
                    seed=seed,
                )
                for j, expression in enumerate(self._expressions(index))
            ]
        )
        return found

    def __str__(self) -> str:
        """What `print` shows of a fitted model: its formula, or those of its targets. `repr` stays scikit-learn's."""
        if not hasattr(self, "expression_"):
            return repr(self)
        expressions = as_list(self.expression_)
        lines = [f"{name} = {e}" for name, e in zip(target_names(len(expressions)), expressions, strict=True)]
        return type(self).__name__ + (": " if len(lines) == 1 else ":\n  ") + "\n  ".join(lines)

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file that `load` reads, on any machine and in any later version.

        Formulas, front and plain parameters are stored, not data and not code: callables and random generators among
        the parameters come back as their defaults.
        """
        fronts = self._fronts()
        picks = as_list(self.selected_index_)
        names, ranges = (getattr(self, name, None) for name in ("feature_names_in_", "feature_ranges_"))
        save_model(
            path,
            StoredModel(
                parameters=to_plain(self.get_params(deep=False)),
                feature_names=None if names is None else tuple(map(str, names)),
                n_features=self.n_features_in_,
                fronts=tuple(fronts),
                selected=tuple(picks),
                target_columns=self._target_columns,
                candidates=self.candidates_,
                seconds=self.seconds_,
                ranges=None if ranges is None else tuple((float(low), float(high)) for low, high in ranges),
                table_columns=getattr(self, "table_columns_", None),
            ),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GMEQLRegressor:
        """Read a model that `save` wrote. No code runs whatever is in it; a bad file is a `StorageError`."""
        stored = load_model(path)
        known = set(cls._get_param_names())
        unknown = sorted(set(stored.parameters) - known)
        if unknown:
            raise StorageError(f"{path}: unknown parameter {unknown[0]!r:.60}; the file is damaged or not from gmeql")
        try:
            model = cls(**from_plain(stored.parameters))
        except ValueError as error:
            raise StorageError(f"{path}: {error}") from None
        model.n_features_in_ = stored.n_features
        if stored.feature_names is not None:
            model.feature_names_in_ = np.array(stored.feature_names, dtype=object)
        if stored.ranges is not None:
            model.feature_ranges_ = np.array(stored.ranges, dtype=np.float64)
        if stored.table_columns is not None:
            model.table_columns_ = stored.table_columns
        model._target_columns = stored.target_columns
        model.candidates_ = stored.candidates
        model.seconds_ = stored.seconds
        model._keep_fronts(list(stored.fronts), list(stored.selected))
        return model

    # --- scikit-learn ------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def fit_formula(X: Any, y: Any, **parameters: Any) -> Any:
    """The formula for `y` in the columns of `X`, in one line: `GMEQLRegressor(**parameters).fit(X, y).expression_`.

    >>> import numpy as np
    >>> X = np.linspace(1, 4, 40)[:, None]
    >>> print(fit_formula(X, 3 * X[:, 0] ** 2, max_candidates=5000, max_time=None, random_state=0))
    3*x1**2
    """
    return GMEQLRegressor(**parameters).fit(X, y).expression_
