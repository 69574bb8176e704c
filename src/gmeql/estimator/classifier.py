"""`GMEQLClassifier`: formulas for the chances of classes.

Of two classes one formula is the logit of the second's chance; of more, each class has a formula for the logit of its
chance against all others (one against the rest), and chances are in proportion to exp(sharpness * logit). Constants
minimise the log loss.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from gmeql.estimator.regressor import GMEQLRegressor
from gmeql.estimator.searching import Searching
from gmeql.knowledge.knowledge import Knowledge
from gmeql.model.fit.inputs import TrainingRows, explained
from gmeql.model.fit.parameters import check_parameters
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.losses.losses import sigmoid

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.model.files.model_file import StoredModel
    from gmeql.search.config import SearchConfig
    from gmeql.search.events import Progress

FloatArray = NDArray[np.float64]

LEAST_SHARPNESS = 0.01
"""Below it the formulas say nothing of the classes."""


class GMEQLClassifier(ClassifierMixin, Searching):  # type: ignore[misc]  # untyped
    """Find a formula for the chance of each class in the columns of `X`.

    Parameters
    ----------
    functions, architecture, max_time, max_candidates, max_complexity, model_selection, n_jobs, device, random_state, \
verbose, warm_start, checkpoint, checkpoint_interval, callbacks
        As those of `GMEQLRegressor`. With more than two classes the budget is shared by their formulas.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    expression_ : Expression
        The logit of the chance of `classes_[1]`; with more than two classes a list, the logit of each against the rest.
    sharpness_ : float
        With more than two classes: how far the logits are taken at their word beside each other, at most 1.
    front_, selected_index_, candidates_, seconds_, stop_reason_, history_, n_features_in_, feature_names_in_, \
feature_ranges_
        As those of `GMEQLRegressor`; losses of the front are mean log losses of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-2, 2, 80)[:, None]
    >>> y = np.where(np.sin(9 * X[:, 0]) + 4 * X[:, 0] > 0, "yes", "no")
    >>> model = GMEQLClassifier(max_candidates=2000, max_time=None, random_state=0).fit(X, y)
    >>> model.predict([[-1.5], [1.5]]).tolist()
    ['no', 'yes']
    """

    method = "fitted"
    loss = "logistic"
    _has_classes = True

    def __init__(
        self,
        *,
        functions: Sequence[str] | None = None,
        architecture: Any = None,
        max_time: float | None = 30.0,
        max_candidates: int | None = None,
        max_complexity: int | None = None,
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
        self.functions = functions
        self.architecture = architecture
        self.max_time = max_time
        self.max_candidates = max_candidates
        self.max_complexity = max_complexity
        self.model_selection = model_selection
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> GMEQLClassifier:
        """Search for formulas of the classes `y` [N] in the columns of `X` [N, V]; `sample_weight` [N] of at least 0."""
        check_parameters(GMEQLRegressor().get_params(deep=False) | self.get_params(deep=False) | {"loss": self.loss})
        try:
            with np.errstate(invalid="ignore"):  # scikit-learn sums a table to see whether it is finite
                X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        except (ValueError, TypeError, OverflowError) as error:
            raise explained(error, X) from error
        check_classification_targets(y)
        from sklearn.preprocessing import LabelEncoder  # loads scipy.stats, which regressors do without

        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        coder = LabelEncoder().fit(y)
        counted = np.ones(len(y), dtype=bool) if weight is None else weight > 0
        if len(np.unique(np.asarray(y)[counted])) < 2:
            raise ValueError(f"y holds one class, {str(coder.classes_[0])!r:.60}; at least 2 classes are needed")
        self.classes_ = coder.classes_
        codes = coder.transform(y)
        n = len(self.classes_)
        is_class = codes[:, None] == (np.array([1]) if n == 2 else np.arange(n))
        targets = _chances(is_class, np.ones(len(codes)) if weight is None else weight)
        rows = TrainingRows(X, targets, weight)
        self._learn(rows, None if n == 2 else n)
        if n > 2:
            self.sharpness_ = _sharpness(_values(self._expressions(), X), codes, weight)
        elif hasattr(self, "sharpness_"):
            del self.sharpness_  # of an earlier fit
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The formula's value for every row of `X`, the logit of its class: [N], or [N, classes] of more than two.

        Where a formula is not defined it says nothing: 0.
        """
        check_is_fitted(self)
        expressions = self._expressions()
        values = _values(expressions, self._rows_for(expressions, X))
        chosen: FloatArray = values[:, 0] if len(self.classes_) == 2 else values
        return chosen

    def predict_proba(self, X: Any) -> FloatArray:
        """The chance of each class for every row of `X`, [N, classes]."""
        values = self.decision_function(X)
        if values.ndim == 1:
            yes = sigmoid(values)
            return np.column_stack([1.0 - yes, yes])
        if hasattr(self, "sharpness_"):
            return np.exp(_log_softmax(self.sharpness_ * values))
        chances = np.maximum(sigmoid(values), np.finfo(np.float64).tiny)  # models of earlier files
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:  # type: ignore[override]  # classes, not values
        """The likeliest class for every row of `X`, [N]."""
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[codes])

    def _called(self) -> Sequence[str]:
        return [f"class {label}" for label in self.classes_]

    def _config(self) -> SearchConfig:
        return replace(super()._config(), has_classes=True)

    def _knowledge(self, names: Sequence[str], n_targets: int) -> list[Knowledge | None]:
        return [None] * n_targets

    def _stored_classes(self) -> tuple[Any, ...] | None:
        return tuple(self.classes_.tolist())

    def _restore(self, stored: StoredModel) -> Self:
        self.classes_ = np.array(stored.classes)
        if stored.sharpness is not None:
            self.sharpness_ = stored.sharpness
        return super()._restore(stored)


def _log_softmax(values: FloatArray) -> FloatArray:
    """Logarithms of chances in proportion to exp(`values`) [N, classes]."""
    with np.errstate(over="ignore"):  # the difference of two huge values is no chance at all, as it should be
        below = values - values.max(axis=1, keepdims=True)
        return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))


def _sharpness(values: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None) -> float:
    """The factor of at most 1 on the logits [N, classes] at which their softmax gives the classes the least log loss.

    Each formula was fitted against the rest alone. Where classes overlap, odds against the rest are too sharp beside each
    other; where they do not, a factor beyond 1 would undo that the formulas believe no more than so many rows allow.
    """
    from scipy.optimize import minimize_scalar

    own = np.arange(len(codes)), codes

    def log_loss(logarithm: float) -> float:
        return -float(np.average(_log_softmax(np.exp(logarithm) * values)[own], weights=weight))

    found = minimize_scalar(log_loss, bounds=(np.log(LEAST_SHARPNESS), 0.0), method="bounded")
    return float(np.exp(found.x)) if found.fun < log_loss(0.0) else 1.0


def _values(expressions: Sequence[Expression], X: FloatArray) -> FloatArray:
    """Values of formulas for checked rows, [N, formulas]; 0 where one is not defined."""
    return np.asarray(np.nan_to_num(np.column_stack([expression(X) for expression in expressions]), nan=0.0))


def _chances(is_class: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
    """Chances that formulas are fitted to [N, formulas]: (n + 1)/(n + 2) for the n rows of a class, 1/(m + 2) for the m others.

    What a uniform prior makes of so many rows (Platt 1999): where classes part without an error, chances of 0 and 1 would
    ask for infinite constants, and one wrong row later would cost any price.
    """
    yes, no = weight @ is_class, weight @ ~is_class  # a row of weight 2 is two rows
    return np.asarray(np.where(is_class, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0)))
