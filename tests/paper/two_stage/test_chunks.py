"""What trains a chunk: which engine, and what is said where it cannot."""

import numpy as np
import pytest
from host_cuda import HostDriver, needs_compiler
from two_stage_runs import SMALL, TINY, data, finish

from gmeql.paper.two_stage import TwoStageConfig, chunks, run


def test_an_engine_that_cannot_train_is_refused_before_anything_is_compiled(monkeypatch):
    X, y = data()
    monkeypatch.setattr(chunks.cuda, "why_not", lambda *_: "there is no card")
    with pytest.raises(ValueError, match='there is no card; use engine="auto"'):
        run(TINY, X, y, engine="cuda")
    with pytest.raises(ValueError, match="engine must be one of auto, jax, cuda"):
        run(TINY, X, y, engine="gpu")


@needs_compiler
def test_auto_takes_the_kernel_where_it_can(monkeypatch):
    X, y = data()
    config = TwoStageConfig(**SMALL)
    by_jax = finish(TINY, X, y, seeds=[5], config=config, engine="jax")
    taken = []
    monkeypatch.setattr(chunks.cuda, "why_not", lambda *_: "")
    monkeypatch.setattr(chunks.cards, "drivers", lambda: taken.append(1) or (HostDriver(),))
    by_kernel = finish(TINY, X, y, seeds=[5], config=config)
    assert taken
    np.testing.assert_array_equal(by_kernel.result.choices, by_jax.result.choices)
    np.testing.assert_allclose(by_kernel.result.hard_loss, by_jax.result.hard_loss, rtol=1e-3)
    resumed = finish(TINY, X, y, seeds=[5], config=config, state=by_kernel.state)
    assert resumed is None  # nothing is left to do
