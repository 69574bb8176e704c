"""Several targets at once: the orbit of a charged particle in a magnetic field."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gmeql import GMEQLRegressor

rng = np.random.default_rng(0)
rows = 200
table = pd.DataFrame(
    {
        "time": rng.uniform(0, 3, rows),
        "field": rng.uniform(0.5, 2, rows),
        "speed": rng.uniform(1, 3, rows),
    }
)
phase = table["field"] * table["time"]
targets = pd.DataFrame(
    {
        "radius": table["speed"] / table["field"],
        "vx": table["speed"] * np.cos(phase),
        "vy": table["speed"] * np.sin(phase),
    }
)

model = GMEQLRegressor(max_time=30, random_state=0).fit(table, targets)  # the time is shared between the targets
for name, expression, reason in zip(targets.columns, model.expression_, model.stop_reason_, strict=True):
    print(f"{name} = {expression}   ({reason})")

worst = np.abs(model.predict(table) - targets.to_numpy()).max(axis=0)
print("largest error of each:", worst)

model.save("orbit.json")
again = GMEQLRegressor.load("orbit.json")
assert np.array_equal(again.predict(table), model.predict(table))
