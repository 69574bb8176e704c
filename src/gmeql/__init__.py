"""gmeql: symbolic regression with Gumbel-Max Equation Learner networks.

>>> import gmeql
>>> gmeql.get_operator("+").name
'add'

Public names are imported on first use: `import gmeql` alone loads neither JAX nor SymPy nor Numba.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmeql.architecture import Architecture, architecture_preset
    from gmeql.estimator import GMEQLRegressor, fit_formula
    from gmeql.expression import Expression
    from gmeql.front import Front
    from gmeql.operators import Operator, get_operator, register_operator
    from gmeql.problems import Problem, judge, load_suite
    from gmeql.search import Member, Progress, Search, SearchConfig

try:
    __version__ = version("gmeql")
except PackageNotFoundError:  # the source tree on sys.path without an installation
    __version__ = "0.0.0"

_HOME = {
    "Architecture": "architecture",
    "architecture_preset": "architecture",
    "GMEQLRegressor": "estimator",
    "fit_formula": "estimator",
    "Expression": "expression",
    "Front": "front",
    "Operator": "operators",
    "get_operator": "operators",
    "register_operator": "operators",
    "Problem": "problems",
    "judge": "problems",
    "load_suite": "problems",
    "Member": "search",
    "Progress": "search",
    "Search": "search",
    "SearchConfig": "search",
}

__all__ = [
    "Architecture",
    "Expression",
    "Front",
    "GMEQLRegressor",
    "Member",
    "Operator",
    "Problem",
    "Progress",
    "Search",
    "SearchConfig",
    "__version__",
    "architecture_preset",
    "fit_formula",
    "get_operator",
    "judge",
    "load_suite",
    "register_operator",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gmeql' has no attribute {name!r}; public names: {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"gmeql.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
