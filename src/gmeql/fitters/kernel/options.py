"""How the kernel is compiled, beyond what `compiled.py` asks of every compiled function."""

from __future__ import annotations

from typing import Any

from numba import float64, int16, int64

from gmeql.fitters.compiled import INLINE

FAST: dict[str, Any] = dict(fastmath={"reassoc", "contract", "nsz", "arcp"})
"""Never nnan or ninf: non-finite values decide what is rejected."""
IN_ORDER: dict[str, Any] = dict(fastmath={"contract", "nsz"})
"""The reductions of arguments subtract a constant in two or three parts; in another order they would lose digits."""
FAST_INLINE: dict[str, Any] = FAST | INLINE

PROGRAM, TABLE, NUMBERS, INDICES = int16[:, ::1], float64[:, ::1], float64[::1], int64[:, ::1]
"""Types of a program, of the table of a worker, of constants and their like, of what is known of nodes."""
