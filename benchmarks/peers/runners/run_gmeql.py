"""gmeql, with its defaults. A small fit first loads what is loaded when it is needed: compiled kernels, and SymPy, which
loads a part of its own with the first sum."""

import warnings

import job
import numpy as np


def ready(settings):
    from gmeql import GMEQLRegressor

    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).uniform(1, 2, (20, 1))
    common = dict(n_jobs=settings["threads"], device="cpu")
    str(
        GMEQLRegressor(max_time=60, max_candidates=256, random_state=0, **common).fit(X, X[:, 0] ** 2 + X[:, 0]).sympy()
    )
    model = GMEQLRegressor(max_time=settings["max_time"], random_state=settings["seed"], **common)

    def fit(X, y):
        model.fit(X, y)
        return str(model.sympy()), None

    return fit


job.main(ready)
