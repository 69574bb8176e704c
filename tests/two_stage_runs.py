"""Small runs of Algorithm 1 that several test files look at."""

from functools import lru_cache

import numpy as np

from gmeql.network.architecture import Architecture
from gmeql.paper.two_stage import TwoStageConfig, run

SMALL = dict(
    stage1_rounds=2, stage1_steps=4, stage2_steps=8, samples_per_step=4, offline_batch=3, capacity=6, chunk_steps=4,
    curve_every=1, logits_rate=0.05, weights_rate=0.03, offline_rate=0.04,
)  # fmt: skip
TINY = Architecture(2, (("square", "sin", "sub"), ("add", "sum")))
TWO_OUTPUTS = Architecture(2, (("mul", "cos"), ("sum", "div", "id")), n_outputs=2)


def data(n_outputs=1, rows=12, n_variables=2):
    rng = np.random.default_rng(3)
    X = rng.uniform(0.3, 2.0, (rows, n_variables))
    targets = np.stack([X[:, 0] ** 2 + 0.5 * X[:, 1], np.sin(X[:, 1]) - X[:, 0]], axis=1)
    return X, targets[:, :n_outputs]


def finish(*args, **options):
    progress = None
    for progress in run(*args, **options):
        pass
    return progress


@lru_cache
def small_run(seeds=(5, 6, 7), dtype="float32", **changes):
    X, y = data()
    return finish(TINY, X, y, seeds=seeds, config=TwoStageConfig(**{**SMALL, **changes}), dtype=dtype)
