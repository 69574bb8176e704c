"""What every fitted estimator holds: fronts of formulas, one for each target, in all forms in which they leave."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gmeql.formula.expression import Expression
from gmeql.formula.printing.spreadsheet import to_spreadsheet
from gmeql.model.certainty.intervals import PredictionBasis
from gmeql.model.files.model_file import StoredModel, load_model, save_model
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.parameters import rebuilt, to_plain
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pictures import Pictures
from gmeql.model.targets import as_list, names_of, one_or_list


class Formulas(Pictures, BaseEstimator):  # type: ignore[misc]  # untyped
    """Fronts and the chosen formulas of an estimator: by index, printed, exported, in files."""

    n_features_in_: int
    seconds_: float
    group_constants_: Any
    _has_classes: ClassVar[bool] = False
    _target_columns: int | None
    _prediction_bases: list[PredictionBasis | str]

    def _keep_fronts(self, fronts: Sequence[Front], selected: Sequence[int]) -> None:
        self.front_ = one_or_list(fronts)
        self.selected_index_ = one_or_list(selected)
        self.expression_ = one_or_list([f[k].expression for f, k in zip(fronts, selected, strict=True)])

    def _keep_names(self, names: tuple[str, ...] | None) -> None:
        if names is not None:
            self.target_names_ = names
        elif hasattr(self, "target_names_"):
            del self.target_names_  # of an earlier fit

    def _fronts(self) -> list[Front]:
        check_is_fitted(self)
        fronts: list[Front] = as_list(self.front_)
        return fronts

    def _expressions(self, index: int | Sequence[int] | None = None) -> list[Expression]:
        return [member.expression for member in self._members(index)]

    def _members(self, index: int | Sequence[int] | None = None) -> list[FrontMember]:
        """One member of each target's front: the chosen one, or that of an index."""
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
        return [front[k] for front, k in zip(fronts, chosen, strict=True)]

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
        if hasattr(self, "group_constants_"):
            tables, n = as_list(self.group_constants_), self.n_features_in_
            expressions = [table.compact(e, n) for table, e in zip(tables, expressions, strict=True)]
        if format == "spreadsheet":
            columns = table if table is not None else getattr(self, "table_columns_", None)
            return one_or_list([to_spreadsheet(expression, columns) for expression in expressions])
        if table is not None:
            raise ValueError(f'table belongs to format "spreadsheet", not to {format!r}; leave it out')
        return one_or_list([expression.export(format) for expression in expressions])

    def __str__(self) -> str:
        """What `print` shows of a fitted model: its formula, or those of its targets. `repr` stays scikit-learn's."""
        if not hasattr(self, "expression_"):
            return repr(self)
        expressions = as_list(self.expression_)
        lines = [f"{name} = {e}" for name, e in zip(names_of(self), expressions, strict=True)]
        return type(self).__name__ + (": " if len(lines) == 1 else ":\n  ") + "\n  ".join(lines)

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file that `load` reads, on any machine and in any later version.

        Formulas, front and plain parameters are stored, not data and not code: callables and random generators among
        the parameters come back as their defaults.
        """
        fronts = self._fronts()
        picks = as_list(self.selected_index_)
        names, ranges, bases = (
            getattr(self, name, None) for name in ("feature_names_in_", "feature_ranges_", "_prediction_bases")
        )
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
                target_names=getattr(self, "target_names_", None),
                classes=self._stored_classes(),
                sharpness=getattr(self, "sharpness_", None),
                groups=tuple(as_list(self.group_constants_)) if hasattr(self, "group_constants_") else None,
                # with constants of groups' own it is another formula that they belong to
                bases=None if bases is None or hasattr(self, "group_constants_") else tuple(bases),
            ),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote. No code runs whatever is in it; a bad file is a `StorageError`."""
        stored = load_model(path)
        if (stored.classes is not None) != cls._has_classes:
            kind, name = ("regressor", "GMEQLRegressor") if cls._has_classes else ("classifier", "GMEQLClassifier")
            raise StorageError(f"{path}: holds a {kind}; open it with {name}.load")
        return rebuilt(cls, cls._get_param_names(), stored.parameters, path)._restore(stored)

    def _stored_classes(self) -> tuple[Any, ...] | None:
        """Classes that the formulas tell apart; None where they explain numbers."""
        return None

    def _restore(self, stored: StoredModel) -> Self:
        """Take what a file of this kind of estimator holds."""
        self.n_features_in_ = stored.n_features
        if stored.feature_names is not None:
            self.feature_names_in_ = np.array(stored.feature_names, dtype=object)
        if stored.ranges is not None:
            self.feature_ranges_ = np.array(stored.ranges, dtype=np.float64)
        if stored.table_columns is not None:
            self.table_columns_ = stored.table_columns
        self._keep_names(stored.target_names)
        if stored.groups is not None:
            self.group_constants_ = one_or_list(stored.groups)
        if stored.bases is not None:
            self._prediction_bases = list(stored.bases)
        self._target_columns = stored.target_columns
        self.candidates_ = stored.candidates
        self.seconds_ = stored.seconds
        self._keep_fronts(list(stored.fronts), list(stored.selected))
        return self
