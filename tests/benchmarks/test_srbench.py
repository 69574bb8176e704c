"""The SRBench entry holds to the interface that SRBench states."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from programs import program
from sklearn.base import clone, is_regressor

from gmeql.formula.canonical import evaluate
from gmeql.formula.parsing import parse_formula

FOLDER = Path(__file__).parents[2] / "experiments" / "srbench"
X = pd.DataFrame(np.random.default_rng(0).uniform(1, 3, (120, 3)), columns=["mass", "v", "unused"])
Y = 0.5 * X["mass"] * X["v"] ** 2 + 0.1 * np.random.default_rng(1).standard_normal(120)


@pytest.fixture(scope="module")
def entry():
    return program("experiments/srbench/regressor.py")


@pytest.fixture(scope="module")
def fitted(entry):
    return (
        clone(entry.est)
        .set_params(max_time=None, max_candidates=800, max_complexity=12, random_state=3, n_jobs=1)
        .fit(X, Y)
    )


def values(text, table):
    columns = {name: table[name].to_numpy() for name in table}
    return np.broadcast_to(evaluate(parse_formula(text, columns), columns), len(table))


def test_it_offers_what_srbench_reads(entry):
    assert is_regressor(entry.est)
    assert {"random_state", "max_time"} <= set(entry.est.get_params())
    assert entry.hyper_params == [{}]
    clone(entry.est).set_params(**entry.eval_kwargs["test_params"])
    for name in ("metadata.yml", "requirements.txt"):
        assert (FOLDER / name).read_text()


def test_the_model_string_computes_what_predict_does(entry, fitted):
    text = entry.model(fitted, X)
    np.testing.assert_allclose(values(text, X), fitted.predict(X), rtol=1e-9)


def test_columns_get_their_names_where_the_fit_saw_none(entry, fitted):
    bare = clone(fitted).fit(X.to_numpy(), Y)
    np.testing.assert_allclose(values(entry.model(bare, X), X), bare.predict(X.to_numpy()), rtol=1e-9)


def test_the_population_is_the_front(entry, fitted):
    population = entry.get_population(fitted)
    assert 1 <= len(population) <= 100
    for one in population:
        np.testing.assert_allclose(values(entry.model(one, X), X), one.predict(X), rtol=1e-9)
    assert entry.model(entry.get_best_solution(fitted), X) == entry.model(fitted, X)


def test_the_seed_decides(entry, fitted):
    assert entry.model(clone(fitted).fit(X, Y), X) == entry.model(fitted, X)


def test_max_time_ends_the_search(entry):
    est = clone(entry.est).set_params(max_time=0.5, random_state=0, n_jobs=1).fit(X, Y)
    assert est.stop_reason_ == "max_time"


def test_large_tables_get_more_time(entry):
    est = clone(entry.est)
    entry.eval_kwargs["pre_train"](est, X, Y)
    assert est.max_time == entry.est.max_time
    entry.eval_kwargs["pre_train"](est, pd.concat([X] * 10), None)
    assert est.max_time > entry.est.max_time
    short = clone(entry.est).set_params(max_time=10)
    entry.eval_kwargs["pre_train"](short, pd.concat([X] * 10), None)
    assert short.max_time == 10
