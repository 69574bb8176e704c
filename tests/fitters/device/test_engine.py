"""The device engine in the search: candidates of several islands side by side, as the CPU engine fits them."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.fitters.cpu import fit_batches
from gmeql.fitters.device import engine
from gmeql.fitters.device.tape import FAMILIES
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.opcodes import POWER_WHOLE
from gmeql.fitters.programs import input_slots
from gmeql.network.architecture import Architecture
from gmeql.search.config import IslandConfig
from gmeql.search.island import Island
from gmeql.search.tried import TriedStructures


def drawn_jobs() -> list[FitJob]:
    """Candidates of two islands over tables of one and three columns, each with a target of its own."""
    jobs = []
    few, many = (("id", "square", "mul"), ("add",)), (("id", "cube", "square"), ("add", "mul"))
    for n_variables, layers, hopeless in ((3, few, np.inf), (1, many, 0.1)):
        X = np.random.default_rng(n_variables).uniform(0.5, 2.0, (100, n_variables))
        island = Island(Architecture(n_variables, layers), "identity", IslandConfig(candidates_per_step=12), 1,
                        np.array([5], np.uint64))  # fmt: skip
        island.inputs = input_slots(X)[0]
        batch = island.draw(TriedStructures(8), 40, 0)
        assert len(batch.lengths) > 0
        data = FitData(island.inputs, np.cos(X.sum(axis=1)), np.linspace(0.5, 1.5, 100))
        jobs.append(FitJob(batch, data, hopeless))
    return jobs


def test_candidates_of_several_islands_are_fitted_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FAMILIES", {"whole": FAMILIES["whole"]})  # compiled in a moment
    here, there = drawn_jobs(), drawn_jobs()
    options = dict(max_steps=2, tolerance=1e-12, screen_rows=40)
    fit_batches(here, **options, n_threads=1)
    engine.fit_batches(there, **options)
    for job, other_job in zip(here, there, strict=True):
        mine, other = job.batch, other_job.batch
        np.testing.assert_allclose(other.losses, mine.losses, rtol=1e-8)
        np.testing.assert_allclose(other.constants, mine.constants, rtol=1e-6, atol=1e-9)
        assert other.codes.tolist() == mine.codes.tolist() and other.steps.tolist() == mine.steps.tolist()


def test_nothing_to_fit_is_no_error() -> None:
    (job, _) = drawn_jobs()
    empty = FitJob(job.batch.take(slice(0, 0)), job.data, job.hopeless)
    engine.fit_batches([empty], max_steps=2, tolerance=1e-9, screen_rows=None)
    assert not len(empty.batch.losses)


def test_programs_move_to_more_input_slots() -> None:
    """Slots of nodes shift; inputs, and the exponent that stands in a slot's place, stay."""
    program = np.zeros((1, 5, 3), np.int16)
    program[0, :3] = [[1, POWER_WHOLE, 3], [0, 3, 4], [2, 7, 3]]
    moved = engine._moved(program, 3, 8)
    assert moved[0, 1].tolist() == [0, 8, 9] and moved[0, 2].tolist() == [2, 7, 8]
    assert engine._moved(program, 3, 3) is program
