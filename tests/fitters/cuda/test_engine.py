"""The accelerator's engine: candidates of several islands side by side, as the processor's engine fits them."""

from __future__ import annotations

import numpy as np
import pytest
from host_cuda import HostDriver, needs_compiler

from gmeql.fitters import cpu
from gmeql.fitters.cuda import engine
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.programs import input_slots
from gmeql.network.architecture import Architecture
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import Island
from gmeql.search.islands.tried import TriedStructures


def drawn_jobs(n_rows: tuple[int, int] = (100, 80)) -> list[FitJob]:
    """Candidates of two islands over tables of three and one columns, each with a target of its own."""
    jobs = []
    few, many = (("id", "square", "mul"), ("add",)), (("sin", "sum", "prod"), ("add", "mul", "div"))
    for n_variables, layers, hopeless, n in ((3, few, np.inf, n_rows[0]), (1, many, 0.1, n_rows[1])):
        X = np.random.default_rng(n_variables).uniform(0.5, 2.0, (n, n_variables))
        island = Island(Architecture(n_variables, layers), "identity", IslandConfig(candidates_per_step=24), 1,
                        np.array([5], np.uint64))  # fmt: skip
        island.inputs = input_slots(X)[0]
        batch = island.draw(TriedStructures(8), 40, 0)
        assert len(batch.lengths) > 0
        data = FitData(island.inputs, np.cos(X.sum(axis=1)), np.linspace(0.5, 1.5, n))
        jobs.append(FitJob(batch, data, hopeless))
    return jobs


@needs_compiler
@pytest.mark.parametrize(("n_drivers", "piece"), [(1, 1000), (3, 1000), (1, 7), (2, 5)])
@pytest.mark.parametrize("screen_rows", [40, None])
def test_candidates_of_several_islands_are_fitted_side_by_side(
    n_drivers: int, piece: int, screen_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables may differ in columns and rows; cards share the batch, which is sent in pieces: how many changes nothing."""
    monkeypatch.setattr(engine, "PIECE", piece)
    here, there = drawn_jobs(), drawn_jobs()
    options = dict(max_steps=3, tolerance=1e-12, screen_rows=screen_rows)
    cpu.fit_batches(here, **options, n_threads=1)
    engine.fit_batches(there, **options, drivers=[HostDriver() for _ in range(n_drivers)])
    for job, other_job in zip(here, there, strict=True):
        mine, other = job.batch, other_job.batch
        np.testing.assert_allclose(other.losses, mine.losses, rtol=1e-8)
        np.testing.assert_allclose(other.constants, mine.constants, rtol=1e-6, atol=1e-9)
        assert other.codes.tolist() == mine.codes.tolist() and other.steps.tolist() == mine.steps.tolist()


def test_nothing_to_fit_is_no_error() -> None:
    (job, _) = drawn_jobs()
    empty = FitJob(job.batch.take(slice(0, 0)), job.data, job.hopeless)
    engine.fit_batches([empty], max_steps=2, tolerance=1e-9, screen_rows=None, drivers=[HostDriver()])
    assert not len(empty.batch.losses)


@needs_compiler
@pytest.mark.parametrize("n_constants", [3, 7, 8, 15, 30])
def test_any_number_of_constants(n_constants: int) -> None:
    """One tile of products of slopes, or several: the sums are those of the processor's engine."""
    rng = np.random.default_rng(n_constants)
    X = rng.uniform(-1.0, 1.0, (90, n_constants - 1))
    slots, _ = input_slots(X)
    n = n_constants - 1
    code = np.zeros((1, 5, n), np.int16)
    for k in range(n):  # c0 x0 + c1 x1 + ... + c, one sum after the other
        last = k == n - 1
        code[0, :, k] = (1, 2 * n + 1 + k - 1 if k else 0, n if last else k + 1, -1 if k else 0, k + 1)
    from gmeql.fitters.opcodes import ADD

    code[0, 0] = ADD
    target = np.sin(3 * X.sum(axis=1))
    arguments = (code, np.array([n]), np.array([n_constants]))
    start = np.zeros((1, n_constants))
    options = dict(max_steps=5, tolerance=1e-12)
    weights = rng.uniform(0.5, 2.0, 90)
    mine = cpu.fit_arrays(*arguments, start.copy(), slots, target, weights, **options)
    other = engine.fit_arrays(*arguments, start, slots, target, weights, **options, drivers=[HostDriver()])
    np.testing.assert_allclose(other.losses, mine.losses, rtol=1e-10)
    np.testing.assert_allclose(other.constants, mine.constants, rtol=1e-7, atol=1e-10)
