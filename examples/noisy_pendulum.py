"""A physics law from noisy measurements: the period of a pendulum, with its constants' confidence intervals.

Lengths, masses and amplitudes are varied, periods are timed with a hand-held watch (30 ms of noise). The mass has no
part in the law and the small amplitudes hardly any; a good answer says so.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gmeql import GMEQLRegressor

rng = np.random.default_rng(0)
rows = 150
table = pd.DataFrame(
    {
        "length": rng.uniform(0.1, 3.0, rows),  # metres
        "mass": rng.uniform(0.05, 1.0, rows),  # kilograms
        "amplitude": rng.uniform(0.02, 0.15, rows),  # radians
    }
)
period = 2 * np.pi * np.sqrt(table["length"] / 9.81) * (1 + table["amplitude"] ** 2 / 16)
measured = period + 0.03 * rng.standard_normal(rows)

model = GMEQLRegressor(max_time=5, random_state=0).fit(table, measured)
print("formula:  period =", model.expression_)
print("the law:  period =", f"{2 * np.pi / np.sqrt(9.81):.4f}*sqrt(length)")
print(model.front_)

for interval in model.intervals(table, measured):
    print(f"constant {interval.value:.4f}, 95 % between {interval.low:.4f} and {interval.high:.4f}")

error = np.sqrt(np.mean((model.predict(table) - period) ** 2))
print(f"distance to the true periods: {1000 * error:.1f} ms, from measurements with 30 ms of noise")
