"""Smaller tables that noise does not speak against."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.search.symmetries import noisy as noisy_module
from gmeql.search.symmetries.noisy import noisy_views, smaller_tables
from gmeql.search.symmetries.views import View


def table(*ranges, rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(low, high, rows) for low, high in ranges])


def noisy(clean, share=0.1, seed=1):
    return clean + share * np.sqrt(np.mean(clean**2)) * np.random.default_rng(seed).standard_normal(len(clean))


def holds(view, X, clean):
    """Whether the clean target over the factor is a function of the view's columns: rows that are near in these are near."""
    columns, target = view.table(X), clean / view.factors(X)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    distances = ((columns[:, None] - columns[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    away = target - target[distances.argmin(axis=1)]
    return float(np.median(np.abs(away))) < 0.03 * float(np.std(target))


def test_a_law_of_one_column_is_seen_through_a_tenth_of_noise():
    """A mean energy h f/(exp(h f/(k T)) - 1), which slopes of a noisy surrogate do not give away."""
    X = table((1, 3), (1, 3), (1, 3), (1, 3))
    h, f, k, T = X.T
    clean = h * f / (np.exp(h * f / (k * T)) - 1)
    smallest = noisy_views(X, noisy(clean))[0]
    assert len(smallest.columns) == 1 and holds(smallest, X, clean)


def test_distances_in_space_are_merged():
    X = table((1, 2), (3, 4), (1, 2), (3, 4), (1, 2))
    clean = X[:, 0] / ((X[:, 1] - X[:, 2]) ** 2 + (X[:, 3] - X[:, 4]) ** 2)
    smallest = noisy_views(X, noisy(clean))[0]
    assert len(smallest.columns) == 1 and holds(smallest, X, clean)


def test_a_wave_before_the_rest_is_seen():
    X = table((1, 5), (1, 5), (0.2, 6))
    clean = np.sqrt(X[:, 0] ** 2 + 3 * X[:, 1]) * np.cos(X[:, 2])
    views = noisy_views(X, noisy(clean))
    factors = [str(Expression(view.factor, ("a", "b", "t"))) for view in views]
    assert any("cos(t)" in factor for factor in factors)


def test_a_column_that_says_nothing_is_left_out():
    X = table((1, 5), (1, 5), (1, 5))
    clean = 1 + X[:, 0] / (2 + X[:, 1] ** 2)
    (*_, largest) = [view for view in noisy_views(X, noisy(clean, 0.05)) if len(view.columns) == 2]
    assert {str(Expression(column, ("a", "b", "c"))) for column in largest.columns} == {"a", "b"}


def test_columns_that_say_nothing_are_left_out_before_symmetries_are_tried(monkeypatch):
    """Of ten columns only two say anything: all symmetries of ten, nine and so on would take hundreds of fits."""
    X = np.random.default_rng(0).uniform(1, 5, (1000, 10))
    clean = 1 + X[:, 7] / (2 + X[:, 4] ** 2)
    widths, plain = [], noisy_module.fit_smooth

    def counted(table, *given, **options):
        widths.append(table.shape[1])
        return plain(table, *given, **options)

    monkeypatch.setattr(noisy_module, "fit_smooth", counted)
    found = [view for view in noisy_views(X, noisy(clean, 0.05)) if len(view.columns) == 2]
    names = tuple("abcdefghij")
    assert {str(Expression(column, names)) for column in found[0].columns} == {"e", "h"}
    assert sum(width > 2 for width in widths) < 50


@pytest.mark.parametrize("rows", [40, 1000])
def test_nothing_is_seen_in_pure_noise_or_in_few_rows(rows):
    X = table((1, 5), (1, 5), (1, 5), rows=rows)
    assert noisy_views(X, np.random.default_rng(3).standard_normal(rows)) == []


def test_a_sum_of_columns_is_left_as_it_is():
    X = np.random.default_rng(0).standard_normal((400, 6))
    clean = X @ np.array([1.0, 1.05, -0.5, 0.5, 2.0, 0.7])
    assert noisy_views(X, noisy(clean, 0.3)) == []


def test_what_was_seen_stands_when_time_is_over():
    X = table((1, 3), (1, 3), (1, 3), (1, 3))
    y = noisy(X[:, 0] * np.exp(-X[:, 1] * X[:, 2] / X[:, 3]))
    assert noisy_views(X, y, lambda: True) == []
    left = iter([False] * 60)
    views = noisy_views(X, y, lambda: next(left, True))
    assert views and all(len(view.columns) == 3 for view in views)


def test_slopes_alone_decide_where_there_is_no_noise(monkeypatch):
    X = table((1, 5), (1, 2), (3, 10), rows=100)
    y = X[:, 0] / np.sqrt(1 - (X[:, 1] / X[:, 2]) ** 2)
    by_errors = [View.raw(2)]
    monkeypatch.setattr(noisy_module, "noisy_views", lambda *given: by_errors)
    by_slopes = smaller_tables(X, y)
    assert by_slopes and by_errors[0] not in by_slopes
    assert smaller_tables(X, noisy(y))[0] == by_errors[0]
