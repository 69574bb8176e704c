"""Algorithm 1's steps as one CUDA kernel, for the paper's functions: the same steps as `step.step`, a block a seed.

`network.py` writes a network out as source, `source.py` puts it before the files beside it, `engine.py` runs a chunk.
The same source compiles as plain C++, a block as one thread, so that tests hold it against `step.step` without a card.
"""

from __future__ import annotations

from gmeql.paper.two_stage.cuda.engine import CudaSteps, why_not

__all__ = ["CudaSteps", "why_not"]
