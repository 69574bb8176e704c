from __future__ import annotations

import warnings

import numpy as np
import pytest
from motions import hunters, hunters_model
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gmeql import GMEQLDynamics

SMALL = {"max_candidates": 1500, "max_time": None, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return hunters_model(["hare", "lynx"])


def test_equations_of_exact_trajectories(model, capsys):
    assert [str(e) for e in model.equations_] == model.equations() == ["hare - hare*lynx", "hare*lynx - 0.8*lynx"]
    model.print()
    assert capsys.readouterr().out == "hare' = hare - hare*lynx\nlynx' = hare*lynx - 0.8*lynx\n"
    assert str(model).startswith("GMEQLDynamics:\n  hare' = ")
    assert len(model.fronts_) == 2 and model.stop_reason_ == "exact"
    assert model.candidates_ == 0  # an exact system needs no search


def test_predict_simulate_and_score_on_another_start(model):
    t, X = hunters(start=(0.6, 1.4))
    slopes = np.column_stack([X[:, 0] - X[:, 0] * X[:, 1], X[:, 0] * X[:, 1] - 0.8 * X[:, 1]])
    assert np.allclose(model.predict(X), slopes, atol=1e-5)
    assert np.allclose(model.simulate(X[0], t), X, atol=1e-4)
    assert model.score(X, t) > 0.99999 and model.score(X, t, slopes) > 0.99999


def test_trajectories_with_inputs_of_their_own_times():
    rng = np.random.default_rng(0)
    runs, times, inputs = [], [], []
    for start, points in ((2.0, 40), (0.3, 25)):
        t = np.sort(rng.uniform(0.0, 5.0, points))
        u = np.full(points, start)
        times.append(t)
        inputs.append(u)
        runs.append(start * (2 - np.exp(-t)))  # x' = 2 u - x
    model = GMEQLDynamics(**SMALL).fit(runs, times, u=inputs)
    assert str(model.equations_[0]) in ("2*u1 - x1", "-x1 + 2*u1")
    path = model.simulate(runs[0][:1], times[0], u=inputs[0])
    assert np.allclose(path[:, 0], runs[0], atol=1e-3)


def test_second_order_finds_the_law_from_positions_alone():
    t = np.linspace(0.0, 6.0, 60)
    model = GMEQLDynamics(2, feature_names=["q"], **SMALL).fit(np.exp(-0.1 * t) * np.cos(2 * t), t)
    assert str(model) == "GMEQLDynamics:\n  q'' = -4.01*q - 0.2*q_dot"
    assert model.predict([[1.0, 0.0]]) == pytest.approx(-4.01, abs=1e-5)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result():
    t = np.linspace(0.0, 3.0, 12)
    x = np.exp(-t) * (1 + 0.03 * np.random.default_rng(0).standard_normal(12))
    one, two = (GMEQLDynamics(**(SMALL | {"max_candidates": 200})).fit(x, t) for _ in range(2))
    assert [e.exact() for e in one.equations_] == [e.exact() for e in two.equations_]
    assert one.systems_ == two.systems_


def test_what_is_saved_loads(model, tmp_path):
    path = tmp_path / "motion.json"
    model.save(path)
    loaded = GMEQLDynamics.load(path)
    t, X = hunters()
    assert np.array_equal(loaded.predict(X), model.predict(X)) and str(loaded) == str(model)
    assert loaded.get_params() == model.get_params()
    with pytest.raises(ValueError, match="holds no trajectories; give X and t"):
        loaded.plot_trajectories()
    assert loaded.plot_trajectories(X, t).data


def test_figures_and_forms(model):
    assert len(model.plot_trajectories().data) == 4 and model.plot_phase().data and model.plot_front().data
    assert "right_side" in model.export("python") and len(model.sympy()) == 2 and "aligned" in model.latex()
    with pytest.raises(ValueError, match="states="):
        model.plot_phase(states=(0, 7))


def test_scikit_learn_manners():
    model = GMEQLDynamics(2, max_time=5.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict([[1.0, 2.0]])
    t, X = hunters()
    for change, message in (
        ({"order": 3}, "order=3 is not allowed; it must be 1 or 2"),
        ({"model_selection": "newest"}, "model_selection='newest' is not allowed"),
        ({"max_time": None}, "give the search no end"),
    ):
        with pytest.raises(ValueError, match=message):
            GMEQLDynamics(**change).fit(X, t)


def test_a_simulation_that_runs_away_scores_minus_infinity(model):
    t, X = hunters()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(-10.0 * X, 10.0 * t) == -np.inf
