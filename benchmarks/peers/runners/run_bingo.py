"""Bingo with the settings of its SRBench entry."""

import re
import warnings

import job

OPERATORS = ["+", "-", "*", "/", "sin", "cos", "exp", "log", "sqrt"]
"""tanh is in its table, but fails when a formula with it is evaluated."""


def ready(settings):
    from bingo.symbolic_regression.symbolic_regressor import SymbolicRegressor

    warnings.simplefilter("ignore")

    def fit(X, y):
        model = SymbolicRegressor(
            population_size=500,
            stack_size=24,
            operators=OPERATORS,
            use_simplification=True,
            crossover_prob=0.3,
            mutation_prob=0.45,
            metric="mse",
            clo_alg="lm",
            max_time=settings["max_time"],
            evolutionary_algorithm="AgeFitnessEA",
            clo_threshold=1e-5,
            random_state=settings["seed"],
        )
        model.fit(X, y)
        text = model.get_best_individual().equation.get_formatted_string("sympy")
        return re.sub(r"\bX_(\d+)\b", lambda match: f"x{int(match[1]) + 1}", text), None

    return fit


job.main(ready)
