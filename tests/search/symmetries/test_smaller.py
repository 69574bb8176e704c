"""Symmetries of data and the smaller tables they allow."""

import numpy as np
import pytest
from thinned import thinned

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search
from gmeql.search.symmetries import View, find_views
from gmeql.search.symmetries.noisy import smaller_tables
from gmeql.search.symmetries.views import FittedView


def table(*ranges, rows=500, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(low, high, rows) for low, high in ranges])


def monomials(views, n):
    """Columns and factors of views as exponents of the raw columns, read off numerically."""
    points = np.exp(np.random.default_rng(1).normal(0, 0.3, (50, n)))
    basis = np.column_stack([np.log(points), np.ones(50)])
    found = []
    for view in views:
        logs = np.log(np.column_stack([view.table(points), view.factors(points)]))
        exponents, rest, *_ = np.linalg.lstsq(basis, logs, rcond=None)
        assert np.abs(basis @ exponents - logs).max() < 1e-9
        found.append(np.round(exponents[:-1].T, 6).tolist())
    return found


def test_units_are_read_off_the_data():
    """m·g(v/c): one variable is left, whatever the two columns that serve as units."""
    X = table((1, 5), (1, 2), (3, 10))
    y = X[:, 0] / np.sqrt(1 - (X[:, 1] / X[:, 2]) ** 2)
    views = find_views(X, y)
    assert views and all(len(view.columns) == 1 for view in views)
    for column, factor in monomials(views, 3):
        assert column in ([0, 1, -1], [0, -1, 1]) and factor == [1, 0, 0]


def decades(*ranges, rows=500, seed=0):
    """Columns that are uniform in their logarithms."""
    return 10.0 ** table(*ranges, rows=rows, seed=seed)


def test_symmetries_of_a_target_over_many_magnitudes():
    """n M² / (v² + s²)**1.5 over 20 decades: squared errors of the target see its few largest rows and no others."""
    X = decades((29, 33), (-21, -15), (3, 5), (3, 5))
    M, n, v, s = X.T
    views = find_views(X, n * M**2 / (v**2 + s**2) ** 1.5)
    assert str(Expression(views[0].factor, ("M", "n", "v", "s"))) == "M**2*n/(v**2 + s**2)**1.5"


def test_a_column_that_few_rows_see_stays_where_magnitudes_are_many():
    """What decides 1 % of the largest target is nothing to its squares, but most rows are decided by it."""
    X = decades((-30, -28), (7, 8.3), (-3, 1), (-6, -4))
    m, v, q, x = X.T
    views = find_views(X, m * 9e16 / np.sqrt(1 - v**2 / 9e16) + 0.5 * q * x**2)
    assert views and all("v" in [str(Expression(c, ("m", "v", "q", "x"))) for c in view.columns] for view in views)


def test_a_product_of_powers_leaves_nothing():
    X = table((1, 5), (1, 5), (1, 5))
    (view,) = find_views(X, 3 * X[:, 0] ** 2 / (X[:, 1] * np.sqrt(X[:, 2])))
    assert view.columns == (Constant(1.0),)
    assert monomials([View(View.raw(3).columns, view.factor)], 3)[0][-1] == [2, -1, -0.5]


@pytest.mark.parametrize(
    ("combine", "expected"),
    thinned(
        [(lambda a, b: a - b, "x1 - x2"), (lambda a, b: a**2 + b**2, "x1**2 + x2**2"), (lambda a, b: a + b, "x1 + x2")],
        2,
    ),
)
def test_two_columns_become_one(combine, expected):
    X = table((0.5, 3), (0.5, 3), (-2, 2))
    views = find_views(X, np.sin(X[:, 2]) + np.cos(0.3 * combine(X[:, 0], X[:, 1])))
    assert any(str(Expression(column, ("x1", "x2", "x3"))) == expected for view in views for column in view.columns)


@pytest.mark.filterwarnings("error")
def test_the_angle_of_an_orbit_is_a_difference():
    """Few rows near the far end of long orbits tell most of it, and slopes are off by a fifth."""
    X = table((0, 1), (0, 2 * np.pi), (0, 2 * np.pi), rows=700)
    views = find_views(X, (1 - X[:, 0] ** 2) / (1 + X[:, 0] * np.cos(X[:, 1] - X[:, 2])))
    assert views and views[0].columns == (Variable(0), build("sub", Variable(1), Variable(2)))


def test_zeros_in_a_column_hide_no_sum_of_squares():
    X = table((0.5, 3), (0.5, 3), (-2, 2))
    X[:40, 0], X[30:70, 1] = 0.0, 0.0
    views = find_views(X, np.sin(X[:, 2]) + np.cos(0.3 * (X[:, 0] ** 2 + X[:, 1] ** 2)))
    found = {str(Expression(column, ("x1", "x2", "x3"))) for view in views for column in view.columns}
    assert "x1**2 + x2**2" in found and "x1**2 - x2**2" not in found


def test_symmetries_are_seen_through_noise():
    rng = np.random.default_rng(0)
    X = table((1, 5), (1, 5), (1, 5))
    clean = X[:, 0] * np.sin(X[:, 1])
    views = find_views(X, clean + 0.1 * clean.std() * rng.standard_normal(len(X)))
    smallest = views[0]
    assert len(smallest.columns) == 1 and str(Expression(smallest.factor, ("a", "b", "c"))) == "a"


def test_nothing_is_seen_where_nothing_is():
    X = table((0, 2), (0, 2))
    assert find_views(X, np.exp(X[:, 0]) + np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 1]) == []


@pytest.mark.parametrize("rows", [5, 30])
def test_few_rows_many_columns_and_constants_are_left_alone(rows):
    X = table(*[(1, 2)] * 12, rows=rows)
    assert find_views(X, X[:, 0]) == []
    assert find_views(X[:, :2], np.ones(rows)) == []
    assert find_views(X[:, :1], X[:, 0]) == []


def test_looking_ends_when_time_is_up():
    X = table((1, 5), (1, 2), (3, 10))
    assert find_views(X, X[:, 0] * np.sin(X[:, 1] / X[:, 2]), out_of_time=lambda: True) == []


def planck(X):
    h, frequency, temperature, c = X.T
    return h * frequency**3 / (c**2 * (np.exp(h * frequency / temperature) - 1))


@pytest.mark.slow
def test_the_search_uses_what_it_sees_and_resumes_with_it():
    """A budget split in two by a stored state ends where an unbroken one does, views and all."""
    X = table((1, 3), (1, 3), (1, 3), (1, 3), rows=300)
    config = SearchConfig(max_candidates=40_000, n_jobs=1)
    unbroken = Search(X, planck(X), config=config, seed=3)
    for progress in unbroken.run():
        pass
    assert len(unbroken._state.portfolio.tables) > 1 or progress.reason == "exact"
    broken = Search(X, planck(X), config=config, seed=3)
    for event in broken.run():
        if broken._state.symmetries_done and event.candidates > 16_000:
            break
    again = Search.from_state(broken.state(), X, planck(X))
    for resumed in again.run():
        pass
    assert [str(m.expression) for m in resumed.front] == [str(m.expression) for m in progress.front]


def awkward_tables():
    rng = np.random.default_rng(0)
    plain, whole = rng.uniform(1, 3, (120, 3)), np.round(rng.uniform(-3, 3, (120, 3)))
    constant, empty = plain.copy(), plain.copy()
    constant[:, 1], empty[:, 1] = 2.0, 0.0
    return {
        "zeros": whole,
        "zeros and positive": np.abs(whole),
        "negative": -plain,
        "a constant column": constant,
        "a column of zeros": empty,
        "five rows": plain[:5],
        "large": 1e150 * plain,
        "small": 1e-160 * plain,
        "large and small": plain * [1e200, 1e-200, 1.0],
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", awkward_tables())
@pytest.mark.parametrize(
    "target",
    thinned([
        lambda X: X[:, 0] ** 2 + X[:, 1] ** 2,
        lambda X: X[:, 0] * X[:, 1] * X[:, 2],
        lambda X: np.cos(0.3 * (X[:, 0] - X[:, 1])) + X[:, 2],
        lambda X: X[:, 0],
        lambda X: np.full(len(X), 0.1),
    ], quick=(1, 4)),
    ids=["squares", "product", "wave", "one column", "constant"],
)  # fmt: skip
def test_awkward_tables_warn_of_nothing(name, target):
    X = awkward_tables()[name]
    with np.errstate(all="ignore"):
        y = target(X)
    assert all(np.isfinite(view.table(X)).all() for view in find_views(X, y))


def test_what_is_nearly_a_product_of_powers_keeps_a_column_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (400, 3))
    y = X[:, 0] * np.tanh(0.002 * X[:, 1] * X[:, 2])  # tanh(u) is u to five digits
    views = find_views(X, y)
    assert any(view.is_spent for view in views)
    assert any(len(view.columns) == 1 and not view.is_spent for view in views)


def sinc(u):
    return np.sin(u) / u


WAVES = {
    "a transition": (
        [(1, 3)] * 4 + [(1, 5)] * 2,
        lambda E, p, t, h, w, v: E * p * t / h * sinc((w - v) * t / 2) ** 2,
    ),
    "a thin film": (
        [(1, 5), (1, 2), (0.2, 1), (0.1, 1.3), (2, 5)],
        lambda I, n, d, t, l: I * (1 + np.cos(12.566 * n * d * np.cos(t) / l)),
    ),
    "a reflection": (
        [(1, 3), (1, 3), (0.1, 1.2), (0.1, 1.2)],
        lambda n, m, a, b: ((n * np.cos(a) - m * np.cos(b)) / (n * np.cos(a) + m * np.cos(b))) ** 2,
    ),
    "Rabi's law": (
        [(1, 3), (1, 4), (1, 4), (0.5, 2)],
        lambda W, w, v, t: W**2 / (W**2 + (w - v) ** 2) * np.sin(np.sqrt(W**2 + (w - v) ** 2) * t / 2) ** 2,
    ),
    "a scattered photon": (
        [(1, 3), (1, 3), (1, 3), (1, 3)],
        lambda E, m, c, a: E / (1 + E / (m * c**2) * (1 - np.cos(a))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", thinned(WAVES, 3))
def test_one_column_is_left_of_angles_and_what_they_stand_in(name):
    """Waves of many columns leave a rough surrogate, in whose slopes much seems to hold that is wrong."""
    ranges, law = WAVES[name]
    X = table(*ranges, rows=1000)
    smallest = smaller_tables(X, law(*X.T))[0]
    assert len(smallest.columns) == 1 and not smallest.is_spent


def test_of_noise_not_every_proposal_is_fitted(monkeypatch):
    """In noise much holds, and to fit it all took a second of a search: a surrogate must know more than a plane for that."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (700, 6))
    fitted, plain = [], FittedView.of

    def counted(view, *given):
        fitted.append(view)
        return plain(view, *given)

    monkeypatch.setattr(FittedView, "of", counted)
    find_views(X, 2 * X[:, 0] + rng.normal(size=700))
    of_noise = len(fitted)
    fitted.clear()
    ranges, law = WAVES["a reflection"]
    X = table(*ranges, rows=700)
    find_views(X, law(*X.T))
    assert of_noise <= 3 < len(fitted)


@pytest.mark.parametrize("tails", ["t", "lognormal"])
def test_nothing_holds_of_noise_whose_few_largest_rows_make_up_its_spread(monkeypatch, tails):
    """Any surrogate's typical error is small beside such a spread, and up to eighteen were fitted to tables of noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (700, 6))
    y = rng.standard_t(1.5, 700) if tails == "t" else rng.lognormal(0, 1.5, 700)
    fitted, plain = [], FittedView.of

    def counted(view, *given):
        fitted.append(view)
        return plain(view, *given)

    monkeypatch.setattr(FittedView, "of", counted)
    assert find_views(X, y) == [] and len(fitted) == 1
