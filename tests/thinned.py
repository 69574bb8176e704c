"""Tests of which a few cases hold the property and the others are variations: those run with the slow tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

IS_THOROUGH = os.environ.get("GMEQL_THOROUGH") == "1"
"""Whether properties are held against all their examples; `make test-slow` says so."""
LEAST_EXAMPLES = 15


def thinned(cases: Iterable[Any], quick: int | Iterable[int]) -> list[Any]:
    """The cases for `parametrize`: quick are the first so many, or those at the given places; the others are slow."""
    cases = list(cases)
    kept = set(range(quick) if isinstance(quick, int) else quick)
    assert kept <= set(range(len(cases)))
    return [case if place in kept else _slow(case) for place, case in enumerate(cases)]


def examples_of(many: int) -> int:
    """How many of the drawn examples a property is held against: a quarter of them where not all."""
    return many if IS_THOROUGH else min(many, max(many // 4, LEAST_EXAMPLES))


def examples(many: int) -> settings:
    """The setting of a property that has another number of examples than most."""
    return settings(max_examples=examples_of(many))


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
