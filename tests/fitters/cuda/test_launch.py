"""Data sets as the kernel reads them."""

from __future__ import annotations

import numpy as np
from host_cuda import HostDriver

from gmeql.fitters.cuda.launch import send_data
from gmeql.fitters.cuda.source import DATA
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
