"""No form is chosen for more nats than the paired errors of the rows are sure of."""

from __future__ import annotations

import numpy as np

from gmeql.search.judging.outlook import Outlook, outlooks
from judged_fronts import judged


def test_a_form_that_a_few_rows_pay_for_does_not_replace_a_constant() -> None:
    """One row of 24 sticks out of a skewed target; a high power meets it and two more, and nothing else."""
    rng = np.random.default_rng(9000)
    X = rng.uniform(0, 3, (24, 2))
    y = np.exp(0.5 * X[:, 0] + 0.8 * rng.standard_normal(24))
    lucky = "0.00027948*cos(0.94134*x1*x2)**2*x1**6*x2**6 + 1.7309"
    front = judged(X, y, lucky)
    assert front.description_length(front[1]) < front.description_length(front[0]) - 5  # by nats it were chosen
    assert front.select("best").complexity == 1


def test_errors_that_grow_speak_for_no_bend() -> None:
    """Errors in proportion to the target: the largest rows bend a line by chance."""
    bent = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.exp(rng.normal(9, 1, (200, 1)))
        y = 0.0036 * X[:, 0] * (1 + 0.3 * rng.standard_normal(200))
        slope = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0]))
        bend = np.linalg.lstsq(np.column_stack([X[:, 0], X[:, 0] ** 2]), y, rcond=None)[0]
        front = judged(X, y, f"{slope!r}*x1", f"{float(bend[0])!r}*x1 + {float(bend[1])!r}*x1**2")
        bent += front.select("best").complexity > 3
    assert bent <= 4


def test_a_law_with_even_errors_loses_nothing() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0.1, 10, (40, 1))
        y = 5 * X[:, 0] / (X[:, 0] + 2) + 0.2 * rng.standard_normal(40)
        line = np.polyfit(X[:, 0], y, 1)
        front = judged(X, y, f"{float(line[0])!r}*x1 + {float(line[1])!r}", "5.02*x1/(x1 + 2.03)")
        assert "/" in str(front.select("best"))


def test_gains_go_through_plain_data(rng: np.random.Generator) -> None:
    X = rng.uniform(0, 1, (30, 1))
    front = judged(X, X[:, 0] + 0.1 * rng.standard_normal(30), "1.01*x1")
    outlook = front[1].outlook
    assert outlook is not None and outlook.gains[0][0] == 1 and outlook.gains[0][1] == outlook.support
    assert Outlook.from_dict(outlook.to_dict()) == outlook
    assert outlooks([front[0].expression.root], X, X[:, 0])[0].gains == ()


def test_a_column_of_noise_does_not_take_the_place_of_a_mean_of_nothing() -> None:
    """A slope through zero has as many constants as a mean; where that is 0 itself, it has one more than is needed."""
    taken = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
        j = int(np.argmax(np.abs(X.T @ y)))
        front = judged(X, y, f"{float(X[:, j] @ y / (X[:, j] @ X[:, j]))!r}*x{j + 1}")
        taken += front.select("best").complexity > 1
    assert taken <= 5
