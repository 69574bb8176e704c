from __future__ import annotations

from dataclasses import replace

import numpy as np
from motions import NAMES, few_sums, hunters_motion, tree
from scipy.integrate import solve_ivp

from gmeql.differential.motion import discovery
from gmeql.differential.motion.discovery import discover
from gmeql.differential.motion.measured import measure
from gmeql.differential.motion.trajectories import check_trajectories
from gmeql.search.config import SearchConfig

CONFIG = SearchConfig(max_candidates=1500, n_jobs=1)


def test_an_exact_sum_of_products_is_found_before_any_other_term_is_tried(monkeypatch):
    monkeypatch.setattr(discovery, "sums", forbidden)
    monkeypatch.setattr(discovery, "_search", forbidden)
    found = discover(hunters_motion(), config=CONFIG, seed=0)
    assert [str(equation) for equation in found.systems.select().equations] == ["x - x*y", "x*y - 0.8*y"]
    assert found.reason == "exact" and found.candidates == 0


def test_sums_of_products_are_not_taken_where_something_simpler_might_be_as_close(monkeypatch):
    """On one swing, a pendulum's sine is 0.065*x**3 - 0.906*x - 0.102*x*y**2 to seven digits."""
    t = np.linspace(0.0, 4.0, 60)
    swings = solve_ivp(lambda _, z: [z[1], -np.sin(z[0])], (0.0, 4.0), [1.0, 0.0], t_eval=t, rtol=1e-10, atol=1e-12).y.T
    motion = measure(check_trajectories(swings, t, names=NAMES))
    assert motion.is_exact
    seen = []

    def empty(comparison, lists, searched):
        seen.append(dict(comparison.known))
        comparison.take((tree("y"), tree("-1.1*sin(x)")))

    monkeypatch.setattr(discovery, "sums", lambda *given: [])
    monkeypatch.setattr(discovery, "sums_of_fitted", lambda *given: [])
    monkeypatch.setattr(discovery, "_search", forbidden)
    monkeypatch.setattr(discovery, "compare", empty)
    found = discover(motion, config=CONFIG, seed=0)
    assert seen == [{}] and found.reason == "exact"
    assert [str(equation) for equation in found.systems.select().equations] == ["y", "-sin(x)"]


def forbidden(*given, **options):
    raise AssertionError("this is not asked for")


def test_an_interrupt_keeps_what_was_found(monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    def take_first(comparison, lists, searched):
        """To compare more before the interrupt takes long and is no matter here."""
        comparison.take([choices[0] for choices in lists])

    monkeypatch.setattr(discovery, "sums", few_sums)
    monkeypatch.setattr(discovery, "sums_of_fitted", few_sums)
    monkeypatch.setattr(discovery, "_search", pressed)
    monkeypatch.setattr(discovery, "compare", take_first)
    found = discover(hunters_motion(0.05), config=CONFIG, seed=0)
    assert found.interrupted and np.isfinite(found.systems.select().loss)


def test_an_interrupt_before_anything_was_compared_leaves_a_sum_of_plain_terms(monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(discovery, "sums", few_sums)
    monkeypatch.setattr(discovery, "sums_of_fitted", pressed)
    monkeypatch.setattr(discovery, "compare", pressed)
    for stopped in (True, False):
        found = discover(hunters_motion(0.05), config=CONFIG, seed=0, stopped=stopped)
        assert found.interrupted and found.reason == "interrupted" and len(found.fronts) == 2
        assert found.systems.select().loss < 0.2


def test_a_callback_that_says_stop_ends_the_searches_for_all_states(monkeypatch):
    states, search = [], discovery._search

    def counted(motion, j, *arguments):
        states.append(j)
        return search(motion, j, *arguments)

    monkeypatch.setattr(discovery, "sums", few_sums)
    monkeypatch.setattr(discovery, "sums_of_fitted", few_sums)
    monkeypatch.setattr(discovery, "_search", counted)
    monkeypatch.setattr(
        discovery, "compare", lambda comparison, lists, searched: comparison.take([choices[0] for choices in lists])
    )
    short = replace(CONFIG, max_complexity=7)
    found = discover(hunters_motion(0.05), config=short, seed=0, callbacks=[lambda event: True])
    assert states == [0] and found.reason == "stopped by a callback" and not found.interrupted
