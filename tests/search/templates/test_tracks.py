"""One attempt at a template: steps never lose the best solution, and every solution has the form."""

from __future__ import annotations

import numpy as np

from gmeql.knowledge.templates import read_template
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.templates.config import TEMPLATES
from gmeql.search.templates.tracks import Track


def make(seed: int) -> Track:
    X = np.random.default_rng(0).uniform(0.5, 2, (60, 2))
    rows = JudgedRows.of(X, np.sin(X[:, 0] ** 2) + np.sqrt(X[:, 1]), None, ("x", "y"))
    template = read_template("sin(f(x)) + g(y)", ("x", "y"))
    rng = np.random.default_rng(seed)
    return Track(template, SearchConfig(), FunctionSet(DEFAULT_FUNCTIONS), rng, number=1, rows=rows)


def test_steps_only_gain_and_are_the_same_for_the_same_seed() -> None:
    tracks = [make(3), make(3)]
    for track in tracks:
        assert track.start() == TEMPLATES.first_starts
        best = track.best
        for i in (0, 1, 0, 1):
            assert 0 < track.step(i) <= TEMPLATES.candidates_per_step
            assert track.best <= best
            best = track.best
        assert len(track.pool) <= TEMPLATES.pool
        assert all(len(solution.inner) == 2 for solution in track.pool.values())
    assert tracks[0].best == tracks[1].best and tracks[0].pool.keys() == tracks[1].pool.keys()
