"""A first look finds what linear algebra can see, and shows nothing that breaks what the user asked for."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.knowledge.constraint_text import read_constraint
from gmeql.knowledge.knowledge import Knowledge
from gmeql.search.config import SearchConfig
from gmeql.search.offers.preview import first_look

RNG = np.random.default_rng(4)
X = RNG.uniform(0.5, 2.0, (300, 3))
NAMES = ("a", "b", "c")


def test_a_polynomial_is_seen_whole() -> None:
    y = 0.8 * X[:, 0] ** 3 + 0.9 * X[:, 1] ** 2 + 1.2 * X[:, 2]
    progress = first_look(X, y, None, NAMES, SearchConfig(), note="wait")
    assert progress is not None and progress.note == "wait" and not progress.done and progress.candidates == 0
    np.testing.assert_allclose(progress.best.expression(X), y, rtol=1e-8)
    losses = [member.loss for member in progress.front]
    assert losses == sorted(losses, reverse=True) and progress.best in progress.front


def test_of_noise_the_plain_sum_is_shown_and_its_loss_is_its_error() -> None:
    y = 3 * X[:, 0] - 2 * X[:, 2] + 0.3 * RNG.standard_normal(300)
    progress = first_look(X, y, np.full(300, 2.0), NAMES, SearchConfig(), note="wait")
    assert progress is not None
    values = progress.best.expression(X)
    assert progress.best.loss == pytest.approx(np.sqrt(np.mean((values - y) ** 2)), rel=1e-9)
    assert progress.best.loss < 0.35 and "b" not in str(progress.best.expression)


@pytest.mark.parametrize(
    "options", [dict(loss="absolute"), dict(architecture="general"), dict(functions=("mul", "sin"))], ids=str
)
def test_nothing_is_shown_where_more_was_asked_for_than_a_small_error(options: dict[str, object]) -> None:
    assert first_look(X, np.sin(7 * X[:, 0]), None, NAMES, SearchConfig(**options), note="wait") is None


def test_what_the_user_knows_is_never_broken() -> None:
    knowledge = Knowledge(constraints=(read_constraint("f >= 0", NAMES),))
    assert first_look(X, X[:, 0] - 5, None, NAMES, SearchConfig(knowledge=knowledge), note="wait") is None
