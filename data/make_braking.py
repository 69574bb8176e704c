"""Write braking.csv: how far a car goes from the driver's fright to standstill, with a tape measure's noise.

    distance = 1.1 * speed + speed^2 / (2 * 9.81 * grip) + noise of standard deviation 0.5

speed in m/s, grip is the coefficient of friction between tyre and road, distance in m; the driver takes 1.1 s to react.
Run it to make the same file again.
"""

from pathlib import Path

import numpy as np

ROWS = 120
rng = np.random.default_rng(1687)
speed = rng.uniform(5, 40, ROWS).round(1)
grip = rng.uniform(0.2, 0.9, ROWS).round(2)
distance = (1.1 * speed + speed**2 / (2 * 9.81 * grip) + rng.normal(0, 0.5, ROWS)).round(2)

lines = ["speed,grip,distance"]
lines += [f"{v},{g},{d}" for v, g, d in zip(speed, grip, distance, strict=True)]
Path(__file__).with_name("braking.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
