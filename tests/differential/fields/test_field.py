"""`GMEQLField` from grid to law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gridded_fields import T, X, between_ends, heat, with_noise
from sklearn.base import clone

from gmeql import GMEQLField
from gmeql.differential.fields import field as module

SUMS = dict(functions=[], random_state=0)


def test_heat_with_and_without_noise() -> None:
    model = GMEQLField(**SUMS).fit(heat(), x=X, t=T)
    assert str(model) == "u_t = 0.3*u_xx" and model.periodic_ == (True,)
    assert model.score() == pytest.approx(1.0, abs=1e-8)
    assert model.predict()[0] == pytest.approx(np.gradient(heat(), T, axis=1, edge_order=2), abs=1e-3)
    assert model.simulate()[0] == pytest.approx(heat(), abs=1e-3)
    noisy = GMEQLField(**SUMS).fit(with_noise(heat(), 0.01), x=X, t=T)
    assert len(noisy.equations_[0].constants) == 1 and noisy.equations_[0].constants[0] == pytest.approx(0.3, rel=0.02)
    assert noisy.noise_[0] == pytest.approx(0.01 * heat().std(), rel=0.2)


def test_coordinates_enter_where_the_axis_does_not_close() -> None:
    x, u = between_ends()
    assert str(GMEQLField(**SUMS).fit(u, x=x, t=T)) == "u_t = u_x/x"


def test_two_fields_in_two_dimensions() -> None:
    x = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    A, B, t = np.meshgrid(x, x, np.linspace(0, 1, 31), indexing="ij")
    phase, other = A + 0.5 * t, B - t
    u = np.sin(phase) + 0.3 * np.cos(2 * phase) * np.sin(B)
    v = np.cos(other) * (1 + 0.3 * np.sin(A))
    model = GMEQLField(**SUMS).fit({"u": u, "v": v}, x=[x, x], t=np.linspace(0, 1, 31))
    assert str(model) == "u_t = 0.5*u_x\nv_t = -v_y"
    assert model.latex()[0].startswith("u_t = 0.5") and len(model.sympy()) == 2
    assert "u_x" in model.export("python")[0]


def test_a_law_of_open_form_is_found_by_the_search() -> None:
    x = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    t = np.linspace(0, 1, 61)
    start = 1.5 + np.sin(x)[:, None] + 0.3 * np.cos(2 * x)[:, None]
    u = np.log(np.exp(start) + t)  # u_t = exp(-u)
    model = GMEQLField(random_state=0, n_jobs=1, max_candidates=3000, max_time=None, order=1).fit(u, x=x, t=t)
    assert str(model) == "u_t = exp(-u)"


@pytest.mark.slow  # two whole searches
def test_the_same_seed_gives_the_same_front() -> None:
    def front() -> list[str]:
        options = dict(functions=["+", "*"], max_candidates=300, max_time=None, order=1)
        model = GMEQLField(random_state=0, n_jobs=1, **options)
        return [str(m) for m in model.fit(with_noise(heat(), 0.05), x=X, t=T).fronts_[0]]

    assert front() == front()


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments, **options):
        return replace(run_search(*arguments, **options), interrupted=True)

    run_search = module.run_search
    monkeypatch.setattr(module, "run_search", interrupted)
    model = GMEQLField(random_state=0, n_jobs=1, max_candidates=200, max_time=None, order=2)
    assert str(model.fit(heat(), x=X, t=T)) == "u_t = 0.3*u_xx"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"derivative": "magic"}, "one of auto, spectral"),
        ({"order": 9}, "from 1 to 6"),
        ({"max_time": 0}, "max_time must be positive"),
        ({"coordinates": "x"}, "must be True, False or 'auto'"),
    ],
)
def test_parameters_are_checked(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        GMEQLField(**options).fit(heat(), x=X, t=T)


def test_scikit_learn_manners_and_bad_simulations() -> None:
    model = GMEQLField(order=2, functions=[])
    assert clone(model).get_params() == model.get_params()
    assert str(model).startswith("GMEQLField(")
    model.fit(heat(), x=X, t=T)
    with pytest.raises(ValueError, match="increasing times"):
        model.simulate(t=[1.0])
    with pytest.raises(ValueError, match="u0 must have shape"):
        model.simulate(u0=np.zeros(3))
