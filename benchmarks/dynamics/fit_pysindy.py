"""One fit of PySINDy: a job on stdin, equations as text on stdout.

Its documented choices, all of them tried: polynomials of degree 2 and 3, with and without sine and cosine; sequentially
thresholded least squares with seven thresholds; finite differences, smoothed finite differences and a spline's slopes. Of
these models the one whose simulation from the first point has the smallest Bayesian information criterion is returned.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import pysindy as ps
from scipy.integrate import solve_ivp


def main() -> None:
    warnings.simplefilter("ignore")
    job = json.load(sys.stdin)
    t, X, names = np.array(job["t"]), np.array(job["X"]), job["states"]
    late = time.process_time() + job["seconds"]  # of the processor: a busy machine costs it nothing
    best: tuple[float, list[str]] = (np.inf, [])
    for degree, waves in ((2, False), (3, False), (2, True)):
        for differentiation in (
            ps.FiniteDifference(order=2),
            ps.SmoothedFiniteDifference(smoother_kws={"window_length": min(11, len(t) // 2 * 2 - 1)}),
            ps.SINDyDerivative(kind="spline", s=1e-2),
        ):
            for threshold in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
                if time.process_time() > late:
                    break
                library = ps.PolynomialLibrary(degree=degree)
                if waves:
                    library = ps.ConcatLibrary([library, ps.FourierLibrary(n_frequencies=1)])
                model = ps.SINDy(
                    optimizer=ps.STLSQ(threshold=threshold), feature_library=library,
                    differentiation_method=differentiation,
                )  # fmt: skip
                try:
                    model.fit(X, t=t, feature_names=names)
                    length = criterion(model, X, t)
                except (ValueError, np.linalg.LinAlgError, RuntimeError):
                    continue
                if length < best[0]:
                    best = (length, equations(model, names))
    print(json.dumps({"equations": best[1]}))


def criterion(model: ps.SINDy, X: np.ndarray, t: np.ndarray) -> float:
    """Bayesian information criterion of the simulated trajectory; infinite where it runs away."""
    calls = 0

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 20_000 or not np.abs(x).max() < 1e6:
            raise ValueError("runs away")
        return model.predict(x[None, :])[0]

    solved = solve_ivp(slope, (t[0], t[-1]), X[0], t_eval=t, method="LSODA", rtol=1e-6, atol=1e-8)
    if solved.y.shape[1] < len(t):
        return np.inf
    error = np.mean((solved.y.T - X) ** 2, axis=0) / X.var(axis=0)
    terms = int(np.count_nonzero(model.coefficients()))
    return float(len(t) * np.log(error + 1e-16).sum() + terms * np.log(X.size))


def equations(model: ps.SINDy, names: list[str]) -> list[str]:
    """Right sides with every digit, in Python's notation."""
    features = [name.replace("^", "**").replace(" ", "*") for name in model.get_feature_names()]
    found = []
    for row in model.coefficients():
        terms = [f"({float(c)!r})*{term}" for c, term in zip(row, features, strict=True) if c != 0]
        found.append(" + ".join(terms) or "0")
    return found


if __name__ == "__main__":
    main()
