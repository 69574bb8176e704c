"""What every runner shares: read a job, fit, write the outcome. Runs in the peer's own environment, so NumPy alone.

A job is a JSON file: `data` (npz with X [N, V] and y [N]), `max_time`, `seed`, `threads`, `result` (where the outcome
goes). A runner passes `ready(job)`, which imports and prepares all it needs, and returns the function that is timed:
`fit(X, y) -> (formula, found)`: formula text over x1, x2, ...; `found`, the seconds after which the system says it had
that formula, or None.
"""

import json
import os
import resource
import sys
import time

import numpy as np


def main(ready):
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    with np.load(job["data"]) as data:
        X, y = data["X"], data["y"]
    fit = ready(job)
    start = time.perf_counter()
    formula, found = fit(X, y)
    seconds = time.perf_counter() - start
    outcome = {
        "formula": formula,
        "seconds": seconds,
        "found": found,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    partial = job["result"] + ".part"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    os.replace(partial, job["result"])
