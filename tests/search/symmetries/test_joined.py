"""Columns that are read together, told by exact slopes."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.search.symmetries.joined import joined_products, joined_sums


def drawn(rows=300):
    u, w = np.random.default_rng(0).uniform(0.5, 1.4, (2, rows))
    return u, w


def text(part):
    return str(Expression(part, ("x",)))


PRODUCTS = {  # y, and its slopes by u and w
    "a grating": (lambda u, w: np.exp(u * np.sin(w)), lambda u, w: (np.sin(w), u * np.cos(w)), ("x", "sin(x)"), 1.0, 0.0),
    "two angles": (
        lambda u, w: np.exp(np.cos(u) / np.cos(w)),
        lambda u, w: (-np.sin(u) / np.cos(w), np.cos(u) * np.sin(w) / np.cos(w) ** 2),
        ("cos(x)", "cos(x)"), -1.0, 0.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_functions_is_the_nearest(name):
    law, slopes, nodes, power, before = PRODUCTS[name]
    u, w = drawn()
    y = law(u, w)
    rise = np.column_stack(slopes(u, w)) * y[:, None]
    best = min(joined_products(np.column_stack([u, w]), rise, y, [0, 1]), key=lambda one: one.away)
    assert {text(best.left[0]), text(best.right[0])} == set(nodes)
    assert best.left[1] == power and best.before == before and best.sign == 0


def test_a_power_may_stand_before_a_product():
    """y = u**3 exp(w/u)"""
    u, w = drawn()
    y = u**3 * np.exp(w / u)
    rise = np.column_stack([3 * y / u - y * w / u**2, y / u])
    best = min(joined_products(np.column_stack([u, w]), rise, y, [0, 1]), key=lambda one: one.away)
    assert (best.left[1], best.before) == (-1.0, 3.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_power_may_stand_before_a_sum(sign):
    """y = u**2 exp(u**2 ± w)"""
    u, w = drawn()
    y = u**2 * np.exp(u**2 + sign * w)
    rise = np.column_stack([2 * y / u + 2 * u * y, sign * y])
    best = min(joined_sums(np.column_stack([u, w]), rise, y, [0, 1]), key=lambda one: one.away)
    assert (best.i, best.left[1], best.right[1], best.before, best.sign) == (0, 2.0, 1.0, 2.0, sign)


def test_what_is_read_apart_is_near_nothing():
    u, w = drawn()
    y = np.exp(u) + np.sin(3 * w) * u
    rise = np.column_stack([np.exp(u) + np.sin(3 * w), 3 * np.cos(3 * w) * u])
    given = np.column_stack([u, w]), rise, y, [0, 1]
    assert all(one.away > 0.1 for one in [*joined_products(*given), *joined_sums(*given)])
