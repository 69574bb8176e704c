"""One fit of gmeql: a job on stdin, equations as text on stdout."""

from __future__ import annotations

import json
import sys

import numpy as np

from gmeql import GMEQLDynamics


def main() -> None:
    job = json.load(sys.stdin)
    model = GMEQLDynamics(
        max_time=job["seconds"], n_jobs=job["threads"], random_state=job["seed"], feature_names=job["states"]
    ).fit(np.array(job["X"]), np.array(job["t"]))
    front = [[member.loss, member.complexity, [e.exact() for e in member.equations]] for member in model.systems_]
    print(json.dumps({
        "equations": [equation.exact() for equation in model.equations_], "front": front,
        "candidates": model.candidates_, "reason": model.stop_reason_, "fit_seconds": model.seconds_,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
