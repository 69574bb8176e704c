"""Parametrised tests of which a few hold the property and the others are variations: those run with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(cases: Iterable[Any], quick: int | Iterable[int]) -> list[Any]:
    """The cases for `parametrize`: quick are the first so many, or those at the given places; the others are slow."""
    cases = list(cases)
    kept = set(range(quick) if isinstance(quick, int) else quick)
    assert kept <= set(range(len(cases)))
    return [case if place in kept else _slow(case) for place, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
