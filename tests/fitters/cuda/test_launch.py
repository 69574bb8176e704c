"""Data sets as the kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_cuda import HostDriver

from gmeql.fitters.cuda.launch import launch_fit, send_data
from gmeql.fitters.cuda.source import DATA, FITS_PER_WARP, SIZES, Size, work_bytes
from gmeql.fitters.kernel.arrays import FitData


def test_data_sets_know_their_rows_masses_and_spreads() -> None:
    rng = np.random.default_rng(0)
    data = [FitData(rng.normal(size=(3, n)), rng.normal(size=n), rng.uniform(0.5, 2.0, n)) for n in (50, 8)]
    there, kept = send_data(HostDriver(), data, screen_rows=10)
    records = there.view(DATA)
    assert records["n_rows"].tolist() == [50, 8] and records["screen_rows"].tolist() == [10, 8]
    assert records["inputs"].tolist() == [kept[0].ctypes.data, kept[3].ctypes.data]
    np.testing.assert_allclose(records["mass"], [d.weights.sum() for d in data])
    first = data[0]
    variances = [np.cov(first.target[:n], aweights=first.weights[:n], ddof=0) for n in (10, 50)]
    np.testing.assert_allclose(records["screen_ratio"], [variances[0] / variances[1], 1.0])
    np.testing.assert_allclose(kept[2], np.sqrt(first.weights))


def test_rows_that_count_nothing_have_no_spread() -> None:
    data = FitData(np.ones((1, 4)), np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))
    there, _ = send_data(HostDriver(), [data], screen_rows=2)
    assert np.isfinite(there.view(DATA)["screen_ratio"]).all()


@pytest.mark.parametrize("n_processors", [1, 132])
@pytest.mark.parametrize("size", SIZES)
def test_every_candidate_has_a_warp_and_of_few_each_its_own(size: Size, n_processors: int) -> None:
    class Driver(HostDriver):
        processors = n_processors

        def launch(self, source: str, name: str, **options: Any) -> None:
            launched.append(options)

    for most in (1, 20, 1000, 500_000):
        launched: list[dict] = []
        launch_fit(Driver(), size, None, None, None, None, None, most=most)
        (options,) = launched
        assert most <= options["blocks"] * FITS_PER_WARP and options["blocks"] <= most
        assert options["blocks"] == most or options["blocks"] >= 32 * n_processors
        assert options["threads"] == 32 and options["shared"] == work_bytes(size)
