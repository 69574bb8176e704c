"""Below which loss two formulas cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.pareto.rules import SELECTION, rounding_level


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_rounding_level_follows_the_target(scale: float) -> None:
    level = rounding_level(scale, 2.0 * scale)
    assert level == pytest.approx(2.0 * scale * SELECTION.exact_ulps * np.finfo(float).eps)
    assert rounding_level(scale, 4.0 * scale) == pytest.approx(2.0 * level)


def test_a_target_of_zeros_has_a_level_above_zero() -> None:
    assert rounding_level(0.0, 0.0) > 0.0
