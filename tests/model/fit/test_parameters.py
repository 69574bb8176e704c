"""The estimator's parameters: each wrong one is named before any work, and plain data come back as they went."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from gmeql import GMEQLRegressor, architecture_preset
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.methods import METHODS
from gmeql.model.fit.parameters import check_parameters, from_plain, rebuilt, to_plain
from gmeql.model.pareto.rules import RULES
from gmeql.search.config import DEVICES
from gmeql.search.losses.losses import LOSSES


@pytest.mark.parametrize(
    "bad",
    [
        {"method": "magic"},
        {"functions": "sin"},
        {"functions": []},
        {"max_time": 0},
        {"max_time": float("nan")},
        {"max_time": "30"},
        {"max_candidates": 0},
        {"max_candidates": 1.5},
        {"max_complexity": -1},
        {"model_selection": "prettiest"},
        {"n_jobs": 0},
        {"verbose": "yes"},
        {"warm_start": 1},
        {"checkpoint": 3},
        {"checkpoint_interval": 0},
        {"callbacks": 3},
        {"callbacks": [print, 3]},
        {"loss": "cubic"},
        {"device": "abacus"},
    ],
    ids=str,
)
def test_a_wrong_parameter_is_named(bad) -> None:
    (name,) = bad
    with pytest.raises(ValueError, match=f"^{name}="):
        check_parameters(GMEQLRegressor(**bad).get_params(deep=False))
    with pytest.raises(ValueError, match=f"^{name}="):
        GMEQLRegressor(**bad).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("name", ["method", "loss", "device", "model_selection"])
@pytest.mark.parametrize("value", [None, ["squared"], {}, 3])
def test_a_choice_that_is_no_word_is_refused_like_a_wrong_word(name, value) -> None:
    with pytest.raises(ValueError, match=f"^{name}="):
        check_parameters(GMEQLRegressor(**{name: value}).get_params(deep=False))


def test_no_budget_at_all_is_refused_where_nothing_else_ends_the_search() -> None:
    with pytest.raises(ValueError, match="no end"):
        check_parameters(GMEQLRegressor(max_time=None).get_params(deep=False))
    check_parameters(GMEQLRegressor("paper", max_time=None).get_params(deep=False))


@pytest.mark.parametrize(
    ("name", "table"), [("method", METHODS), ("loss", LOSSES), ("device", DEVICES), ("model_selection", RULES)]
)
def test_the_documentation_names_every_word_of_its_table(name, table) -> None:
    text = inspect.getdoc(GMEQLRegressor) or ""
    (listed,) = re.findall(rf"^{name} : {{(.*?)}}", text, flags=re.MULTILINE)
    assert [word.strip('" ') for word in listed.split(",")] == list(table)


def test_plain_parameters_come_back() -> None:
    given = GMEQLRegressor(
        functions=("+", "*"), architecture=architecture_preset("general", 2), max_time=np.float64(3), n_jobs=np.int64(2)
    ).get_params(deep=False)
    again = from_plain(to_plain(given))
    assert again["architecture"] == given["architecture"] and again["functions"] == ["+", "*"]
    assert type(again["max_time"]) is float and type(again["n_jobs"]) is int


def test_code_stays_out_of_files_and_other_objects_are_refused() -> None:
    kept = to_plain(GMEQLRegressor(callbacks=[print], model_selection=len, max_time=np.inf).get_params(deep=False))
    assert "callbacks" not in kept and "model_selection" not in kept and kept["max_time"] is None
    with pytest.raises(ValueError, match="cannot be stored"):
        to_plain({"functions": object()})
    with pytest.raises(ValueError, match="cannot be an object"):
        from_plain({"functions": {"a": 1}})


def test_an_estimator_is_rebuilt_from_its_file_or_the_file_is_refused() -> None:
    assert rebuilt(dict, ("a", "b"), {"a": 1}, "m.json") == {"a": 1}
    with pytest.raises(StorageError, match=r"m\.json: unknown parameter 'c'; the file is damaged"):
        rebuilt(dict, ("a", "b"), {"c": 1}, "m.json")
    with pytest.raises(StorageError, match=r"m\.json: parameter 'a' cannot be an object"):
        rebuilt(dict, ("a",), {"a": {"b": 1}}, "m.json")
