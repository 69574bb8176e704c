"""Symmetries of the data, and the smaller tables that they allow."""

from gmeql.search.symmetries.views import View, find_views

__all__ = ["View", "find_views"]
