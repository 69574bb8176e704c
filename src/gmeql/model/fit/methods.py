"""The one table of methods: by what name a search is asked for, what it is, and the class that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Method:
    """One way to search. Classes of all methods have the interface of `gmeql.search.search.Search`."""

    description: str
    load: Callable[[], Any]
    """Imports the class: the paper's methods need JAX, which takes seconds to load."""
    takes_weights: bool = False
    """Whether rows have weights, so that equal ones can be merged into one."""
    takes_functions: bool = False
    """Whether its networks are built of a set of functions; else they are given whole, as an architecture."""
    takes_knowledge: bool = False
    """Whether units, outer forms and constraints steer it."""
    takes_groups: bool = False
    """Whether groups of rows can have constants of their own."""
    takes_losses: bool = False
    """Whether constants can minimise another loss than the squared error."""
    takes_complexity: bool = False
    """Whether its formulas can be kept below a complexity."""
    ends_alone: bool = True
    """Whether a schedule of its own ends it; else it needs a budget."""
    compiled: bool = False
    """Whether it has kernels to load before the clock starts."""


def _fitted() -> Any:
    from gmeql.search.search import Search

    return Search


def searcher_of(method: str, config: Any) -> Any:
    """The class that searches by a method: inside a template one of its own."""
    if config.knowledge is not None and config.knowledge.template is not None:
        from gmeql.search.templates.search import TemplateSearch

        return TemplateSearch
    return METHODS[method].load()


def _paper() -> Any:
    from gmeql.paper.search import PaperSearch

    return PaperSearch


def _released() -> Any:
    from gmeql.paper.search import ReleasedSearch

    return ReleasedSearch


METHODS = {
    "fitted": Method(
        "islands of networks whose every formula gets constants of its own",
        _fitted,
        takes_weights=True,
        takes_functions=True,
        takes_knowledge=True,
        takes_groups=True,
        takes_losses=True,
        takes_complexity=True,
        ends_alone=False,
        compiled=True,
    ),
    "paper": Method("Algorithm 1 of the GMEQL paper: one network with shared weights", _paper),
    "released": Method("the same with the settings of its authors' released code", _released),
}
