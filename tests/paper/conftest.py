"""Every program of JAX here runs for a moment."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _compiled_quickly(compiled_quickly: None) -> None:
    """See `tests/conftest.py`."""
