"""What a caller hands to `fit` and `predict`, checked: numbers only, columns as they were, rows to search and to judge by.

Legend: `N` rows, `V` columns, `T` targets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql._deferred import HARDLY_USED_BY_SKLEARN, deferred
from gmeql.formula.messages import listing
from gmeql.search.groups.table import Grouping
from gmeql.search.losses.effective import InputErrors

with deferred(*HARDLY_USED_BY_SKLEARN):  # also for those who come here without the estimator, as commands do
    from sklearn.utils.validation import _check_sample_weight, _get_feature_names, check_array, validate_data

VALIDATION_SHARE = 0.25
"""Rows that `model_selection="validation"` keeps from the search (SRBench's split)."""
VALIDATION_ROWS = 8
"""Fewest rows that can be split so."""
TIMES = ("date", "time", "duration")
"""How the names of types begin that hold dates or times, in NumPy, pandas and Polars."""
PANDAS_MISSING = ("NAType", "NaTType")
"""Types of what pandas writes where a value is missing."""


@dataclass(frozen=True)
class TrainingRows:
    """Checked rows of a fit."""

    X: NDArray[np.float64]
    """[N, V]."""
    targets: NDArray[np.float64]
    """[N, T]."""
    weight: NDArray[np.float64] | None
    """[N], or None where all rows count alike."""
    groups: Grouping | None = None
    """Which group each row belongs to, where groups have constants of their own."""
    errors: InputErrors | None = None
    """Errors of the columns, where they were measured with some."""

    def take(self, index: NDArray[np.intp]) -> TrainingRows:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        groups = None if self.groups is None else self.groups.take(index)
        errors = None if self.errors is None else self.errors.take(index)
        return TrainingRows(self.X[index], self.targets[index], weight, groups, errors)

    def split(self) -> tuple[TrainingRows, TrainingRows]:
        """Rows to search and rows to judge by."""
        if len(self.X) < VALIDATION_ROWS:
            raise ValueError(
                f'model_selection="validation" needs at least {VALIDATION_ROWS} rows, got n_samples={len(self.X)}'
            )
        from sklearn.model_selection import train_test_split  # a tenth of the import of the estimator

        index = train_test_split(np.arange(len(self.X)), test_size=VALIDATION_SHARE, random_state=0)
        searched, held_out = (self.take(rows) for rows in index)
        return searched, held_out


def weight_of_errors(y_error: ArrayLike | None, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """Weights [N] of rows whose targets have errors of these standard deviations [N], beside weights that were given.

    The largest error counts 1, so that no weight overflows; weights matter only in proportion.
    """
    if y_error is None:
        return sample_weight
    errors = np.asarray(y_error, dtype=np.float64)
    if errors.ndim == 0 and errors > 0:
        return sample_weight  # the same for every row
    if errors.ndim != 1 or not (np.isfinite(errors) & (errors > 0)).all():
        raise ValueError("y_error must be one positive, finite standard deviation for each row")
    precision: NDArray[np.float64] = (errors.max() / errors) ** 2
    if sample_weight is None:
        return precision
    given = np.asarray(sample_weight, dtype=np.float64)
    if given.shape != errors.shape:
        raise ValueError(
            f"y_error has shape {errors.shape}, sample_weight {given.shape}; give one of each for each row"
        )
    return np.asarray(given * precision)


def input_errors(x_error: Any, y_error: ArrayLike | None, names: Sequence[str], n_rows: int) -> InputErrors | None:
    """Errors of the columns and of the target; None where no column has any.

    `x_error` is a standard deviation for each column [V], for each row and column [N, V], or a mapping of column names to
    a number or [N]; columns that it does not name are exact.
    """
    if x_error is None:
        return None
    if y_error is None:
        raise ValueError(
            "x_error needs y_error: how the scatter is shared between inputs and target cannot be read off the rows; "
            "give the standard deviation of the target's error, one for all rows or one for each"
        )
    if isinstance(x_error, Mapping):
        unknown = [name for name in x_error if name not in names]
        if unknown:
            raise ValueError(f"x_error: {unknown[0]!r} is no column; there are {listing(list(names))}")
        x_error = np.stack(
            [np.broadcast_to(np.asarray(x_error.get(name, 0.0), dtype=np.float64), n_rows) for name in names], axis=1
        )
    found = np.asarray(x_error, dtype=np.float64)
    if found.shape not in ((), (len(names),), (n_rows, len(names))):
        raise ValueError(
            f"x_error has shape {found.shape}; it must be one standard deviation for each of {len(names)} columns, "
            f"({n_rows}, {len(names)}) of them, or a mapping such as {{{names[0]!r}: 0.1}}"
        )
    if not (np.isfinite(found) & (found >= 0)).all() or not found.any():
        raise ValueError("x_error must hold finite standard deviations of at least 0, not all 0")
    x = np.array(np.broadcast_to(found, (n_rows, len(names))))
    return InputErrors(x, np.array(np.broadcast_to(np.asarray(y_error, dtype=np.float64), n_rows)))


def split_groups(X: Any, groups: Any) -> tuple[Any, Any, str]:
    """The table without the column of its groups, the label of each row, and what the groups are called.

    `groups` is the name of a column of the frame `X`, or labels [N].
    """
    if not isinstance(groups, str):
        return X, groups, str(getattr(groups, "name", None) or "group")
    names = list(getattr(X, "columns", []))
    if groups not in names:
        there = f"its columns are {listing(list(map(str, names)))}" if names else "X is not a data frame"
        raise ValueError(f"groups={groups!r} is no column of X ({there}); name a column, or give a label for each row")
    if len(names) < 2:
        raise ValueError(f"groups={groups!r} is the only column of X; there must be others to explain y by")
    others = [name for name in names if name != groups]
    return X[others], X[groups].to_numpy(), groups


def check_groups(groups: Any, column: str, n_rows: int) -> Grouping:
    """Groups of the rows, checked."""
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups has shape {labels.shape}, but there are {n_rows} rows; give one label for each row")
    return Grouping.of(labels.tolist(), column)


def check_training(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, groups: Any = None
) -> tuple[TrainingRows, int | None]:
    """Checked rows, and the number of columns of `y`, None where it has one dimension.

    `groups` are labels [N] or the name of a column of `X`. Sets `n_features_in_` and `feature_names_in_` of the
    estimator, as scikit-learn does.
    """
    column = ""
    if groups is not None:
        X, groups, column = split_groups(X, groups)
    _refuse_dates(X, y)
    repeated = repeated_names(X)
    table = X if repeated is None else X.to_numpy()
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn sums a table to see whether it is finite
            checked, target = validate_data(
                estimator, table, y, multi_output=True, y_numeric=True, dtype=np.float64, order="C"
            )
        target = np.asarray(target, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise explained(error, X, y, groups=True) from error
    if repeated is not None:
        estimator.feature_names_in_ = repeated
    if not np.isfinite(target).all():
        raise ValueError("y holds values beyond what float64 can hold; rescale it")
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, checked, dtype=np.float64, ensure_non_negative=True)
    grouping = None if groups is None else check_groups(groups, column, len(checked))
    rows = TrainingRows(checked, target.reshape(len(target), -1), weight, grouping)
    return rows, None if target.ndim == 1 else target.shape[1]


def check_rows(estimator: Any, X: Any, used: Collection[int] | None = None) -> NDArray[np.float64]:
    """`X` [N, V] as an array, its columns held against those of `fit`.

    `used` are the columns that matter, all where None. A data frame may lack the others; 0 stands in their place. (Where
    none is used nothing shows that it is the right table, and scikit-learn's rule holds: the columns of `fit`.)
    """
    repeated = repeated_names(X)
    if used and repeated is None:
        partial = _partial_frame(estimator, X, used)
        if partial is not None:
            return partial
    if repeated is not None:
        if not np.array_equal(repeated, getattr(estimator, "feature_names_in_", [])):
            raise ValueError("The feature names should match those that were passed during fit, in the same order.")
        X = X.to_numpy()
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn sums a table to see whether it is finite
            if repeated is not None:
                return np.asarray(check_array(X, dtype=np.float64))
            return np.asarray(validate_data(estimator, X, reset=False, dtype=np.float64))
    except (ValueError, TypeError) as error:
        raise explained(error, X) from error


def _partial_frame(estimator: Any, X: Any, used: Collection[int]) -> NDArray[np.float64] | None:
    """A frame that lacks some columns of `fit`, spread over all V; None for what lacks none or has no names."""
    known = getattr(estimator, "feature_names_in_", None)
    names = None if known is None else _get_feature_names(X)
    if known is None or names is None or set(known) <= set(names) or len(set(known)) < len(known):
        return None
    missing = [known[j] for j in sorted(used) if known[j] not in names]
    if missing:
        listed = "\n- ".join(map(str, missing))
        raise ValueError(
            "The feature names should match those that were passed during fit.\n"
            f"Feature names that the formula uses, yet now missing:\n- {listed}\n"
        )
    if [name for name in known if name in names] != list(names):
        return None  # unknown names, or another order: scikit-learn says so
    place = {name: j for j, name in enumerate(known)}
    try:
        given = check_array(X, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise explained(error, X) from error
    full = np.zeros((len(given), len(known)))
    full[:, [place[name] for name in names]] = given
    return full


def column_names(estimator: Any) -> tuple[str, ...]:
    """Names of the columns seen in `fit`; x1, x2, ... where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{j + 1}" for j in range(estimator.n_features_in_))
    return tuple(str(name) for name in names)


def repeated_names(X: Any) -> NDArray[np.object_] | None:
    """Column names of a pandas frame in which a name occurs twice, which scikit-learn does not take; else None."""
    names = getattr(X, "columns", None)
    if (
        names is None
        or not hasattr(names, "is_unique")
        or names.is_unique
        or not all(isinstance(n, str) for n in names)
    ):
        return None
    return np.array(names, dtype=object)


def _refuse_dates(X: Any, y: Any) -> None:
    """Dates become numbers of nanoseconds without a word, or an error that names no column."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        types = [(f"column {str(name)!r} of X", dtype) for name, dtype in zip(X.columns, X.dtypes, strict=True)]
    else:
        types = [("X", getattr(X, "dtype", None))]
    for what, dtype in (*types, ("y", getattr(y, "dtype", None))):
        if str(dtype).lower().startswith(TIMES):
            raise ValueError(f"{what} holds dates or times; give numbers, such as the days since the first of them")


def explained(error: Exception, X: Any, y: Any = None, *, groups: bool = False) -> Exception:
    """The error itself, or where text, no number or too large a one stands among the numbers, one that says in which column
    and what to do; `groups` says whether rows may have some."""
    if (text := _first_text(y)) is not None:
        return ValueError(
            f"y holds text ({text!r:.60}): class labels are not numbers, and a formula explains numbers; "
            "code two classes as 0 and 1, or use GMEQLClassifier"
        )
    for name, column in _columns(X):
        if (text := _first_text(column)) is not None:
            mend = "leave the column out or code it as numbers"
            if groups:
                mend = "leave the column out, code it as numbers, or let it name groups: fit(X, y, groups=column)"
            return ValueError(f"column {name} of X holds text ({text!r:.60}), not numbers; {mend}")
    if isinstance(error, OverflowError):
        return ValueError("X or y holds a whole number beyond what float64 can hold; rescale it")
    for what, values in (("y", y), *((f"column {name} of X", column) for name, column in _columns(X))):
        if (lacking := _lacking(values)) is not None:
            return ValueError(f"{what} contains {lacking}; fill them, or leave such rows out")
    return error


def _lacking(values: Any) -> str | None:
    """How many of some values are no finite numbers, and which is the first; None where all are."""
    if values is None or np.iscomplexobj(values):
        return None
    given = np.asarray(values)
    if given.dtype == object:
        given = np.where(np.vectorize(_is_missing, otypes=[bool])(given), np.nan, given)
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError):
        return None
    kind, wrong = ("NaN", np.isnan(numbers)) if np.isnan(numbers).any() else ("infinity", np.isinf(numbers))
    if not wrong.any():
        return None
    row = int(np.argwhere(wrong)[0, 0]) if numbers.ndim else 0
    return f"{kind}: {wrong.sum()} of {numbers.size} values, the first in row {row}, counted from 0"


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none."""
    return value is None or type(value).__name__ in PANDAS_MISSING


def _columns(X: Any) -> list[tuple[str, Any]]:
    """Columns of a table, with what to call each: its name, or else its position."""
    if hasattr(X, "columns"):
        table = X.to_numpy()
        return [(repr(str(name)), table[:, j]) for j, name in enumerate(X.columns)]
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return []
    return [(str(j + 1), table[:, j]) for j in range(table.shape[1])] if table.ndim == 2 else []


def _first_text(values: Any) -> str | None:
    """The first text among values that is no number."""
    if values is None or np.asarray(values).dtype.kind not in "OUST":
        return None
    for value in np.asarray(values, dtype=object).ravel():
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return value
    return None
