"""Tables with gross errors."""

from __future__ import annotations

import numpy as np


def struck_line(seed: int, *, both: bool = True, share: float = 0.08) -> tuple[np.ndarray, np.ndarray]:
    """3.2 x - 4 with gross errors, to both sides or to one."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 9, (150, 1))
    y = 3.2 * X[:, 0] - 4 + 0.6 * rng.standard_normal(150)
    wrong = rng.choice(150, int(share * 150), replace=False)
    y[wrong] += rng.uniform(25, 60, len(wrong)) * (rng.choice([-1, 1], len(wrong)) if both else 1.0)
    return X, y
