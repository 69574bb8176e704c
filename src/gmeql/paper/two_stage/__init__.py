"""Algorithm 1, the two-stage training of a GMEQL network (section 4 of the paper).

    stage 1   repeat for n rounds:                                       `run`: segments of the config
                  initialise logits and weights                          `step.initialise`
                  repeat m times:                                        `step.step`, stage 1
                      sample p instances from logits and elites              `step.sample`
                      evaluate their mean absolute error                     `relaxed.mean_absolute_error`
                      store them in the repository                           `network.repository.insert`
                      train the logits online
    stage 2   initialise logits and weights
              repeat q times:                                            `step.step`, stage 2
                  sample, evaluate and store p instances
                  train logits and weights online
                  draw r instances from the repository                       `network.repository.draw`
                  train the logits offline on them                           `step.offline_gradient`
    output    T*, the best instance ever sampled                         `TwoStageResult`

`config` holds every number and its source, `step` the inner loops for one seed, `run` rounds, stages, chunks and seeds.

>>> import numpy as np
>>> from gmeql.network.architecture import Architecture
>>> X = np.linspace(-1, 1, 20)[:, None]
>>> config = TwoStageConfig(stage1_rounds=1, stage1_steps=10, stage2_steps=40, samples_per_step=8, capacity=16)
>>> events = run(Architecture(1, (("square", "sin"),)), X, X[:, 0] ** 2, seeds=[0], config=config)

yields the progress of all seeds; `progress.result` of the last event holds the best choices and weights of each.
"""

from __future__ import annotations

from gmeql.paper.two_stage.config import PRESETS, TwoStageConfig
from gmeql.paper.two_stage.run import Curves, RunState, TwoStageProgress, TwoStageResult, run

__all__ = ["PRESETS", "Curves", "RunState", "TwoStageConfig", "TwoStageProgress", "TwoStageResult", "run"]
