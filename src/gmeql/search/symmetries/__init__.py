"""Symmetries of the data, and the smaller tables that they allow."""
