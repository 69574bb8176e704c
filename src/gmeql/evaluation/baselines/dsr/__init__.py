"""DSR: deep symbolic regression by risk-seeking policy gradients (Petersen et al., ICLR 2021).

A recurrent policy writes an expression token by token in prefix order, seeing the parent and the sibling of the token
it writes next. Constraints act while it writes: lengths, no trigonometric function inside another, no function of its
own inverse, no power of a power, not only constants below a function, few constants. Constants are fitted for every
expression; the reward is 1 / (1 + NRMSE); the policy follows the gradient of the best five percent of each batch with
an entropy bonus.

Numbers are those of the paper and its published configuration (LSTM of 32 units started at zero, batches of 1,000,
Adam at 5e-4, risk factor 0.05, lengths 4 to 30, and the priors on arity and length and the fading entropy bonus that
the authors added later: they solve Nguyen-1 from a third of the samples). Where we leave it: up to six constants, not
three, because with three the problems b2, b3, b4 and b7 cannot be written; constants by Levenberg-Marquardt instead
of L-BFGS; on a device they are fitted in single precision on at most `fit_rows` rows, and the reward is then taken
over all rows. The best expression is refitted in double precision.

`DSRConfig.constants` says who fits: `"device"` (JAX, everything in one batch, any accelerator) or `"cpu"` (the
library's compiled fitter, each different expression once); `"auto"` takes the device path on accelerators and for
small tables.

Shapes: T tasks, B expressions of a batch, L tokens, N rows, K constants, Q tokens in the library.
"""

from __future__ import annotations

from gmeql.evaluation.baselines.dsr.config import NGUYEN_FUNCTIONS, PAPER_FUNCTIONS, PAPER_SAMPLES, DSRConfig
from gmeql.evaluation.baselines.dsr.run import fit

__all__ = ["NGUYEN_FUNCTIONS", "PAPER_FUNCTIONS", "PAPER_SAMPLES", "DSRConfig", "fit"]
