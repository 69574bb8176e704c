"""Rewards on the host."""

import numpy as np

from gmeql.evaluation.baselines.dsr import DSRConfig
from gmeql.evaluation.baselines.dsr.config import library_of
from gmeql.evaluation.baselines.dsr.host import HostJudge, expression_of
from gmeql.evaluation.baselines.dsr.policy import SampledTexts
from gmeql.evaluation.baselines.tasks import Task
from sampled_tables import uniform_table


CONFIG = DSRConfig(fit_steps=15)
LIBRARY = library_of(CONFIG, 2)


def row_of(*words):
    row = np.full(30, LIBRARY.empty)
    row[: len(words)] = [LIBRARY.names.index(word) for word in words]
    return row


def test_a_text_becomes_the_expression_it_writes():
    row = row_of("sub", "mul", "const", "x1", "const")
    assert str(expression_of(row, [2.0, 3.0, 9.0], ("a", "b"), LIBRARY)) == "2*b - 3"


def test_constants_are_fitted_and_every_text_only_once(monkeypatch):
    X = uniform_table(6, 2, 80, 0, 2)
    task = Task(X, 1.3 * np.sin(1.2 * X[:, 0]) + 0.7 * X[:, 1])
    words = ["add", "mul", "const", "sin", "mul", "const", "x0", "mul", "const", "x1"]
    tokens = np.stack([row_of("x0"), row_of(*words), row_of("x0")], axis=1)[None]
    judge = HostJudge([task], CONFIG, LIBRARY)
    rewards, best, mae, texts, constants = judge(SampledTexts(tokens, None, None, None, None))
    assert rewards[0, 0] == rewards[0, 2] < rewards[0, 1] == best[0] and best[0] > 1 - 1e-6 and mae[0] < 1e-5
    np.testing.assert_array_equal(texts[0], row_of(*words))
    np.testing.assert_allclose(constants[0], [1.3, 1.2, 0.7], rtol=1e-3)
    monkeypatch.setattr(judge, "_fit", lambda task, rows: [] if not rows else 1 / 0)
    np.testing.assert_array_equal(judge(SampledTexts(tokens, None, None, None, None))[0], rewards)
