"""Which island opens next: families in turn, readings by what they earned, columns by relevance."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
from searches import waves

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable, build
from gmeql.network.families import FAMILIES
from gmeql.search.config import SearchConfig
from gmeql.search.islands.portfolio import GIVEN_FAMILY, Portfolio, table_key
from gmeql.search.data.readings import PLAIN, READINGS
from gmeql.search.data.rows import SearchRows
from gmeql.search.islands.steps import take_steps
from gmeql.search.symmetries.views import View
from gmeql.search.islands.tried import TriedStructures


def positive(n: int = 60, columns: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """A target that every reading applies to."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, (n, columns))
    return X, 0.5 * np.sqrt(X[:, 0] * X[:, 1])


def portfolio(X: np.ndarray, y: np.ndarray, **options: Any) -> tuple[Portfolio, SearchRows]:
    config = SearchConfig(**options)
    rows = SearchRows.of(X, y, config=config)
    return Portfolio(config, rows), rows


def ratio(n_columns: int = 2) -> View:
    return View((build("div", Variable(0), Variable(1)), *map(Variable, range(2, n_columns))), Variable(0))


def test_priors_of_every_family_sum_to_one() -> None:
    made, rows = portfolio(*positive())
    for _ in range(2):
        for family in FAMILIES:
            mine = [s for s in made.strategies if s.family == family]
            assert len({(s.view, s.reading) for s in mine}) == len(mine)
            expected = 0.4 if len(made.tables) == 1 else 1.0  # the rest is kept for smaller tables
            assert sum(s.prior for s in mine) == pytest.approx(expected)
            plain = sum(s.prior for s in mine if s.reading == PLAIN)
            assert plain == pytest.approx(expected / 2)
        made.add_tables([made.table(ratio(), rows)])
    assert {s.view for s in made.strategies} == {0, 1, 2}


def test_families_take_turns_and_the_first_islands_are_plain() -> None:
    made, _ = portfolio(*positive())
    rng = np.random.default_rng(0)
    islands = [made.open_island(rng) for _ in range(3 * len(FAMILIES))]
    assert [island.number for island in islands] == list(range(1, len(islands) + 1))
    families = [made.strategies[island.strategy].family for island in islands]
    assert families == 3 * list(FAMILIES)
    assert [(island.view, island.reading) for island in islands[:2]] == [(0, PLAIN)] * 2
    assert len({island.reading for island in islands}) > 3
    assert sum(s.tried for s in made.strategies) == len(islands)
    assert len({int(island.random_state[0]) for island in islands}) == len(islands)


def test_readings_that_earned_are_drawn_more_often() -> None:
    """In proportion to prior × (earned + 1)/(tried + 2): with 9 earned and nothing tried, ten times as often."""
    made, _ = portfolio(*positive())
    for strategy in made.strategies:
        strategy.gained = 9.0 / len(FAMILIES) if strategy.reading == "log" else 0.0
    rng = np.random.default_rng(0)
    drawn: Counter[str] = Counter()
    for _ in range(4000):
        made.opened += 1
        drawn[made.strategies[made._choose(rng)].reading] += 1
    others = len(READINGS) - 2
    total = 0.5 + 0.5 / (others + 1) * (10 + others)
    assert drawn[PLAIN] / 4000 == pytest.approx(0.5 / total, abs=0.03)
    assert drawn["log"] / 4000 == pytest.approx(0.5 / (others + 1) * 10 / total, abs=0.03)


def test_a_reading_that_no_longer_applies_is_not_drawn() -> None:
    """More rows may show a target of the other sign."""
    made, _ = portfolio(*positive())
    for name in list(made.tables[0].readings):
        if name != "inv":
            del made.tables[0].readings[name]
    rng = np.random.default_rng(0)
    made.opened = 2
    assert {made.open_island(rng).reading for _ in range(30)} == {"inv"}


def test_leading_islands_earn_for_their_strategies() -> None:
    made, _ = portfolio(*positive())
    rng = np.random.default_rng(0)
    islands = [made.open_island(rng) for _ in range(5)]
    made.reward(islands)
    assert [made.strategies[island.strategy].gained for island in islands] == pytest.approx([1, 1 / 2, 1 / 3, 0, 0])


def test_islands_of_an_earlier_portfolio_earn_for_what_still_is_a_strategy() -> None:
    """What was on its way to an accelerator ended a search with an IndexError, where fewer readings were left."""
    made, rows = portfolio(*positive())
    rng = np.random.default_rng(0)
    islands = [made.open_island(rng) for _ in range(40)]
    earlier = copy.copy(made)
    made.attach_rows(rows)
    for name in [name for name in made.tables[0].readings if name != "identity"]:
        del made.tables[0].readings[name]
    made.add_tables([made.table(ratio(), rows)])
    last = max(islands, key=lambda island: island.strategy)
    before = [s.gained for s in made.strategies]
    made.reward([last], earlier)
    assert [s.gained for s in made.strategies] == before
    plain = next(island for island in islands if island.strategy == 0)
    made.reward([plain], earlier)
    assert made.strategies[0].gained == before[0] + 1


def test_new_views_leave_earnings_alone() -> None:
    made, rows = portfolio(*positive())
    rng = np.random.default_rng(0)
    made.reward([made.open_island(rng) for _ in range(5)])
    earned = [(s.family, s.reading, s.tried, s.gained) for s in made.strategies]
    made.add_tables([made.table(ratio(), rows)])
    assert [(s.family, s.reading, s.tried, s.gained) for s in made.strategies[: len(earned)]] == earned
    assert all(s.view == 1 and s.tried == s.gained == 0 for s in made.strategies[len(earned) :])
    views = {made.open_island(rng).view for _ in range(40)}
    assert views == {0, 1}


def test_an_island_of_a_wide_table_sees_the_relevant_columns_and_some_others() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (200, 50))
    made, _ = portfolio(X, 2 * X[:, 17] * X[:, 41], max_columns=10)
    rng = np.random.default_rng(0)
    islands = [made.open_island(rng) for _ in range(30)]
    assert all(len(set(island.columns)) == 10 and {17, 41} <= set(island.columns) for island in islands)
    assert len(set(np.concatenate([island.columns for island in islands]))) > 40  # chance reaches the others
    assert all((np.diff(island.columns) > 0).all() for island in islands)


def test_a_formula_has_the_loss_that_its_island_knows() -> None:
    """Every reading and view: raw columns in, target out, weighted mean squared error as the elite's."""
    X, y = positive()
    made, rows = portfolio(X, y, readings=True)
    made.add_tables([made.table(ratio(), rows)])
    rng = np.random.default_rng(1)
    checked = set()
    for _ in range(24):
        island = made.open_island(rng)
        take_steps([island], [made.task(island)], TriedStructures(12), n_threads=1)[0].absorb(island)
        root = made.formula(island, 0)
        assert root is not None and made.loss(island) == island.best * made.unit(island)
        error = np.mean((Expression(root, rows.names)(X) - y) ** 2)
        if island.reading == PLAIN:
            assert error == pytest.approx(made.loss(island), rel=1e-6, abs=1e-20)
        else:  # to first order: a wrong scale, sign or inverse would miss by far more
            assert made.loss(island) / 3 < error + 1e-9 and error < 3 * made.loss(island) + 1e-9
        checked.add((island.view, island.reading))
    assert len(checked) > 6


def test_a_given_architecture_is_the_only_one() -> None:
    X, y = waves()
    made, _ = portfolio(X, y, architecture=[["id", "square"], ["add"]])
    assert [(s.family, s.reading) for s in made.strategies] == [(GIVEN_FAMILY, PLAIN)]
    island = made.open_island(np.random.default_rng(0))
    assert island.architecture is made.architecture and island.columns.tolist() == [0, 1]


def test_functions_that_make_no_architecture_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = portfolio(*waves())
    monkeypatch.setattr("gmeql.search.islands.portfolio.draw_architecture", lambda *arguments: None)
    with pytest.raises(ValueError, match="allow at least one of add, mul, div, sum"):
        made.open_island(np.random.default_rng(0))


def test_table_keys_differ() -> None:
    keys = {table_key(reading, view) for reading in READINGS for view in range(5)}
    assert len(keys) == 5 * len(READINGS) and all(0 <= key < 2**64 for key in keys)
    assert table_key(PLAIN, 0) == 0


def test_a_reading_that_misses_the_target_near_its_zeros_does_not_lead() -> None:
    """1/y of a target that crosses zero: to first order its islands look better than those that read y itself."""
    rng = np.random.default_rng(138)
    X = rng.uniform(0.0, 10.0, (300, 2))
    made, rows = portfolio(X, 1.5 * np.sin(X[:, 0]) + 1.3 * np.sin(X[:, 1] ** 2))
    generator = np.random.default_rng(1)
    losses: dict[str, list[tuple[float, float]]] = {}
    for _ in range(12):
        island = made.open_island(generator)
        for _ in range(3):
            (step,) = take_steps([island], [made.task(island)], TriedStructures(12), n_threads=1)
            step.absorb(island)
        if island.best > 1e-9:
            pair = made.loss(island), made.seen_loss(island, rows)
            losses.setdefault(island.reading, []).append(pair)
    assert {PLAIN, "inv"} <= set(losses)
    assert all(first == seen for first, seen in losses[PLAIN])
    assert min(first for first, _ in losses["inv"]) < min(first for first, _ in losses[PLAIN])
    assert min(seen for _, seen in losses["inv"]) > max(seen for _, seen in losses[PLAIN])


def test_strategies_are_drawn_in_proportion_to_prior_and_merit() -> None:
    """As a generator's own choice among them would be."""
    made, rows = portfolio(*positive())
    made.add_tables([made.table(ratio(), rows)])
    made.opened = made.config.plain_islands
    for k, strategy in enumerate(made.strategies):
        strategy.tried, strategy.gained = float(k % 5), float(k % 3) / 2
    families = list(FAMILIES)
    for seed in range(200):
        made.opened += 1
        mine = [i for i, s in enumerate(made.strategies) if s.family == families[(made.opened - 1) % len(families)]]
        weights = []
        for i in mine:
            one = made.strategies[i]
            alike = [s for s in made.strategies if (s.view, s.reading) == (one.view, one.reading)]
            gained, tried = sum(s.gained for s in alike), sum(s.tried for s in alike)
            merit = (gained + made.config.prior_gain) / (tried + made.config.prior_tried)
            weights.append(one.prior * merit * (one.reading in made.tables[one.view].readings))
        shares = np.array(weights) / sum(weights)
        expected = mine[int(np.random.default_rng(seed).choice(len(mine), p=shares))]
        assert made._choose(np.random.default_rng(seed)) == expected


def test_islands_that_take_all_columns_share_their_rows() -> None:
    made, rows = portfolio(*positive())
    rng = np.random.default_rng(0)
    first, second = made.open_island(rng), made.open_island(rng)
    assert first.inputs is second.inputs
    np.testing.assert_array_equal(made.tables[0].inputs_of(np.array([1])), made.tables[0].inputs[[1, 2, 4]])
    np.testing.assert_array_equal(made.tables[0].inputs_of(np.array([1, 0])), made.tables[0].inputs[[1, 0, 2, 4, 3]])
