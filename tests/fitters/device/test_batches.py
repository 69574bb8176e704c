"""Padding: few compilations, large batches cut, precisions."""

from __future__ import annotations

import numpy as np
import pytest
from fitting_problems import FORMULAS, problems

from gmeql.fitters import fit
from gmeql.fitters.device import batches, engine
from gmeql.fitters.device.levenberg_marquardt import compilations
from gmeql.fitters.programs import from_expression


@pytest.fixture
def few_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of sums, quotients and whole powers alone, which compile in a moment."""
    monkeypatch.setattr(batches, "families_of", lambda ops: frozenset({"whole"}))


def test_compilations_are_bounded_by_padded_sizes(few_families: None) -> None:
    _, slots, _, targets = problems()
    program = from_expression(FORMULAS["line"], 3)
    engine.fit([program] * 3, None, slots, targets[0], max_steps=1)
    before = compilations()
    for n, rows, steps in ((1, 293, 2), (7, 290, 3), (16, 257, 1), (11, 300, 4)):
        engine.fit([program] * n, None, slots[:, :rows], targets[0][:rows], max_steps=steps, tolerance=1e-3 / n)
    assert compilations() == before
    engine.fit([program] * 17, None, slots, targets[0], max_steps=1)
    assert compilations() == before + 1


def test_device_cuts_large_batches_and_row_blocks(monkeypatch: pytest.MonkeyPatch, few_families: None) -> None:
    programs, slots, starts, targets = problems()
    names = list(FORMULAS)
    mine = [names.index(name) for name in ("line", "whole powers", "quotient", "abs and neg")] * 10
    programs, starts = [programs[b] for b in mine], starts[mine]
    whole = fit(programs, starts, slots, targets[0], max_steps=3)
    monkeypatch.setattr(batches, "ROW_BLOCK", 128)
    monkeypatch.setattr(batches, "BATCHES", (16,))
    parts = fit(programs, starts, slots, targets[0], engine="device", max_steps=3)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-8, atol=1e-18)
    assert parts.steps.tolist() == whole.steps.tolist()


def test_mixed_precision_ends_in_double(few_families: None) -> None:
    _, slots, _, targets = problems()
    program = from_expression(FORMULAS["line"], 3)
    start = np.array([[1.0, 1.0, 1.0]])
    options = dict(max_steps=8, tolerance=1e-12)
    narrow = engine.fit([program], start, slots, targets[0], precision="float32", **options)
    mixed = engine.fit([program], start, slots, targets[0], precision="mixed", **options)
    assert mixed.losses[0] < 1e-20 < narrow.losses[0] < 1e-10
    with pytest.raises(ValueError, match="precision must be one of float64, float32, mixed, got 'half'"):
        engine.fit([program], start, slots, targets[0], precision="half", **options)


def test_no_accelerator_on_a_plain_machine() -> None:
    import jax

    assert batches.available() == (jax.default_backend() != "cpu")
