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
    monkeypatch.setattr(chunks.cuda, "why_not", lambda *_: "")
    monkeypatch.setattr(chunks.cards, "drivers", lambda: (HostDriver(),))
    traced = chunks.COMPILATIONS[0]
    progress = finish(TINY, X, y, seeds=[5], config=config)
    assert chunks.COMPILATIONS[0] == traced  # JAX compiled no chunk
    assert progress.done and np.isfinite(progress.result.hard_loss).all()
    again = [step.step for step in run(TINY, X, y, seeds=[5], config=config, state=progress.state)]
    assert again == []  # its state is one that a run can be taken up from: here nothing is left to do
