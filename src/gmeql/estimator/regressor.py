"""`GMEQLRegressor`: a formula for numbers.

`__init__` stores, `fit` validates and delegates: `inputs` checks what it was given, `fitting` runs one search per
target, `front` chooses. What was learnt ends in an underscore.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gmeql.estimator.alternatives import Alternatives
from gmeql.model.certainty.deciding import basis_of, intervals_of
from gmeql.model.certainty.intervals import ConstantInterval, PredictionBasis
from gmeql.model.fit.inputs import (
    TrainingRows,
    check_rows,
    check_training,
    column_names,
    input_errors,
    weight_of_errors,
)
from gmeql.model.fit.methods import METHODS
from gmeql.model.fit.parameters import check_parameters
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.targets import given_names, one_or_list, target_names
from gmeql.tables.codes import codes_in_words

if TYPE_CHECKING:
    from gmeql.search.events import Progress


class GMEQLRegressor(MultiOutputMixin, RegressorMixin, Alternatives):  # type: ignore[misc]  # untyped
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
        Formulas more complex than this are not kept; None takes the default of `SearchConfig`, and lets the sum of all
        columns with factors drawn towards 0 have up to 100 columns.
    loss : {"squared", "huber", "robust", "absolute", "quantile", "relative", "log-cosh", "poisson", "logistic"} or \
callable, default="squared"
        What the constants minimise: "squared", the mean squared error; "huber", which outliers move less; "robust",
        Tukey's bisquare, for which rows far from the formula count nothing (up to a third of them may be wrong);
        "absolute"; "quantile:0.9" for that or another quantile; "relative"; "log-cosh"; "poisson" for counts; "logistic"
        for the logit of a chance (better by `GMEQLClassifier`); or a function of (y, f) that gives the loss of each row,
        in NumPy or JAX, which is differentiated in numbers and so slower. See docs/losses.md.
    model_selection : {"best", "accurate", "simple", "validation"} or callable, default="best"
        How the formula is chosen from the front, see `Front.select`. "validation" keeps a quarter of the rows from the
        search to judge by.
    n_jobs : int or None, default=None
        Cores; None and -1 use every one, -2 all but one and so on. Where time is the budget, up to half of them look at
        the data in processes of their own once a search takes longer than a moment; islands have the others. Inside
        `joblib.parallel_config("ray")`, "dask" or "loky", workers of that backend instead. With `max_candidates` the
        result does not depend on it.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where islands search: "cpu", "gpu" (CUDA devices, with the extra `gmeql[gpu]`) or "auto": the processor, and an
        accelerator once one is ready and proves faster, where time is the only budget (docs/performance.md). Draws there
        differ from the processor's, so the same seed gives another search.
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
    units : mapping of column name to unit, or sequence with one per column, default=None
        Units of the columns: text such as "kg*m/s**2", or units of Pint or astropy; "1" for a pure number. Formulas then
        keep the units (docs/guide/units.md). Of a unit only its dimension counts.
    target_units : unit or list of units, default=None
        The unit of `y`, needed with `units`; a list where `y` has several columns.
    constant_units : "any", unit or list of units, default=None
        Units that constants may carry, with products of their powers. None: constants are pure numbers.
    unit_check : {"strict", "soft"}, default="strict"
        Whether formulas that break the units are never kept, or must fit better to be kept.
    template : str or None, default=None
        The outer form of every formula, such as "a*exp(-b*f(x)) + g(y, z)": functions that are not known are found,
        names that are no columns are constants to fit (docs/guide/templates.md).
    constants : mapping of name to (low, high), default=None
        Bounds of the template's constants; None is no bound.
    guesses : list of str or None, default=None
        Formulas to begin with, such as "sin(x)*exp(-k*t)"; their numbers and named constants are fitted.
    constraints : list of str or None, default=None
        What is known of the formula's course and form, such as "increasing in x", "output >= 0", "f(x=0) = 0",
        "finite for 0 <= x <= 100"; with "soft " in front a price instead of a refusal (docs/guide/constraints.md).

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
    group_constants_ : OwnConstants
        Constants of each group's own, after a fit with groups (a list when `y` has several columns); see `group_table`.
    feature_names_in_ : ndarray of str
        Names of those columns, when they had names.
    target_names_ : tuple of str
        What the columns of `y` are called, when they had names.
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
        loss: str | Callable[[Any, Any], Any] = "squared",
        model_selection: str | Callable[[Front], int | FrontMember] = "best",
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 30.0,
        callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
        units: Mapping[str, Any] | Sequence[Any] | None = None,
        target_units: Any = None,
        constant_units: Any = None,
        unit_check: str = "strict",
        template: str | None = None,
        constants: Mapping[str, Any] | None = None,
        guesses: Sequence[str] | None = None,
        constraints: Sequence[Any] | None = None,
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
        self.units = units
        self.target_units = target_units
        self.constant_units = constant_units
        self.unit_check = unit_check
        self.template = template
        self.constants = constants
        self.guesses = guesses
        self.constraints = constraints

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        y_error: ArrayLike | None = None,
        x_error: Any = None,
    ) -> GMEQLRegressor:
        """Search for formulas of `y` in the columns of `X`.

        `X` is an array or a data frame [N, V], `y` [N] or [N, targets], `sample_weight` [N] of at least 0. Ctrl-C ends
        the search and keeps what was found; a second one gives up.

        `groups` are labels [N] of the rows, or the name of a column of the frame `X`: then all groups have one formula,
        in which some constants are shared by all and some, such as `k1[star]`, are each group's own (`group_table`).

        `y_error` [N] are the standard deviations of the targets' errors: each row weighs by 1/`y_error`² beside its
        `sample_weight`, in the search and in intervals.

        `x_error` are those of the columns' errors: one for each column, [N, V], or a mapping of column names to a number
        or [N]. Rows then weigh by their effective variance, and constants minimise it (docs/guide/losses.md). It needs
        `y_error`, which then may be one number.
        """
        sample_weight = weight_of_errors(y_error, sample_weight)
        check_parameters(self.get_params(deep=False))
        if groups is not None and not METHODS[self.method].takes_groups:
            raise ValueError(f'method={self.method!r} knows no groups; use method="fitted", or leave groups out')
        rows, target_columns = check_training(self, X, y, sample_weight, groups)
        self._keep_names(given_names(y))
        self._tell_codes(rows)
        errors = input_errors(x_error, y_error, column_names(self), len(rows.X))
        if errors is not None:
            self._check_errors_allowed()
            rows = replace(rows, errors=errors)
        self._prediction_bases = self._bases(self._learn(rows, target_columns))
        return self

    def _tell_codes(self, rows: TrainingRows) -> None:
        """Warn of numbers such as -999 that may stand for a missing value."""
        names = getattr(self, "target_names_", None) or target_names(rows.targets.shape[1])
        targets = zip(names, rows.targets.T, strict=True)
        told = codes_in_words([*zip(column_names(self), rows.X.T, strict=True), *targets])
        if told is not None:
            warnings.warn(told, stacklevel=3)

    def _check_errors_allowed(self) -> None:
        """Where errors of the inputs have no meaning, say so."""
        if self.loss != "squared" or not METHODS[self.method].takes_weights:
            raise ValueError(f'x_error needs loss="squared" and method="fitted"; got {self.loss!r} and {self.method!r}')

    # --- predicting --------------------------------------------------------------------------------------------------

    def predict(self, X: Any, index: int | Sequence[int] | None = None, groups: Any = None) -> NDArray[np.float64]:
        """The formula's value for every row of `X`: [N], or [N, targets] when `y` had two dimensions.

        `index` takes another member of the front (one index per target where there are several). Where a formula is not
        defined, such as the logarithm of a negative number, the value is nan. A data frame may lack columns that the
        formula does not use. Rows outside the ranges of `fit` are a `RangeWarning`, except in scikit-learn's
        cross-validation. After a fit with groups, `groups` are the labels of the rows; a data frame that has the groups'
        column needs none.
        """
        check_is_fitted(self)
        expressions = self._expressions(index)
        X, groups = self._without_group_column(X, groups)
        X = self._rows_for(expressions, X)
        values = [expression(seen) for expression, seen in zip(expressions, self._extended(X, groups), strict=True)]
        return values[0] if self._target_columns is None else np.column_stack(values)

    def prediction_interval(
        self, X: Any, level: float = 0.95, groups: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between which values the targets of the rows of `X` lie with probability `level`: low and high, each shaped
        as `predict` gives them.

        For the chosen formula, with errors that are normal and of one size everywhere; see
        `gmeql.model.certainty.intervals.PredictionBasis`. Model files keep what it needs; those of earlier versions do not.
        """
        check_is_fitted(self)
        bases = getattr(self, "_prediction_bases", None)
        if bases is None:
            raise ValueError(
                "this model's file holds nothing of the rows it was fitted to, so it has no prediction intervals; fit it, "
                "or use gmeql.model.certainty.intervals.prediction_interval(model.expression_, X, y, X_new) with those rows"
            )
        reasons = [basis for basis in bases if isinstance(basis, str)]
        if reasons:
            raise ValueError(f"no prediction intervals: {reasons[0]}")
        X, groups = self._without_group_column(X, groups)
        X = check_rows(self, X, self._used_columns(self._expressions()))
        pairs = zip(bases, self._written_out(X, groups), strict=True)
        lows, highs = zip(*(basis.interval(seen, level=level) for basis, (_, seen) in pairs), strict=True)
        if self._target_columns is None:
            return lows[0], highs[0]
        return np.column_stack(lows), np.column_stack(highs)

    def _bases(self, rows: TrainingRows) -> list[PredictionBasis | str]:
        """What prediction intervals of each target's formula need, or the reason why it has none."""
        members = self._members(None)
        labels = None if rows.groups is None else np.array(rows.groups.labels, dtype=object)[rows.groups.codes]
        return [
            basis_of(members[j], expression, X, rows.targets[:, j], rows.weight, self.loss, rows.errors)
            for j, (expression, X) in enumerate(self._written_out(rows.X, labels))
        ]

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
        groups: Any = None,
        y_error: ArrayLike | None = None,
        x_error: Any = None,
    ) -> tuple[ConstantInterval, ...] | list[tuple[ConstantInterval, ...]]:
        """Confidence intervals of the formula's constants on the rows it was fitted to, see `constant_intervals`.

        `sample_weight`, `groups`, `y_error` and `x_error` are those of `fit`.
        Of a formula with groups' own constants, each stands in the order of the groups in the place of its name.
        """
        check_is_fitted(self)
        X, groups = self._without_group_column(X, groups)
        X = check_rows(self, X)
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        sample_weight = weight_of_errors(y_error, sample_weight)
        errors = input_errors(x_error, y_error, column_names(self), len(X))
        members = self._members(index)
        found: tuple[ConstantInterval, ...] | list[tuple[ConstantInterval, ...]] = one_or_list(
            [
                intervals_of(
                    members[j],
                    expression,
                    seen,
                    targets[:, j],
                    sample_weight=sample_weight,
                    errors=errors,
                    loss=self.loss,
                    level=level,
                    method=method,
                    resamples=resamples,
                    seed=seed,
                )
                for j, (expression, seen) in enumerate(self._written_out(X, groups, index))
            ]
        )
        return found

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
