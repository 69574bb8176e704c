"""EQL: the equation learner network (Martius & Lampert 2016; Sahoo et al. 2018; Kim et al. 2020).

Each hidden layer multiplies its input by a weight matrix and feeds the sums to elementary functions; the output is a
weighted sum of the last layer. Weights are driven to zero by the smoothed L0.5 norm, small ones are cut, the rest are
tuned without the norm, and what is left is read off as an expression.

Numbers follow Kim et al. and the code published with it: two hidden layers, RMSProp, 2,000 steps at ten times the
rate, 10,000 steps at the rate, pruning below 0.01, 10,000 steps at a tenth of the rate without the norm. Where we leave
it: every column of X is divided by its largest magnitude and y by its standard deviation (Kim's data live on [-1, 1]),
which the expression undoes; a run whose loss stops being finite starts again from new weights inside the same budget
(theirs starts the whole run again); division units follow Sahoo et al., with the denominator's threshold falling as
1/sqrt(step + 1) and a penalty on denominators below it.

Shapes: T tasks (one network each), N rows, V columns, U units of a layer, S sums of a layer (a binary unit takes two).
"""

from __future__ import annotations

from gmeql.evaluation.baselines.eql.config import KIM_UNITS, PAPER_STEPS, PAPER_UNITS, EQLConfig
from gmeql.evaluation.baselines.eql.run import fit

__all__ = ["KIM_UNITS", "PAPER_STEPS", "PAPER_UNITS", "EQLConfig", "fit"]
