"""gplearn with the settings of its SRBench entry. It knows no time limit, so it is continued a generation at a time."""

import time
import warnings

import job
import numpy as np

SOLVED = 1e-9
"""Mean absolute error, in units of std(y), at which it may stop."""
INFIX = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "sqrt": "sqrt(abs({}))",
    "log": "log(abs({}))",
    "square": "({})**2",
}


def infix(program):
    """Its prefix program as formula text; the guards of its protected operators near 0 are left out."""
    stack = []
    for node in reversed(program.program):
        if isinstance(node, int | np.integer):
            stack.append(f"x{node + 1}")
        elif isinstance(node, float | np.floating):
            stack.append(f"({float(node)!r})")
        else:
            arguments = [stack.pop() for _ in range(node.arity)]
            stack.append(INFIX.get(node.name, node.name + "({})").format(*arguments))
    return stack[0]


def ready(settings):
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    warnings.simplefilter("ignore")

    def exp(x):
        return np.exp(np.minimum(x, 50.0))

    functions = ["add", "sub", "mul", "div", "sqrt", "log", "sin", "cos"]
    functions += [
        make_function(function=f, name=name, arity=1, wrap=False)
        for name, f in (("exp", exp), ("tanh", np.tanh), ("square", np.square))
    ]

    def fit(X, y):
        end = time.perf_counter() + settings["max_time"]
        solved = SOLVED * float(np.std(y))
        model = SymbolicRegressor(
            population_size=1000,
            generations=1,
            tournament_size=20,
            parsimony_coefficient=0.001,
            p_crossover=0.9,
            p_subtree_mutation=0.01,
            p_hoist_mutation=0.01,
            p_point_mutation=0.01,
            p_point_replace=0.05,
            function_set=functions,
            stopping_criteria=solved,
            warm_start=True,
            low_memory=True,
            n_jobs=settings["threads"],
            random_state=settings["seed"],
        )
        with np.errstate(all="ignore"):
            model.fit(X, y)
            while model._program.raw_fitness_ > solved and time.perf_counter() < end:
                model.set_params(generations=model.generations + 1)
                model.fit(X, y)
        return infix(model._program), None

    return fit


job.main(ready)
