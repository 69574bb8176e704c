"""Alternatives as users meet them: listed after a fit, averaged, and refined from."""

from __future__ import annotations

import numpy as np
from quick_models import quick


def test_they_are_listed_averaged_and_refined(noisy) -> None:
    X, y = noisy
    model = quick(max_candidates=2000).fit(X, y)
    found = model.alternatives(4)
    assert 1 < len(found) <= 4
    assert len({str(one.expression) for one in found}) == len(found)
    mean, low, high = model.average(X, 4)
    assert np.std(mean - y) < np.std(y)
    assert 0.85 < ((low < y) & (y < high)).mean()
    again = model.refine(found[0], X, y, max_candidates=200)
    assert again is not model
    assert again.front_[-1].loss <= found[0].loss * 1.01


def test_several_targets_have_a_list_each(noisy) -> None:
    X, y = noisy
    model = quick().fit(X, np.column_stack([y, 2 * y]))
    assert len(model.alternatives(3)) == len(model.average(X)) == 2
