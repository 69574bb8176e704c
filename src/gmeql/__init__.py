"""gmeql: symbolic regression with Gumbel-Max Equation Learner networks.

>>> import gmeql
>>> gmeql.get_operator("+").name
'add'

Public names are imported on first use: `import gmeql` alone loads neither JAX nor SymPy nor Numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmeql._version import __version__
    from gmeql.differential.fields.field import GMEQLField
    from gmeql.differential.motion.dynamics import GMEQLDynamics
    from gmeql.differential.motion.invariant import invariant
    from gmeql.differential.solving.solutions import Solution, Solutions
    from gmeql.differential.solving.solve import solve
    from gmeql.estimator import GMEQLClassifier, GMEQLRegressor, fit_formula
    from gmeql.evaluation.problems import Problem, judge, load_suite
    from gmeql.formula.expression import Expression
    from gmeql.formula.operators import Operator, get_operator
    from gmeql.formula.registration import register_operator
    from gmeql.model.fit.ranges import RangeWarning
    from gmeql.model.pareto.front import Front
    from gmeql.network.architecture import Architecture, architecture_preset
    from gmeql.search.config import SearchConfig
    from gmeql.search.events import Member, Progress
    from gmeql.search.search import Search

_HOME = {
    "__version__": "_version",
    "Architecture": "network.architecture",
    "architecture_preset": "network.architecture",
    "GMEQLClassifier": "estimator",
    "GMEQLDynamics": "differential.motion.dynamics",
    "invariant": "differential.motion.invariant",
    "GMEQLField": "differential.fields.field",
    "GMEQLRegressor": "estimator",
    "fit_formula": "estimator",
    "Expression": "formula.expression",
    "Front": "model.pareto.front",
    "RangeWarning": "model.fit.ranges",
    "Operator": "formula.operators",
    "get_operator": "formula.operators",
    "register_operator": "formula.registration",
    "Problem": "evaluation.problems",
    "judge": "evaluation.problems",
    "load_suite": "evaluation.problems",
    "Member": "search.events",
    "Progress": "search.events",
    "Search": "search.search",
    "SearchConfig": "search.config",
    "Solution": "differential.solving.solutions",
    "Solutions": "differential.solving.solutions",
    "solve": "differential.solving.solve",
}

__all__ = [
    "Architecture",
    "Expression",
    "Front",
    "GMEQLClassifier",
    "GMEQLDynamics",
    "GMEQLField",
    "GMEQLRegressor",
    "Member",
    "Operator",
    "Problem",
    "Progress",
    "RangeWarning",
    "Search",
    "SearchConfig",
    "Solution",
    "Solutions",
    "__version__",
    "architecture_preset",
    "fit_formula",
    "get_operator",
    "invariant",
    "judge",
    "load_suite",
    "register_operator",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gmeql' has no attribute {name!r}; public names: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"gmeql.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
