"""Operon through pyoperon's scikit-learn class. Its constants are single precision, so 1e-6 is as exact as it gets.

The class offers no early stop; the algorithm underneath calls back after each generation and ends when that raises.
"""

import job
import numpy as np

SYMBOLS = "add,sub,mul,div,sin,cos,exp,log,sqrt,square,tanh,constant,variable"
SOLVED = 1e-6


class Solved(Exception):
    pass


def ready(settings):
    import pyoperon as op
    from pyoperon.sklearn import SymbolicRegressor

    plain = op.NSGA2Algorithm

    def fit(X, y):
        data = op.Dataset(np.asfortranarray(np.column_stack((X, y))))
        rows, table = op.Range(0, len(y)), op.DispatchTable()

        def error(tree):
            values = np.asarray(op.Evaluate(table, tree, data, rows), dtype=float).reshape(-1)
            basis = np.column_stack((values, np.ones_like(values)))
            if not np.isfinite(values).all():
                return np.inf
            residual = y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
            return np.sqrt(np.mean(residual**2)) / np.std(y)

        class Watched:
            """The algorithm, asked after each generation whether its front holds an exact model."""

            def __init__(self, *arguments):
                self.algorithm = plain(*arguments)

            def __getattr__(self, name):
                return getattr(self.algorithm, name)

            def Run(self, rng, callback, threads, warm_start):
                generation = 0

                def after_generation():
                    nonlocal generation
                    generation += 1
                    if generation < 3:
                        return
                    close = [one for one in self.algorithm.BestFront if one.GetFitness(0) <= -1 + 1e-6]
                    if any(error(one.Genotype) < SOLVED for one in close):
                        raise Solved

                return self.algorithm.Run(rng, after_generation, threads, warm_start)

        op.NSGA2Algorithm = Watched
        model = SymbolicRegressor(
            allowed_symbols=SYMBOLS,
            objectives=["r2", "length"],
            optimizer_iterations=10,
            model_selection_criterion="mean_squared_error",
            generations=100_000,
            max_evaluations=100_000_000,
            max_time=max(1, int(settings["max_time"])),
            n_threads=settings["threads"],
            random_state=settings["seed"],
        )
        model.fit(X, y)
        text = model.get_model_string(model.model_, 12, [f"x{i + 1}" for i in range(X.shape[1])])
        return text.replace("^", "**"), None

    return fit


job.main(ready)
