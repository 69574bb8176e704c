"""Write cooling.csv: mugs of tea that cool in a room of 21 degrees, after Newton's law, with a thermometer's noise.

    temperature = 21 + (start - 21) * exp(-0.055 * minutes) + noise of standard deviation 0.3

Run it in this folder to make the same file again.
"""

from pathlib import Path

import numpy as np

rng = np.random.default_rng(1701)
minutes = rng.uniform(0, 60, 150).round(1)
start = rng.uniform(55, 95, 150).round(1)
temperature = (21 + (start - 21) * np.exp(-0.055 * minutes) + rng.normal(0, 0.3, 150)).round(2)

lines = ["minutes,start,temperature"]
lines += [f"{m},{s},{t}" for m, s, t in zip(minutes, start, temperature, strict=True)]
Path(__file__).with_name("cooling.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
