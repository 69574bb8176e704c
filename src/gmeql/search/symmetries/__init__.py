"""Symmetries of the data, and the smaller tables that they allow."""

from gmeql.search.symmetries.smaller import find_views
from gmeql.search.symmetries.views import View

__all__ = ["View", "find_views"]
