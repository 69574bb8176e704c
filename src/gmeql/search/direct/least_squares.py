"""Scale and offset of many formulas at once, in closed form, from sums of products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gmeql.search.direct.table import FloatArray


class Solved(NamedTuple):
    """Factors, offsets and the sums of squares that they leave, of one shape each."""

    factor: FloatArray
    offset: FloatArray
    squares: FloatArray


def with_second(yy: float, yf: Any, ff: Any, yg: Any, gg: Any, gf: Any) -> Solved:
    """Least squares of y on f and a second column g: y = factor f + offset g."""
    with np.errstate(all="ignore"):
        factor = (yf - yg * gf / gg) / (ff - gf**2 / gg)
        offset = (yg - factor * gf) / gg
        squares = (yy - yg**2 / gg) - factor * (yf - yg * gf / gg)
    return Solved(factor, offset, squares)
